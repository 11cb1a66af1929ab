"""Spec files as the reference's YAML reads them, by libyaml and by Python alike."""

import importlib.util
import json
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cdi_runc.errors import BadSpec
from cdi_runc.specs import check, decode, document, yaml_nodes


@pytest.fixture(params=["libyaml", "python"])
def nodes(request, monkeypatch):
    """Return the module that composes nodes, with libyaml and without."""
    if request.param == "python":
        monkeypatch.setitem(sys.modules, "yaml.cyaml", None)
        monkeypatch.setitem(sys.modules, "yaml._yaml", None)
    elif not yaml.__with_libyaml__:
        pytest.skip("PyYAML is built without libyaml")
    source = importlib.util.spec_from_file_location("nodes", yaml_nodes.__file__)
    module = importlib.util.module_from_spec(source)
    source.loader.exec_module(module)
    return module


def value(nodes, data):
    """Return the value of the first document in *data*."""
    root = nodes.compose(data)
    return None if root is None else nodes.Construction().value(root)


def test_libyaml_is_used_where_it_is():
    """PyYAML's own parser takes several times as long, so it is only for where libyaml is not."""
    mro = [base.__name__ for base in yaml_nodes._Composer.__mro__]  # noqa: SLF001

    assert bool(yaml.__with_libyaml__) == ("CParser" in mro)


SCALARS = [
    ("0660", 432),
    ("0o660", 432),
    ("0x1b0", 432),
    ("0b11", 3),
    ("432", 432),
    ("660", 660),
    ("0888", 888.0),
    ('"0660"', "0660"),
    ("'0660'", "0660"),
    ("007", 7),
    ("1_95", 195),
    ("+1", 1),
    ("-1", -1),
    ("195.0", 195.0),
    ("1e2", 100.0),
    ("1.10", 1.1),
    (".5", 0.5),
    ("1.", 1.0),
    ("18446744073709551615", 18446744073709551615),
    ("18446744073709551616", 18446744073709551616.0),
    ("1:30", "1:30"),
    ("2024-01-02", "2024-01-02"),
    ("0o8", "0o8"),
    ("1.1.0", "1.1.0"),
    ("on", True),
    ("y", True),
    ("Yes", True),
    ("yEs", "yEs"),
    ("off", False),
    ("n", False),
    ("~", None),
    ("null", None),
    ("", None),
    ("!!str 7", "7"),
    ("!!int '7'", 7),
    ("!!float 7", 7.0),
    ("!mine 7", 7),
    ("!!binary aGk=", "hi"),
    ("a#b", "a#b"),
    ("a #b", "a"),
    ("'it''s'", "it's"),
    (r'"\x41\u00e9\n"', "Aé\n"),
    ("|\n  a\n  b\n", "a\nb\n"),
    (">\n  a\n  b\n", "a b\n"),
]


@pytest.mark.parametrize(("text", "expected"), SCALARS, ids=[repr(text) for text, _ in SCALARS])
def test_scalar_is_what_the_reference_makes_of_it(nodes, text, expected):
    """YAML 1.1 as go-yaml 2 reads it: octal modes, words for true and false, no times of day."""
    (found,) = value(nodes, f"a: {text}\n".encode()).values()

    assert (type(expected), expected) == (type(found), found)


@pytest.mark.parametrize("text", ["a:\t7", "a: 7\t# x", "a:\n  b:\t\t7", "a: 7 \t\nb: 8"])
def test_tabs_may_stand_between_tokens(text):
    """A tab behind a key or a value is a blank, as in the reference's YAML."""
    if not yaml.__with_libyaml__:
        pytest.skip("PyYAML is built without libyaml")

    assert document.read(text.encode()) == document.read(text.replace("\t", " ").encode())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", None, id="nothing"),
        pytest.param(b"# only a comment\n", None, id="comment"),
        pytest.param(b"---\n", None, id="separator"),
        pytest.param(b"null", None, id="null"),
        pytest.param(b"\xef\xbb\xbfa: 1", {"a": 1}, id="byte-order-mark"),
        pytest.param("a: é".encode("utf-16"), {"a": "é"}, id="utf-16"),
        pytest.param(b"a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}, id="crlf"),
        pytest.param(b"a: 1\n---\nb: [\n", {"a": 1}, id="broken-second-document"),
        pytest.param(b'{"a": 1}{"b": 2}', {"a": 1}, id="second-object"),
        pytest.param(b'{"a": 1,}', {"a": 1}, id="trailing-comma"),
        pytest.param(b'{"a": 1 # x\n}', {"a": 1}, id="comment-in-json"),
        pytest.param(b'{\n\t"a":\t[\t1\t]\n}', {"a": [1]}, id="tabs-in-json"),
        pytest.param(b'{"a\tb": "#\t"}', {"a\tb": "#\t"}, id="tabs-in-text"),
        pytest.param(b"{a: 'x\ty'}", {"a": "x\ty"}, id="tab-in-single-quotes"),
        pytest.param(b"a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}, id="alias"),
        pytest.param(b"a: {<<: {b: 1}, c: 2}", {"a": {"b": 1, "c": 2}}, id="merge"),
        pytest.param(b"a: {<<: [{b: 1}, {c: 2}]}", {"a": {"b": 1, "c": 2}}, id="merge-of-list"),
        pytest.param(b"true: 1\n7: 2\n", {"true": 1, "7": 2}, id="keys-as-text"),
    ],
)
def test_document_is_read(nodes, data, expected):
    """The first document counts, in any encoding that YAML knows."""
    assert expected == value(nodes, data)


@pytest.mark.parametrize(
    ("data", "words", "place"),
    [
        pytest.param(b"a: 1\na: 2\n", "key 'a' is given twice", (2, 1), id="key-twice"),
        pytest.param(b'{"a": 1, "\\u0061": 2}', "given twice", (1, 10), id="key-twice-escaped"),
        pytest.param(b"a: {<<: {b: 1}, b: 2}", "given twice", (1, 17), id="merged-key-twice"),
        pytest.param(b"x:\n\ty: 1\n", "not YAML", (2, 1), id="tab-as-indentation"),
        pytest.param(b"a: [1,\n", "not YAML", None, id="open-list"),
        pytest.param(b"a: b: c\n", "not YAML", (1, 5), id="two-colons"),
        pytest.param(b"a: *b\n", "undefined alias", (1, 4), id="unknown-alias"),
        pytest.param(b"a: &b [*b]\n", "refers to what holds it", None, id="alias-in-itself"),
        pytest.param(b"a: &b {c: *b}\n", "refers to what holds it", None, id="alias-in-mapping"),
        pytest.param(b"? [a]\n: 1\n", "a key must be text", (1, 3), id="list-as-key"),
        pytest.param(b"~: 1\n", "a key must be text", (1, 1), id="null-as-key"),
        pytest.param(b'a: "\\/"\n', "unknown escape", (1, 4), id="escaped-slash"),
        pytest.param(b"a: \xe9\n", "not YAML", None, id="latin-1"),
        pytest.param(b"a: \x00\n", "not YAML", None, id="nul"),
        pytest.param(b"a: {<<: 1}\n", "merge", (1, 9), id="merge-of-number"),
    ],
)
def test_document_is_refused(nodes, data, words, place):
    """What is no YAML, or says one thing twice, is refused with its place."""
    with pytest.raises(BadSpec, match=words) as caught:
        value(nodes, data)

    assert 1 <= caught.value.line <= data.count(b"\n") + 1
    if place:
        assert place == (caught.value.line, caught.value.column)


BOMB = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 9)) for i in range(8)
)
DEEP = [
    pytest.param(b"[" * 50_000, id="lists-open"),
    pytest.param(b"[" * 50_000 + b"]" * 50_000, id="lists"),
    pytest.param(b'{"a":' * 50_000 + b"1" + b"}" * 50_000, id="objects"),
    pytest.param(b"- " * 5_000 + b"a", id="block"),
    pytest.param(b"- " * 1_000_000 + b"a", id="block-of-megabytes"),
    pytest.param(b"a: " + b"[" * 1_000_000, id="lists-of-a-megabyte"),
    pytest.param(BOMB, id="aliases"),
]


@pytest.mark.parametrize("data", DEEP)
def test_what_has_no_measure_is_refused(data):
    """A file of a few kilobytes cannot take a create's time, memory or stack."""
    with pytest.raises(BadSpec, match=r"nest|aliases expand"):
        document.read(data)


LETTERS = "aé/#:-\\\"'{}[],&*\n\t 0\x7f\x85\u2028\ufffe"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(LETTERS, max_size=6),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab<: "), inner),
    max_leaves=12,
)


@given(JSON.filter(lambda found: isinstance(found, (list, dict))))
def test_json_is_read_as_yaml_reads_it(found):
    """A .json file is the same by the fast reader and by YAML, or refused by both."""
    data = json.dumps(found, ensure_ascii=False, indent=1).encode()
    results = []
    for read in (document.read, lambda data: value(yaml_nodes, data)):
        try:
            results.append(read(data))
        except BadSpec:
            results.append(BadSpec)

    assert results[0] == results[1]


DECODED = [
    pytest.param("5", "string", "5", id="number-as-text"),
    pytest.param("007", "string", "7", id="octal-as-text"),
    pytest.param("1.10", "string", "1.1", id="float-as-text"),
    pytest.param("1e3", "string", "1000", id="exponent-as-text"),
    pytest.param("1e6", "string", "1e+06", id="large-float-as-text"),
    pytest.param("on", "string", "true", id="boolean-as-text"),
    pytest.param("{a: 1}", "string", None, id="object-as-text"),
    pytest.param("[1]", "string", None, id="list-as-text"),
    pytest.param('"a\\0b"', "string", None, id="nul"),
    pytest.param("195.0", "integer", 195, id="whole-float"),
    pytest.param("1e2", "integer", 100, id="whole-exponent"),
    pytest.param("1.5", "integer", None, id="fraction"),
    pytest.param('"195"', "integer", None, id="text-as-number"),
    pytest.param("on", "integer", None, id="boolean-as-number"),
    pytest.param(".inf", "integer", None, id="infinity"),
    pytest.param(".nan", "integer", None, id="not-a-number"),
    pytest.param("9223372036854775808", "integer", None, id="over-64-bits"),
    pytest.param("on", "boolean", True, id="word-as-boolean"),
    pytest.param('"true"', "boolean", None, id="text-as-boolean"),
    pytest.param("1", "boolean", None, id="number-as-boolean"),
]


@pytest.mark.parametrize(("text", "wanted", "expected"), DECODED)
def test_value_is_decoded_as_its_type(text, wanted, expected):
    """Scalars become text where text is wanted; everything else must be of its type."""
    told = []
    schema = {"type": "object", "properties": {"a": {"type": wanted}}}
    found = decode.decode(
        document.read(f"a: {text}".encode()), schema, lambda *fault: told.append(fault)
    )

    assert ({} if expected is None else {"a": expected}) == found
    assert ["/a"] * (expected is None) == [pointer for pointer, _ in told]


@pytest.mark.parametrize(
    ("text", "pointer", "place"),
    [
        ("a:\n  b: 1\n", "/a/b", (2, 3)),
        ("a:\n- b\n- c: 1\n", "/a/1/c", (3, 3)),
        ("a: {b: [1, 2]}\n", "/a/b/1", (1, 12)),
        ('{"x/y": {"~": 1}}', "/x~1y/~0", (1, 10)),
        ("A: 1\n", "/a", (1, 1)),
        ("a: 1\n", "/nowhere/at/all", (1, 1)),
    ],
)
def test_pointer_is_located(text, pointer, place):
    """A pointer leads to line and column, or to the nearest that is there."""
    assert place == document.locate(text.encode(), pointer)


VERSIONS = [
    ("{env: [A=1]}", "0.3.0"),
    ("{mounts: [{hostPath: /a, containerPath: /b, type: bind}]}", "0.4.0"),
    ("{deviceNodes: [{path: /a, hostPath: /b}]}", "0.5.0"),
    ("{additionalGids: [44]}", "0.7.0"),
    ("{intelRdt: {closID: a}}", "0.7.0"),
    ("{intelRdt: {schemata: [a]}}", "1.1.0"),
    ("{intelRdt: {enableMonitoring: true}}", "1.1.0"),
    ("{netDevices: [{hostInterfaceName: a, name: b}]}", "1.1.0"),
]


@pytest.mark.parametrize(("edits", "version"), VERSIONS)
def test_lowest_version_is_known(edits, version):
    """What a file uses decides which version it needs; one older is refused, and names both."""
    text = "cdiVersion: {}\nkind: a.b/c\ndevices: [{{name: d, containerEdits: {}}}]\n"
    _, decoded, findings = check.decoded_spec(text.format(version, edits).encode())
    older = check.VERSIONS[check.VERSIONS.index(version) - 1]
    (refused,) = check.decoded_spec(text.format(older, edits).encode())[2]

    assert ([], version) == (findings, check.minimum_version(decoded))
    assert f"needs cdiVersion {version} or newer, and the file says {older}" in refused.message


def test_what_is_missing_is_not_shown_as_an_empty_text():
    """A file without kind and cdiVersion is told that it has none."""
    _, found = check.examine(b"devices: [{name: a, containerEdits: {env: [A=1]}}]")

    assert {
        ("/kind", "the file has no kind, which is of the form vendor.com/class"),
        ("/cdiVersion", "the file has no cdiVersion; known: 0.3.0"),
    } == {(one.pointer, one.message.partition(", 0.4.0")[0]) for one in found}
