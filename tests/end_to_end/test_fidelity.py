"""config.json keeps all that no edit touches, and the record says all that one does (C2, C7)."""

import copy
import hashlib
import json
import os

import pytest

ODD = r"""{ "zeta" : 1, "annotations": {"a": "\u00e9\ud83d\ude00\u001f", "cdi.k8s.io/test":
 "acme.com/widget=one"},
 "big": 123456789012345678901234567890, "bigger": -18446744073709551617,
 "floats": [1e3, 1E+3, 1.0, -0.0, 0.1e-7, 1.10, 12345678901234567890.123456789, 1e999],
 "mixed": [null, true, false, "", {}, []], "ociVersion": "1.0.2", "/~0 \"\\": {"b": 1, "a": 2},
 "process": {"unknown": {"y": 1, "x": [1e2]}, "env": ["PATH=/bin", "TERM=old"],
  "user": {"umask": 18, "gid": 5, "uid": 0, "extra": 1e3}, "args": ["true"]},
 "linux": {"devices": [{"path": "/dev/acme0", "type": "c", "major": 9, "minor": 9, "more": 1}],
  "future": [18446744073709551616], "resources": {"devices": [{"allow": false, "access": "rwm"}],
  "memory": {"limit": 9223372036854775807}}},
 "mounts": [{"destination": "/a/b", "source": "x", "why": 1e1}, {"destination": "/proc"}],
 "hooks": {"poststop": [{"path": "/bin/true", "timeout": 1e0}], "newKind": []},
 "vm": {"hypervisor": {"path": "/x"}}, "alpha": 2 }
"""

UNCHANGED = {"kept", "already present", "superseded"}


def parse(data):
    """Return the value of JSON *data*, with each number as the text that it was written as."""
    return json.loads(
        data,
        parse_int=lambda text: {"number": text},
        parse_float=lambda text: {"number": text},
    )


def parent_of(value, pointer):
    """Return the container that JSON *pointer* points into, and the last key."""
    *parts, last = [
        part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/")
    ]
    for part in parts:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value, int(last) if isinstance(value, list) else last


def replay(config, edits):
    """Carry out the *edits* of an audit record on *config*, as the record describes them."""
    for edit in edits:
        place, key = parent_of(config, edit["where"])
        if edit["action"] == "added":
            if isinstance(place, list):
                place.insert(key, edit["after"])
            else:
                assert key not in place
                place[key] = edit["after"]
        elif edit["action"] == "removed":
            assert edit["before"] == place[key]
            del place[key]
        elif edit["action"] == "replaced":
            old_place, old_key = parent_of(config, edit.get("was", edit["where"]))
            if "was" in edit:
                assert edit["before"] == old_place.pop(old_key)
                place.insert(key, edit["after"])
            else:
                place[key] = edit["after"]
        else:
            assert edit["action"] in UNCHANGED
    return config


@pytest.fixture
def create(installation, configure, make_bundle, make_runtime):
    """Create a container of config.json's given text with /bin/true as the runtime."""
    configuration = configure(runtime="/bin/true", audit={"env": "plain"})

    runtime = make_runtime(installation.shim, configuration)

    def run(text=None, bundle=None):
        bundle = bundle or make_bundle(rootfs=False)
        if text is not None:
            bundle.config_path.write_text(text)
        before = bundle.config_path.stat()
        runtime("create", "--bundle", bundle.path, bundle.id)
        return bundle, before, bundle.config_path.stat()

    run.configuration = configuration
    return run


@pytest.fixture
def everything(create, make_node, tmp_path):
    """Write a spec file whose device ``one`` has edits of every kind that any kernel can bear."""
    node = make_node()
    library = tmp_path / "library"
    library.mkdir()
    mounts = [
        {"hostPath": str(library), "containerPath": "/lib/acme", "options": ["ro", "rbind"]},
        {"hostPath": str(library), "containerPath": "/a/b", "options": ["ro", "rbind"]},
    ]
    edits = {
        "env": ["ACME=1", "TERM=new", "ACME=2"],
        "deviceNodes": [
            {"path": "/dev/acme0", "hostPath": str(node.path), "permissions": "r"},
            {"path": "/dev/acme1", "hostPath": str(node.path), "permissions": "none"},
        ],
        "mounts": mounts,
        "hooks": [
            {"hookName": name, "path": "/bin/true", "args": ["true", name]}
            for name in ("prestart", "createContainer", "poststop")
        ],
        "additionalGids": [1, 2],
    }
    create.configuration.spec(("one", edits), cdiVersion="0.7.0", containerEdits={"env": ["ALL=1"]})
    return create


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ODD.replace("acme.com/widget=one", "").replace("cdi.k8s.io/", "x/"), id="odd"),
        pytest.param('{"process":{"env":["A=1"]},"n":1e3}', id="compact"),
        pytest.param('{"a":1,"a":2,"process":{"env":["CDI_DEVICE=1"]}}\n\n', id="duplicate-key"),
        pytest.param('{"process": {"env": ["CDI_DEVICES="]}, "n": 1e3}', id="empty-request"),
        pytest.param('{"process": {"env": ["CDI_DEVICES=void"]}, "n": 1e3}', id="void"),
        pytest.param('{"annotations": {"a\\u002fb": "cdi.k8s.io/x"}, "n": 1e3}', id="escape"),
        pytest.param("not JSON at all", id="not-json"),
        pytest.param("", id="empty-file"),
    ],
)
def test_without_a_request_the_file_is_untouched(create, text):
    """Without a request config.json is the same file: inode, bytes and times."""
    bundle, before, after = create(text)

    assert text == bundle.config_path.read_text()
    for field in ("st_ino", "st_mtime_ns", "st_ctime_ns", "st_size", "st_mode"):
        assert getattr(before, field) == getattr(after, field)
    assert os.listdir(bundle.path) == ["config.json"]
    assert create.configuration.records() == []


def test_only_what_the_record_says_has_changed(everything):
    """The record's edits, carried out on the file before, give the file after, order included."""
    bundle, *_ = everything(ODD)
    (line,) = everything.configuration.audit_file.read_bytes().splitlines()
    record = parse(line)
    expected = replay(parse(ODD), record["edits"])

    assert json.dumps(expected) == json.dumps(parse(bundle.config_path.read_bytes()))
    assert {"env", "deviceNodes", "mounts", "hooks", "additionalGids"} == {
        edit["kind"] for edit in record["edits"]
    }
    assert {"added", "replaced"} <= {edit["action"] for edit in record["edits"]}


def test_unknown_members_numbers_and_order_survive(everything):
    """What no edit touches is there as it was written: unknown members, numbers, order."""
    bundle, *_ = everything(ODD)
    before, after = parse(ODD), parse(bundle.config_path.read_bytes())

    assert list(before) == list(after)
    for key in ("zeta", "annotations", "big", "bigger", "floats", "mixed", '/~0 "\\', "vm"):
        assert json.dumps(before[key]) == json.dumps(after[key])
    assert before["process"]["unknown"] == after["process"]["unknown"]
    assert before["linux"]["future"] == after["linux"]["future"]
    assert before["hooks"]["poststop"] == after["hooks"]["poststop"][:1]
    kept = copy.deepcopy(after["process"]["user"])
    del kept["additionalGids"]
    assert json.dumps(before["process"]["user"]) == json.dumps(kept)


def test_second_pass_changes_nothing(everything):
    """A second create of an edited bundle leaves the file as it is, and records it so."""
    bundle, *_ = everything(ODD)
    edited = bundle.config_path.read_bytes()
    _, before, after = everything(bundle=bundle)
    records = everything.configuration.records()

    assert edited == bundle.config_path.read_bytes()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert [record["result"] for record in records] == ["edited", "unchanged"]
    assert {edit["action"] for edit in records[1]["edits"]} <= UNCHANGED


def test_digests_are_those_of_the_files(everything):
    """The record holds the SHA-256 of config.json before and after."""
    bundle, *_ = everything(ODD)
    (record,) = everything.configuration.records()
    digests = [
        hashlib.sha256(data).hexdigest() for data in (ODD.encode(), bundle.config_path.read_bytes())
    ]

    assert digests == [record["config"]["before"], record["config"]["after"]]


def test_symbolic_link_is_followed(create, make_bundle, tmp_path):
    """A config.json that is a symbolic link stays one; the file that it leads to is edited."""
    create.configuration.spec(("one", {"env": ["ACME=1"]}))
    target = tmp_path / "elsewhere.json"
    target.write_text('{"process": {"env": ["CDI_DEVICES=acme.com/widget=one"]}}')
    bundle = make_bundle(rootfs=False)
    bundle.config_path.unlink()
    bundle.config_path.symlink_to("../elsewhere.json")
    create(bundle=bundle)

    assert os.readlink(bundle.config_path) == "../elsewhere.json"
    assert "ACME=1" in json.loads(target.read_bytes())["process"]["env"]
    assert os.listdir(bundle.path) == ["config.json"]


def test_secrets_are_not_in_the_record(runtime, configuration, make_bundle):
    """Of the container's own variables the record holds digests, not values."""
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", {"env": ["TOKEN=cdi", "ACME=1"]}))
    bundle = make_bundle(rootfs=False)
    bundle.config["process"]["env"] += ["TOKEN=s3cret", "OTHER=s3cret"]
    bundle.request("acme.com/widget=one")
    runtime("create", "-b", bundle.path, bundle.id)
    (record,) = configuration.records()

    assert "s3cret" not in json.dumps(record)
    assert [edit["after"] for edit in record["edits"]] == ["TOKEN=cdi", "ACME=1"]
    assert [[conflict["after"], conflict["against"]] for conflict in record["conflicts"]] == [
        ["TOKEN=cdi", "container"]
    ]
