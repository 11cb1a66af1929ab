"""Docker, asked as users ask it, and the container seen from inside."""

import json
import os

import pytest
from support.devices import probe, seen
from support.engines import new_name

ONE = ("--env", "CDI_DEVICES=acme.com/widget=one")


def offer(docker, node, permissions="r"):
    """Offer acme.com/widget=one: a node, a variable, a read-only mount and a hook."""
    directory = docker.configuration.directory
    library = directory / "library"
    library.mkdir()
    (library / "version").write_text("525\n")
    hook = directory / "hook"
    hook.write_text(f'#!/bin/sh\ncat >"{directory}/hook-ran"\n')
    hook.chmod(0o755)
    edits = {
        "env": ["ACME=1"],
        "deviceNodes": [
            {"path": "/dev/acme0", "hostPath": str(node.path), "permissions": permissions}
        ],
        "mounts": [
            {
                "hostPath": str(library),
                "containerPath": "/usr/lib/acme",
                "options": ["ro", "nosuid", "nodev", "rbind"],
            }
        ],
        "hooks": [{"hookName": "createRuntime", "path": str(hook)}],
    }
    return docker.configuration.spec(("one", edits))


def test_everything_is_there(docker, make_node):
    """A requested device's node, access, variable, mount and hook are all there."""
    node = make_node()
    offer(docker, node)
    script = '"$@"; echo "$ACME $(cat /usr/lib/acme/version)"; touch /usr/lib/acme/new 2>&1; true'
    words = ["sh", "-c", script, "sh", *probe()]
    lines = docker.run("--runtime=cdi", *ONE, command=words).out.splitlines()

    assert seen(node, write="no") == lines[0]
    assert lines[1] == "1 525"
    assert lines[2].endswith("Read-only file system")
    assert json.loads((docker.configuration.directory / "hook-ran").read_text())["id"]


def test_record_says_who_asked(docker, make_node):
    """The record names engine, runtime, request, spec file and each edit."""
    spec = offer(docker, make_node())
    docker.run("--runtime=cdi", *ONE)

    (record,) = docker.configuration.records()
    (request,) = record["requests"]
    assert (
        record["engine"],
        record["command"],
        record["result"],
    ) == ("docker", "create", "edited")
    assert record["runtime"].endswith("/runc")
    assert (
        request["device"],
        request["source"],
        request["key"],
    ) == ("acme.com/widget=one", "environment", "CDI_DEVICES")
    assert [str(spec)] == [found["path"] for found in record["specs"]]
    assert {"env", "deviceNodes", "mounts", "hooks"} == {e["kind"] for e in record["edits"]}


def test_cgroup_v2_enforces_the_same(docker_v2, make_node):
    """Under cgroup v2 reading is allowed and writing is refused as the spec says."""
    node = make_node()
    offer(docker_v2, node)
    words = probe()

    assert docker_v2("info", "--format", "{{.CgroupVersion}}").out.strip() == "2"
    assert seen(node, write="no") == docker_v2.run("--runtime=cdi", *ONE, command=words).out.strip()


def test_device_survives_update_and_restart(docker, make_node):
    """After ``docker update`` and ``docker restart`` the device still works as before."""
    node = make_node()
    offer(docker, node)
    name = new_name()
    options = ("--runtime=cdi", "--network=none", *ONE, "--name", name)
    docker("run", "--detach", "--init=false", *options, "cdi-runc-test", "sleep", "1000")
    looked = [docker("exec", name, *probe()).out.strip()]
    docker("update", "--cpus", "0.5", name)
    looked.append(docker("exec", name, *probe()).out.strip())
    docker("restart", "--time", "0", name)
    looked.append(docker("exec", name, *probe()).out.strip())

    assert [seen(node, write="no")] * 3 == looked
    assert [record["result"] for record in docker.configuration.records()] == ["edited"] * 2


def test_default_runtime_edits_without_being_named(docker_default, make_node):
    """As the default runtime it edits what asks, and ``--runtime`` need not be given."""
    node = make_node()
    offer(docker_default, node)

    assert seen(node, write="no") == docker_default.run(*ONE, command=probe()).out.strip()


def test_default_runtime_leaves_others_alone(docker_default):
    """As the default runtime it starts what asks for nothing, and records nothing."""
    assert docker_default.run(command=["echo", "fine"]).out.strip() == "fine"
    assert docker_default.configuration.records() == []
    assert docker_default("info", "--format", "{{.DefaultRuntime}}").out.strip() == "cdi"


def test_default_runtime_tells_its_version(docker_default):
    """The daemon asks its default runtime for a version, and is told runc's."""
    about = json.loads(docker_default("info", "--format", "{{json .}}").out)

    assert "" not in (about["RuncCommit"]["ID"], about["DefaultRuntime"])
    assert "failed to retrieve runc version" not in docker_default.log.read_text()


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="no-variable"),
        pytest.param(("--env", "CDI_DEVICES="), id="empty"),
        pytest.param(("--env", "CDI_DEVICES=void"), id="void"),
        pytest.param(("--env", "CDI_DEVICES=none"), id="none"),
    ],
)
def test_no_request_no_edit(docker, make_node, options):
    """A container that asks for nothing gets nothing."""
    offer(docker, make_node())
    words = ["sh", "-c", "ls /dev/acme0 2>&1; echo ${ACME:-unset}"]
    lines = docker.run("--runtime=cdi", *options, command=words).out.splitlines()

    assert lines == ["ls: /dev/acme0: No such file or directory", "unset"]
    assert docker.configuration.records() == []


def test_several_devices_in_the_order_asked(docker):
    """Devices are applied in the order in which they are asked for, each once."""
    docker.configuration.spec(
        *((name, {"env": [f"ACME={name}"], "mounts": []}) for name in ("a", "b", "c")),
        containerEdits={"env": ["ALL=1"]},
    )
    asked = ",".join(f"acme.com/widget={name}" for name in ("c", "a", "b", "a"))
    words = ["sh", "-c", "echo $ACME $ALL"]
    options = ("--runtime=cdi", "--env", f"CDI_DEVICES={asked}")

    assert docker.run(*options, command=words).out.strip() == "b 1"


def test_user_of_the_container_owns_the_node(docker, make_node):
    """A node without an owner in its spec belongs to the container's user."""
    node = make_node()
    offer(docker, node, permissions="rw")
    options = ("--runtime=cdi", "--user", "1000:1001", *ONE)
    expected = seen(node, owner="1000:1001")

    assert expected == docker.run(*options, command=probe()).out.strip()


def test_terminal(docker, make_node):
    """With a terminal the console socket reaches runc, and the device is there."""
    node = make_node()
    offer(docker, node)
    words = ["sh", "-c", 'tty; "$@"', "sh", *probe()]
    lines = docker.run("--tty", "--runtime=cdi", *ONE, command=words).out.splitlines()

    assert ["/dev/pts/0", seen(node, write="no")] == lines


def test_status_and_signals_are_those_of_the_container(docker):
    """A container's exit status, and a signal that ends it, reach Docker."""
    docker.configuration.spec(("one", {"env": ["ACME=1"]}))
    name = new_name()
    options = ("--runtime=cdi", "--network=none", *ONE, "--name", name)

    assert (
        docker.run("--runtime=cdi", *ONE, command=["sh", "-c", "exit 42"], check=False).status == 42
    )
    docker("run", "--detach", *options, "cdi-runc-test", "sleep", "1000")
    docker("kill", "--signal", "KILL", name)
    assert docker("wait", name).out.strip() == "137"


def test_new_spec_file_counts_at_once(docker):
    """A spec file that appears, changes or goes counts from the next container on."""
    options, words = ("--runtime=cdi", *ONE), ["sh", "-c", "echo $ACME"]
    said = []
    for value in ("first", "second"):
        spec = docker.configuration.spec(("one", {"env": [f"ACME={value}"]}))
        said.append(docker.run(*options, command=words).out.strip())
    os.unlink(spec)

    assert said == ["first", "second"]
    assert docker.run(*options, command=words, check=False).status != 0
