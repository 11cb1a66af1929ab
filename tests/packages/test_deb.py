"""The Debian package: installed, used, upgraded, removed and purged in a clean root."""

import json
import shutil
import threading

import pytest
from support.bundles import config, make_rootfs
from support.programs import run

from cdi_runc import VERSION

PROGRAM = "/usr/bin/cdi-runc"
HOMES = "usr/lib/cdi-runc"
FIRST = f"{VERSION}-1"
# As people write it, with a key that we do not know, and in an order of its own.
DAEMON_JSON = '{\n\t"log-driver": "journald",\n\t"zz": {"b":1,  "a": 2}, "features": {}\n}\n'
SPEC = """\
cdiVersion: 0.6.0
kind: acme.example/widget
devices:
- name: w0
  containerEdits:
    env: [ACME=from the spec]
    deviceNodes: [{path: /dev/acme0, hostPath: /dev/zero}]
    mounts: [{hostPath: /etc/cdi, containerPath: /opt/acme, options: [ro, rbind]}]
    hooks: [{hookName: createRuntime, path: /bin/touch, args: [touch, /tmp/hooked]}]
"""
LOOK = 'echo "$ACME"; head -c 3 /dev/acme0 | wc -c; ls /opt/acme'


class Machine:
    """The clean root, with a spec file, a bundle and the daemon.json of a Docker."""

    def __init__(self, root):
        self.root = root
        self.path = root.path
        self.daemon_json = self.path / "etc/docker/daemon.json"
        self.bundle = self.path / "srv/bundle"
        for path in (self.daemon_json.parent, self.path / "etc/cdi", self.bundle):
            path.mkdir(exist_ok=True)
        self.daemon_json.write_text(DAEMON_JSON)
        (self.path / "etc/cdi/acme.yaml").write_text(SPEC)
        if not (self.bundle / "rootfs").exists():
            make_rootfs(self.bundle / "rootfs")
        content = config("sh", "-c", LOOK)
        content["process"]["env"] += ["CDI_DEVICES=acme.example/widget=w0"]
        (self.bundle / "config.json").write_text(json.dumps(content))

    def __call__(self, *words, **options):
        """Run a program in the root."""
        return self.root(*words, **options)

    def run(self, name="c1", **options):
        """Run the container of the bundle, whose config.json is edited once."""
        return self(PROGRAM, "run", "--bundle", "/srv/bundle", name, **options)

    def homes(self):
        """Return the versions whose code is there."""
        return sorted(path.parent.name for path in (self.path / HOMES).glob("*/lib"))


@pytest.fixture
def clean(root):
    """Return the machine without the package, and take the package away at the end."""
    machine = Machine(root)
    yield machine
    machine.daemon_json.write_text(DAEMON_JSON)
    shutil.rmtree(machine.path / "var/lib/docker", ignore_errors=True)
    machine("dpkg", "--purge", "cdi-runc")


@pytest.fixture
def machine(clean):
    """Return the machine with the package."""
    clean("dpkg", "-i", "/var/cache/1.deb")
    return clean


def test_a_container_gets_its_device_and_is_on_record(clean):
    """After apt-get install, the commands in /usr/bin do the job with Debian's own Python."""
    told = clean.root.apt("install", "/var/cache/1.deb").out
    ran = clean.run()
    listed = clean("cdictl", "audit", "list").out
    (record,) = map(
        json.loads, (clean.path / "var/log/cdi-runc/audit.jsonl").read_text().splitlines()
    )
    findings = json.loads(clean("cdictl", "doctor", "--json", check=False).out)["findings"]

    doc = clean.path / "usr/share/doc/cdi-runc"
    unit = (doc / "examples/systemd/cdi-runc-generate.service").read_text()

    assert "ExecStart=/usr/bin/cdictl spec generate" in unit
    assert (doc / "docs/policy.md").exists()
    assert (doc / "README.md").exists()
    assert "cdictl configure docker" in told
    assert clean.daemon_json.read_text() == DAEMON_JSON
    assert ran.out == "from the spec\n3\nacme.yaml\n"
    assert (clean.path / "tmp/hooked").exists()
    assert "acme.example/widget=w0" in listed
    assert record["result"] == "edited"
    assert {edit["kind"] for edit in record["edits"]} == {"env", "deviceNodes", "mounts", "hooks"}
    assert clean("stat", "-c", "%a", "/run/cdi-runc", "/var/log/cdi-runc").out == "700\n750\n"
    assert not [one for one in findings if HOMES in one["what"] or PROGRAM in one["what"]]


def test_a_file_without_measure_harms_no_other(machine):
    """PyYAML 6.0 would end on the deep file by a signal; the good one beside it serves."""
    (machine.path / "etc/cdi/deep.yaml").write_text("a: " + "[" * 500_000)
    try:
        assert machine.run().out.startswith("from the spec\n3\n")
        assert "nested too deeply" in machine("cdictl", "devices").err
    finally:
        (machine.path / "etc/cdi/deep.yaml").unlink()


def test_python_is_upgraded(machine):
    """Debian's hook compiles anew; whatever is missing until then, the launcher works."""
    home = machine.path / HOMES / FIRST
    frozen = (home / "hot.pyc").read_bytes()
    (home / "hot.pyc").unlink()
    (home / "python").unlink()
    (home / "python").symlink_to("/usr/bin/python3")
    without = machine.run().out
    version = machine("dpkg-query", "-W", "-f", "${Version}", "python3").out
    machine("/var/lib/dpkg/info/python3.postinst", "configure", version)

    assert without.startswith("from the spec\n")
    assert (home / "hot.pyc").read_bytes() == frozen
    assert (home / "python").readlink().name.startswith("python3.")


def test_the_launcher_comes_after_what_it_needs(debs):
    """Dpkg renames files in the order of the archive: a new launcher finds its version whole."""
    listed = run("dpkg-deb", "--contents", debs[0]).out.splitlines()
    files = [line.split()[-1] for line in listed if line.startswith("-")]
    code = [number for number, name in enumerate(files) if f"./{HOMES}/{FIRST}/" in name]

    assert max(code) < files.index(f"./{HOMES}/cdictl") < files.index(f"./{HOMES}/launcher")


def test_an_upgrade_disturbs_no_call(machine):
    """While dpkg installs another version every call succeeds, and then only that one is there."""
    ended, calls = threading.Event(), []

    def call():
        loop = 'for i in $(seq 40); do cdi-runc run --bundle /srv/bundle "u$i" || exit; done'
        while not ended.is_set():
            calls.append(machine("sh", "-c", loop, check=False))

    thread = threading.Thread(target=call)
    thread.start()
    try:
        machine("dpkg", "-i", "/var/cache/2.deb")
    finally:
        ended.set()
        thread.join()

    assert [one for one in calls if one.status] == []
    assert machine.homes() == [f"{VERSION}-2~test"]
    assert machine.run().out.startswith("from the spec\n")


@pytest.mark.parametrize("is_default", [True, False], ids=["default", "container"])
def test_removal_is_refused_while_docker_needs_it(machine, is_default):
    """The package stays and works while ours is the default, or one of Docker's containers' own."""
    machine("cdictl", "configure", "docker", *(["--set-default"] if is_default else []))
    if not is_default:
        container = machine.path / "var/lib/docker/containers/0123456789abcdef"
        container.mkdir(parents=True)
        (container / "hostconfig.json").write_text('{"Runtime": "cdi"}')
    registered = machine.daemon_json.read_text()
    refused = machine("dpkg", "--remove", "cdi-runc", check=False)

    assert refused.status != 0
    assert "not removed, since Docker still needs it" in refused.err
    assert machine.daemon_json.read_text() == registered
    assert machine.run().out.startswith("from the spec\n")


@pytest.mark.parametrize("name", ["cdi", "devices"])
def test_a_purge_leaves_nothing(clean, name):
    """Removing tells every engine, Docker's daemon.json byte for byte; purging takes every file."""
    for folder in ("containers/containers.conf.d", "containerd"):
        (clean.path / "etc" / folder).mkdir(parents=True, exist_ok=True)
    before = clean.root.files()
    clean("dpkg", "-i", "/var/cache/1.deb")
    clean("cdictl", "configure", "docker", "--runtime-name", name)
    for engine in ("podman", "containerd"):
        clean("cdictl", "configure", engine)
    (clean.path / "etc/cdi-runc/config.yaml").write_text("exec: pass\n")
    registered = json.loads(clean.daemon_json.read_text())["runtimes"]
    clean.run()
    clean("dpkg", "-i", "/var/cache/2.deb")
    clean.run()
    clean("dpkg", "--remove", "cdi-runc")
    removed = clean.daemon_json.read_text()
    kept = clean.root.files() - before
    clean("dpkg", "--purge", "cdi-runc")

    assert registered == {name: {"path": PROGRAM}}
    assert removed == DAEMON_JSON
    assert "etc/cdi-runc/config.yaml" in kept
    assert "var/log/cdi-runc/audit.jsonl" in kept
    assert not [path for path in kept if path.startswith(("usr/", "run/"))]
    assert clean.root.files() - before == set()
