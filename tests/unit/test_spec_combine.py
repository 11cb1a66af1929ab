"""``cdictl spec convert``, ``minimum-version`` and ``merge``, and how specs are written."""

import json

import pytest
import yaml
from hypothesis import HealthCheck, example, given
from hypothesis import settings as limits
from hypothesis import strategies as st
from support import samples

from cdi_runc import edits
from cdi_runc.authoring import combine, found, write
from cdi_runc.cli import main
from cdi_runc.errors import CdiRuncError
from cdi_runc.specs import check


@pytest.fixture
def save(tmp_path):
    """Return a function that writes a spec file and gives its path."""

    def save(name, *devices, text=None, **members):
        path = tmp_path / name
        path.write_text(samples.spec(*devices, **members) if text is None else text)
        return str(path)

    return save


@pytest.fixture
def call(capsys):
    """Return a function that calls ``cdictl spec``."""

    def call(*words):
        status = main.main(["spec", *words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


A = {"deviceNodes": [{"path": "/dev/a", "permissions": "rw"}]}
B = {"env": ["B=1"], "additionalGids": [44]}

# Texts that YAML 1.1 could take for something else, and others that have to be quoted.
TEXTS = st.one_of(
    st.sampled_from(
        [
            "y",
            "n",
            "on",
            "off",
            "1:30",
            "0o17",
            "1e3",
            ".5",
            "~",
            "null",
            "2024-01-01",
            "0x1F",
            "1_000",
            "-",
            "=",
            "<<",
            "#",
            ":",
            "a:b",
        ]
    ),
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12),
)
NAMES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?", fullmatch=True)
PATHS = TEXTS.map(lambda text: f"/dev/{text}")
NODES = st.fixed_dictionaries(
    {"path": PATHS},
    optional={
        "hostPath": PATHS,
        "type": st.sampled_from(["", "b", "c"]),
        "major": st.integers(0, 4095),
        "fileMode": st.integers(0, 0o777),
        "permissions": st.sampled_from(["", "r", "rw", "rwm", "none"]),
        "uid": st.integers(0, 2**32 - 1),
    },
)
MOUNTS = st.fixed_dictionaries(
    {"hostPath": PATHS, "containerPath": PATHS},
    optional={"options": st.lists(TEXTS, max_size=2), "type": st.sampled_from(["", "bind"])},
)
HOOKS = st.fixed_dictionaries(
    {"hookName": st.sampled_from(["createRuntime", "poststop"]), "path": PATHS},
    optional={"args": st.lists(TEXTS, max_size=2), "timeout": st.integers(0, 9)},
)
EDITS = st.fixed_dictionaries(
    {"env": st.lists(TEXTS.map(lambda text: f"A={text}"), min_size=1, max_size=2)},
    optional={
        "deviceNodes": st.lists(NODES, max_size=2),
        "mounts": st.lists(MOUNTS, max_size=2),
        "hooks": st.lists(HOOKS, max_size=2),
        "netDevices": st.just([{"hostInterfaceName": "eth1", "name": "eth2"}]),
        "intelRdt": st.sampled_from([{}, {"closID": "gold"}, {"schemata": []}]),
        "additionalGids": st.lists(st.integers(0, 2**32 - 1), max_size=2),
    },
)
SPECS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["acme.com/widget", "acme.com/widget.big"]),
        "cdiVersion": st.just("1.1.0"),
        "devices": st.lists(
            st.fixed_dictionaries(
                {"name": NAMES, "containerEdits": EDITS},
                optional={"annotations": st.dictionaries(TEXTS, TEXTS, max_size=1)},
            ),
            min_size=1,
            max_size=3,
            unique_by=lambda device: device["name"],
        ),
    },
    optional={"containerEdits": EDITS, "annotations": st.dictionaries(TEXTS, TEXTS, max_size=1)},
)


def assert_minimal(data):
    """Hold that *data* is a valid spec, and would be none with the version before its own."""
    _, content, faults = check.decoded_spec(data)
    assert [] == faults
    before = check.VERSIONS.index(content["cdiVersion"]) - 1
    if before >= 2:
        lower = {**content, "cdiVersion": check.VERSIONS[before]}
        assert check.examine(source_of(lower))[1] != []


def source_of(content):
    """Return a file that holds *content*, as PyYAML writes it."""
    return yaml.safe_dump(content, default_style='"', sort_keys=False).encode()


def meaning(data):
    """Return what the spec in *data* is to a create, but for its version."""
    spec, faults = check.examine(data)
    assert [] == faults
    return spec.but(version="")


@limits(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SPECS, st.sampled_from(["yaml", "json"]))
@example(
    {
        "cdiVersion": "1.1.0",
        "kind": "a.b/c",
        "devices": [{"name": "y", "containerEdits": {"env": ["y=\x85"]}}],
    },
    "yaml",
)
def test_written_specs_mean_the_same_and_are_minimal(content, form):
    """A spec in either form means what it did, is valid, and of the lowest version."""
    source = source_of(content)
    _, decoded, faults = check.decoded_spec(source)
    assert [] == faults

    data = write.rendered(found.finished(decoded), form)

    assert meaning(source) == meaning(data)
    assert_minimal(data)
    again = found.finished(check.decoded_spec(data)[1])
    assert data == write.rendered(again, form)


@limits(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SPECS)
def test_a_spec_cut_in_pieces_merges_to_itself(content):
    """The devices of a spec, each in a file of its own, merge to that spec, sorted and minimal."""
    _, decoded, _ = check.decoded_spec(source_of(content))
    pieces = [(d["name"], {**decoded, "devices": [d]}) for d in decoded["devices"]]

    whole, backwards = (combine.merged(some) for some in (pieces, pieces[::-1]))

    assert whole == backwards
    data = write.rendered(whole, "yaml")
    assert_minimal(data)
    source = meaning(source_of(content))
    assert (source.edits, sorted(source.devices)) == (
        meaning(data).edits,
        sorted(meaning(data).devices),
    )


def test_convert_there_and_back(save, call, tmp_path):
    """YAML to JSON and back is the same text, lists in their order, members in the usual one."""
    text = (
        'devices: [{containerEdits: {env: [B=1, A=1]}, name: "1"}]\nkind: a.b/c\ncdiVersion: 0.5.0'
    )
    source, middle = save("spec.yaml", text=text), str(tmp_path / "spec.json")
    status, first, _ = call("convert", source)

    expected = """\
cdiVersion: 0.5.0
kind: a.b/c
devices:
- name: '1'
  containerEdits:
    env:
    - B=1
    - A=1
"""
    assert (0, expected) == (status, first)
    assert 0 == call("convert", source, "--output", middle)[0]
    assert json.loads(call("convert", source, "--to", "json")[1]) == yaml.safe_load(first)
    assert (0, first, "") == call("convert", middle)


def test_convert_to_a_version(save, call):
    """A lower version is taken if nothing needs more; else all that needs more is named."""
    source = save("spec.json", ("a", A))

    assert "cdiVersion: 0.4.0" in call("convert", source, "--cdi-version", "0.4.0")[1]
    assert "cdiVersion: 0.3.0" in call("convert", source, "--cdi-version", "minimum")[1]
    assert "cdiVersion: 1.1.0" in call("convert", source)[1]
    status, out, err = call("convert", save("b.json", ("b", B)), "--cdi-version", "0.6.0")
    assert (1, "") == (status, out)
    assert "additionalGids needs 0.7.0 (/devices/0/containerEdits/additionalGids)" in err


def test_convert_refuses_what_is_not_valid(save, call, tmp_path):
    """A spec with a fault is not converted, and the fault is told; no file is made."""
    out = tmp_path / "out.yaml"
    source = save("bad.json", ("a", {"env": ["A"]}))
    status, _, err = call("convert", source, "--output", str(out))

    assert (1, False) == (status, out.exists())
    assert f"{source}: line 1" in err
    assert (1, True) == (
        call("convert", str(out))[0],
        "cannot read" in call("convert", str(out))[2],
    )


@pytest.mark.parametrize(
    "words",
    [
        ["convert", "x.yaml", "--to", "json", "--output", "x.yaml"],
        ["convert", "x.yaml", "--json", "--output", "x.yaml"],
        ["convert", "x.yaml", "--json", "--to", "yaml"],
        ["convert", "x.yaml", "--json", "--to", "yaml", "--output", "x.json"],
        ["merge", "x.yaml", "--json", "--output", "x.yaml"],
        ["generate", "--json", "--output", "x.yaml"],
        ["from-docker", "--device", "/dev/null", "--json", "--output", "x.yml"],
        ["convert", "x.yaml", "--cdi-version", "9.9"],
        ["merge"],
        ["minimum-version"],
        ["nothing"],
        [],
    ],
    ids=" ".join,
)
def test_wrong_usage(call, words):
    """A wrong usage ends with 2."""
    with pytest.raises(SystemExit) as ended:
        call(*words)

    assert 2 == ended.value.code


def test_minimum_version(save, call):
    """The lowest version is told for each file, whatever it says itself, and why."""
    one = save("one.json", ("a", A), ("b", B), ("c", B), version="0.3.0")
    two = save("two.json", ("a", A), version="7")
    status, out, err = call("minimum-version", one, two)

    assert (0, f"{one}: 0.7.0\n{two}: 0.3.0\n", "") == (status, out, err)
    told = call("minimum-version", "--explain", one)[1]
    assert "  0.7.0  additionalGids: /devices/1/containerEdits/additionalGids and 1 more" in told
    (result,) = json.loads(call("minimum-version", "--json", one)[1])
    assert ("0.7.0", "0.3.0") == (result["minimum"], result["declared"])
    assert ["additionalGids"] == [need["what"] for need in result["needs"]]


def test_minimum_version_of_a_faulty_file(save, call, tmp_path):
    """A file with another fault, or none at all, is told of, and the others are answered for."""
    good = save("good.json", ("a", A))
    bad = save("bad.json", ("a", {"env": ["A"]}))
    status, out, err = call("minimum-version", bad, str(tmp_path / "none"), good)

    assert (1, f"{good}: 0.3.0\n") == (status, out)
    assert "variable 'A' has no '='" in err
    assert "cannot read" in err


@pytest.mark.parametrize("key", edits.KEYS)
def test_every_kind_of_edit_has_its_version(save, call, key):
    """The version is that which brought the kind of edit."""
    source = save(f"{key}.json", ("a", {key: samples.EDITS[key]}))

    assert call("minimum-version", source)[1] == f"{source}: {edits.kind(key).SINCE}\n"


def merged(save, call, *files):
    """Merge *files*, each the words of :func:`support.samples.spec`; return the command's end."""
    paths = [save(f"{n}.json", *devices, **members) for n, (devices, members) in enumerate(files)]
    return call("merge", *paths)


def test_merge(save, call):
    """Devices of several files are sorted in one, what is alike in two is there once."""
    files = ([("b", B)], {}), ([("a10", A), ("a9", A), ("b", B)], {})
    status, out, err = merged(save, call, *files)
    content = yaml.safe_load(out)

    assert (0, "0.7.0", "") == (status, content["cdiVersion"], err)
    assert ["a9", "a10", "b"] == [device["name"] for device in content["devices"]]


def test_merge_makes_all_anew(save, call):
    """A device "all" that is all in each file is all in the result."""
    one = [("a", A), ("all", A)], {}
    two = [("b", B), ("all", B)], {}
    content = yaml.safe_load(merged(save, call, one, two)[1])

    assert {**A, **B} == content["devices"][1]["containerEdits"]
    status, _, err = merged(save, call, one, ([("b", A), ("all", B)], {}))
    assert (1, True) == (status, "device all is defined in" in err)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (([("a", B)], {}), "device a is defined in"),
        (
            ([("b", B)], {"kind": "acme.example/other"}),
            "acme.example/widget and acme.example/other",
        ),
        (([("b", B)], {"containerEdits": B}), "containerEdits for all their devices"),
        (([("b", B)], {"annotations": {"x": "y"}}), "differ in their annotations"),
    ],
    ids=["device", "kind", "shared edits", "annotations"],
)
def test_merge_refuses(save, call, other, why):
    """What cannot stand in one file is refused, and both files are named."""
    status, out, err = merged(save, call, ([("a", A)], {}), other)

    assert (1, "") == (status, out)
    assert why in err
    assert ("0.json" in err, "1.json" in err) == (True, True)


def test_shared_edits_that_are_alike_stay(save, call):
    """What every device's container gets stays, if all files say the same."""
    files = [([(name, A)], {"containerEdits": B}) for name in "ab"]
    content = yaml.safe_load(merged(save, call, *files)[1])

    assert B == content["containerEdits"]


def test_nothing_invalid_is_written(tmp_path):
    """What would be no valid spec is not rendered; the words name the place."""
    spec = {"cdiVersion": "0.3.0", "kind": "a.b/c", "devices": [{"name": "-", "containerEdits": A}]}
    with pytest.raises(CdiRuncError, match="/devices/0/name"):
        write.rendered(spec, "yaml")


def test_a_failed_write_leaves_the_old_file(save, call, tmp_path):
    """Where the file cannot be replaced the old one stays, and the error names it."""
    source = save("spec.json", ("a", A))
    blocked = tmp_path / "blocked.yaml"
    blocked.mkdir()
    status, _, err = call("convert", source, "--output", str(blocked))

    assert (1, True) == (status, f"cannot write {blocked}" in err)
    assert ["blocked.yaml", "spec.json"] == sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    "command", ["generate", "from-docker", "convert", "minimum-version", "merge"]
)
def test_help_has_examples(call, capsys, command):
    """Each command's help has examples that the command takes."""
    with pytest.raises(SystemExit) as ended:
        call(command, "--help")
    text = capsys.readouterr().out

    assert 0 == ended.value.code
    lines = [line.strip() for line in text.partition("examples:")[2].splitlines() if line.strip()]
    assert lines
    for line in lines:
        words = line.partition(" | ")[0].split()
        assert words[:3] == ["cdictl", "spec", command]
        main.parser_for(words[1:]).parse_args(words[1:])
