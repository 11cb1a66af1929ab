"""Podman of a user who is not root: it calls its runtime in a user namespace, as uid 0."""

import json
import os

import pytest
from support.devices import DEVICE, Node, free_loop_numbers, probe
from support.engines import IMAGE, new_name
from support.users import ID, RANGE

ONE = ("--annotation", "cdi.k8s.io/test=acme.com/widget=one")


def test_device_and_places(rootless_podman, user, installation):
    """All that a device brings is there, and the user's own places hold spec, record and state."""
    ran = user.home / "ran"
    hook = {"hookName": "createRuntime", "path": "/bin/sh", "args": ["sh", "-c", f"id -u >{ran}"]}
    version = user.write(user.home / "version", "525\n")
    spec = user.spec(
        {
            "env": ["ACME=1"],
            "mounts": [
                {"hostPath": str(version), "containerPath": "/opt/acme", "options": ["rbind"]}
            ],
            "hooks": [hook],
        }
    )
    said = rootless_podman.run(*ONE, command=["sh", "-c", "echo $ACME $(cat /opt/acme)"])
    (record,) = user.records()
    listed = user(installation.cdictl, "audit", "list", "--json").out
    examined = user(installation.cdictl, "doctor", check=False).out

    assert said.out.split() == ["1", "525"]
    assert (ran.read_text(), ran.stat().st_uid) == ("0\n", ID)
    assert (record["engine"], record["result"]) == ("podman", "edited")
    assert [one["path"] for one in record["specs"]] == [str(spec)]
    assert record["id"] in listed
    assert str(user.audit_file) in examined
    assert str(user.spec_dir) in examined
    assert (user.state_dir / "registry").stat().st_uid == ID
    assert list((user.state_dir / "exec-default").iterdir()) == []


def test_forged_engine(rootless_podman, user):
    """Podman is known by its call, whatever the container's annotations say of its engine."""
    user.spec({"env": ["ACME=1"]})
    rules = [{"engine": "cri-o", "do": "allow"}, {"engine": "podman", "do": "ignore"}]
    user.write(user.home / ".config/cdi-runc/config.yaml", json.dumps({"policy": rules}))
    forged = ("io.container.manager=me", "io.kubernetes.cri-o.Forged=1")
    options = [word for one in forged for word in ("--annotation", one)]
    said = rootless_podman.run(*ONE, *options, command=["sh", "-c", "echo $ACME."])
    (record,) = user.records()

    assert (said.out, record["engine"]) == (".\n", "podman")
    assert [request["decision"] for request in record["requests"]] == ["ignore"]


def test_specs_of_the_host(rootless_podman, user):
    """Root's spec files count as well, and the user's own win over them."""
    user.spec({"env": ["FROM=host"]}, user.etc / "cdi")
    said = [rootless_podman.run(*ONE, command=["sh", "-c", "echo $FROM"]).out]
    user.spec({"env": ["FROM=home"]})
    said.append(rootless_podman.run(*ONE, command=["sh", "-c", "echo $FROM"]).out)

    assert said == ["host\n", "home\n"]


def test_specs_of_another_user(rootless_podman, user, installation):
    """They look like root's in the namespace, and are used if nobody else may write them.

    Doctor, which is outside of it, names them.
    """
    spec = user.spec({"env": ["FROM=host"]}, user.etc / "cdi")
    os.chown(spec, ID + 1, ID + 1)
    command = ["sh", "-c", "echo $FROM"]
    said = rootless_podman.run(*ONE, command=command).out
    examined = user(installation.cdictl, "doctor", check=False)
    spec.chmod(0o666)
    refused = rootless_podman.run(*ONE, command=command, check=False)

    assert said == "host\n"
    assert examined.status == 1
    assert f"/etc/cdi/acme.json belongs to user {ID + 1}" in " ".join(examined.out.split())
    assert refused.status != 0
    assert "/etc/cdi/acme.json is writable by everybody" in refused.err


@pytest.mark.parametrize("path", ["its own", "another", "of a link"])
def test_device_node(rootless_podman, user, tmp_path, path):
    """The host's node is in the container under any path, and is usable as the user may use it.

    runc mounts a node of the host by the path that it has in the container, so one of another
    path would be lost, or be another device.
    """
    node = Node(tmp_path / "node", free_loop_numbers()[0], mode=0o666)
    (tmp_path / "link").symlink_to("node")
    host_path = tmp_path / ("link" if path == "of a link" else "node")
    place = str(node.path) if path == "its own" else DEVICE
    user.spec({"deviceNodes": [{"path": place, "hostPath": str(host_path)}]})
    said = rootless_podman.run(*ONE, command=[*probe()[:-1], place]).out
    kinds = {edit["kind"] for edit in user.records()[0]["edits"]}

    numbers = f"{node.major:x}:{node.minor:x}"
    assert said == f"block special file {numbers} 666 65534:65534 read=yes write=yes\n"
    assert kinds == ({"deviceNodes"} if path == "its own" else {"mounts"})


def test_node_of_other_numbers(rootless_podman, user, tmp_path):
    """A node that would be another device of the host keeps the container from starting."""
    mine, other = free_loop_numbers()[:2]
    node = Node(tmp_path / "node", mine, mode=0o666)
    numbers = {"type": "b", "major": 7, "minor": other}
    spec = user.spec({"deviceNodes": [{"path": str(node.path), **numbers}]})
    finished = rootless_podman.run(*ONE, check=False)

    assert finished.status != 0
    for word in ("acme.com/widget=one", str(spec), f"{node.path} (b 7:{other})", "user namespace"):
        assert word in finished.err


@pytest.mark.parametrize("path", ["its own", "another"])
def test_node_that_the_user_may_not_use(rootless_podman, user, installation, tmp_path, path):
    """Doctor says that what is closed to the user is closed to the user's container."""
    node = Node(tmp_path / "node", free_loop_numbers()[0], mode=0o640)
    place = str(node.path) if path == "its own" else DEVICE
    user.spec({"deviceNodes": [{"path": place, "hostPath": str(node.path)}]})
    said = rootless_podman.run(*ONE, command=[*probe()[:-1], place]).out
    (record,) = user.records()
    examined = user(installation.cdictl, "doctor", record["container"], check=False)

    assert said.endswith(" read=no write=no\n")
    assert examined.status == 1
    told = f"your user may not read and write {node.path}, which is 0640 root:root"
    assert told in " ".join(examined.out.split())
    assert "keep-groups" in examined.out


def test_groups(rootless_podman, user):
    """A group of the user's range is given, with a warning that it is another one of the host."""
    user.spec({"additionalGids": [44]})
    said = rootless_podman.run(*ONE, command=["id", "-G"]).out
    (record,) = user.records()

    assert said.split() == ["0", "44"]
    assert [text for text in record["warnings"] if f"the host's {RANGE[0] + 43} " in text]


def test_group_that_cannot_be_mapped(rootless_podman, user):
    """A group out of the user's range is told of before runc is asked, with what would help."""
    spec = user.spec({"additionalGids": [RANGE[1] + 1]})
    finished = rootless_podman.run(*ONE, check=False)

    assert finished.status != 0
    for word in ("cdi-runc: ", "acme.com/widget=one", str(spec), "group 65537", "/etc/subgid"):
        assert word in finished.err


def test_further_processes(rootless_podman, user):
    """An exec sees the device's variables, and what was kept for it goes with the container."""
    user.spec({"env": ["ACME=1"], "additionalGids": [44]})
    name = new_name()
    rootless_podman.start(*ONE, "--name", name, command=["sleep", "60"])
    kept = user.state_dir / "exec-default"
    before = len(list(kept.iterdir()))
    said = rootless_podman("exec", name, "sh", "-c", "echo $ACME $(id -G)").out
    rootless_podman("rm", "--force", "--time", "0", name)

    assert said.split() == ["1", "0", "44"]
    assert (before, len(list(kept.iterdir()))) == (1, 0)


def test_own_configuration_holds_for_every_call(rootless_podman, user):
    """The runtime that the user's configuration names gets all calls, those without HOME too."""
    calls = user.home / "calls"
    script = f'#!/bin/sh\necho "$1 ${{HOME-none}}" >>{calls}\nexec runc "$@"\n'
    runtime = user.write(user.home / "runtime", script)
    runtime.chmod(0o755)
    content = json.dumps({"runtime": str(runtime)})
    user.write(user.home / ".config/cdi-runc/config.yaml", content)
    name = new_name()
    rootless_podman.start("--name", name, command=["sleep", "60"])
    rootless_podman("exec", name, "true")
    rootless_podman("rm", "--force", "--time", "0", name)
    seen = dict(line.split() for line in calls.read_text().splitlines())

    assert list(seen) == ["create", "start", "exec", "kill", "delete"]
    # Should Podman give HOME one day, this test proves nothing any more.
    assert seen["delete"] == "none"


@pytest.mark.parametrize("what", ["directory", "file"])
def test_what_cannot_be_read_is_named(rootless_podman, user, installation, what):
    """A spec directory or file that is closed to the user is named in the error and by doctor."""
    spec = user.spec({"env": ["FROM=host"]}, user.etc / "cdi")
    closed = spec if what == "file" else spec.parent
    closed.chmod(0o700)
    told = f"/etc/cdi{'/acme.json' if what == 'file' else ''}"
    finished = rootless_podman.run(*ONE, check=False)
    examined = user(installation.cdictl, "doctor", check=False).out

    assert finished.status != 0
    assert f"cannot read {told}: Permission denied" in finished.err
    assert "there is no spec file in" not in finished.err
    assert f"ls -ld {told}" in finished.err
    assert f"{told} cannot be used: Permission denied" in examined
    assert rootless_podman.run(command=["echo", "fine"]).out == "fine\n"

    user.spec({"env": ["FROM=home"]})
    assert rootless_podman.run(*ONE, command=["sh", "-c", "echo $FROM"]).out == "home\n"
    assert f"spec file ignored: {told}: Permission denied" in user.records()[-1]["warnings"]


def test_every_call_of_podman_is_in_a_user_namespace(rootless_podman, user):
    """What we build on: uid 0 in a namespace in which the root directory is nobody's."""
    told = user.home / "told"
    script = f'#!/bin/sh\n{{ id -u; stat -c %u /; }} >{told}\nexec runc "$@"\n'
    runtime = user.write(user.home / "runtime", script)
    runtime.chmod(0o755)
    words = ("run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024")
    rootless_podman(*("--runtime", runtime, *words, "--ulimit", "nproc=4096:4096", IMAGE, "true"))

    assert told.read_text().split() == ["0", "65534"]
