"""Containers broken in many ways: ``cdictl doctor`` names the cause in its first finding."""

import json
import os
import shutil
import stat
import time

import pytest
from support.devices import DEVICE
from support.engines import new_name
from support.programs import environment, run

from cdi_runc.doctor import elf

DEVICES = "acme.com/widget=w0"
MUSL = "lib/ld-musl-x86_64.so.1"


class Stage:
    """A bundle with a spec file of its own, and what becomes of it."""

    def __init__(self, configuration, make_bundle, runtime, doctor):
        self.configuration = configuration
        self.runtime = runtime
        self._doctor = doctor
        self.bundle = make_bundle("sleep", "1000")
        self.config = self.bundle.config
        self.rootfs = self.bundle.path / "rootfs"

    def device(self, **edits):
        """Define the device."""
        self.configuration.spec(("w0", edits), cdiVersion="1.1.0")

    def mount(self, *pairs, **edits):
        """Define the device with mounts; *pairs* are source and destination."""
        mounts = [{"hostPath": str(a), "containerPath": b, "options": ["bind"]} for a, b in pairs]
        self.device(mounts=mounts, **edits)

    def file(self, path, content=b""):
        """Put a file into the image."""
        place = self.rootfs / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)

    def glibc(self, libc=b"GLIBC_2.90"):
        """Make the image one with glibc; the default has every version."""
        self.file("/lib64/libc.so.6", libc)
        self.file("/lib64/ld-linux-x86-64.so.2")

    def create(self, check=True):
        """Create the container."""
        self.bundle.request(DEVICES)
        return self.runtime("create", "--bundle", self.bundle.path, self.bundle.id, check=check)

    def change(self, change):
        """Change config.json behind our back."""
        config = self.bundle.load()
        change(config)
        self.bundle.config_path.write_text(json.dumps(config))

    def found(self):
        """Return what the doctor finds."""
        return self._doctor("--bundle", self.bundle.path)

    def first(self, severity, *words):
        """Check the first finding."""
        findings, status = self.found()
        assert findings, "nothing was found"
        first = findings[0]
        assert severity == first["severity"], findings
        assert (severity == "error") == bool(status)
        for word in words:
            assert word in first["what"], findings
        assert first["why"]
        assert first["cure"]
        return first


@pytest.fixture
def stage(configuration, make_bundle, runtime, doctor):
    """Return a bundle to break."""
    return Stage(configuration, make_bundle, runtime, doctor)


def test_a_sound_container_has_nothing_wrong(stage, make_node):
    """Where nothing is broken, nothing is found."""
    node = make_node()
    stage.device(
        deviceNodes=[{"path": DEVICE, "hostPath": str(node.path)}],
        env=["ACME=1"],
        mounts=[{"hostPath": "/etc/hostname", "containerPath": "/etc/acme", "options": ["bind"]}],
        additionalGids=[44],
    )
    stage.create()

    assert ([], 0) == stage.found()


# What the image cannot load.


def test_glibc_into_musl(stage, glibc):
    """A library that needs glibc, in an image with musl alone."""
    stage.file(MUSL)
    stage.mount((glibc["library"], "/usr/lib/libacme.so.1"))
    stage.create()

    stage.first("error", "needs glibc, and the image has only musl: /usr/lib/libacme.so.1")


def test_glibc_into_musl_in_a_directory(stage, glibc, tmp_path):
    """A directory of libraries counts as each of them."""
    shutil.copy(glibc["library"], tmp_path / "libacme.so.1")
    shutil.copy(glibc["library"], tmp_path / "libacme2.so.1")
    stage.file(MUSL)
    stage.mount((tmp_path, "/opt/acme"))
    stage.create()

    stage.first("error", "2 objects of acme.com/widget=w0", "/opt/acme/libacme.so.1")


def test_glibc_too_old(stage, glibc):
    """A program that needs symbols of a newer glibc than the image's."""
    stage.glibc(b"GNU C Library GLIBC_2.0 GLIBC_2.1\0")
    stage.mount((glibc["program"], "/bin/acme"))
    stage.create()

    stage.first("error", "/bin/acme needs GLIBC_2.", "the image's glibc is 2.1")


def test_needed_library_missing(stage, glibc):
    """A program that needs a library that is nowhere."""
    needed = [one for one in elf.read(glibc["program"], "").needed if "libc." not in one]
    if not needed:
        pytest.skip("this host's program needs nothing but glibc")
    stage.glibc()
    stage.mount((glibc["program"], "/bin/acme"))
    stage.create()

    stage.first("error", f"/bin/acme needs {needed[0]}, which is neither in the image nor injected")


def test_symbol_version_missing(stage, glibc):
    """The image's library lacks a symbol version."""
    own = elf.read(glibc["program"], "")
    others = [(name, versions) for name, versions in own.versions if "libc." not in name]
    if not others:
        pytest.skip("this host's program needs versions of glibc alone")
    name, versions = others[0]
    stage.glibc()
    with open(glibc["library"], "rb") as file:
        stage.file(f"/lib64/{name}", file.read())
    stage.mount((glibc["program"], "/bin/acme"))
    stage.create()

    stage.first("error", f"/bin/acme needs {versions[0]} of {name}", f"/lib64/{name}")


def test_loader_missing(stage, glibc):
    """A program whose loader the image lacks."""
    stage.file("/usr/lib64/libc.so.6", b"GLIBC_2.90")
    stage.mount((glibc["program"], "/bin/acme"))
    stage.create()

    stage.first("error", "asks for the loader /lib", "which is not in the image")


def test_another_processor(stage, glibc, tmp_path):
    """A library for another processor than the image's programs."""
    with open(glibc["library"], "rb") as file:
        data = bytearray(file.read())
    data[18:20] = (8).to_bytes(2, "little")  # e_machine: MIPS
    (tmp_path / "libacme.so").write_bytes(data)
    stage.glibc()
    stage.mount((tmp_path / "libacme.so", "/usr/lib/libm.so.6"))
    stage.create()

    stage.first("error", "/usr/lib/libm.so.6 is for MIPS, and the image's programs are for")


def test_library_outside_the_linkers_path(stage, glibc):
    """A library in a directory where the linker does not look."""
    stage.glibc()
    stage.mount((glibc["library"], "/opt/acme/libm.so.6"))
    stage.create()

    first = stage.first("warning", "libm.so.6 in /opt/acme is not in the linker's path")
    assert "env: [LD_LIBRARY_PATH=/opt/acme]" in first["cure"]


def test_library_in_a_directory_that_only_ldconfig_knows(stage, glibc):
    """A directory of ld.so.conf counts only once ldconfig has run."""
    stage.glibc()
    stage.file("/etc/ld.so.conf", b"include /etc/ld.so.conf.d/*.conf\n")
    stage.file("/etc/ld.so.conf.d/acme.conf", b"/opt/acme\n")
    stage.mount((glibc["library"], "/opt/acme/libm.so.6"))
    stage.create()

    first = stage.first("warning", "is not in the linker's path")
    assert "the cache was not made anew" in first["why"]


def test_library_that_the_environment_names_is_fine(stage, glibc):
    """A directory in LD_LIBRARY_PATH is one where the linker looks."""
    stage.glibc()
    stage.mount((glibc["library"], "/opt/acme/libm.so.6"), env=["LD_LIBRARY_PATH=/opt/acme"])
    stage.create()

    assert ([], 0) == stage.found()


def test_library_without_the_link_of_its_name(stage, glibc):
    """A library under another name than programs look for."""
    stage.glibc()
    stage.mount((glibc["library"], "/usr/lib64/libm.so.6.550.54"))
    stage.create()

    stage.first("warning", "programs look for it as libm.so.6, which is not")


def test_libc_replaced(stage, glibc):
    """The host's C library in the place of the image's."""
    stage.glibc()
    stage.mount((glibc["libc"], "/lib64/libc.so.6"))
    stage.create()

    stage.first("warning", "takes the place of the image's own /lib64/libc.so.6")


def test_libraries_hidden(stage, tmp_path):
    """A directory over all libraries of the image."""
    stage.file("/usr/lib/libown.so.1")
    stage.mount((tmp_path, "/usr/lib"))
    stage.create()

    stage.first("error", "at /usr/lib hides all that the image has there")


# What the container's process may not use.


def node_of(stage, node, **members):
    """Define the device with *node*, of which the container's ordinary user needs a group."""
    entry = {"path": DEVICE, "hostPath": str(node.path), "uid": 0, "gid": 4321, "fileMode": 0o660}
    stage.device(deviceNodes=[{**entry, **members}])
    stage.config["process"]["user"] = {"uid": 1000, "gid": 1000, "additionalGids": [20]}
    stage.config["process"].pop("capabilities")


def test_group_missing(stage, make_node):
    """A node that only a group may use, and the process is not in it."""
    node_of(stage, make_node())
    stage.create()

    first = stage.first("error", "user 1000, groups 1000, 20", "may not read and write", "0660")
    assert "additionalGids: [4321]" in first["cure"]


def test_mode_forbids_writing(stage, make_node):
    """A node that others may only read."""
    node_of(stage, make_node(), fileMode=0o664)
    stage.create()

    stage.first("error", f"may not write {DEVICE}, which is 0664 0:4321")


def test_a_node_that_nobody_may_write_is_fine(stage, make_node):
    """What is there for reading alone need not be writable."""
    node_of(stage, make_node(), fileMode=0o444)
    stage.create()

    assert ([], 0) == stage.found()


def test_root_without_capabilities(stage, make_node):
    """Root without CAP_DAC_OVERRIDE is bound by modes as all are."""
    node_of(stage, make_node())
    stage.config["process"]["user"] = {"uid": 0, "gid": 0}
    stage.device(
        deviceNodes=[{"path": DEVICE, "hostPath": "/dev/null", "uid": 7, "fileMode": 0o600}]
    )
    stage.config["process"]["capabilities"] = {"effective": [], "bounding": [], "permitted": []}
    stage.create()

    stage.first("error", "user 0, groups 0", f"may not read and write {DEVICE}")


def test_cgroup_rule_overruled(stage, make_node):
    """A rule that denies, put in later, takes the access away."""
    stage.device(deviceNodes=[{"path": DEVICE, "hostPath": str(make_node().path)}])
    stage.create()
    rule = {"allow": False, "type": "b", "major": 7, "access": "w"}
    stage.change(lambda config: config["linux"]["resources"]["devices"].append(rule))

    stage.first("error", "the cgroup's rules do not let the container write", DEVICE)


def test_node_taken_out(stage, make_node):
    """A node that something took out again."""
    stage.device(deviceNodes=[{"path": DEVICE, "hostPath": str(make_node().path)}])
    stage.create()
    stage.change(lambda config: config["linux"]["devices"].clear())

    stage.first("error", f"{DEVICE} (b 7:", "is not there: config.json was changed after cdi-runc")


def test_node_without_access(stage, make_node):
    """permissions: none is what the spec file says, and worth knowing."""
    node = {"path": DEVICE, "hostPath": str(make_node().path), "permissions": "none"}
    stage.device(deviceNodes=[node])
    stage.create()

    stage.first("note", f"{DEVICE} is there without access")


def test_node_renumbered(stage, tmp_path):
    """The driver was loaded anew, with other numbers, while the container ran."""
    path = tmp_path / "acme0"
    os.mknod(path, stat.S_IFBLK | 0o660, os.makedev(7, 200))
    stage.device(deviceNodes=[{"path": str(path)}])
    stage.create()
    path.unlink()
    os.mknod(path, stat.S_IFBLK | 0o660, os.makedev(7, 201))

    stage.first("error", "is 7:200, and the host's", "is 7:201")


def test_group_outside_the_user_namespace(stage):
    """A group that the container's user namespace does not have."""
    stage.device(additionalGids=[70000])
    mapping = [{"containerID": 0, "hostID": 100000, "size": 65536}]
    stage.config["linux"].update(uidMappings=mapping, gidMappings=mapping)
    stage.config["linux"]["namespaces"].append({"type": "user"})
    stage.create(check=False)

    stage.first("error", "it was not created", "group 70000 cannot be", "only groups 0 to 65535")


def test_group_taken_out(stage):
    """A group that something took out again."""
    stage.device(additionalGids=[4321])
    stage.create()
    stage.change(lambda config: config["process"]["user"].pop("additionalGids"))

    stage.first("error", "does not have the group 4321")


# Mounts and hooks.


def test_mount_hidden_by_a_volume(stage):
    """A volume over the directory that a link of the image leads to hides what was mounted."""
    (stage.rootfs / "usr/lib/acme").mkdir(parents=True)
    (stage.rootfs / "acme").symlink_to("usr/lib/acme")
    volume = {"destination": "/usr/lib/acme", "type": "tmpfs", "source": "tmpfs"}
    stage.config["mounts"].append(volume)
    stage.mount(("/etc/hostname", "/acme/libacme.so"))
    stage.create()

    stage.first("error", "the mount at /acme/libacme.so", "by the later one at /usr/lib/acme")


def test_mount_taken_out(stage):
    """A mount that something took out again."""
    stage.mount(("/etc/hostname", "/opt/acme"))
    stage.create()
    stage.change(lambda config: config["mounts"].pop())

    stage.first("error", "is not in config.json any more: /opt/acme")


def test_mount_source_gone(stage, tmp_path):
    """The driver was upgraded while the container ran."""
    library = tmp_path / "libacme.so.1.0"
    library.write_text("")
    stage.mount((library, "/opt/libacme.so.1"))
    stage.create()
    library.unlink()

    stage.first("error", "libacme.so.1.0", "not on this host any more")


def test_file_over_a_directory(stage):
    """A file cannot be mounted over a directory of the image."""
    (stage.rootfs / "opt/acme").mkdir(parents=True)
    stage.mount(("/etc/hostname", "/opt/acme"))
    stage.create(check=False)

    stage.first("error", "/etc/hostname is a file, and /opt/acme in the image is a directory")


def hook(stage, tmp_path, text):
    """Define the device with a hook of that text; return its path."""
    path = tmp_path / "acme-hook"
    path.write_text(text)
    path.chmod(0o755)
    stage.device(hooks=[{"hookName": "createRuntime", "path": str(path), "env": ["PATH=/bin"]}])
    return path


def test_hook_uninstalled(stage, tmp_path):
    """A hook that is gone by now."""
    path = hook(stage, tmp_path, "#!/bin/sh\n")
    stage.create()
    path.unlink()

    stage.first("error", "acme-hook is not on this host (createRuntime, of acme.com/widget=w0")


def test_hook_without_its_interpreter(stage, tmp_path):
    """A hook that is there, and whose interpreter is not."""
    hook(stage, tmp_path, "#!/nonexistent/python\n")
    stage.create(check=False)

    stage.first("error", "asks for /nonexistent/python, which is not on this host")


# Requests, policy, conflicts.


def test_create_failed(stage):
    """What kept the container from being created is the first finding, with its cure."""
    stage.mount(("/gone/libacme.so", "/opt/acme"))
    stage.create(check=False)

    first = stage.first("error", "it was not created", "mount source /gone/libacme.so")
    assert "That has not changed." in first["why"]


def test_create_failed_and_would_not_now(stage, tmp_path):
    """What kept it from being created, and does not any more."""
    stage.mount((tmp_path / "late", "/opt/acme"))
    stage.create(check=False)
    (tmp_path / "late").write_text("")

    first = stage.first("error", "it was not created")
    assert "By now nothing is in its way." in first["why"]


def test_unknown_device(stage):
    """A device that no spec file has."""
    stage.device(env=["ACME=1"])
    stage.bundle.request("acme.com/widget=w7")
    stage.runtime.run(stage.bundle, check=False)

    stage.first("error", "it was not created", "unknown device acme.com/widget=w7")


def test_bundle_that_would_fail(stage):
    """Without a record, what would keep a create from working is found."""
    stage.mount(("/gone/libacme.so", "/opt/acme"))
    stage.bundle.request(DEVICES)

    stage.first("error", "a create would fail", "mount source /gone/libacme.so")


def test_bundle_that_asks_for_nothing(stage):
    """A bundle without a request is left alone, and that is said."""
    stage.first("note", "it asks for no device")


def test_bundle_that_was_never_created_is_planned(stage):
    """Without a record, what a create would make of the bundle is looked at."""
    (stage.rootfs / "opt/acme").mkdir(parents=True)
    stage.mount(("/etc/hostname", "/opt/acme"))
    stage.bundle.request(DEVICES)
    before = stage.bundle.config_path.read_bytes()

    stage.first("error", "/etc/hostname is a file, and /opt/acme in the image is a directory")
    assert before == stage.bundle.config_path.read_bytes()


def test_request_that_policy_ignored(stage):
    """A device that was asked for, and that the record says was not given."""
    stage.device(env=["ACME=1"])
    stage.create()
    (record,) = stage.configuration.records()
    record["requests"][0]["decision"] = "ignore"
    record["edits"] = []
    stage.configuration.audit_file.write_text(json.dumps(record, separators=(",", ":")) + "\n")

    stage.first("warning", "it asked for acme.com/widget=w0", "policy decided: ignore")


CONFLICTS = [
    pytest.param({"env": ["ACME=cdi"]}, "env", "/process/env/", id="env"),
    pytest.param(
        {"deviceNodes": [{"path": DEVICE, "type": "b", "major": 7, "minor": 200}]},
        "deviceNodes",
        "/linux/devices/",
        id="node",
    ),
    pytest.param(
        {"mounts": [{"hostPath": "/etc", "containerPath": "/opt", "options": ["bind"]}]},
        "mounts",
        "/mounts/",
        id="mount",
    ),
]


@pytest.mark.parametrize(("edits", "kind", "where"), CONFLICTS)
@pytest.mark.parametrize("policy", ["cdi", "container", "refuse"])
def test_conflict(stage, edits, kind, where, policy):
    """Both sides of a conflict, and whose value stayed; where it is refused, why."""
    stage.configuration.write(conflicts={kind: policy})
    stage.device(**edits)
    stage.config["process"]["env"].append("ACME=own")
    stage.config["linux"]["devices"] = [
        {"path": DEVICE, "type": "b", "major": 7, "minor": 201, "fileMode": 0o666}
    ]
    stage.config["mounts"].append(
        {"destination": "/opt", "type": "bind", "source": "/tmp", "options": ["bind"]}
    )
    stage.create(check=False)

    if policy == "refuse":
        first = stage.first("error", "it was not created", f"sets {kind}", "the container itself")
        assert "That has not changed." in first["why"]
    else:
        winner = "acme.com/widget=w0" if policy == "cdi" else "the container's own"
        stage.first("warning", f"conflict at {where}", f"and {winner} won over")


def test_spec_changed_since(stage):
    """A spec file that is another one by now."""
    stage.device(env=["ACME=1"])
    stage.create()
    stage.device(env=["ACME=2"])

    stage.first("warning", "acme.json has changed since the container was made")


@pytest.mark.parametrize(
    ("text", "words"), [(None, "acme.json has gone"), ("{", "acme.json cannot be used now: ")]
)
def test_spec_that_cannot_be_used_any_more(stage, text, words):
    """With a spec file that is gone or broken, a restart is not the cure: it would end it."""
    stage.device(env=["ACME=1"])
    stage.create()
    path = stage.configuration.spec_dir / "acme.json"
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    found = stage.first("error", words)

    assert found["cure"].startswith(f"cdictl validate {path}")


def test_wrong_numbers(stage, tmp_path):
    """Numbers in the spec file that are not those of the host."""
    path = tmp_path / "acme0"
    os.mknod(path, stat.S_IFBLK | 0o660, os.makedev(7, 200))
    stage.device(deviceNodes=[{"path": str(path), "type": "b", "major": 7, "minor": 199}])
    stage.create()

    stage.first("error", "is 7:199, and the host's", "is 7:200")


def test_standard_node_replaced(stage, make_node):
    """A node in the place of one that every container has, as the record warns."""
    stage.device(deviceNodes=[{"path": "/dev/full", "hostPath": "/dev/zero"}])
    stage.create()

    stage.first("warning", "/dev/full takes the place of a standard node")


# Engines.


def named(docker, *options, command=("sleep", "1000"), check=True, runtime="cdi"):
    """Run a container of Docker's in the background, and return its name."""
    name = new_name()
    words = ("run", "--detach", "--name", name, "--network", "none", f"--runtime={runtime}")
    docker(*words, *options, "cdi-runc-test", *command, check=check)
    return name


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "ended"])
def test_docker_container_with_a_missing_group(docker, doctor, make_node, is_running):
    """Docker's container is found by its name, also when it has ended and its bundle is gone."""
    node = {"path": DEVICE, "hostPath": str(make_node().path), "gid": 4321, "fileMode": 0o660}
    docker.configuration.spec(("w0", {"deviceNodes": [{**node, "uid": 0}]}))
    command = ("sleep", "1000") if is_running else ("true",)
    name = named(docker, "-e", f"CDI_DEVICES={DEVICES}", "--user", "1000:1000", command=command)
    if not is_running:
        docker("wait", name)

    findings, status = doctor(name, configuration=docker.configuration)

    assert 1 == status
    assert "may not read and write /dev/acme0, which is 0660 0:4321" in findings[0]["what"]


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "ended"])
def test_docker_container_with_a_library_outside_the_path(
    docker, doctor, glibc, busybox_rootfs, tmp_path, is_running
):
    """The image is looked at also when its container has ended."""
    shutil.copytree(busybox_rootfs, tmp_path / "tree", symlinks=True)
    (tmp_path / "tree/lib").mkdir()
    (tmp_path / "tree" / MUSL).write_text("")
    docker.load(tmp_path / "tree")
    mount = {"hostPath": glibc["library"], "containerPath": "/usr/lib/libacme.so"}
    docker.configuration.spec(("w0", {"mounts": [{**mount, "options": ["bind"]}]}))
    command = ("sleep", "1000") if is_running else ("true",)
    name = named(docker, "-e", f"CDI_DEVICES={DEVICES}", command=command)
    if not is_running:
        docker("wait", name)

    findings, _ = doctor(name, configuration=docker.configuration)
    docker.load(busybox_rootfs)

    assert "needs glibc, and the image has only musl" in findings[0]["what"]


def test_docker_container_with_a_failing_hook(docker, doctor, tmp_path):
    """Runc tells a number; the finding tells hook, device and spec file."""
    good, bad = tmp_path / "good-hook", tmp_path / "bad-hook"
    good.write_text("#!/bin/sh\nexit 0\n")
    bad.write_text("#!/bin/sh\necho 'no licence' >&2\nexit 3\n")
    entries = []
    for path in (good, bad):
        path.chmod(0o755)
        entries.append({"hookName": "createRuntime", "path": str(path)})
    docker.configuration.spec(("w0", {"hooks": entries}))
    name = named(docker, "-e", f"CDI_DEVICES={DEVICES}", check=False)

    findings, status = doctor(name, configuration=docker.configuration)

    assert 1 == status
    assert f"a hook failed: createRuntime {bad}, of acme.com/widget=w0" in findings[0]["what"]


def test_docker_container_of_another_runtime(docker, doctor):
    """A container that asks for devices, and was made by runc alone."""
    docker.configuration.spec(("w0", {"env": ["ACME=1"]}))
    name = named(docker, "-e", f"CDI_DEVICES={DEVICES}", runtime="runc")

    findings, status = doctor(name, configuration=docker.configuration)

    assert 1 == status
    assert "was made with the runtime 'runc', not cdi-runc" in findings[0]["what"]


def test_docker_container_that_failed(docker, doctor):
    """A create that was refused is found by the container's name."""
    docker.configuration.spec(("w0", {"env": ["ACME=1"]}))
    name = named(docker, "-e", "CDI_DEVICES=acme.com/widget=w9", check=False)

    findings, status = doctor(name, configuration=docker.configuration)

    assert 1 == status
    assert "it was not created" in findings[0]["what"]
    assert "unknown device acme.com/widget=w9" in findings[0]["what"]


@pytest.mark.parametrize("engine", ["podman", "ctr"])
def test_another_engines_container_by_its_id(request, installation, doctor, tmp_path, engine):
    """A container of Podman's or containerd's is found by the beginning of its id on record."""
    client = request.getfixturevalue(engine)
    library = tmp_path / "libacme.so"
    library.write_text("")
    mount = {"hostPath": str(library), "containerPath": "/opt/acme", "options": ["bind"]}
    client.configuration.spec(("w0", {"mounts": [mount]}))
    shim = [installation.shim] if engine == "ctr" else []
    client.run(*shim, "--annotation", f"cdi.k8s.io/x={DEVICES}")
    library.unlink()
    (record,) = client.configuration.records()

    findings, status = doctor(record["container"], configuration=client.configuration)

    assert 1 == status
    assert "not on this host any more" in findings[0]["what"]


def test_an_unknown_container_is_an_error(installation, configuration):
    """What nobody knows is said, with a cure."""
    done = run(
        installation.cdictl, "doctor", "no-such", env=environment(**configuration.env), check=False
    )

    assert 1 == done.status
    assert "no engine here knows a container 'no-such'" in done.err


# The parts.


@pytest.mark.parametrize("cut", [4, 20, 64, 200, 1000, 10000])
def test_a_damaged_file_is_no_object(glibc, tmp_path, cut):
    """A file of an image that only begins like an ELF file is passed over, or read in part."""
    with open(glibc["library"], "rb") as file:
        (tmp_path / "damaged").write_bytes(file.read(cut))

    found = elf.read(str(tmp_path / "damaged"), "/damaged")

    assert found is None or found.path == "/damaged"


def test_tables_without_end_do_not_hold_us_up(glibc, tmp_path):
    """A file that claims to have four billion versions is read up to a measure."""
    with open(glibc["libc"], "rb") as file:
        data = bytearray(file.read())
    start = int.from_bytes(data[40:48], "little")
    for place in range(start, len(data) - 63, 64):
        if int.from_bytes(data[place + 4 : place + 8], "little") in (0x6FFFFFFD, 0x6FFFFFFE):
            data[place + 44 : place + 48] = b"\xff\xff\xff\x7f"  # sh_info: how many versions
            at = int.from_bytes(data[place + 24 : place + 32], "little")
            data[at + 16 : at + 20] = bytes(4)  # each is followed by itself
    (tmp_path / "endless").write_bytes(data)
    before = time.monotonic()

    elf.read(str(tmp_path / "endless"), "/endless")

    assert time.monotonic() - before < 30


def test_a_fifo_in_the_image_does_not_hold_us_up(tmp_path):
    """What is no regular file is no object."""
    os.mkfifo(tmp_path / "libacme.so")

    assert elf.read(str(tmp_path / "libacme.so"), "/libacme.so") is None
