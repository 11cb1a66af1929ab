"""Podman, which reads the runtime's standard error and knows annotations."""

import json
import shutil

import pytest
from support.devices import probe, seen
from support.engines import IMAGE, new_name
from support.programs import environment, need, run

ONE = ("--annotation", "cdi.k8s.io/test=acme.com/widget=one")


def test_annotation_adds_the_device(podman, make_node, tmp_path):
    """A device that an annotation asks for is there, with its access, mount and variable."""
    node = make_node()
    (tmp_path / "version").write_text("525\n")
    edits = {
        "env": ["ACME=1"],
        "deviceNodes": [{"path": "/dev/acme0", "hostPath": str(node.path), "permissions": "r"}],
        "mounts": [
            {
                "hostPath": str(tmp_path / "version"),
                "containerPath": "/etc/acme",
                "options": ["ro", "bind"],
            }
        ],
    }
    podman.configuration.spec(("one", edits))
    words = ["sh", "-c", '"$@"; echo "$ACME $(cat /etc/acme)"', "sh", *probe()]
    lines = podman.run(*ONE, command=words).out.splitlines()
    (record,) = podman.configuration.records()

    assert [seen(node, write="no"), "1 525"] == lines
    assert (record["engine"], record["result"]) == ("podman", "edited")
    assert [request["source"] for request in record["requests"]] == ["annotation"]


def test_warning_is_in_its_logs(podman):
    """Podman gives no log, and keeps what is told with what the container itself writes."""
    podman.configuration.write(policy=[{"do": "ignore"}])
    name = new_name()
    words = ("--detach", "--network", "none", "--ulimit", "nofile=1024:1024")
    limits = ("--ulimit", "nproc=4096:4096")
    podman("run", *words, *limits, "--name", name, *ONE, IMAGE, "echo", "fine")
    podman("wait", name)
    logs = podman("logs", name)
    podman("rm", "--force", name)

    assert logs.out == "fine\n"
    assert "cdi-runc: the policy ignores device acme.com/widget=one" in logs.err


def test_variable_asks_as_well(podman):
    """A device that an environment variable asks for is there."""
    podman.configuration.spec(("one", {"env": ["ACME=1"]}))
    words = ["sh", "-c", "echo $ACME"]

    options = ("--env", "CDI_DEVICES=acme.com/widget=one")
    assert podman.run(*options, command=words).out.strip() == "1"


def test_no_request_no_edit(podman):
    """A container that asks for nothing starts, and nothing is recorded."""
    assert podman.run(command=["echo", "fine"]).out.strip() == "fine"
    assert podman.configuration.records() == []


def test_failure_is_in_its_output(podman):
    """What keeps a container from starting stands in Podman's own output."""
    spec = podman.configuration.spec(("other", {"env": ["ACME=1"]}))
    finished = podman.run(*ONE, check=False)

    assert finished.status != 0
    for word in ("cdi-runc: ", "acme.com/widget=one", str(spec.parent), "cdictl devices"):
        assert word in finished.err
    assert "Traceback" not in finished.err


@pytest.mark.parametrize(
    ("option", "words"),
    [
        pytest.param((), ("--runtime", "cdi"), id="named"),
        pytest.param(("--set-default",), (), id="default"),
    ],
)
def test_configured_by_cdictl(podman, installation, tmp_path, option, words):
    """With the drop-in that cdictl writes, Podman knows the runtime by its name."""
    containers = tmp_path / "containers"
    shutil.copytree("/etc/containers", containers)
    drop_in = containers / "containers.conf.d/50-cdi-runc.conf"
    configure = ("configure", "podman", "--config-file", drop_in)
    run(installation.cdictl, *configure, *option, "--runtime-path", installation.shim)
    given = [f"{name}={value}" for name, value in podman.given.items()]
    drop_in.with_name("60-test.conf").write_text(
        f"[engine]\nconmon_env_vars = {json.dumps(given)}\n"
    )
    podman.configuration.spec(("one", {"env": ["ACME=1"]}))
    script = 'mount --bind "$1" /etc/containers && shift && exec "$@"'
    place = podman.directory
    out = run(
        *(need("unshare"), "-m", "--propagation", "private", "sh", "-c", script, "sh"),
        *(containers, need("podman"), "--root", place / "root", "--runroot", place / "run"),
        *("--tmpdir", place / "tmp", "--storage-driver", "vfs"),
        *("--cgroup-manager", "cgroupfs", *words, "run", "--rm", "--network", "none"),
        *("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096", *ONE),
        *(IMAGE, "sh", "-c", "echo $ACME"),
        env=environment(),
    ).out
    run(installation.cdictl, *configure, "--remove")

    assert out.strip() == "1"
    assert not drop_in.exists()
