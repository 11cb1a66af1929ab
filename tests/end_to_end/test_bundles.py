"""Plain bundles, run by the real runc and crun through cdi-runc, and seen from inside."""

import hashlib
import json
import stat
import time
from pathlib import Path

import pytest
from support.devices import in_cgroup_v2, probe, seen
from support.programs import need


def host_has_cgroup_v1():
    """Tell whether device rules are enforced by cgroup v1 here."""
    return Path("/sys/fs/cgroup/devices").is_dir()


@pytest.fixture(
    params=[
        pytest.param("v1", marks=pytest.mark.skipif(not host_has_cgroup_v1(), reason="no v1 here")),
        "v2",
    ]
)
def runtime(request, installation, configuration, make_runtime):
    """Return cdi-runc before runc, under cgroup v1 and v2."""
    need("runc")
    prefix = in_cgroup_v2() if request.param == "v2" else []
    return make_runtime(installation.shim, configuration, prefix)


@pytest.mark.parametrize(
    ("permissions", "access"),
    [
        pytest.param("rwm", {}, id="all"),
        pytest.param("r", {"write": "no"}, id="read"),
        pytest.param("w", {"read": "no"}, id="write"),
        pytest.param("none", {"read": "no", "write": "no"}, id="none"),
    ],
)
def test_node_and_access(runtime, make_bundle, make_node, permissions, access):
    """A device has the host's numbers and mode, and the access that the spec's permissions give."""
    node = make_node()
    edit = {"path": "/dev/acme0", "hostPath": str(node.path), "permissions": permissions}
    runtime.configuration.spec(("one", {"deviceNodes": [edit]}))
    bundle = make_bundle(*probe()).request("acme.com/widget=one")

    assert seen(node, **access) == runtime.run(bundle).out.strip()


def test_unasked_device_is_out_of_reach(runtime, make_bundle, make_node):
    """Without a request a container may not even open a node that it makes itself."""
    node = make_node()
    script = f"mknod /dev/own b {node.major} {node.minor} && exec <>/dev/own"
    finished = runtime.run(make_bundle("sh", "-c", script), check=False)

    assert finished.status != 0
    assert "not permitted" in finished.err


def test_mount_env_hook_and_groups(runtime, configuration, make_bundle, tmp_path):
    """A device's mounts are there and read-only, its variables and groups set, its hook has run."""
    library = tmp_path / "library"
    library.mkdir()
    (library / "version").write_text("525\n")
    witness = tmp_path / "hook-ran"
    hook = tmp_path / "hook"
    hook.write_text(f'#!/bin/sh\ncat >"{witness}"\n')
    hook.chmod(0o755)
    edits = {
        "env": ["ACME=1", "PATH=/bin:/acme"],
        "mounts": [
            {
                "hostPath": str(library),
                "containerPath": "/usr/lib/acme",
                "options": ["ro", "nosuid", "nodev", "bind"],
            }
        ],
        "hooks": [{"hookName": "createRuntime", "path": str(hook), "args": ["hook"]}],
        "additionalGids": [4242],
    }
    configuration.spec(("one", edits), cdiVersion="0.7.0")
    script = 'echo "$ACME $PATH $(cat /usr/lib/acme/version) $(id -G)"; touch /usr/lib/acme/new'
    bundle = make_bundle("sh", "-c", script).request("acme.com/widget=one")

    finished = runtime.run(bundle, check=False)

    assert finished.out.strip() == "1 /bin:/acme 525 0 4242"
    assert "Read-only file system" in finished.err
    assert bundle.id == json.loads(witness.read_text())["id"]


def test_update_keeps_the_device(runtime, configuration, make_bundle, make_node, tmp_path):
    """After an update of its limits a running container still has its device, and only that."""
    node = make_node()
    edit = {"path": "/dev/acme0", "hostPath": str(node.path), "permissions": "r"}
    configuration.spec(("one", {"deviceNodes": [edit]}))
    bundle = make_bundle("sleep", "1000").request("acme.com/widget=one")
    runtime.start(bundle)
    looked = [runtime("exec", bundle.id, *probe()).out.strip()]

    # Any update sets all of the cgroup anew.  A mixed host's cgroup v2 has no other controller.
    limits = {} if runtime.prefix else {"pids": {"limit": 50}}
    update = tmp_path / "update.json"
    update.write_text(json.dumps(limits))
    runtime("update", "--resources", update, bundle.id)
    looked.append(runtime("exec", bundle.id, *probe()).out.strip())

    assert [seen(node, write="no")] * 2 == looked


def test_run_is_edited_as_create_is(runtime, configuration, make_bundle):
    """``run`` is edited, too, and the record names the container, its bundle and the command."""
    configuration.spec(("one", {"env": ["ACME=1"]}))
    bundle = make_bundle("sh", "-c", "echo $ACME").request("acme.com/widget=one")

    assert runtime.run(bundle).out.strip() == "1"

    (record,) = configuration.records()
    assert ("run", bundle.id, str(bundle.path), "edited") == (
        record["command"],
        record["container"],
        record["bundle"],
        record["result"],
    )


def test_record_has_the_spec_files_own_time(runtime, configuration, make_bundle):
    """The record has the spec file's digest and time, however young the file is."""
    bundles = [make_bundle("true").request("acme.com/widget=one") for _ in range(2)]
    for bundle in bundles:  # the second time nothing is left to do that lets the file grow old
        spec = configuration.spec(("one", {"env": ["ACME=1"]}))
        runtime.run(bundle)
    (found,) = configuration.records()[-1]["specs"]
    written = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(spec.stat().st_mtime))

    assert (str(spec), "0.6.0", written) == (found["path"], found["cdiVersion"], found["mtime"])
    assert found["sha256"] == hashlib.sha256(spec.read_bytes()).hexdigest()


def test_hook_without_env_gets_path_alone(runtime, configuration, make_bundle, tmp_path):
    """What an image sets, LD_PRELOAD for one, does not reach a hook that has no env of its own."""
    witness = tmp_path / "hook-env"
    hook = tmp_path / "hook"
    # The shell opens it: what cat itself gets has PWD, too.
    hook.write_text(f'#!/bin/sh\ncat </proc/self/environ >"{witness}"\n')
    hook.chmod(0o755)
    edits = {"hooks": [{"hookName": "createContainer", "path": str(hook)}]}
    configuration.spec(("one", edits))
    bundle = make_bundle("true")
    bundle.config["process"]["env"] += ["LD_PRELOAD=/proc/self/cwd/x.so", "SECRET=1"]
    runtime.run(bundle.request("acme.com/widget=one"))

    expected = b"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert [expected] == witness.read_bytes().split(b"\0")[:-1]


def test_crun_serves_as_well(installation, configuration, make_runtime, make_bundle, make_node):
    """With crun as the real runtime a container gets its device, and crun is in the record."""
    crun = need("crun")
    configuration.write(runtime=crun)
    node = make_node()
    edits = {
        "deviceNodes": [{"path": "/dev/acme0", "hostPath": str(node.path)}],
        "env": ["ACME=1"],
    }
    configuration.spec(("one", edits))
    script = "stat -c '%t:%T %a' /dev/acme0; echo $ACME"
    bundle = make_bundle("sh", "-c", script).request("acme.com/widget=one")
    # For cgroup v2 crun needs a capability that a test machine may not have.
    runtime = make_runtime(installation.shim, configuration, in_cgroup_v2())
    finished = runtime("--cgroup-manager=disabled", "run", "-b", bundle.path, bundle.id)

    assert f"{node.major:x}:{node.minor:x} 640\n1" == finished.out.strip()
    assert crun == configuration.records()[0]["runtime"]


def test_link_is_resolved_at_each_create(runtime, configuration, make_bundle, make_node, tmp_path):
    """A device that a symbolic link names is the one that the link leads to at that moment."""
    link = tmp_path / "by-id"
    edit = {"path": "/dev/acme0", "hostPath": str(link), "permissions": "r"}
    configuration.spec(("one", {"deviceNodes": [edit]}))
    nodes = [make_node("first"), make_node("second")]
    looked = []
    for node in nodes:
        link.unlink(missing_ok=True)
        link.symlink_to(node.path)
        bundle = make_bundle(*probe()).request("acme.com/widget=one")
        looked.append(runtime.run(bundle).out.strip())

    assert [seen(node, write="no") for node in nodes] == looked


def test_owner_and_mode_of_the_bundle_stay(runtime, configuration, make_bundle):
    """An edited config.json has the owner and mode of the one before."""
    configuration.spec(("one", {"env": ["ACME=1"]}))
    bundle = make_bundle("true").request("acme.com/widget=one")
    bundle.config_path.chmod(0o604)
    before = bundle.config_path.stat()
    runtime.run(bundle)
    after = bundle.config_path.stat()

    assert before.st_ino != after.st_ino
    assert stat.S_IMODE(after.st_mode) == 0o604
    assert (before.st_uid, before.st_gid) == (after.st_uid, after.st_gid)


def test_library_in_an_image_with_musl(runtime, configuration, make_bundle, tmp_path):
    """Record and engine's log tell of shared objects that come into an image with musl only."""
    library, log = tmp_path / "libacme.so.1", tmp_path / "log.json"
    library.touch()
    mount = {"hostPath": str(library), "containerPath": "/lib/libacme.so.1", "options": ["rbind"]}
    configuration.spec(("one", {"mounts": [mount]}))
    bundle = make_bundle("true").request("acme.com/widget=one")
    (bundle.path / "rootfs/lib").mkdir(exist_ok=True)
    (bundle.path / "rootfs/lib/ld-musl-x86_64.so.1").touch()
    options = ("--log", log, "--log-format", "json")
    finished = runtime(*options, "run", "--bundle", bundle.path, bundle.id)
    (record,) = configuration.records()

    assert ["the image has musl only" in text for text in record["warnings"]] == [True]
    assert "the image has musl only" in log.read_text()
    assert (finished.out, finished.err) == ("", "")
