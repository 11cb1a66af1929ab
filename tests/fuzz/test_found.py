"""What fuzzing found, each fault by a name of its own."""

import contextlib
import io
import json

import pytest

from cdi_runc import create, invocation, jsonio, requests, rootfs
from cdi_runc.cli import audit, records, rendering, replay
from cdi_runc.config import load, salvage
from cdi_runc.engines import config_file, daemon_json
from cdi_runc.errors import BadBundle, BadConfiguration, BadRequest, BadSpec, CdiRuncError
from cdi_runc.specs import check, compile, document, yaml_nodes  # noqa: A004

from . import bombs, targets
from .bombs import edit, record


@pytest.fixture
def here(tmp_path):
    """Return places of the test's own."""
    with targets.places(str(tmp_path)):
        yield targets.here()


def test_more_faults_than_anybody_reads_are_not_all_told():
    """A file is composed once for all its faults, and the thousandth is the last."""
    _, findings = check.examine(bombs.HEAD + b"".join(b"k%d: 1\n" % n for n in range(2_000)))

    assert 1001 == len(findings)
    assert "unknown field 'k0'; known here:" in findings[0].message
    assert "and there are more than these 1000 faults" == findings[-1].message


def test_a_fault_quotes_a_long_text_in_part():
    """A message does not grow with the file."""
    _, findings = check.examine(b"kind: " + b"x" * 1_000_000)

    assert all(len(str(finding)) < 2 * check.LONGEST for finding in findings)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("merged-laughs", "merge keys expand to more than a million pairs"),
        ("merged-siblings", "merge keys expand to more than a million pairs"),
        ("repeated-text", "aliases expand to more than a million values"),
        ("yaml-values", "more than 500000 values"),
        ("tagged-values", "more than 500000 values"),
    ],
)
def test_yaml_that_grows_is_refused(name, words):
    """Merge keys, repeated text and mere numbers of nodes are counted, as aliases are."""
    with pytest.raises(BadSpec, match=words):
        document.read(bombs.SPEC[name]())


def test_a_quotation_mark_that_is_never_closed_is_searched_once():
    """Tabs behind it are blanks, and the search takes no more than one pass."""
    data = b'{\t"' + b'\\"' * 1_000_000 + b"\t"

    assert b'{ "' + b'\\"' * 1_000_000 + b" " == yaml_nodes._without_tabs(data)
    assert b'{ "a\tb": 1}' == yaml_nodes._without_tabs(b'{\t"a\tb":\t1}')


@pytest.mark.parametrize("digits", [str(1 << 64), str(-(1 << 63) - 1), "9" * 400])
def test_integers_of_more_than_64_bits_are_floats_in_json_too(digits):
    """JSON and YAML read the same, as the reference does."""
    as_json = document.read(f'{{"a":{digits}}}'.encode())

    assert {"a": float(digits)} == as_json == document.read(f"a: {digits}".encode())
    assert type(as_json["a"]) is float


def test_the_kind_of_a_file_of_empty_lines_is_found_at_once(here):
    """The search for a kind does not begin anew over all that follows each line."""
    path = here.write("one/a.json", b"\n" * 60_000 + b'{\n "kind": "a.b/c"')

    assert "a.b/c" == compile._spoken_kind(path)


def test_a_guess_of_one_long_word_takes_one_pass(here):
    """What looks like a prefix in a broken configuration is found in linear time."""
    guess = salvage.guess(here.write("c", b"a" * 900_000 + b"\n- //x.y/z/ q/r"), "broken")

    assert {"x.y/z/", "q/"} == {*guess.annotations} - {"cdi.k8s.io/"}


@pytest.mark.parametrize(
    "text",
    [
        r'runtime: "runc\n"',
        r'runtime: "a\0b"',
        r'state_dir: "/a\0"',
        r'spec_dirs: ["/a\0"]',
        r'audit: {file: "/a\0"}',
        r'log: {file: "/a\0"}',
        r'requests: {annotations: ["a/\n"]}',
        r'requests: {environment: {"A\n": {}}}',
        r'requests: {environment: {A: {kind: "a/b\n"}}}',
        r'requests: {mounts: "/a\n"}',
    ],
)
def test_a_line_break_or_nul_in_the_configuration_is_refused(text):
    """It would be a line of its own among the launcher's patterns, or a path of no file."""
    with pytest.raises(BadConfiguration, match="is not written as it must be"):
        load.parse("x", text.encode())


def test_a_configuration_of_many_faults_is_composed_once():
    """Each fault has its line, and there are no more than a thousand."""
    data = b"".join(b"k%d: 1\n" % n for n in range(2_000))
    faults = load.findings(document.read(data), data)

    assert 1000 == len(faults)
    assert faults[0].startswith("line 1: unknown key 'k0'")


def test_a_number_of_many_digits_in_daemon_json():
    """Python's own limit is told as a fault of the file."""
    with pytest.raises(daemon_json.BadDaemonJson, match="too many digits"):
        daemon_json.read('{"a":' + "1" * 5000 + "}")


@pytest.mark.parametrize("path", ["a\0b", "/\0", "\ud800"])
def test_a_root_path_that_no_file_has_is_no_doubt(path):
    """A NUL in root.path is left to the runtime to refuse."""
    assert "" == rootfs.doubt([], {"root": {"path": path}}, "/b")


@pytest.mark.parametrize("depth", [984, 985, 986, 987, 988, 989])
def test_config_json_that_can_be_read_and_not_written(here, depth):
    """What is nested so deeply is refused in words, and the file stays."""
    data = bombs.asks(b'"x":' + b"[" * depth + b"]" * depth)
    here.write("bundle/config.json", data)
    try:
        create.prepare(here.call, here.settings, "/bin/true")
    except BadBundle as error:
        assert "nested too deeply" in error.message or "not JSON" in error.message
        assert data == here.read("bundle/config.json")
    else:
        assert data != here.read("bundle/config.json")


@pytest.mark.parametrize(
    "config",
    [
        {"annotations": {"cdi.k8s.io/x": ",".join(["a/b=c"] * 5_000)}},
        {"process": {"env": ["CDI_DEVICES=" + ",".join(["a/b=c"] * 5_000)]}},
        {"annotations": {f"cdi.k8s.io/{n}": "a/b=c" for n in range(1_001)}},
    ],
)
def test_requests_without_measure_are_refused(here, config):
    """The audit record repeats a value for each name in it, so both are limited."""
    with pytest.raises(BadRequest, match=r"longer than 16384|more than 1000"):
        requests.read(config, here.settings)


@pytest.mark.parametrize(
    "changes",
    [
        {"requests": [{"device": 5}]},
        {"requests": [5]},
        {"container": 5},
        {"time": None},
        {"edits": {}},
        {"edits": [{"where": 1}]},
        {"warnings": [1]},
        {"error": {}},
    ],
)
def test_one_record_of_wrong_types_does_not_hide_the_others(here, capsys, changes):
    """It is told to be damaged, and the others are listed."""
    path = here.write("log/a.jsonl", record(container="good") + record(**changes))
    found = list(records.newest(path))

    assert ["good"] == [one["container"] for one in found]
    assert "line 2 is damaged: it is no audit record" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("form", "changes"),
    [
        (("show", "diff"), edit("/process/env/999999999999")),
        (("show", "diff"), edit("/process/env/-1")),
        (("show", "diff"), edit("/process/env/x")),
        (("show", "diff"), edit("/mounts", action="replaced", before=[1], after=[2])),
        (("export", "spec"), edit("/x", kind="unknown")),
        (("export", "docker"), edit("/mounts/0", kind="mounts", after={"destination": "/x"})),
        (("show", ""), {"where": "/x"}),
    ],
)
def test_edits_that_make_no_sense_are_told_so(form, changes):
    """A record whose edits cannot have been is damaged, whatever is to be made of it."""
    with pytest.raises(CdiRuncError, match="record 0123456789abcdef is damaged"):
        audit.show(json.loads(record(edits=[changes])), *form)


def test_what_is_nested_deeply_is_shown_in_one_line():
    """A value that a record holds from a config.json is printed whatever its depth."""
    value = json.loads("[" * 400 + "]" * 400)

    assert jsonio.dumps(value) == "".join(rendering.json_lines(value)).replace(" ", "").encode()


def test_mounts_put_in_another_order_are_replayed_in_one_pass():
    """A record of many mounts that were sorted is replayed, each entry found at once."""
    before, after = [*range(50_000)], [*range(49_999, -1, -1)]
    done = [edit("/mounts", kind="mounts", action="replaced", before=before, after=after)]

    assert ({"mounts": before}, {"mounts": after}) == replay.replay(done)


def test_three_dashes_begin_no_flag():
    """The launcher and Go's flags take one or two dashes, and so do we."""
    call = invocation.parse(["create", "-b", "b", "---bundle", "p", "c1"])

    assert ("b", "p") == (call.bundle, call.id)


@pytest.mark.parametrize("key", ["id", "time", "container", "result", "error"])
@pytest.mark.parametrize("text", ["\ud800", "a\x1b[2J"])
def test_no_text_of_a_record_steers_a_terminal(here, key, text):
    """Half a surrogate pair and an escape are shown as what they are, in the list and in full."""
    path = here.write("log/a.jsonl", record(**{key: f"2026{text}"}))
    (found,) = records.newest(path)
    stream = io.StringIO()
    with contextlib.redirect_stdout(rendering.Guarded(stream)):
        print(*audit._row(found))
        audit.show(found, "show", "")

    assert stream.getvalue().replace("\n", "").isprintable()


def test_an_empty_default_runtime_comes_back(here):
    """What Docker takes for its own default is put back when we are taken out."""
    before = '{"default-runtime": ""}'
    path = here.write("daemon.json", before.encode())
    file = config_file.ConfigFile.load(path)
    file.back_up(has_entry=False)
    file.write(daemon_json.added(before, "cdi", "/x", set_default=True))

    assert before == daemon_json.removed(config_file.ConfigFile.load(path), "cdi")
