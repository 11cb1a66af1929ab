"""Containers are found by the names that their engines give them."""

import json
import shlex
from pathlib import Path

import pytest
from support.commands import Cdictl
from support.engines import IMAGE, new_name
from support.programs import environment, need, run

from cdi_runc.cli import containers

ONE = "acme.com/widget=one"
ASK = ("--runtime=cdi", "--network=none", "--env", f"CDI_DEVICES={ONE}")


@pytest.fixture
def cdictl(docker, installation):
    """Return the command, which sees Docker."""
    host = {"DOCKER_HOST": f"unix://{docker.socket}"}
    return Cdictl(installation.cdictl, docker.configuration, **host)


def test_docker_names(docker, cdictl, monkeypatch):
    """Docker's name, the beginning of the id and the id itself name the same record."""
    docker.configuration.spec(("one", {"env": ["ACME=1"]}))
    docker("run", "--detach", *ASK, "--name=beef", IMAGE, "sleep", "1000")
    id_ = docker("inspect", "--format", "{{.Id}}", "beef").out.strip()
    (record,) = docker.configuration.records()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{docker.socket}")
    known = containers.resolve("beef")

    for name in ("beef", id_[:12], id_):
        assert cdictl.json("audit", "show", name) == record
    assert [one["id"] for one in cdictl.json("audit", "list", "--container", "beef")] == [
        record["id"]
    ]
    assert (known.id, known.name, known.engine) == (id_, "beef", "docker")
    assert known.bundle == record["bundle"]
    assert containers.running(id_, record["root"]) == int(
        docker("inspect", "--format", "{{.State.Pid}}", "beef").out
    )


def test_docker_knows_more_than_the_record(docker, cdictl):
    """A container that asked for nothing is known to Docker, and that is told."""
    docker("create", "--name=plain", "--network=none", IMAGE, "true")
    done = cdictl("audit", "show", "plain", check=False)

    assert done.status == 1
    assert "docker knows the container plain" in done.err


def test_a_name_comes_before_an_id(docker, cdictl):
    """A name of Docker's is not mistaken for the beginning of another container's id."""
    docker.configuration.spec(("one", {"env": ["ACME=1"]}))
    docker("run", "--detach", *ASK, "--name=first", IMAGE, "sleep", "1000")
    id_ = docker("inspect", "--format", "{{.Id}}", "first").out.strip()
    docker("run", "--detach", *ASK, f"--name={id_[:4]}", IMAGE, "sleep", "1000")
    second = docker("inspect", "--format", "{{.Id}}", id_[:4]).out.strip()

    assert cdictl.json("audit", "show", id_[:4])["container"] == second


def test_docker_run_can_do_the_same(docker, cdictl, make_node, tmp_path):
    """With the exported options Docker's own runtime makes a container that sees the same."""
    node = make_node()
    library = tmp_path / "a, library"
    library.write_text("525\n")
    tmpfs = {"hostPath": "tmpfs", "options": ["size=64k", "nosuid"]}
    edits = {
        "env": ["ACME=one two"],
        "deviceNodes": [
            {"path": "/dev/acme0", "hostPath": str(node.path), "permissions": "r"},
            {"path": "/dev/acme1", "hostPath": "/dev/zero"},
        ],
        "mounts": [
            {"hostPath": str(library), "containerPath": "/opt/a", "options": ["ro", "bind"]},
            {"containerPath": "/opt/t", "type": "tmpfs", **tmpfs},
        ],
        "additionalGids": [4242],
    }
    docker.configuration.spec(("one", edits), cdiVersion="0.7.0")
    look = (
        'echo "$ACME" $(cat /opt/a) $(id -G); stat -c %F:%t:%T /dev/acme1; '
        "grep /opt/ /proc/mounts | sed 's/.* .opt/opt/'; "
        '(exec 3</dev/acme0) && echo read; (exec 3>/dev/acme0) || echo "not written"'
    )
    command = (IMAGE, "sh", "-c", look)
    through_us = docker("run", *ASK, "--name=ours", *command)
    done = cdictl("audit", "export", "ours", "--format", "docker")
    words = shlex.split(done.out.replace("\\\n", " "))
    alone = docker("run", "--network=none", *words, *command)

    assert "one two 525 " in through_us.out
    assert "read\nnot written" in through_us.out
    assert alone.out == through_us.out


def test_podman(podman, installation, tmp_path):
    """Podman's name of a container is understood."""
    podman.configuration.spec(("one", {"env": ["ACME=1"]}))
    name = new_name()
    options = ("--name", name, "--annotation", f"cdi.k8s.io/test={ONE}")
    podman.start(*options, command=("sleep", "1000"))
    (record,) = podman.configuration.records()
    (tmp_path / "bin").mkdir()
    wrapper = tmp_path / "bin/podman"
    place = podman.directory
    wrapper.write_text(
        f'#!/bin/sh\nexec {need("podman")} --root "{place}/root" --runroot "{place}/run"'
        f' --tmpdir "{place}/tmp" --storage-driver vfs "$@"\n'
    )
    wrapper.chmod(0o755)
    env = {"PATH": f"{tmp_path}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "DOCKER_HOST": "unix:///none"}
    cdictl = Cdictl(installation.cdictl, podman.configuration, **env)

    assert cdictl.json("audit", "show", name) == record
    assert cdictl.json("plan", "--container", name)["ok"]
    podman.configuration.spec(("one", {"env": ["ACME=2"]}))
    (found,) = cdictl.json("drift", status=1)
    assert found["name"] == name
    podman("rm", "--force", "--time", "0", name)
    assert cdictl.json("drift") == []


def test_containerd(ctr, installation, tmp_path):
    """A task of containerd's is found by its id, and by the beginning of it."""
    ctr.configuration.spec(("one", {"env": ["ACME=1"]}))
    name = new_name()
    run(
        *(need("ctr"), "--address", ctr.address, "run", "--detach", "--runc-binary"),
        *(installation.shim, "--env", "PATH=/bin", "--env", f"CDI_DEVICES={ONE}"),
        *("--rootfs", ctr.rootfs, name, "sleep", "1000"),
        env=ctr.env,
    )
    try:
        (record,) = ctr.configuration.records()
        cdictl = Cdictl(installation.cdictl, ctr.configuration, DOCKER_HOST="unix:///none")
        assert cdictl.json("audit", "show", name[:-1]) == record
        assert cdictl.json("plan", "--container", name)["edits"] == record["edits"]
        assert cdictl.json("drift") == []
        ctr.configuration.spec(("one", {"env": ["ACME=2"]}))
        (found,) = cdictl.json("drift", status=1)
        assert (found["container"], found["engine"]) == (name, record["engine"])
    finally:
        for words in (("tasks", "kill", "--signal", "KILL", name), ("containers", "rm", name)):
            run(need("ctr"), "--address", ctr.address, *words, env=ctr.env, check=False)


def test_containerd_tasks(tmp_path):
    """Of several tasks the exact one is meant, and a beginning that fits two means none."""
    for name in ("web", "web-1", "web-2", "db"):
        (tmp_path / "default" / name).mkdir(parents=True)

    assert containers.in_containerd("web", str(tmp_path)).id == "web"
    assert containers.in_containerd("d", str(tmp_path)).id == "db"
    assert containers.in_containerd("web-", str(tmp_path)) is None
    assert containers.in_containerd("x", str(tmp_path / "none")) is None


@pytest.mark.parametrize("start", [0, 1])
def test_running(tmp_path, start):
    """A process that began at another time is not the container's."""
    place = tmp_path / "c1"
    place.mkdir()
    began = int(Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19])
    state = {"init_process_pid": 1, "init_process_start": began + start}
    (place / "state.json").write_text(json.dumps(state))

    assert containers.running("c1", str(tmp_path)) == (0 if start else 1)
    (place / "state.json").write_text("{")
    assert containers.running("c1", str(tmp_path)) == 0
    (place / "status").write_text(json.dumps({"pid": 1, "process-start-time": began + start}))
    assert containers.running("c1", str(tmp_path)) == (0 if start else 1)
    assert containers.running("c2", str(tmp_path)) == 0


def test_a_host_without_engines(installation, configuration, tmp_path):
    """Without any engine the beginning of an id is enough."""
    env = {"PATH": str(tmp_path), "DOCKER_HOST": "tcp://nowhere:1"}
    done = run(
        installation.cdictl,
        *("audit", "show", "web"),
        env=environment(**configuration.env, **env),
        check=False,
    )

    assert done.status == 1
    assert "no audit record of 'web'" in done.err
