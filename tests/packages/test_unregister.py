"""What both packages run before they are removed, with a Docker daemon that runs."""

import json

import pytest
from support.configurations import Configuration
from support.engines import Dockerd
from support.installations import ROOT
from support.programs import environment, run

PROGRAM = "/usr/bin/cdi-runc"


@pytest.fixture
def docker(tmp_path):
    """Start a Docker daemon that has the program of the package under two names, and another."""
    configuration = Configuration(tmp_path / "cdi-runc")
    runtimes = {"cdi": PROGRAM, "devices": PROGRAM, "other": "/usr/bin/true"}
    docker = Dockerd(configuration, runtimes)
    yield docker
    docker.stop()
    configuration.forget()


def test_a_running_docker_is_told(docker, installation, tmp_path):
    """Every name of ours is gone from daemon.json and from the daemon, and only those."""
    script = tmp_path / "unregister"
    text = (ROOT / "packaging/unregister").read_text()
    script.write_text(text.replace("@HOME@", str(installation.home)))
    run("/usr/bin/python3", "-I", script, env=environment(**docker.env))
    runtimes = json.loads(docker("info", "--format", "{{json .Runtimes}}").out)
    written = json.loads((docker.directory / "daemon.json").read_text())["runtimes"]

    assert "other" in runtimes
    assert not {"cdi", "devices"} & set(runtimes)
    assert list(written) == ["other"]
