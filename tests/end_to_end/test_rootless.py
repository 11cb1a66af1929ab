"""A user who is not root and calls runc, with places of their own (C4, C10)."""

import json

import pytest
from support.devices import DEVICE, Node, free_loop_numbers, probe
from support.users import ID

ONE = "acme.com/widget=one"
PROCESS = {"user": {"uid": 0, "gid": 0}, "env": ["PATH=/bin"], "cwd": "/"}


@pytest.fixture
def rootless_bundle(make_bundle, user):
    """Make bundles as ``runc spec --rootless`` does, of the user's own."""

    def make(*command, request=()):
        bundle = make_bundle(*command)
        config = bundle.config
        config["mounts"] = [mount for mount in config["mounts"] if mount["destination"] != "/sys"]
        config["linux"] = {
            "namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount", "user")],
            "uidMappings": [{"containerID": 0, "hostID": ID, "size": 1}],
            "gidMappings": [{"containerID": 0, "hostID": ID, "size": 1}],
        }
        if request:
            bundle.request(*request)
        bundle.save()
        user.own(bundle.path)
        return bundle

    return make


@pytest.fixture
def call(installation, rootless_bundle, user):
    """Run a bundle to its end as the user."""

    def call(*command, request=(ONE,), env=None):
        bundle = rootless_bundle(*command, request=request)
        words = ("--root", user.home / "root", "run", "--bundle", bundle.path, bundle.id)
        return user(installation.shim, *words, env=env, check=False)

    return call


def test_places_of_the_users_own(call, user):
    """Spec files, state and record lie in the user's own directories, and the device is there."""
    source = user.write(user.home / "acme", "525\n")
    edits = {
        "env": ["ACME=1"],
        "mounts": [{"hostPath": str(source), "containerPath": "/tmp/acme"}],
    }
    user.spec(edits, user.runtime_dir / "cdi")
    finished = call("sh", "-c", "echo $ACME; cat /tmp/acme")
    (record,) = user.records()

    assert finished.out.splitlines() == ["1", "525"]
    assert record["result"] == "edited"
    assert (user.state_dir / "registry").stat().st_uid == ID


def test_places_that_xdg_moves(call, user):
    """XDG variables say where specs are read, and where the record is written."""
    user.spec({"env": ["ACME=1"]}, user.home / "c/cdi")
    moved = {"XDG_CONFIG_HOME": f"{user.home}/c", "XDG_STATE_HOME": f"{user.home}/s"}
    finished = call("sh", "-c", "echo $ACME", env={**user.env, **moved})

    assert finished.out == "1\n"
    assert (user.home / "s/cdi-runc/audit.jsonl").exists()
    assert not user.audit_file.exists()


def test_without_a_runtime_directory(call, user):
    """Without XDG_RUNTIME_DIR nothing is kept, and the device is there nevertheless."""
    user.spec({"env": ["ACME=1"]})
    env = {name: value for name, value in user.env.items() if name != "XDG_RUNTIME_DIR"}
    finished = call("sh", "-c", "echo $ACME", env=env)

    assert finished.out == "1\n"
    assert user.records()[0]["result"] == "edited"
    assert not user.state_dir.exists()


def test_without_a_request(call):
    """A user's container that asks for nothing starts."""
    assert call("echo", "fine", request=()).out.strip() == "fine"


def test_failure_says_what_and_what_to_do(call):
    """A user's container that asks for an unknown device does not start, and is told why."""
    finished = call("echo", "fine")

    assert finished.status == 1
    assert finished.err.startswith("cdi-runc: ")
    assert ONE in finished.err


@pytest.mark.parametrize("root", [True, False], ids=["root", "default-root"])
def test_life_of_a_container(installation, rootless_bundle, user, root):
    """Create, start, exec and delete work; exec sees the device, and delete forgets it.

    The runtime's default root is the user's own too.
    """
    user.spec({"env": ["ACME=1"]})
    bundle = rootless_bundle("sleep", "60", request=[ONE])
    place = user.home / "root" if root else user.runtime_dir / "runc"
    words = (installation.shim, *(("--root", place) if root else ()))
    process = user.home / "process.json"
    args = ["sh", "-c", "echo $ACME"]
    user.write(process, json.dumps({**PROCESS, "args": args}))
    kept = user.state_dir / (f"exec{place}" if root else "exec-default") / bundle.id

    user(*words, "create", "--bundle", bundle.path, bundle.id)
    there = [kept.exists(), (place / bundle.id / "state.json").exists()]
    user(*words, "start", bundle.id)
    said = user(*words, "exec", "--process", process, bundle.id).out
    user(*words, "delete", "--force", bundle.id)

    assert said == "1\n"
    assert there == [True, True]
    assert not kept.exists()


def test_device_node(call, user, tmp_path):
    """A node of another path is there, and is usable as the user may use it."""
    node = Node(tmp_path / "node", free_loop_numbers()[0], mode=0o666)
    user.spec({"deviceNodes": [{"path": DEVICE, "hostPath": str(node.path)}]})
    said = call(*probe()).out

    numbers = f"{node.major:x}:{node.minor:x}"
    assert said == f"block special file {numbers} 666 65534:65534 read=yes write=yes\n"


def test_group_that_cannot_be_mapped(call, user):
    """A group that the container's user namespace lacks is told of, with device and spec file."""
    spec = user.spec({"additionalGids": [44]})
    finished = call("true")

    assert finished.status == 1
    for word in (ONE, str(spec), "group 44 cannot be given", "groups 0 to 0"):
        assert word in finished.err


@pytest.mark.parametrize("what", ["directory", "file"])
def test_what_cannot_be_read_is_named(call, user, installation, what):
    """A spec directory or file that is closed to the user is named, and hides nothing else."""
    spec = user.spec({"env": ["ACME=host"]}, user.etc / "cdi")
    (spec if what == "file" else spec.parent).chmod(0o700)
    told = f"/etc/cdi{'/acme.json' if what == 'file' else ''}"
    finished = call("true")
    examined = user(installation.cdictl, "doctor", check=False).out

    assert f"cannot read {told}: Permission denied" in finished.err
    assert f"{told} cannot be used: Permission denied" in examined

    user.spec({"env": ["ACME=home"]})
    assert call("sh", "-c", "echo $ACME").out == "home\n"
    assert f"spec file ignored: {told}: Permission denied" in user.records()[-1]["warnings"]


def test_cures_are_what_the_user_can_do(installation, user):
    """Who is not root is not asked to change the system, and spec files go to the user's own."""
    told = user(installation.cdictl, "doctor", "--json", check=False).out
    homeless = {**user.env, "HOME": "/nonexistent"}
    del homeless["XDG_RUNTIME_DIR"]
    lost = user(installation.cdictl, "doctor", "--json", check=False, env=homeless).out
    cures, without = (
        {one["check"]: one["cure"] for one in json.loads(out)["findings"]} for out in (told, lost)
    )

    assert f"cdictl spec generate --output-dir {user.runtime_dir}/cdi" in cures["spec-none"]
    assert "# have root call: cdictl spec generate --output-dir /etc/cdi" == without["spec-none"]
    assert "ls -ld /  # set audit.file, or HOME or XDG_STATE_HOME" == without["audit-writable"]
    assert "audit-rotated" not in {**cures, **without}


def test_an_audit_file_that_has_grown_is_moved(installation, user):
    """A user's own audit file is kept small without the system's logrotate."""
    user.write(user.audit_file, "")
    with user.audit_file.open("r+b") as file:
        file.truncate(201 << 20)
    told = user(installation.cdictl, "doctor", "--json", check=False).out
    (cure,) = (
        one["cure"] for one in json.loads(told)["findings"] if one["check"] == "audit-rotated"
    )
    user("sh", "-c", cure)

    assert not user.audit_file.exists()
    assert [201 << 20] == [file.stat().st_size for file in user.audit_file.parent.iterdir()]


def test_a_configuration_that_is_closed_to_the_user_is_not_theirs_to_correct(installation, user):
    """Who may not read the configuration is told who may."""
    directory = user.etc / "cdi-runc"
    directory.mkdir()
    path = directory / "config.yaml"
    path.write_text("wait: 1\n")
    path.chmod(0o600)
    listed = user(installation.cdictl, "devices", check=False)
    examined = user(installation.cdictl, "doctor", check=False)

    assert "config.yaml: Permission denied; become root, or whoever may read it" in listed.err
    assert "cure: become root, or whoever may read it" in examined.out
