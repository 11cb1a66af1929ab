"""Platforms that cannot say ``--device``: each recipe of docs/platforms.md, on the real program.

Where Debian has no such program (function platforms, GitLab Runner, Nomad), the call that it makes
to Docker's API is made instead: all of them create containers there, with what their own
configuration can say.
"""

import http.client
import json
import socket
import time

import pytest
from support.engines import IMAGE, new_name
from support.programs import need, run

DEVICE = "acme.com/widget=one"
PREFIX = "/var/run/cdi-runc/devices"
OWN_NETWORK = ("sh", "-c", 'ip link set lo up && exec "$@"', "sh")
SAY = "echo seen=$ACME"


@pytest.fixture(scope="module")
def daemon(start_docker):
    """Start a Docker daemon whose default runtime is ours, with a network of its own."""
    prefix = (need("unshare"), "--net", *OWN_NETWORK)
    return start_docker(
        default="cdi",
        prefix=prefix,
        bridge="",
        **{"node-generic-resources": ["ACME-WIDGET=one"]},
    )


@pytest.fixture
def docker(daemon):
    """Lend that daemon to one test."""
    daemon.configuration.reset()
    daemon.configuration.spec(("one", {"env": ["ACME=given"]}))
    yield daemon
    daemon.remove_containers()


@pytest.fixture(scope="module")
def swarm(daemon):
    """Make the daemon a swarm of one."""
    daemon("swarm", "init", "--advertise-addr", "127.0.0.1")
    yield
    daemon("swarm", "leave", "--force")


SWARM = [
    pytest.param(("--env", f"CDI_DEVICES={DEVICE}"), {}, id="variable"),
    pytest.param(
        ("--mount", f"type=bind,source=/dev/null,target={PREFIX}/acme.com/widget/one"),
        {"requests": {"mounts": PREFIX}},
        id="mount",
    ),
    pytest.param(
        ("--generic-resource", "ACME-WIDGET=1"),
        {"requests": {"environment": {"DOCKER_RESOURCE_ACME-WIDGET": {"kind": "acme.com/widget"}}}},
        id="generic-resource",
    ),
    pytest.param((), {"requests": {"default": [DEVICE]}}, id="default-device"),
]


@pytest.mark.parametrize(("options", "sections"), SWARM)
def test_swarm_service(docker, swarm, options, sections):
    """A service's task has the device that a variable, mount, resource or default asks for."""
    docker.configuration.write(**sections)
    name = new_name()
    docker(
        *("service", "create", "--quiet", "--detach", "--name", name, "--no-resolve-image"),
        *("--restart-condition", "none", *options, IMAGE, "sh", "-c", SAY),
    )
    deadline = time.monotonic() + 60
    logs = ""
    while "seen=" not in logs and time.monotonic() < deadline:
        time.sleep(0.2)
        logs = docker("service", "logs", "--raw", name, check=False).out
    tasks = docker("service", "ps", "--no-trunc", name).out
    docker("service", "rm", name)

    assert logs.strip() == "seen=given", tasks


@pytest.mark.parametrize(
    ("service", "sections"),
    [
        pytest.param({"environment": {"CDI_DEVICES": DEVICE}}, {}, id="variable"),
        pytest.param(
            {"volumes": [f"/dev/null:{PREFIX}/acme.com/widget/one"]},
            {"requests": {"mounts": PREFIX}},
            id="mount",
        ),
        pytest.param({"runtime": "cdi", "environment": {"CDI_DEVICES": DEVICE}}, {}, id="runtime"),
    ],
)
def test_compose(docker, tmp_path, service, sections):
    """A service of a compose file has the device that it asks for."""
    docker.configuration.write(**sections)
    say = SAY.replace("$", "$$")  # compose has variables of its own
    content = {"image": IMAGE, "command": ["sh", "-c", say], "network_mode": "none", **service}
    file = tmp_path / "docker-compose.json"
    file.write_text(json.dumps({"version": "2.4", "services": {"job": content}}))
    compose = (need("docker-compose"), "--file", file, "--project-name", new_name())
    env = {**docker.env, "DOCKER_HOST": f"unix://{docker.socket}"}
    try:
        out = run(*compose, "run", "--rm", "job", env=env).out
    finally:
        run(*compose, "down", env=env)

    assert out.strip() == "seen=given"


class Socket(http.client.HTTPConnection):
    """HTTP to Docker's own socket."""

    def __init__(self, path):
        super().__init__("docker")
        self.path = str(path)

    def connect(self):
        """Connect."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def call(docker, method, path, content=None):
    """Call Docker's API; return what it answers."""
    connection = Socket(docker.socket)
    connection.request(
        method, path, json.dumps(content or {}), {"Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status < 300, body
    return body


API = [
    pytest.param({"Env": [f"CDI_DEVICES={DEVICE}"]}, {}, id="function-platform-variable"),
    pytest.param(
        {"Env": ["FN_GPU=one"]},
        {"requests": {"environment": {"FN_GPU": {"kind": "acme.com/widget"}}}},
        id="function-platform-own-variable",
    ),
    pytest.param({}, {"requests": {"default": [DEVICE]}}, id="function-platform-nothing"),
    pytest.param(
        {
            "Env": [f"CDI_DEVICES={DEVICE}", "CI=true"],
            "HostConfig": {"Runtime": "cdi", "NetworkMode": "none"},
        },
        {},
        id="gitlab-runner-runtime",
    ),
    pytest.param(
        {"HostConfig": {"Binds": [f"/dev/null:{PREFIX}/acme.com/widget/one:ro"]}},
        {"requests": {"mounts": PREFIX}, "policy": [{"source": "mount", "do": "allow"}]},
        id="gitlab-runner-volumes",
    ),
    pytest.param(
        {
            "Env": ["NOMAD_ALLOC_ID=1", f"CDI_DEVICES={DEVICE}"],
            "HostConfig": {"Runtime": "cdi", "NetworkMode": "none"},
        },
        {},
        id="nomad-runtime",
    ),
]


@pytest.mark.parametrize(("content", "sections"), API)
def test_what_a_platform_asks_of_dockers_api(docker, content, sections):
    """A container that is made by the API, as the platform makes it, has the device."""
    docker.configuration.write(**sections)
    body = {"Image": IMAGE, "Cmd": ["sh", "-c", SAY], **content}
    made = json.loads(call(docker, "POST", "/v1.41/containers/create", body))["Id"]
    call(docker, "POST", f"/v1.41/containers/{made}/start")
    call(docker, "POST", f"/v1.41/containers/{made}/wait")

    assert docker("logs", made).out.strip() == "seen=given"


def test_legacy_build_steps_are_edited_as_containers(docker, tmp_path):
    """The classic builder's RUN steps are containers of the default runtime; BuildKit's are not."""
    (tmp_path / "Dockerfile").write_text(
        f"FROM {IMAGE}\nENV CDI_DEVICES={DEVICE}\nRUN {SAY} >/built\n"
    )
    docker("build", "--network", "none", "--tag", "built", tmp_path)
    out = docker("run", "--rm", "--network", "none", "built", "cat", "/built").out

    assert out.strip() == "seen=given"
