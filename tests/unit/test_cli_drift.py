"""``cdictl drift``: containers that run with what their devices no longer are."""

import json
import os
import stat

import pytest
from support.commands import Cdictl
from support.devices import free_loop_numbers

ONE, TWO = "acme.com/widget=one", "acme.com/widget=two"


@pytest.fixture
def node(tmp_path):
    """Return a function that makes the host's node anew, of the loop device of a number."""
    path = tmp_path / "node"
    numbers = free_loop_numbers()

    def make(number):
        path.unlink(missing_ok=True)
        os.mknod(path, stat.S_IFBLK | 0o640, os.makedev(7, numbers[number]))
        return path, numbers[number]

    return make


@pytest.fixture
def library(tmp_path):
    """Return a library of the host."""
    path = tmp_path / "libacme.so.1.0"
    path.write_text("1.0")
    return path


@pytest.fixture
def edits(node, library):
    """Return the edits of a device."""
    path, _ = node(0)
    mount = {"hostPath": str(library), "containerPath": "/usr/lib/libacme.so.1"}
    return {
        "env": ["ACME=1"],
        "deviceNodes": [{"path": "/dev/acme0", "hostPath": str(path), "permissions": "rw"}],
        "mounts": [{**mount, "options": ["ro", "bind"]}],
        "hooks": [{"hookName": "poststop", "path": "/bin/true", "args": ["true", "one"]}],
        "additionalGids": [4242],
    }


@pytest.fixture
def define(configuration, edits):
    """Return a function that writes the spec file, the first device's edits with some changes."""

    def write(**changes):
        own = {key: value for key, value in {**edits, **changes}.items() if value}
        other = ("two", {"env": ["ACME=2"]})
        configuration.spec(("one", own), other, cdiVersion="0.7.0")

    write()
    return write


@pytest.fixture
def running(runtime, make_bundle, define):
    """Start a container with each device; return their ids."""
    ids = []
    for device in (ONE, TWO):
        bundle = make_bundle("sleep", "1000").request(device)
        runtime.start(bundle)
        ids.append(bundle.id)
    return ids


def test_no_drift(cdictl, running):
    """Directly after their creation nothing has drifted."""
    assert cdictl.json("drift") == []
    assert "2 running containers" in cdictl("drift").out


def test_same_edits_in_another_file(cdictl, configuration, running):
    """A spec file that was written anew with the same edits is no reason."""
    path = configuration.spec_dir / "acme.json"
    content = json.loads(path.read_text())
    content["devices"].append({"name": "three", "containerEdits": {"env": ["X=1"]}})
    path.write_text(json.dumps(content, indent=8))

    assert cdictl.json("drift") == []


@pytest.mark.parametrize(
    ("changes", "what", "words"),
    [
        pytest.param({"env": ["ACME=9"]}, "changed", ("ACME=1", "is now", "ACME=9"), id="env"),
        pytest.param({"env": ["ACME=1", "B=2"]}, "new", ("B=2",), id="more-env"),
        pytest.param({"env": []}, "vanished", ("ACME=1",), id="less-env"),
        pytest.param({"additionalGids": [44]}, "vanished", ("group 4242",), id="groups"),
        pytest.param({"mounts": []}, "vanished", ("libacme.so.1",), id="mount"),
        pytest.param(
            {"hooks": [{"hookName": "poststop", "path": "/bin/true", "args": ["true", "two"]}]},
            "vanished",
            ("/bin/true one",),
            id="hook",
        ),
    ],
)
def test_changed_edits(cdictl, running, define, changes, what, words):
    """Of two containers of one spec file, the one whose edits really differ is listed, and why."""
    define(**changes)
    (found,) = cdictl.json("drift", status=1)
    first = found["reasons"][0]
    reasons = {reason["what"]: reason["text"] for reason in found["reasons"]}

    assert (found["container"], first["device"]) == (running[0], ONE)
    for word in words:
        assert word in reasons[what]


def test_access(cdictl, running, define, edits):
    """Another access to the same node is told once, as the rule that it is."""
    define(deviceNodes=[{**edits["deviceNodes"][0], "permissions": "r"}])
    (found,) = cdictl.json("drift", status=1)

    assert [reason["what"] for reason in found["reasons"]] == ["new", "vanished"]
    assert all("cgroup rule" in reason["text"] for reason in found["reasons"])


def test_renumbered(cdictl, running, node):
    """A node that has other numbers on the host now is told once, with both."""
    _, old = node(0)
    _, new = node(1)
    (found,) = cdictl.json("drift", status=1)
    (reason,) = found["reasons"]

    assert (found["container"], reason["what"]) == (running[0], "renumbered")
    assert f"b 7:{old}" in reason["text"]
    assert f"is now /dev/acme0: b 7:{new}" in reason["text"]


def test_renumbered_against_the_spec(runtime, cdictl, make_bundle, define, edits, node):
    """Numbers in the spec file that the host's node has no more are told; not if it never had."""
    _, old = node(0)
    numbered = {**edits["deviceNodes"][0], "type": "b", "major": 7, "minor": old}
    define(deviceNodes=[numbered])
    runtime.start(make_bundle("sleep", "1000").request(ONE))
    assert cdictl.json("drift") == []

    node(1)
    (found,) = cdictl.json("drift", status=1)
    assert [reason["what"] for reason in found["reasons"]] == ["renumbered"]

    runtime.clean_up()
    runtime.start(make_bundle("sleep", "1000").request(ONE))
    assert cdictl.json("drift") == []


def test_source_gone(cdictl, running, library):
    """A mount source that is gone is told, and that the container cannot be made again."""
    library.unlink()
    (found,) = cdictl.json("drift", status=1)
    (reason,) = found["reasons"]

    assert (found["container"], reason["what"]) == (running[0], "missing")
    assert str(library) in reason["text"]
    assert "could not be made again" in reason["text"]


def test_driver_upgrade(cdictl, running, define, edits, library):
    """After an upgrade, old files gone and the spec file written anew, both are reasons."""
    newer = library.with_name("libacme.so.1.1")
    library.rename(newer)
    define(mounts=[{**edits["mounts"][0], "hostPath": str(newer)}])
    (found,) = cdictl.json("drift", status=1)

    assert found["container"] == running[0]
    assert [reason["what"] for reason in found["reasons"]] == ["missing", "changed"]
    assert str(newer) in found["reasons"][1]["text"]


def test_file_replaced_in_its_place(cdictl, running, library):
    """A container that still has the file that an upgrade replaced is listed."""
    newer = library.with_name("newer")
    newer.write_text("1.1")
    newer.replace(library)
    (found,) = cdictl.json("drift", status=1)
    (reason,) = found["reasons"]

    assert (found["container"], reason["what"]) == (running[0], "replaced")


def test_device_vanished(cdictl, configuration, running):
    """A device that no usable file defines is told, with what is known of it."""
    (configuration.spec_dir / "acme.json").write_text("{")
    found = cdictl.json("drift", status=1)

    assert {one["container"] for one in found} == {*running}
    for one in found:
        assert one["reasons"][0]["what"] == "unavailable"
        assert "acme.json" in one["reasons"][0]["text"]
    assert "would not start again" in cdictl("drift", check=False).out


def test_kept_values_are_no_drift(runtime, cdictl, configuration, make_bundle, define):
    """Where the container's own value stayed, the device's does not count."""
    configuration.write(conflicts="container")
    bundle = make_bundle("sleep", "1000")
    bundle.config["process"]["env"].append("ACME=own")
    own = {"path": "/dev/acme0", "type": "c", "major": 1, "minor": 5}
    bundle.config["linux"]["devices"] = [own]
    runtime.start(bundle.request(ONE))

    assert cdictl.json("drift") == []


def test_ended_containers_do_not_count(runtime, cdictl, running, define):
    """A container that has ended, deleted or not, is not listed."""
    runtime("kill", running[0], "KILL")
    define(env=["ACME=9"])
    while cdictl.json("drift", status=1 if cdictl("drift", check=False).status else 0):
        pass
    runtime("delete", "--force", running[0])

    assert "1 running container " in cdictl("drift").out


def test_bundle_gone(cdictl, configuration, running, tmp_path):
    """Without the bundle another spec file is a reason by itself."""
    (tmp_path / "bundle1/config.json").unlink()
    assert cdictl.json("drift") == []

    path = configuration.spec_dir / "acme.json"
    path.write_text(path.read_text() + "\n")
    (found,) = cdictl.json("drift", status=1)
    assert found["container"] == running[0]
    assert "cannot be compared" in found["reasons"][0]["text"]


def test_changes_nothing(cdictl, running, define, tmp_path):
    """Looking changes neither bundle nor record."""
    define(env=["ACME=9"])
    files = [*tmp_path.glob("bundle*/config.json"), tmp_path / "cdi-runc/log/audit.jsonl"]
    before = [path.read_bytes() for path in files]
    cdictl("drift", check=False)

    assert [path.read_bytes() for path in files] == before


def test_on_a_terminal(cdictl, running, define):
    """It fits in 80 columns, and ends with how many there are."""
    define(env=["ACME=9"])
    shown = cdictl.on_terminal("drift", NO_COLOR="1").splitlines()

    assert shown[0].startswith(running[0])
    assert [line for line in shown if len(line) > 80] == []
    assert shown[-1] == "To be made again: 1 of 2 running containers with CDI devices."


def test_docker(docker, installation):
    """A container of Docker's has its name, and the command that it gives makes it right."""
    docker.configuration.spec(("one", {"env": ["ACME=1"]}))
    options = ("--detach", "--runtime=cdi", "--network=none", "--name=web")
    docker("run", *options, "--env", f"CDI_DEVICES={ONE}", "cdi-runc-test", "sleep", "1000")
    host = {"DOCKER_HOST": f"unix://{docker.socket}"}
    cdictl = Cdictl(installation.cdictl, docker.configuration, **host)
    assert cdictl.json("drift") == []

    docker.configuration.spec(("one", {"env": ["ACME=2"]}))
    (found,) = cdictl.json("drift", status=1)
    assert found["name"] == "web"
    last = cdictl("drift", check=False).out.splitlines()[-1].split()
    assert last == ["docker", "restart", "web"]

    docker("restart", "--time", "0", "web")
    assert cdictl.json("drift") == []
    assert docker("exec", "web", "sh", "-c", "echo $ACME").out.strip() == "2"
