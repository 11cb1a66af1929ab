"""Files that another local user planted or may change: they have no effect, or fail fast.

What is attacked is a create by root, or by a user of their own, through the launcher as installed.
The attacker is a real other user, who cannot write what the operator made.
"""

import json
import os
import shutil
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest
from support.configurations import let_others_enter
from support.programs import need, run

ATTACKER = 54321
VICTIM = 54322
DEVICE = "acme.com/widget=one"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
SOON = 5.0
"""Seconds: what takes longer has been waiting for something."""


def as_user(user, *words, **options):
    """Run a program as *user*, without any right of root's."""
    ids = ("--reuid", str(user), "--regid", str(user), "--clear-groups")
    return run(need("setpriv"), *ids, *words, **options)


class Site:
    """A host: a configuration, a bundle, a device of root's, and a place for everybody's files."""

    def __init__(self, top, installation, configuration, make_bundle):
        self.installation = installation
        self.configuration = configuration
        self.make_bundle = make_bundle
        self.shared = top / "shared"
        self.shared.mkdir()
        self.shared.chmod(0o1777)
        self.proof = self.shared / "proof"
        self.evil = self.shared / "evil"
        self.evil.write_text(f"#!/bin/sh\necho >>{self.proof}\n")
        self.evil.chmod(0o755)
        os.chown(self.evil, ATTACKER, ATTACKER)
        self.log = top / "runc.log"
        self.root = top / "root"
        configuration.write(runtime="/bin/true")
        configuration.spec(("one", {"env": ["ACME=1"]}))

    def call(self, *words, user=0, **env):
        """Call the runtime; return what it said, and how long it took."""
        start = time.monotonic()
        options = ("--root", self.root, "--log", self.log, "--log-format", "json")
        words = [self.installation.shim, *options, *words]
        env = {"PATH": PATH, **self.configuration.env, **env}
        ended = (
            as_user(user, *words, env=env, check=False)
            if user
            else run(*words, env=env, check=False)
        )
        return ended, time.monotonic() - start

    def create(self, request=DEVICE, user=0, **env):
        """Create a container that asks for *request*; return what was said, and its variables."""
        bundle = self.make_bundle(rootfs=False)
        if request:
            bundle.request(request)
        if user:
            os.chown(bundle.path, user, user)
            os.chown(bundle.config_path, user, user)
        ended, took = self.call("create", "--bundle", bundle.path, bundle.id, user=user, **env)
        assert took < SOON, ended
        return ended, bundle.load()["process"]["env"][1:]

    def plant(self, text, path, user=ATTACKER):
        """Write *text* to *path* as the attacker, where they may."""
        as_user(user, "sh", "-c", 'mkdir -p "${2%/*}" && printf %s "$1" >"$2"', "-", text, path)


@pytest.fixture
def site(tmp_path, installation, configuration, make_bundle):
    """Return a host that others may enter, but not write to."""
    let_others_enter(tmp_path, installation.prefix)
    return Site(tmp_path, installation, configuration, make_bundle)


def spec(value="EVIL=1", name="one", **members):
    """Return a spec file that sets a variable."""
    devices = [{"name": name, "containerEdits": {"env": [value]}}]
    return json.dumps(
        {"cdiVersion": "0.6.0", "kind": "acme.com/widget", **members, "devices": devices}
    )


def one_line(text):
    """Tell whether *text* is one line that no terminal acts on."""
    return text.endswith("\n") and text[:-1].isprintable()


def test_planted_specs_have_no_effect(start_tally, site):
    """Of spec files that an attacker can change nothing is used, and the error names the cure."""
    tally = start_tally("attacks", "spec files that others could change")
    directory = site.configuration.spec_dir
    own = directory / "acme.json"

    def refused(trick, cure):
        for _ in range(2):  # compiled anew, and from what is kept
            ended, variables = site.create()
            told = cure in ended.err and one_line(ended.err) and "others could change" in ended.err
            tally.note(ended.status == 1 and variables == [] and told, f"{trick}: {ended}")

    site.plant(spec(), site.shared / "cdi/acme.json")
    theirs = site.shared / "cdi/acme.json"
    own.unlink()
    own.symlink_to(theirs)
    refused("a link to their file", f"chown root {theirs.parent}")
    own.unlink()
    own.hardlink_to(theirs)
    refused("a hard link to their file", f"chown root {own}")
    own.unlink()
    own.write_text(spec())
    os.chown(own, 0, ATTACKER)
    own.chmod(0o664)
    refused("their group may write", f"chmod g-w {own}")
    os.chown(own, 0, 0)
    own.chmod(0o644)
    for place in (directory, directory.parent):
        os.chown(place, ATTACKER, 0)
        refused(f"they own {place.name}", f"chown root {place}")
        os.chown(place, 0, 0)
        place.chmod(0o777)
        refused(f"all may write {place.name}", f"chmod go-w {place}")
        place.chmod(0o755)
    site.configuration.write(runtime="/bin/true", spec_dirs=[str(site.shared / "cdi")])
    refused("the directory is theirs", f"chown root {theirs.parent}")
    site.configuration.write(runtime="/bin/true", spec_dirs=[str(site.shared)])
    site.plant(spec(), site.shared / "acme.json")
    refused("the directory is everybody's", f"mkdir {site.shared}/cdi-runc")
    site.configuration.write(runtime="/bin/true")
    ended, variables = site.create()
    tally.note((ended.status, variables) == (0, ["EVIL=1"]), f"cured: {ended}")
    tally.check()


def test_planted_override_is_told_and_not_used(site):
    """Where a sound file defines the device, one that others could change does not replace it."""
    later = site.shared / "cdi"
    site.plant(spec(), later / "acme.json")
    dirs = [str(site.configuration.spec_dir), str(later)]
    site.configuration.write(runtime="/bin/true", spec_dirs=dirs)
    _, variables = site.create()
    (record,) = site.configuration.records()

    assert variables == ["ACME=1"]
    assert any(f"chown root {later}" in text for text in record["warnings"])


def test_planted_configuration_has_no_effect(start_tally, site):
    """A configuration that others could change names no runtime, and fails what asks for devices.

    That holds for one that was sound when it was compiled.
    """
    tally = start_tally("attacks", "configurations that others could change")
    path = site.configuration.path
    text = path.read_text().replace("/bin/true", str(site.evil))

    def ignored(trick, cure):
        ended, variables = site.create()
        told = cure in ended.err and one_line(ended.err)
        tally.note(ended.status == 1 and variables == [] and told, f"{trick}: {ended}")
        site.call("state", "c1")
        site.create(request="")
        tally.note(not site.proof.exists(), f"{trick}: their runtime was run")

    site.create()
    site.configuration.grow_old()
    site.create()
    os.chown(path, ATTACKER, 0)
    status = path.stat()
    as_user(ATTACKER, "sh", "-c", 'printf %s "$1" >"$2"', "-", text, path)
    ignored("their file", f"chown root {path}")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    ignored("their file, dated back", f"chown root {path}")
    os.chown(path, 0, ATTACKER)
    path.chmod(0o660)
    ignored("their group's file", f"chmod g-w {path}")
    path.unlink()
    site.plant(text, site.shared / "config/config.yaml")
    path.symlink_to(site.shared / "config/config.yaml")
    ignored("a link to theirs", f"chown root {site.shared}/config")
    path.unlink()
    path.write_text(text)
    os.chown(path.parent, ATTACKER, 0)
    ignored("their directory", f"chown root {path.parent}")
    tally.check()


def test_state_of_another_is_not_read(start_tally, site):
    """A registry that an attacker planted, or could have, is neither read nor written."""
    tally = start_tally("attacks", "planted registries")
    site.create()
    time.sleep(0.1)
    own = site.configuration.spec_dir / "acme.json"
    site.create()
    # A registry that is current but for what it says: as an attacker would forge it.
    forged = (site.configuration.state_dir / "registry").read_bytes().replace(b"ACME", b"EVIL")

    def attempt(trick, place):
        site.configuration.write(runtime="/bin/true", state_dir=str(place))
        before = sorted(place.rglob("*")) if place.is_dir() else []
        ended, variables = site.create()
        tally.note((ended.status, variables) == (0, ["ACME=1"]), f"{trick}: {ended} {variables}")
        after = sorted(place.rglob("*")) if place.is_dir() else []
        tally.note(before == after, f"{trick}: state was written to {place}")

    control = site.shared.parent / "control"
    control.mkdir(mode=0o700)
    (control / "registry").write_bytes(forged)
    (control / "registry").chmod(0o600)
    site.configuration.write(runtime="/bin/true", state_dir=str(control))
    assert site.create()[1] == ["EVIL=1"], "the forged registry would be believed if it were ours"

    theirs = site.shared / "theirs"
    as_user(ATTACKER, "mkdir", "-m", "0777", theirs)
    (theirs / "registry").write_bytes(forged)
    attempt("their directory, our file", theirs)
    os.chown(theirs / "registry", ATTACKER, ATTACKER)
    attempt("their directory and file", theirs)
    link = site.shared / "link"
    as_user(ATTACKER, "ln", "-s", control, link)
    attempt("their link to our directory", link)
    below = theirs / "below"
    shutil.copytree(control, below)
    attempt("our directory in theirs", below)
    group = site.shared.parent / "group"
    shutil.copytree(control, group)
    group.chmod(0o770)
    attempt("their group may write it", group)
    os.chown(control / "registry", ATTACKER, ATTACKER)
    site.configuration.write(runtime="/bin/true", state_dir=str(control))
    ended, variables = site.create()
    tally.note(variables == ["ACME=1"], f"their file in our directory: {ended}")
    assert own.exists()
    tally.check()


def planted(site, config):
    """Return a runtime directory of the attacker's with all that the launcher could believe."""
    runtime_dir = site.shared / "run"
    kept = runtime_dir / f"cdi-runc/launcher{config}"
    site.plant(f'#runtime={site.evil}\n"cdi.k8s.io/\n', kept / "patterns")
    site.plant("", kept / "directory")
    site.plant("", kept / "settings")
    site.plant("", runtime_dir / f"cdi-runc/exec{site.root}/c1")
    site.plant(spec(), runtime_dir / "cdi/acme.json")
    for name, like in (("patterns", config), ("directory", config.parent)):
        as_user(ATTACKER, "touch", "-r", like, kept / name)
    return runtime_dir


def test_runtime_directory_of_another_is_not_used(start_tally, site):
    """XDG_RUNTIME_DIR of another user, which sudo keeps, has no say for root or for a user."""
    tally = start_tally("attacks", "XDG_RUNTIME_DIR of an attacker")
    site.create()
    runtime_dir = planted(site, site.configuration.path)
    home = site.shared.parent / "home"
    home.mkdir()
    os.chown(home, VICTIM, VICTIM)
    audit = {"file": str(home / "audit.jsonl")}
    site.configuration.write(
        runtime="/bin/true",
        audit=audit,
        log={"file": str(home / "log")},
        spec_dirs=[str(site.configuration.spec_dir), str(runtime_dir / "cdi")],
        state_dir=str(runtime_dir / "cdi-runc"),
    )
    as_user(ATTACKER, "touch", "-r", site.configuration.path, next(runtime_dir.rglob("patterns")))
    before = sorted(runtime_dir.rglob("*"))
    process = home / "process.json"
    for user in (0, VICTIM):
        env = {"XDG_RUNTIME_DIR": str(runtime_dir), "HOME": str(home)}
        for words in (("state", "c1"), ("exec", "--process", process, "c1"), ("delete", "c1")):
            process.write_text(json.dumps({"env": []}))
            ended, _ = site.call(*words, user=user, **env)
            tally.note(not site.proof.exists(), f"{user}: {words}: {ended}")
            tally.note(json.loads(process.read_text()) == {"env": []}, f"{user}: exec was edited")
        for request in ("", DEVICE):
            ended, variables = site.create(request, user=user, **env)
            wanted = ["ACME=1"] if request else []
            tally.note(variables == wanted, f"{user}: {ended} {variables}")
            tally.note(not site.proof.exists(), f"{user}: their runtime was run")
    tally.note(before == sorted(runtime_dir.rglob("*")), "something was written there")
    tally.check()


def test_kept_variables_of_another_are_not_merged(start_tally, site):
    """What exec gives to a process is believed only where root alone could have put it."""
    tally = start_tally("attacks", "planted variables for exec")
    site.create()
    bundle = site.make_bundle(rootfs=False).request(DEVICE)
    site.call("create", "--bundle", bundle.path, "c1")
    kept = Path(f"/run/cdi-runc/exec{site.root}/c1")
    process = site.shared.parent / "process.json"

    def merged():
        process.write_text(json.dumps({"env": []}))
        ended, _ = site.call("exec", "--process", process, "c1")
        tally.note(ended.status == 0, f"exec failed: {ended}")
        return json.loads(process.read_text())["env"]

    data = kept.read_bytes().replace(b"ACME", b"EVIL")
    tally.note(merged() == ["ACME=1"], "the kept variables were not merged")
    kept.write_bytes(data)
    assert merged() == ["EVIL=1"], "the forged file would be believed if it were ours"
    os.chown(kept, ATTACKER, ATTACKER)
    tally.note(merged() == [], "their file was believed")
    kept.unlink()
    site.plant("", site.shared / "kept")
    (site.shared / "kept").write_bytes(data)
    kept.symlink_to(site.shared / "kept")
    tally.note(merged() == [], "a link was followed")
    kept.unlink()
    outside = site.shared.parent / "outside"
    outside.write_text("ours")
    escape = "../" * 20 + str(outside).lstrip("/")
    site.call("delete", "--force", escape)
    tally.note(outside.exists(), "delete of a path removed a file")
    tally.check()


def test_logs_are_not_led_astray(start_tally, site):
    """No line goes to a file that the attacker chose; the container starts, and that is told."""
    tally = start_tally("attacks", "audit and log files led astray")
    victim = site.shared.parent / "victim"
    own = site.shared.parent / "own"

    def attempt(trick, path, required=False):
        victim.write_text("as it was\n")
        victim.chmod(0o644)
        audit = {"file": str(path), "required": required}
        site.configuration.write(runtime="/bin/true", audit=audit, log={"file": str(path)})
        site.log.unlink(missing_ok=True)
        ended, variables = site.create()
        wanted = (1, []) if required else (0, ["ACME=1"])
        tally.note((ended.status, variables) == wanted, f"{trick}: {ended}")
        tally.note(victim.read_text() == "as it was\n", f"{trick}: the victim was written to")
        told = ended.err if required else site.log.read_text()
        tally.note("cannot be written" in told or "not written" in told, f"{trick}: not told")

    for required in (False, True):
        for trick in ("symbolic link", "hard link", "file", "directory", "fifo", "device"):
            shutil.rmtree(own, ignore_errors=True)
            own.mkdir()
            path = own / "audit.jsonl"
            if trick == "symbolic link":
                path.symlink_to(victim)
            elif trick == "hard link":
                victim.write_text("")
                path.hardlink_to(victim)
            elif trick == "file":
                path.write_text("")
                os.chown(path, ATTACKER, ATTACKER)
            elif trick == "directory":
                path.mkdir()
            elif trick == "fifo":
                os.mkfifo(path)
            else:
                os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
            attempt(trick, path, required)
            if trick == "hard link":
                path.unlink()
        site.plant("", site.shared / "logs/other")
        attempt("their directory", site.shared / "logs/audit.jsonl", required)
        attempt("below their directory", site.shared / "logs/below/audit.jsonl", required)
        as_user(ATTACKER, "ln", "-sfn", own, site.shared / "logs-link")
        attempt("their link", site.shared / "logs-link/audit2.jsonl", required)
    tally.check()


def make_chain(path, top):
    """Make a chain of links longer than the kernel follows."""
    for number in range(60):
        link = top / f"chain{number}"
        if not link.is_symlink():
            link.symlink_to(top / f"chain{number + 1}")
    path.symlink_to(top / "chain0")


def make_socket(path, top):
    """Make a socket; a long path would not fit into its address."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{(fd := os.open(path.parent, os.O_PATH))}/{path.name}")
    os.close(fd)


def make_sparse(path, top):
    """Make a file of one terabyte that takes no room."""
    with path.open("wb") as file:
        file.truncate(1 << 40)


MAKE = {
    "fifo": lambda path, _: os.mkfifo(path),
    "directory": lambda path, _: path.mkdir(),
    "deep": lambda path, _: path.write_text("[" * 100_000),
    "loop": lambda path, _: path.symlink_to(path.name),
    "chain": make_chain,
    "socket": make_socket,
    "sparse": make_sparse,
}
NAMES = {"escape": "odd\x1b[2J\n\u202e", "bytes": "odd\udcff"}


def odd(directory, top, kind, suffix):
    """Make an odd file in *directory*; return its path."""
    name = NAMES.get(kind, f"odd-{kind.replace('/', '-')}")
    path = directory / f"{name}{suffix}"
    if kind in NAMES:
        path.write_text("x")
    elif kind in MAKE:
        MAKE[kind](path, top)
    else:
        path.symlink_to(kind)
    return path


ODD = (
    *("fifo", "socket", "directory", "sparse", "deep", "loop", "chain", "escape", "bytes"),
    *("nowhere", "/dev/zero", "/dev/full", "/dev/null", "/dev/tty", "/proc/kmsg"),
    *("/proc/self/mem", "/proc/self/pagemap", "/proc/kcore", "/proc/self/fd/0", "/sys"),
)


@pytest.mark.parametrize("kind", ["sparse", "lines"])
def test_a_huge_bundle_ends_in_time(start_tally, site, kind):
    """A config.json without a reasonable end, in one line or many, is refused, and soon."""
    tally = start_tally("attacks", f"a huge config.json ({kind})")
    bundle = site.make_bundle(rootfs=False)
    with bundle.config_path.open("r+b") as file:
        if kind == "lines":
            file.write(b"\n" * (200 << 20))
        file.truncate(20 << 30)
    ended, took = site.call("create", "--bundle", bundle.path, bundle.id)
    bundle.config_path.unlink()

    *_, last = ended.err.splitlines()  # before it the shell may tell how grep ended
    is_refused = ended.status == 1 and last.startswith("cdi-runc: cannot read ")
    tally.note(is_refused and took < 60, f"{took:.0f} s: {ended}")
    tally.check()


HOLD = """
import fcntl, signal, sys
log = open(sys.argv[1])
fcntl.lockf(log, fcntl.LOCK_SH)
print(flush=True)
signal.pause()
"""


@pytest.mark.parametrize("required", [False, True])
def test_a_lock_of_a_reader_holds_nobody_up(start_tally, site, required):
    """Who may only read the audit file and locks it delays a create, and is told of."""
    tally = start_tally("attacks", "a lock on the audit file by one of its readers")
    path = site.configuration.audit_file
    site.configuration.write(runtime="/bin/true", audit={"file": str(path), "required": required})
    site.create()
    os.chown(path, 0, ATTACKER)
    before = path.read_bytes()
    ids = ("--reuid", str(ATTACKER), "--regid", str(ATTACKER), "--clear-groups")
    interpreter = ("/usr/bin/python3", "-I", "-S", "-c", HOLD)
    let_others_enter(path.parent)
    with subprocess.Popen(
        [need("setpriv"), *ids, *interpreter, path], stdout=subprocess.PIPE
    ) as holder:
        holder.stdout.readline()
        ended, variables = site.create()
        holder.kill()

    tally.note((ended.status, variables) == ((1, []) if required else (0, ["ACME=1"])), ended)
    tally.note("another process keeps it locked" in site.log.read_text(), ended)
    tally.note(path.read_bytes() == before, "something was written")
    tally.note(not [*path.parents[1].rglob(".*.cdi-runc")], "a temporary file is left")
    tally.check()


def test_odd_files_fail_fast(start_tally, site, size):
    """Odd spec files and configurations keep nobody waiting, and are named in one plain line."""
    tally = start_tally("attacks", "odd files as specs and configurations")
    directory = site.configuration.spec_dir
    top = site.shared.parent
    for kind in ODD:
        path = odd(directory, top, kind, ".json")
        ended, variables = site.create()
        tally.note((ended.status, variables) == (0, ["ACME=1"]), f"{kind}: {ended}")
        ended, _ = site.create("acme.com/gadget=none")
        is_told = ended.status == 1 and one_line(ended.err) and f"{directory}/odd" in ended.err
        tally.note(is_told, f"{kind}: {ended}")
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    for kind in size(("fifo", "sparse", "loop", "/dev/zero", "/proc/kmsg"), ODD):
        if kind in NAMES:
            continue
        path = odd(site.configuration.path.parent, top, kind, ".yaml")
        env = {"CDI_RUNC_CONFIG": str(path)}
        ended, _ = site.create(**env)
        is_told = ended.status == 1 and one_line(ended.err) and path.name in ended.err
        tally.note(is_told, f"configuration {kind}: {ended}")
        bundle = site.make_bundle(rootfs=False)
        words = ("create", "--bundle", bundle.path, bundle.id)
        ended, took = site.call(*words, **env)
        is_passed = took < SOON and "rootfs" in ended.err  # runc's own words: there is none
        tally.note(is_passed, f"configuration {kind}, no request: {ended}")
    tally.check()


def test_many_files_are_bounded(start_tally, site, size):
    """A spec directory of very many files is read to a bound, which is told."""
    tally = start_tally("attacks", "very many spec files")
    count = size(11_000, 100_000)
    directory = site.configuration.spec_dir
    for number in range(count):
        (directory / f"{number:06}.json").write_text("{}")
    start = time.monotonic()
    bundle = site.make_bundle(rootfs=False).request("acme.com/gadget=none")
    ended, took = site.call("create", "--bundle", bundle.path, bundle.id)
    tally.note(took < 30, f"{count} files took {took:.0f} s")
    tally.figure(f"{count} files {time.monotonic() - start:.1f} s")
    tally.note(one_line(ended.err) and len(ended.err) < 1100, f"{count}: {ended}")
    tally.note(f"of its {count + 1} spec files only 10000 are read" in ended.err, str(ended))
    tally.check()
