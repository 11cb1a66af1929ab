"""Hosts broken in many ways: ``cdictl doctor`` names the cause in its first finding."""

import json
import os
import stat
import subprocess
import sys
import time

import pytest
from support.devices import free_loop_numbers
from support.programs import environment, need, run

from cdi_runc.doctor import auditing, engines, specs, system
from cdi_runc.engines import dockerd
from cdi_runc.specs import compile as spec_compile

PYTHON = getattr(sys, "_base_executable", sys.executable)
FAULTS = {}
"""What to do to a host, by name, with the severity and the words of the first finding."""


def fault(severity, *words):
    """Register a function that breaks a host."""

    def register(stage):
        FAULTS[stage.__name__] = (stage, severity, words)
        return stage

    return register


@fault("error", "unknown key 'runtimes'", "line")
def configuration_with_an_unknown_key(host):
    """The configuration cannot be used."""
    host.configuration.write(runtimes="runc")


@fault("error", "the interpreter /nonexistent/python3 is missing")
def interpreter_missing(host):
    """The launcher starts a Python that is gone."""
    host.parts.write("/nonexistent/python3")


@fault("error", "its home", "is missing")
def home_missing(host):
    """The launcher's code is gone."""
    host.parts.write("/usr/bin/python3", home=host.parts.home / "gone")


@fault("error", "neither", "hot.pyc")
def programs_missing(host):
    """Both forms of the program are gone."""
    (host.parts.home / "hot.pyc").unlink()
    (host.parts.home / "shim").unlink()


@fault("warning", "hot.pyc is missing")
def frozen_program_missing(host):
    """Only the fast form of the program is gone."""
    (host.parts.home / "hot.pyc").unlink()


@fault("error", "hot.pyc was made for another version of Python")
def python_upgraded(host):
    """The interpreter is of another version than the compiled program."""
    frozen = host.parts.home / "hot.pyc"
    frozen.write_bytes(b"\0\0\r\n" + frozen.read_bytes()[4:])


@fault("error", "the Python package yaml", "cannot be imported")
def package_missing(host):
    """PyYAML is gone."""
    (host.parts.lib / "yaml").unlink()


@fault("error", "the Python package cdi_runc", "cannot be imported")
def own_package_missing(host):
    """Our own package is gone."""
    (host.parts.lib / "cdi_runc").unlink()


@fault("error", "hot.pyc does not run")
def frozen_program_damaged(host):
    """The compiled program is cut short."""
    frozen = host.parts.home / "hot.pyc"
    frozen.write_bytes(frozen.read_bytes()[:1000])


@fault("error", "no real runtime was found", "/nonexistent/runc")
def real_runtime_missing(host):
    """The configured runtime is not there."""
    host.configuration.write(runtime="/nonexistent/runc")


@fault("error", "no real runtime was found", "is cdi-runc itself")
def real_runtime_is_ourselves(host):
    """The configured runtime is our own launcher."""
    host.configuration.write(runtime=str(host.parts.launcher))


@fault("error", "is cdi-runc again")
def real_runtime_is_a_copy_of_us(host):
    """The configured runtime is a copy of our own launcher."""
    copy = host.parts.home / "runc"
    copy.write_bytes(host.parts.launcher.read_bytes())
    copy.chmod(0o755)
    host.configuration.write(runtime=str(copy))


@fault("error", "does not work", "libseccomp")
def real_runtime_does_not_start(host):
    """The real runtime lacks a library."""
    program = host.parts.home / "runc"
    program.write_text("#!/bin/sh\necho 'libseccomp.so.2: cannot open' >&2; exit 127\n")
    program.chmod(0o755)
    host.configuration.write(runtime=str(program))


@fault("error", "daemon.json cannot be used: line 1: a comma before }")
def daemon_json_broken(host):
    """daemon.json has a trailing comma."""
    host.daemon_json.write_text('{"runtimes": {},}')


@fault("error", "gone/cdi-runc", "is missing")
def registered_program_missing(host):
    """Docker's runtime is a program that was removed."""
    host.register({"cdi": {"path": "/gone/cdi-runc"}})


@fault("error", "cdi-runc", "is not executable")
def registered_program_not_executable(host):
    """Docker's runtime has lost its mode."""
    host.parts.launcher.chmod(0o644)


@fault("warning", "is not cdi-runc's launcher")
def registered_program_is_another(host):
    """Docker's runtime of our name is another program."""
    host.register({"cdi": {"path": "/bin/true"}})


@fault("warning", "cdi-runc is the default runtime of Docker")
def default_runtime(host):
    """Any image can ask for devices."""
    host.register({"cdi": {"path": str(host.parts.launcher)}}, **{"default-runtime": "cdi"})


@fault("error", "broken.yaml cannot be used: line 1, column")
def spec_file_broken(host):
    """A spec file is no YAML."""
    (host.configuration.spec_dir / "broken.yaml").write_text("devices: [")


@fault("error", "acme.json cannot be used", "has no containerEdits")
def spec_file_invalid(host):
    """A device has no edits of its own, so the file counts for nothing."""
    host.configuration.spec(("w0", {}))


@fault("error", "old.json cannot be used", "needs cdiVersion 0.7.0")
def spec_file_of_a_lower_version(host):
    """A field is newer than the file's version."""
    host.configuration.spec(("w0", {"additionalGids": [44]}), file="old.json", kind="acme.com/old")


@fault("error", "pipe.json cannot be used: it is not a regular file")
def spec_file_a_fifo(host):
    """A FIFO stands among the spec files."""
    os.mkfifo(host.configuration.spec_dir / "pipe.json")


@fault("error", "link.json cannot be used: No such file")
def spec_file_a_dangling_link(host):
    """A link leads nowhere."""
    (host.configuration.spec_dir / "link.json").symlink_to("/nonexistent/acme.json")


@fault("error", "device acme.com/widget=w0 cannot be used: ", "acme.json and", "twin.json")
def device_defined_twice(host):
    """Two files of one directory define one device."""
    host.configuration.spec(("w0", {"env": ["ACME=2"]}), file="twin.json")


@fault("error", "broken.json cannot be used")
def override_broken(host):
    """The file that should override another one is broken."""
    upper = host.configuration.directory / "upper"
    upper.mkdir()
    (upper / "broken.json").write_text('{"kind": "acme.com/widget", "devices": 1}')
    host.configuration.write(spec_dirs=[str(host.configuration.spec_dir), str(upper)])


@fault("warning", "acme.yml is not read")
def spec_file_of_another_suffix(host):
    """A spec file ends in .yml."""
    (host.configuration.spec_dir / "acme.yml").write_text("cdiVersion: 0.6.0\n")


@fault("warning", "is a directory, so acme.json in it is not read")
def spec_file_in_a_directory(host):
    """A spec file lies one level too deep."""
    below = host.configuration.spec_dir / "acme"
    below.mkdir()
    (below / "acme.json").write_text("{}")


@fault("warning", "there is no spec file in")
def no_spec_file(host):
    """There is nothing to ask for."""
    (host.configuration.spec_dir / "acme.json").unlink()


def node(host, **members):
    """Make a node of a loop device that nobody uses; return its path and its numbers."""
    path = host.configuration.directory / "node"
    number = free_loop_numbers()[0]
    os.mknod(path, stat.S_IFBLK | 0o660, os.makedev(7, number))
    host.configuration.spec(("w0", {"deviceNodes": [{"path": str(path), **members}]}))
    return path, number


@fault("error", "the spec says 235:0", "on this host is 7:")
def numbers_changed(host):
    """The driver has other numbers now."""
    node(host, type="b", major=235)


@fault("error", "device node", "is not on this host")
def node_missing(host):
    """The device is gone."""
    path, _ = node(host)
    path.unlink()


@fault("error", "is of type b on this host, and the spec says c")
def node_of_another_type(host):
    """The device is another kind of device now."""
    node(host, type="c")


@fault("warning", "is older than", "node")
def spec_older_than_its_node(host):
    """The device was made anew since the spec file was written."""
    node(host)
    year = time.time() - 365 * 86400
    os.utime(host.configuration.spec_dir / "acme.json", (year, year))


@fault("error", "2 of 3 mount sources in", "are not on this host: /gone/liba.so.1, /gone/libb.so.1")
def mount_sources_gone(host):
    """The driver was upgraded, and its libraries have other names."""
    sources = ("/gone/liba.so.1", "/gone/libb.so.1", "/bin/sh")
    mounts = [{"hostPath": one, "containerPath": f"/opt{one}"} for one in sources]
    host.configuration.spec(("w0", {"mounts": mounts}))


@fault("error", "hook /gone/hook is not on this host")
def hook_missing(host):
    """A hook was uninstalled."""
    hook = {"hookName": "createRuntime", "path": "/gone/hook"}
    host.configuration.spec(("w0", {"hooks": [hook]}))


@fault("error", "is no executable file")
def hook_not_executable(host):
    """A hook has lost its mode."""
    path = host.configuration.directory / "hook"
    path.write_text("")
    hook = {"hookName": "createRuntime", "path": str(path)}
    host.configuration.spec(("w0", {"hooks": [hook]}))


@fault("error", "network interface acmenet0 is not on this host")
def interface_missing(host):
    """A network device is gone."""
    entry = {"hostInterfaceName": "acmenet0", "name": "eth1"}
    host.configuration.spec(("w0", {"netDevices": [entry]}), cdiVersion="1.1.0")


@fault("error", "config.yaml is writable by everybody (mode 0666)")
def configuration_writable(host):
    """Anybody can change the configuration."""
    host.configuration.path.chmod(0o666)


@fault("error", "cdi is writable by everybody (mode 0777)")
def spec_directory_writable(host):
    """Anybody can add a spec file."""
    host.configuration.spec_dir.chmod(0o777)


@fault("error", "acme.json is writable by group 1234 (mode 0664)")
def spec_file_writable(host):
    """A group can change a spec file."""
    path = host.configuration.spec_dir / "acme.json"
    os.chown(path, 0, 1234)
    path.chmod(0o664)


@fault("error", "cdi-runc belongs to user 1234")
def launcher_of_another_user(host):
    """Somebody else owns the launcher."""
    os.chown(host.parts.launcher, 1234, 0)


@fault("error", "no audit record can be written", "log is writable by everybody (mode 0777)")
def audit_directory_writable(host):
    """Anybody can take back what is on record."""
    host.configuration.audit_file.parent.chmod(0o777)


@fault("warning", "the state directory", "belongs to user 1234")
def state_of_another_user(host):
    """Somebody else made the state directory."""
    host.configuration.state_dir.mkdir()
    os.chown(host.configuration.state_dir, 1234, 0)


@fault("warning", "everybody can read", "plain text")
def audit_readable(host):
    """Everybody can read secrets."""
    host.configuration.write(audit={"env": "plain"})
    host.configuration.audit_file.write_text("")
    host.configuration.audit_file.chmod(0o644)


@fault("error", "no audit record can be written", "symbolic link to /nonexistent")
def audit_file_a_link(host):
    """The audit file is a link, which is not followed."""
    host.configuration.audit_file.symlink_to("/nonexistent/audit.jsonl")


@fault("error", "no audit record can be written", "audit.jsonl has 2 names (hard links)")
def audit_file_with_two_names(host):
    """The audit file is another file too."""
    host.configuration.audit_file.write_text("")
    (host.configuration.directory / "other").hardlink_to(host.configuration.audit_file)


@fault("error", "config.yaml is ignored", "etc belongs to user 1234")
def configuration_below_another_user(host):
    """The directory of the configuration is another user's."""
    os.chown(host.configuration.path.parent, 1234, 0)


@fault("warning", "the state directory", "is not safe: ", "belongs to user 1234")
def state_below_another_user(host):
    """The state directory lies in another user's."""
    place = host.configuration.directory / "theirs/state"
    place.mkdir(parents=True, mode=0o700)
    host.configuration.write(state_dir=str(place))
    os.chown(place.parent, 1234, 0)


@fault("error", "no audit record can be written", "it is not a regular file")
def audit_file_a_directory(host):
    """The audit file is a directory."""
    host.configuration.audit_file.mkdir()


@fault("error", "no audit record can be written", "is no directory")
def audit_directory_a_file(host):
    """Where the audit directory should be lies a file."""
    host.configuration.audit_file.parent.rmdir()
    host.configuration.audit_file.parent.write_text("")


def test_a_sound_host_has_nothing_wrong(sound):
    """Where nothing is broken, nothing is found."""
    assert [] == sound.findings()


@pytest.mark.parametrize("name", FAULTS)
def test_the_first_finding_names_the_cause(sound, name):
    """The first finding says what was broken, why it matters, and a cure."""
    stage, severity, words = FAULTS[name]
    stage(sound)

    first = sound.findings()[0]

    assert severity == first.severity
    for word in words:
        assert word in first.what
    assert first.why
    assert first.cure


def test_a_configuration_that_was_named_and_is_missing_has_no_defaults(installation):
    """What cannot be read is not said to leave the defaults."""
    env = environment(CDI_RUNC_CONFIG="/nonexistent/config.yaml")
    done = run(installation.cdictl, "doctor", env=env, check=False)

    assert "cannot read the configuration /nonexistent/config.yaml: No such file" in done.out
    assert "the defaults hold" not in done.out


def test_the_cure_of_a_conflict_removes_no_file(sound):
    """A file in conflict has other devices too, so it is edited."""
    device_defined_twice(sound)
    twin = sound.configuration.spec_dir / "twin.json"
    (finding,) = sound.findings()

    cure = finding.cure.replace("acme.json", twin.name)
    assert f"${{EDITOR:-vi}} {twin}  # leave acme.com/widget=w0 in one of these files only" == cure


@pytest.mark.parametrize("package", ["yaml", "jsonschema", "elftools", "structlog"])
def test_the_doctor_works_without_its_own_packages(sound, package):
    """With a package missing from its own installation too, it still names that package."""
    (sound.parts.lib / package).unlink()
    program = (
        "import sys; sys.path.insert(0, sys.argv.pop(1));"
        "from cdi_runc.cli.main import main; sys.exit(main())"
    )
    own = [PYTHON, "-I", "-S", "-c", program, sound.parts.lib, "doctor", "--json"]
    path = f"{sound.parts.home}:{os.environ['PATH']}"

    done = run(*own, env=environment(**sound.configuration.env, PATH=path), check=False)
    findings = json.loads(done.out)["findings"]
    named = [one["what"] for one in findings if one["check"] == "launcher"]

    assert any(package in what for what in named)
    if package in ("yaml", "jsonschema"):
        assert package in findings[0]["what"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param("size=64k,mode=755", "its file system is full", id="full"),
        pytest.param("ro,mode=755", "is on a read-only file system", id="read-only"),
    ],
)
def test_an_audit_directory_without_room_is_the_first_finding(sound, options, words):
    """A full or read-only file system under the audit file is named."""
    place = sound.configuration.audit_file.parent
    run("mount", "-t", "tmpfs", "-o", options, "tmpfs", place)
    try:
        (finding,) = sound.findings()
    finally:
        run("umount", place)

    assert "error" == finding.severity
    assert words in finding.what


def test_an_audit_file_that_is_required_and_cannot_be_written_stops_containers(sound):
    """With audit.required the finding says that no container starts."""
    sound.configuration.write(audit={"required": True})
    sound.configuration.audit_file.mkdir()

    assert "No container that asks for a device starts" in sound.findings()[0].why


@pytest.mark.parametrize(
    ("rules", "size", "severity", "words"),
    [
        pytest.param("", 10, "note", "nothing rotates", id="no-rules"),
        pytest.param("", 3000, "warning", "has grown to", id="no-rules-and-large"),
        pytest.param("FILE {\n weekly\n}\n", 3000, "warning", "has grown to", id="large"),
        pytest.param("/elsewhere/*.jsonl {\n}\n", 10, "note", "nothing rotates", id="other-file"),
    ],
)
def test_an_audit_file_that_only_grows_is_found(sound, tmp_path, rules, size, severity, words):
    """Without rules for logrotate the audit file only grows; a large one is a warning."""
    logrotate = tmp_path / "logrotate"
    logrotate.write_text(rules.replace("FILE", str(sound.configuration.audit_file)))
    sound.configuration.audit_file.write_bytes(b"x" * size)

    (finding,) = auditing.rotated(sound.settings(), [str(logrotate)], 2000, program="sh")

    assert severity == finding.severity
    assert words in finding.what


def test_the_cure_is_what_logrotate_reads(sound, tmp_path, monkeypatch):
    """The rules that the cure writes are taken by logrotate, for that file."""
    rules = tmp_path / "rules"
    monkeypatch.setattr(auditing, "OWN", str(rules))
    sound.configuration.audit_file.write_bytes(b"x")
    (finding,) = auditing.rotated(sound.settings(), [], program="sh")
    subprocess.run(["sh", "-c", finding.cure], check=True)
    done = run(need("logrotate"), "--debug", rules)

    assert "error" not in done.err
    assert f"considering log {sound.configuration.audit_file}" in done.err


def test_an_audit_file_with_rules_is_fine(sound, tmp_path):
    """A pattern that covers the audit file is enough."""
    logrotate = tmp_path / "logrotate"
    logrotate.write_text(f"{sound.configuration.audit_file.parent}/*.jsonl {{\n}}\n")

    assert [] == list(auditing.rotated(sound.settings(), [str(logrotate)], program="sh"))
    (finding,) = auditing.rotated(sound.settings(), [str(logrotate)], program="no-logrotate")
    assert "is not installed" in finding.what


@pytest.mark.parametrize(
    ("runtime", "version", "is_found"),
    [
        pytest.param("runc 1.1.5+ds1", 252, True, id="old-runc"),
        pytest.param("runc 1.1.7", 252, False, id="fixed-runc"),
        pytest.param("runc 1.3.0", 239, True, id="old-systemd"),
        pytest.param("crun 1.8.1", 252, False, id="crun"),
    ],
)
def test_missing_links_below_dev_char_matter_to_some_versions(
    sound, tmp_path, runtime, version, is_found
):
    """With systemd's cgroups, some versions need /dev/char or /dev/block; the cure makes it."""
    _, number = node(sound)
    uses = specs.uses(spec_compile.in_memory(sound.settings().spec_dirs))
    dev = str(tmp_path / "dev")

    found = list(system.links_for_systemd(uses, True, runtime, version, dev))

    assert is_found == bool(found)
    if found:
        assert f"{dev}/block/7:{number}" in found[0].what
        subprocess.run(["/bin/sh", "-c", found[0].cure], check=True)
        assert [] == list(system.links_for_systemd(uses, True, runtime, version, dev))
    assert [] == list(system.links_for_systemd(uses, False, runtime, version, dev))


def test_selinux_types_that_containers_may_not_use_are_found(tmp_path):
    """Where SELinux enforces, nodes and mount sources of the wrong type are named with a cure."""
    device, library, sound_one = (tmp_path / name for name in ("acme0", "libacme.so", "libc.so"))
    kinds = {device: "device_t", library: "default_t", sound_one: "lib_t"}
    for path, kind in kinds.items():
        path.write_text("")
        try:
            os.setxattr(path, "security.selinux", f"system_u:object_r:{kind}:s0\0".encode())
        except OSError:
            pytest.skip("this file system keeps no labels")
    enforce, booleans = tmp_path / "enforce", tmp_path / "booleans"
    enforce.write_text("1")
    booleans.mkdir()
    places = ([str(device)], [str(library), str(sound_one)])

    assert system.enforces(str(enforce))
    findings = list(system.selinux(*places, True, booleans=str(booleans)))
    (booleans / "container_use_devices").write_text("1 1")
    later = list(system.selinux(*places, True, booleans=str(booleans)))

    assert ["setsebool -P container_use_devices 1"] == [findings[0].cure]
    assert "device_t" in findings[0].what
    assert ["default_t" in one.what for one in (findings[1], *later)] == [True, True]
    assert [] == list(system.selinux(*places, False))


def test_podmans_configuration_that_names_a_missing_program_is_found(sound, tmp_path):
    """The files of Podman, containerd and CRI-O are looked at too."""
    conf = tmp_path / "containers.conf"
    conf.write_text(
        '[engine]\nruntime = "cdi"\n[engine.runtimes]\n'
        f'cdi = [\n"/gone/cdi-runc"]\nother = ["{tmp_path}/gone/cdi-runc"]\n'
    )
    others = (("Podman", str(conf)),)

    known = engines.registrations([], others)
    missing = list(engines.missing_programs(known))
    risks = list(engines.default_runtime([], sound.settings(), others))

    assert [f"{tmp_path}/gone/cdi-runc"] == [one.program for one in known]
    assert "is missing" in missing[0].what
    assert "default runtime of Podman" in risks[0].what


@pytest.mark.parametrize("engine", ["Podman", "CRI-O", "containerd"])
def test_annotations_that_an_engine_copies_are_a_risk_too(sound, tmp_path, engine):
    """A default runtime is open as long as images or pods can ask in either way."""
    conf = tmp_path / "engine.conf"
    conf.write_text('runtime = "cdi"\n')
    others = ((engine, str(conf)),)

    def found(*sources):
        sound.configuration.write(policy=[{"source": one, "do": "ignore"} for one in sources])
        return list(engines.default_runtime([], sound.settings(), others))

    copies = engine != "containerd"
    (both,), one = found(), found("environment")

    assert copies == ("CDI_DEVICES and annotations cdi.k8s.io/*" in both.what)
    assert [copies] == [bool(one)]
    assert [] == found("environment", "annotation")
    for finding in (both, *one):
        sources = "[environment, annotation]" if copies else "environment"
        assert finding.cure.endswith(f"# policy: [{{source: {sources}, do: ignore}}]")
    for finding in one:
        assert "CDI_DEVICES" not in finding.what


def test_flags_of_the_daemon_that_its_file_repeats_are_found(sound):
    """A daemon does not start again with both."""
    daemon = dockerd.Daemon(1, ("dockerd", "--add-runtime", "x=/x"), str(sound.daemon_json))

    (docker,) = engines.dockers([daemon], get=lambda *_: {})
    (finding,) = engines.doubled([docker])

    assert "--add-runtime" in finding.what


def test_a_snap_is_found():
    """A Docker that is a snap may not start cdi-runc."""
    daemon = dockerd.Daemon(1, ("dockerd",), "/nonexistent/daemon.json", True)

    (docker,) = engines.dockers([daemon], get=lambda *_: {})

    assert "is a snap" in next(engines.snap([docker])).what


def test_no_engine_knows_cdi_runc(sound):
    """A Docker that never heard of it is found."""
    sound.register({})

    dockers = engines.dockers([], str(sound.daemon_json))
    (finding,) = engines.unregistered(dockers, engines.registrations(dockers, ()))

    assert "Docker does not know cdi-runc" in finding.what
    assert "cdictl configure docker" == finding.cure


@pytest.fixture
def own_docker(start_docker):
    """Return a Docker daemon whose daemon.json the test may change."""
    need("dockerd")
    return start_docker()


def test_a_daemon_that_was_not_reloaded_is_found_and_cured(own_docker):
    """What a running daemon has not read is an error, and the cure makes it go away."""
    config = own_docker.directory / "daemon.json"
    content = json.loads(config.read_text())
    program = content["runtimes"]["cdi"]["path"]
    content["runtimes"]["cdi-new"] = {"path": program}
    content["runtimes"]["cdi-spare"]["path"] = program
    content["default-runtime"] = "cdi"
    config.write_text(json.dumps(content))

    def found():
        daemons = [one for one in dockerd.running() if one.config == os.path.realpath(config)]
        return list(engines.not_reloaded(engines.dockers(daemons)))

    findings = found()
    subprocess.run(["/bin/sh", "-c", findings[0].cure], check=True)
    deadline = time.monotonic() + 20
    while found() and time.monotonic() < deadline:
        time.sleep(0.1)

    assert ["error"] * 3 == [one.severity for one in findings]
    assert "still calls" in findings[0].what
    assert "does not know it yet" in findings[1].what
    assert "default runtime" in findings[2].what
    assert [] == found()


def test_a_runtime_that_only_the_daemon_still_knows_is_found(own_docker):
    """What was taken out of daemon.json is lost at the next restart."""
    config = own_docker.directory / "daemon.json"
    content = json.loads(config.read_text())
    del content["runtimes"]["cdi"]
    config.write_text(json.dumps(content))
    daemons = [one for one in dockerd.running() if one.config == os.path.realpath(config)]

    findings = list(engines.not_reloaded(engines.dockers(daemons)))

    assert ["warning"] == [one.severity for one in findings]
    assert "does not name it any more" in findings[0].what
