"""A whole create, from config.json to config.json, without a runtime."""

import json
import os
import stat
import threading
import time

import jsonschema
import pytest
from support.configurations import forget
from support.installations import ROOT
from support.samples import EDITS, config, spec

from cdi_runc import create, invocation, settings
from cdi_runc.errors import (
    AuditRefused,
    BadBundle,
    BadRequest,
    CdiRuncError,
    Conflicting,
    Refused,
    UnknownDevice,
)

W0 = "acme.example/widget=w0"
SCHEMA = json.loads((ROOT / "cdi_runc/audit.schema.json").read_bytes())
UNPLUGGED = {key: entries for key, entries in EDITS.items() if key != "netDevices"}
"""Edits of all kinds but the one that needs a network namespace."""


class Create:
    """A bundle, and creates of it."""

    def __init__(self, host, top):
        self.host = host
        self.bundle = top / "bundle"
        self.path = self.bundle / "config.json"
        self.settings = host.settings.but(unsupported="warn")
        self.words = ["--root", str(top / "root"), "--log", str(top / "engine"), "create"]
        self.bundle.mkdir()

    def write(self, *devices, value=W0, **changes):
        """Write a configuration that asks for *value*, and a spec file with *devices*."""
        asking = {**config(annotations={"cdi.k8s.io/x": value}), **changes}
        self.path.write_text(json.dumps(asking))
        if devices:
            (self.host.etc / "a.json").write_text(spec(*devices))

    def __call__(self, **changes):
        """Make the create; return the configuration after it."""
        call = invocation.parse([*self.words, "--bundle", str(self.bundle), "c1"])
        create.prepare(call, self.settings.but(**changes), "/bin/true")
        return json.loads(self.path.read_bytes())

    def records(self):
        """Return the audit records so far, each valid by the schema that we ship."""
        try:
            with open(self.settings.audit_file, "rb") as file:
                found = [json.loads(line) for line in file]
        except FileNotFoundError:
            return []
        for record in found:
            jsonschema.Draft202012Validator(SCHEMA).validate(record)
        return found


@pytest.fixture
def made(host, tmp_path):
    """Return a bundle to create."""
    yield Create(host, tmp_path)
    forget(tmp_path)


def test_nothing_asked_changes_nothing(made):
    """Without a request the file is not written, and nothing is recorded."""
    made.write()
    made.path.write_text('{"annotations": {"note": "x"}}')
    before = settings.signature(made.path.stat())
    made()

    assert before == settings.signature(made.path.stat())
    assert [] == made.records()


def test_edited_then_unchanged(made):
    """A second create of the same bundle leaves the file as it is, and says so."""
    made.write(("w0", UNPLUGGED))
    before = settings.signature(made.path.stat())
    made()
    between = settings.signature(made.path.stat())
    made()
    first, second = made.records()

    assert before != between
    assert between == settings.signature(made.path.stat())
    assert ["edited", "unchanged"] == [first["result"], second["result"]]
    assert first["config"]["before"] != first["config"]["after"] == second["config"]["before"]
    assert ["config.json"] == os.listdir(made.bundle)


def test_a_hidden_mount_of_the_same_source_comes_to_light(made):
    """A mount that another one hides is there already, and yet has to move above it."""
    mounts = [
        {"destination": "/q", "source": "/etc", "options": ["rbind"]},
        {"destination": "/q", "source": "/opt", "options": ["rbind"]},
    ]
    entry = {"hostPath": "/etc", "containerPath": "/q", "options": ["rbind"]}
    made.write(("w0", {"mounts": [entry]}), mounts=mounts)

    assert "/etc" == made()["mounts"][-1]["source"]
    assert "edited" == made.records()[0]["result"]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param({"env": ["A=1", "B=2"]}, "B=2", id="env"),
        pytest.param({"additionalGids": [0, 44]}, 44, id="gids-with-zero"),
        pytest.param({"intelRdt": {"closID": "x"}}, {"closID": "x"}, id="intelRdt"),
        pytest.param({"hooks": EDITS["hooks"]}, EDITS["hooks"][0], id="hooks"),
    ],
)
def test_record_points_into_the_spec_file(made, entries, expected):
    """The pointer of an edit leads to its entry in the spec file."""
    made.write(("w0", entries))
    made()
    value = json.loads((made.host.etc / "a.json").read_bytes())
    for part in made.records()[0]["edits"][-1]["pointer"].split("/")[1:]:
        value = value[int(part)] if isinstance(value, list) else value[part]

    assert expected == value


def test_record_tells_when_the_spec_file_was_written(made):
    """The date is the file's own, however young it is."""
    made.write(("w0", {"env": ["A=1"]}))
    os.utime(made.host.etc / "a.json", (1_000_000_000, 1_000_000_000))
    made()

    assert "2001-09-09T01:46:40Z" == made.records()[0]["specs"][0]["mtime"]


def test_values_of_a_pass_before_are_shown_alike(made):
    """Where nothing changed, before and after are the same."""
    made.write(("w0", {"env": ["S=1", "S=2"]}))
    made()
    made()
    superseded, present = made.records()[1]["edits"]

    assert ["superseded", "already present"] == [superseded["action"], present["action"]]
    assert superseded["before"] == superseded["after"]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("acme.example/widget=w9", id="unknown"),
        pytest.param("/dev/widget", id="no-name"),
    ],
)
def test_failure_is_recorded_and_changes_nothing(made, value):
    """A create that fails leaves the file as it was, and its record says why."""
    made.write(("w0", {"env": ["A=1"]}), value=value)
    before = settings.signature(made.path.stat())
    with pytest.raises(CdiRuncError) as caught:
        made()
    (record,) = made.records()

    assert before == settings.signature(made.path.stat())
    assert ("failed", str(caught.value)) == (record["result"], record["error"])


def test_first_cause_wins_over_an_audit_that_cannot_be_written(made, tmp_path):
    """A device that nobody knows is told, though the record of that is required and fails."""
    made.write(("w0", {"env": ["A=1"]}), value="acme.example/widget=w9")
    (tmp_path / "file").write_text("")
    with pytest.raises(UnknownDevice):
        made(audit_file=str(tmp_path / "file/audit.jsonl"), audit_required=True)


def test_required_record_that_cannot_be_written_leaves_the_file(made, tmp_path):
    """Where the record is required and cannot be written, the file stays as it was."""
    made.write(("w0", {"env": ["A=1"]}))
    (tmp_path / "file").write_text("")
    before = settings.signature(made.path.stat())
    with pytest.raises(AuditRefused):
        made(audit_file=str(tmp_path / "file/audit.jsonl"), audit_required=True)

    assert before == settings.signature(made.path.stat())
    assert ["config.json"] == os.listdir(made.bundle)


def test_record_that_cannot_be_written_is_a_warning(made, tmp_path):
    """By default the container gets its device, and the engine's log a warning."""
    made.write(("w0", {"env": ["A=1"]}))
    (tmp_path / "file").write_text("")

    assert "A=1" in made(audit_file=str(tmp_path / "file/audit.jsonl"))["process"]["env"]
    assert "audit record not written" in (tmp_path / "engine").read_text()


def test_refused_conflict_is_recorded_with_both_values(made):
    """A conflict that policy refuses is in the record, and the file stays as it was."""
    made.write(("w0", {"env": ["TERM=cdi"]}))
    with pytest.raises(Conflicting, match="env TERM"):
        made(conflicts=(("", "refuse"),))
    (record,) = made.records()
    (conflict,) = record["conflicts"]

    assert ("container", "TERM=cdi", "refuse") == (
        conflict["against"],
        conflict["after"],
        conflict["decision"],
    )
    assert "TERM=xterm" in json.loads(made.path.read_bytes())["process"]["env"]


def test_broken_override_is_a_warning_or_refused(made):
    """A broken file that may override the device is told of; by policy the create is refused."""
    made.write(("w0", {"env": ["A=1"]}))
    (made.host.run / "b.yaml").write_text("kind: acme.example/widget\ndevices: [")
    made()
    (record,) = made.records()
    with pytest.raises(CdiRuncError, match=r"b\.yaml"):
        made(broken_override="refuse")

    assert any(f"{made.host.run}/b.yaml" in text for text in record["warnings"])


ODD = [
    {"process": 5},
    {"process": [1]},
    {"process": {"env": {"A": 1}}},
    {"process": {"user": [1]}},
    {"process": {"user": {"additionalGids": {"a": 1}}}},
    {"linux": "x"},
    {"linux": {"devices": {"a": 1}}},
    {"linux": {"resources": [1]}},
    {"linux": {"resources": {"devices": 7}}},
    {"linux": {"intelRdt": 5}},
    {"mounts": {"a": 1}},
    {"hooks": [1]},
    {"hooks": {"createRuntime": {"a": 1}}},
]


@pytest.mark.parametrize("odd", ODD, ids=json.dumps)
def test_section_of_another_type_is_refused_or_replaced(made, odd):
    """A section that is not what the runtime-spec says gives an error in words, with a record.

    What is set as a whole, linux.intelRdt, is a conflict like any other.
    """
    made.write(("w0", UNPLUGGED), **odd)
    before = made.path.read_bytes()
    if odd == {"linux": {"intelRdt": 5}}:
        assert EDITS["intelRdt"] == made()["linux"]["intelRdt"]
    else:
        with pytest.raises(BadBundle, match=r"config\.json"):
            made()

        assert before == made.path.read_bytes()

    assert 1 == len(made.records())


@pytest.mark.parametrize(
    "odd",
    [
        {"process": {"env": [1, None, {}, "A"]}},
        {"linux": {"devices": [1, None, {"path": 5}, {}]}},
        {"linux": {"resources": {"devices": [1, None, {}]}}},
        {"linux": {"namespaces": [5, None, {}]}},
        {"linux": {"namespaces": 5}},
        {"mounts": [1, None, {"destination": 5}, {}]},
        {"hooks": {"createRuntime": [5, None]}},
    ],
    ids=json.dumps,
)
def test_what_we_do_not_edit_is_not_ours_to_judge(made, odd):
    """An entry that we do not understand stays, and the runtime judges it."""
    made.write(("w0", UNPLUGGED), **odd)
    edited = made()
    ((top, section),) = odd.items()
    pairs = [(section, edited[top])]
    while pairs:
        own, other = pairs.pop()
        if isinstance(own, dict):
            pairs += [(own[key], other[key]) for key in own]
        elif isinstance(own, list):
            assert own == [entry for entry in other if entry in own]


def test_link_owner_and_mode_stay(made, tmp_path):
    """A config.json that is a link is written through it, and its target keeps owner and mode."""
    made.write(("w0", {"env": ["A=1"]}))
    target = tmp_path / "elsewhere/real.json"
    target.parent.mkdir()
    made.path.rename(target)
    target.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(target, 1000, 1001)
    (tmp_path / "second").symlink_to("elsewhere/real.json")
    made.path.symlink_to("../second")
    before = target.stat()
    made()
    after = target.stat()

    assert made.path.is_symlink()
    assert (before.st_mode, before.st_uid, before.st_gid) == (
        after.st_mode,
        after.st_uid,
        after.st_gid,
    )
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert "A=1" in json.loads(target.read_bytes())["process"]["env"]
    assert ["real.json"] == os.listdir(target.parent)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"", "is not JSON", id="empty"),
        pytest.param(b"[]", "holds no JSON object", id="list"),
        pytest.param(b"{,}", "line 1 column 2", id="comma"),
        pytest.param(b'{"annotations": {"cdi.k8s.io/x": "\xff"}}', "is not JSON", id="latin-1"),
    ],
)
def test_file_that_is_no_configuration_is_refused(made, data, words):
    """The error names the file and what is wrong in it."""
    made.path.write_bytes(data)
    with pytest.raises(BadBundle, match=words) as caught:
        made()

    assert str(made.path) in str(caught.value)


def test_read_only_bundle_is_named(made):
    """A bundle that cannot be written is named, with the cure, and the record says failed."""
    if os.geteuid() == 0:
        # Root may write anywhere, but not through a name that is too long for a temporary file.
        made.path = made.bundle / ("c" * 250)
        made.words = [*made.words, "--config", str(made.path)]
    else:
        made.bundle.chmod(0o555)
    made.write(("w0", {"env": ["A=1"]}))
    with pytest.raises(BadBundle, match="must be writable"):
        made()
    (record,) = made.records()

    assert "failed" == record["result"]


IGNORES = ((("annotation",), (), (), "ignore"),)
OPTIONAL = (((), (), (), "optional"),)


def test_ignored_request_is_told_once_and_changes_nothing(made, tmp_path):
    """What the policy ignores stands in the record and in the engine's log; the file stays."""
    made.write(("w0", {"env": ["A=1"]}))
    before = settings.signature(made.path.stat())
    made(policy=IGNORES)
    (record,) = made.records()

    assert before == settings.signature(made.path.stat())
    assert ("unchanged", "ignore") == (record["result"], record["requests"][0]["decision"])
    assert 1 == (tmp_path / "engine").read_text().count(f"the policy ignores device {W0}")
    (told,) = record["warnings"]
    assert told.endswith("asked for by annotation cdi.k8s.io/x: the container starts without it")


def test_refused_request_is_recorded(made):
    """What the policy refuses keeps the container from starting, and the record says so."""
    made.write(("w0", {"env": ["A=1"]}))
    with pytest.raises(Refused):
        made(policy=(((), (), (), "refuse"),))
    (record,) = made.records()

    assert ("failed", "refuse") == (record["result"], record["requests"][0]["decision"])


@pytest.mark.parametrize(
    ("value", "edits"),
    [
        pytest.param("acme.example/widget=w9", {}, id="unknown"),
        pytest.param(
            "acme.example/widget=w1",
            {"env": ["B=1"], "mounts": [{"hostPath": "/no/such", "containerPath": "/x"}]},
            id="unusable",
        ),
    ],
)
def test_optional_device_is_left_out_and_told(made, tmp_path, value, edits):
    """Of an optional device that this host cannot give nothing is done; others are given."""
    made.write(("w0", {"env": ["A=1"]}), ("w1", edits or {"env": ["C=1"]}), value=f"{value},{W0}")
    env = made(policy=OPTIONAL)["process"]["env"]
    (record,) = made.records()

    assert "A=1" in env
    assert not {"B=1", "C=1"} & {*env}
    assert f"{value} is optional, and left out: " in record["warnings"][0]
    assert "optional, and left out" in (tmp_path / "engine").read_text()


def test_needed_device_is_not_optional_because_another_is(made):
    """A rule that makes one device optional spares no other."""
    made.write(("w0", {"env": ["A=1"]}), value=f"acme.example/widget=w9,{W0}")
    with pytest.raises(UnknownDevice, match="w9"):
        made(policy=(((), (W0,), (), "optional"),))


def test_waits_for_a_device_where_told(made):
    """With ``wait``, a create takes a device that appears in time, and fails after it."""
    made.write(("w1", {"env": ["B=1"]}))
    with pytest.raises(UnknownDevice):
        made(wait=1)

    def appear():
        (made.host.etc / "a.json").write_text(spec(("w0", {"env": ["A=1"]})))

    timer = threading.Timer(0.3, appear)
    timer.start()
    env = made(wait=60)["process"]["env"]
    timer.join()
    assert "A=1" in env


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT"])
def test_hook_that_sets_the_loaders_variables_needs_leave(made, name):
    """A hook with ``LD_*`` is refused with device and file, unless the configuration lets it."""
    hook = {**EDITS["hooks"][0], "env": ["PATH=/bin", f"{name}=/tmp/x.so"]}
    made.write(("w0", {"hooks": [hook]}))
    with pytest.raises(Refused, match=rf"{W0} has a hook .*a\.json.*hook_loader_env"):
        made(hook_loader_env=("other.example/*",))
    made(hook_loader_env=("acme.example/widget=*",))

    assert ["failed", "edited"] == [record["result"] for record in made.records()]


SHORT = "it looks like a short name: its vendor and class are missing"
MEANT = "(did you mean acme.example/widget=w0?); write a device as"
MISUNDERSTOOD = [
    pytest.param("w0", f"{SHORT} {MEANT}", id="short"),
    pytest.param("both", f"{SHORT}; write a device as", id="ambiguous"),
    pytest.param("other", f"{SHORT}; write a device as", id="unknown"),
    pytest.param(f"{W0};{W0}", "allowed; separate names with commas; write", id="semicolon"),
    pytest.param("a=x;b=y", "class=name; separate names with commas; write", id="no-kinds"),
    pytest.param(f"{W0} {W0}", "allowed; separate names with commas; write", id="blank"),
    pytest.param(f"{W0}, {W0}", "blanks around a name are not stripped; write", id="blank-behind"),
]


@pytest.mark.parametrize(("value", "words"), MISUNDERSTOOD)
def test_name_that_is_none_is_told_what_was_meant(made, value, words):
    """A create says which device a short name stands for, if it is one, and how to ask for many."""
    edits = {"env": ["A=1"]}
    made.write(("w0", edits), ("both", edits), value=value)
    (made.host.run / "b.json").write_text(spec(("both", edits), kind="acme.example/gadget"))
    with pytest.raises(BadRequest) as caught:
        made()

    assert words in str(caught.value)
    assert str(caught.value) == made.records()[-1]["error"]


def test_what_was_meant_is_a_hint_only(made):
    """Where the compiled registry is damaged, a request that is none is still told as such."""
    made.write(("w0", {"env": ["A=1"]}), value="w0")
    with pytest.raises(BadRequest, match="did you mean"):
        made()
    kept = made.host.etc.parent / "state/registry"
    time.sleep(0.08)
    made.host.registry()
    data = kept.read_bytes()
    head = 16 + int(data[:16])
    kept.write_bytes(data[:head] + b"\xff" * (len(data) - head))
    with pytest.raises(BadRequest, match="short name: its vendor and class are missing; write"):
        made()
