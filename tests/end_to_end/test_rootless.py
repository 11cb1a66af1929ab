"""A user who is not root, with places of their own (C4, C10)."""

import json
import os

import pytest
from support.configurations import audit_validator
from support.programs import need, run

USER = 54321


@pytest.fixture
def home(tmp_path, tmp_path_factory, installation):
    """Return a directory of the user's own, on a path that they may enter."""
    base = tmp_path_factory.getbasetemp()
    for directory in (base.parent, base, tmp_path, installation.prefix):
        directory.chmod(0o711)
    home = tmp_path / "home"
    (home / "runtime/cdi").mkdir(parents=True)
    return home


@pytest.fixture
def call(installation, make_bundle, home):
    """Run a bundle as ``runc spec --rootless`` makes it, as the user; return what it said."""

    def call(*command, request=()):
        bundle = make_bundle(*command)
        config = bundle.config
        config["mounts"] = [mount for mount in config["mounts"] if mount["destination"] != "/sys"]
        config["linux"] = {
            "namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount", "user")],
            "uidMappings": [{"containerID": 0, "hostID": USER, "size": 1}],
            "gidMappings": [{"containerID": 0, "hostID": USER, "size": 1}],
        }
        if request:
            bundle.request(*request)
        bundle.save()
        os.chown(bundle.config_path, USER, USER)
        for top in (home, bundle.path):
            for directory, _, _ in os.walk(top):
                os.chown(directory, USER, USER)
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(home / "runtime"),
        }
        user = ("setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups")
        shim = (installation.shim, "--root", home / "root")
        need("setpriv")
        return run(*user, *shim, "run", "--bundle", bundle.path, bundle.id, env=env, check=False)

    return call


def test_places_of_the_users_own(call, home):
    """Spec files, state and record lie in the user's own directories, and the device is there."""
    source = home / "acme"
    source.write_text("525\n")
    edits = {
        "env": ["ACME=1"],
        "mounts": [{"hostPath": str(source), "containerPath": "/tmp/acme"}],
    }
    spec = {
        "cdiVersion": "0.6.0",
        "kind": "acme.com/widget",
        "devices": [{"name": "one", "containerEdits": edits}],
    }
    (home / "runtime/cdi/acme.json").write_text(json.dumps(spec))
    finished = call("sh", "-c", "echo $ACME; cat /tmp/acme", request=["acme.com/widget=one"])
    (line,) = (home / ".local/state/cdi-runc/audit.jsonl").read_bytes().splitlines()
    audit_validator().validate(json.loads(line))

    assert finished.out.splitlines() == ["1", "525"]
    assert json.loads(line)["result"] == "edited"
    assert (home / "runtime/cdi-runc/registry").stat().st_uid == USER


def test_without_a_request(call):
    """A user's container that asks for nothing starts."""
    assert call("echo", "fine").out.strip() == "fine"


def test_failure_says_what_and_what_to_do(call):
    """A user's container that asks for an unknown device does not start, and is told why."""
    finished = call("echo", "fine", request=["acme.com/widget=one"])

    assert finished.status == 1
    assert finished.err.startswith("cdi-runc: ")
    assert "acme.com/widget=one" in finished.err
