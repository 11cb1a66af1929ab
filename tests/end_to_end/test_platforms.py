"""Platforms that cannot say ``--device``: each recipe of docs/platforms.md, on the real program.

Where Debian has no such program (function platforms, GitLab Runner, Nomad), a call of the same form
is made to Docker's API instead: all of them create containers there, with what their own
configuration can say.  Needs Python 3.11, for tomllib.
"""

import http.client
import json
import re
import socket
import time

import pytest
import tomllib
from support.engines import IMAGE, new_name
from support.installations import ROOT
from support.programs import need, run

DOCUMENT = (ROOT / "docs/platforms.md").read_text()
DEVICE = "acme.com/widget=one"
PREFIX = "/var/run/cdi-runc/devices"
BY_MOUNT_ALONE = {
    "requests": {"mounts": PREFIX},
    "policy": [{"source": "mount", "do": "allow"}, {"do": "ignore"}],
}
OWN_NETWORK = ("sh", "-c", 'ip link set lo up && exec "$@"', "sh")
SAY = "echo seen=$ACME"


def recipes(language):
    """Return the document's blocks of *language*, with our image and device in them."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    ours = (("IMAGE", IMAGE), ("acme.example/camera", "acme.com/widget"), ("front", "one"))
    for theirs, own in ours:
        found = [block.replace(theirs, own) for block in found]
    assert found, language
    return found


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


def test_compose_as_documented(docker, tmp_path):
    """The compose file of the document, as it is, gives its service the device."""
    [block] = [block for block in recipes("yaml") if "services:" in block]
    file = tmp_path / "docker-compose.yml"
    file.write_text(block)
    compose = (need("docker-compose"), "--file", file, "--project-name", new_name())
    env = {**docker.env, "DOCKER_HOST": f"unix://{docker.socket}"}
    try:
        out = run(*compose, "run", "--rm", "job", "sh", "-c", SAY, env=env).out
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
    assert answer(docker, body) == "seen=given"


def answer(docker, body):
    """Make a container by the API, as *body* says; return what it writes."""
    made = json.loads(call(docker, "POST", "/containers/create", body))["Id"]
    call(docker, "POST", f"/containers/{made}/start")
    call(docker, "POST", f"/containers/{made}/wait")
    return docker("logs", made).out.strip()


@pytest.mark.parametrize(
    ("asks", "sections"),
    [
        pytest.param("environment", {}, id="variable"),
        pytest.param("volumes", BY_MOUNT_ALONE, id="volume"),
    ],
)
def test_gitlab_runner(docker, asks, sections):
    """With the document's config.toml, the variable asks alone, and so does the volume.

    A volume that is a path alone, as the runner's own /cache, is no bind in the API.
    """
    [block] = recipes("toml")
    [runner] = tomllib.loads(block)["runners"]
    executor = runner.pop("docker")
    assert runner.keys() == {"environment"}
    assert executor.keys() == {"runtime", "volumes"}
    assert "/cache" in executor["volumes"]

    docker.configuration.write(**sections)
    host = {"Runtime": executor["runtime"], "NetworkMode": "none"}
    body = {"Image": IMAGE, "Cmd": ["sh", "-c", SAY], "HostConfig": host}
    if asks == "volumes":
        host["Binds"] = [volume for volume in executor["volumes"] if ":" in volume]
    else:
        body["Env"] = [*runner["environment"], "CI=true"]

    assert answer(docker, body) == "seen=given"


def test_hcl_has_one_argument_a_line():
    """HCL takes no two arguments in a block that is one line, and wants each on its own."""
    for block in recipes("hcl"):
        assert block.count("{") == block.count("}")
        for line in re.sub(r'"[^"]*"', '""', block).splitlines():
            assert line.count("=") < 2, line


@pytest.mark.parametrize(
    ("says", "options"),
    [
        pytest.param(f"ENV CDI_DEVICES={DEVICE}", (), id="variable"),
        pytest.param(
            "ARG CDI_DEVICES", ("--build-arg", f"CDI_DEVICES={DEVICE}"), id="build-argument"
        ),
    ],
)
def test_legacy_build_steps_are_edited_as_containers(docker, tmp_path, says, options):
    """The classic builder's RUN steps are containers of the default runtime."""
    (tmp_path / "Dockerfile").write_text(f"FROM {IMAGE}\n{says}\nRUN {SAY} >/built\n")
    docker("build", "--network", "none", "--no-cache", "--tag", "built", *options, tmp_path)
    out = docker("run", "--rm", "--network", "none", "built", "cat", "/built").out

    assert out.strip() == "seen=given"
