"""Attacks by an image's author, or by a user who may run containers: what they would gain.

Where an attack works on something else than us, that is shown first, so that the test can fail.
"""

import itertools
import json
import os
import re
import resource
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from support.commands import Cdictl
from support.configurations import Configuration
from support.engines import Dockerd
from support.programs import need, run

from cdi_runc.bundle import LIMIT
from cdi_runc.edits.hooks import NAMES, SAFE_ENV

SUITE = "attacks"
DEVICE = "acme.com/widget=one"
ON_HOST = [name for name in NAMES if name != "startContainer"]

# A library that does, as whoever loads it, what its author wants: it stands for four kinds.
EVIL = r"""
extern int open(const char *, int, ...);
extern int dprintf(int, const char *, ...);
extern unsigned getuid(void);
__attribute__((constructor)) static void load(void) {
    dprintf(open(MARK, 02101, 0600), "uid %u\n", getuid());
}
unsigned la_version(unsigned version) { return version; }
int helper(void) { return 0; }
int gconv_init(void *step) { return 0; }
int gconv(void) { return 0; }
"""
# A vendor's hook: a program of the host with a library of its own, which converts some text.
HOOK = r"""
extern int open(const char *, int, ...);
extern int dprintf(int, const char *, ...);
extern int helper(void);
extern void *iconv_open(const char *, const char *);
int main(int count, char **words) {
    helper();
    iconv_open("UTF-8", "EVIL");
    dprintf(open(RAN, 02101, 0600), "%s\n", words[1]);
    return 0;
}
"""
LOADED_BY = {
    "LD_PRELOAD": "./evil.so",
    "LD_AUDIT": "./evil.so",
    "LD_LIBRARY_PATH": ".",
    "GCONV_PATH": ".",
}


class Trap:
    """A hook of the host, and an image that has its library loaded by it."""

    def __init__(self, directory):
        self.hook = directory / "hook"
        self.mark, self.ran = directory / "loaded", directory / "ran"
        self.files = {"gconv-modules": b"module EVIL// INTERNAL evil 1\n"}
        (directory / "evil.c").write_text(EVIL)
        (directory / "hook.c").write_text(HOOK)
        (directory / "helper.c").write_text("int helper(void) { return 0; }\n")
        library = (need("cc"), "-w", "-shared", "-fPIC")
        mark, ran = f'-DMARK="{self.mark}"', f'-DRAN="{self.ran}"'
        run(*library, mark, "-o", directory / "evil.so", directory / "evil.c")
        run(*library, "-o", directory / "libhelper.so", directory / "helper.c")
        where = f"-Wl,--enable-new-dtags,-rpath,{directory}"
        link = (directory / "hook.c", f"-L{directory}", "-lhelper", where)
        run(need("cc"), "-w", ran, "-o", self.hook, *link)
        for name in ("evil.so", "libhelper.so"):
            self.files[name] = (directory / "evil.so").read_bytes()

    def plant(self, rootfs):
        """Put the image author's files into the image."""
        for name, content in self.files.items():
            (rootfs / name).write_bytes(content)

    def entry(self, kind, **members):
        """Return the hook as a spec file has it; it tells its kind when it runs."""
        return {"hookName": kind, "path": str(self.hook), "args": ["hook", kind], **members}

    def sprung(self):
        """Return as whom the library was loaded on the host, and which hooks ran; forget both."""
        found = []
        for path in (self.mark, self.ran):
            found.append(path.read_text().split("\n")[:-1] if path.exists() else [])
            path.unlink(missing_ok=True)
        return found


@pytest.fixture(scope="module")
def trap(tmp_path_factory):
    """Build the library and the hook with the compiler."""
    return Trap(tmp_path_factory.mktemp("trap"))


@pytest.fixture
def make_image(make_bundle, trap):
    """Make bundles of the image whose author attacks."""

    def make(*variables, rootfs=True):
        bundle = make_bundle("true", rootfs=rootfs)
        bundle.config["process"]["env"] += [f"{name}={LOADED_BY[name]}" for name in variables]
        bundle.save()
        if rootfs:
            trap.plant(bundle.path / "rootfs")
        return bundle

    return make


@pytest.mark.parametrize("variable", LOADED_BY)
def test_the_attack_on_a_hook_works_without_us(
    configuration, make_runtime, make_image, trap, variable
):
    """Under runc 1.1 a createContainer hook without env loads the image's library, as root."""
    if "1.1." not in run(need("runc"), "--version").out.splitlines()[0]:
        pytest.skip("a later runc gives such a hook no environment")
    bundle = make_image(variable)
    bundle.config["hooks"] = {"createContainer": [{"path": str(trap.hook), "args": ["hook", "x"]}]}
    bundle.save()
    make_runtime("runc", configuration).run(bundle)

    assert trap.sprung() == [["uid 0"], ["x"]]


@pytest.mark.parametrize(
    ("members", "own"),
    [
        pytest.param({}, [], id="env-missing"),
        pytest.param({"env": []}, [], id="env-empty"),
        pytest.param({"env": ["ACME=1"]}, [], id="env-given"),
        pytest.param({}, [f"{n}={v}" for n, v in LOADED_BY.items()], id="device-sets-them"),
    ],
)
def test_no_hook_loads_a_library_of_the_image(
    start_tally, runtime, configuration, make_image, trap, members, own
):
    """Hooks of every kind run, and load nothing of the image, however its ENV or a device asks."""
    tally = start_tally(SUITE, "image's library in a hook")
    entries = [trap.entry(kind, **members) for kind in ON_HOST]
    configuration.spec(("one", {"hooks": entries, "env": own} if own else {"hooks": entries}))
    for variable in LOADED_BY:
        bundle = make_image(variable).request(DEVICE)
        runtime.run(bundle)
        runtime("delete", "--force", bundle.id, check=False)
        loaded, ran = trap.sprung()
        tally.note(loaded == [], f"{variable}: {loaded}")
        assert set(ran) == set(ON_HOST)
    tally.check()


@pytest.mark.parametrize("members", [{}, {"env": []}], ids=["env-missing", "env-empty"])
def test_every_kind_of_hook_gets_a_path_alone(runtime, configuration, make_bundle, trap, members):
    """A hook without env of its own has PATH and nothing else in config.json, of all six kinds."""
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", {"hooks": [trap.entry(kind, **members) for kind in NAMES]}))
    bundle = make_bundle(rootfs=False).request(DEVICE)
    runtime.run(bundle)
    written = bundle.load()["hooks"]

    assert [written[kind][0]["env"] for kind in NAMES] == [list(SAFE_ENV)] * len(NAMES)


@pytest.fixture(scope="module")
def docker_of_an_attacker(installation, busybox_rootfs, trap, tmp_path_factory):
    """Start a Docker daemon with the attacker's image, and a runtime that leaves hooks bare."""
    directory = tmp_path_factory.mktemp("attacker")
    bare = directory / "bare"
    hook = json.dumps({"path": str(trap.hook), "args": ["hook", "bare"]})
    bare.write_text(
        "#!/usr/bin/python3\nimport json, os, sys\n"
        "if 'create' in sys.argv:\n"
        "    path = sys.argv[sys.argv.index('--bundle') + 1] + '/config.json'\n"
        "    config = json.load(open(path))\n"
        f"    config.setdefault('hooks', {{}})['createContainer'] = [{hook}]\n"
        "    json.dump(config, open(path, 'w'))\n"
        "os.execvp('runc', ['runc', *sys.argv[1:]])\n"
    )
    bare.chmod(0o755)
    rootfs = directory / "rootfs"
    shutil.copytree(busybox_rootfs, rootfs, symlinks=True, copy_function=os.link)
    trap.plant(rootfs)
    docker = Dockerd(
        Configuration(directory / "cdi-runc"), {"cdi": installation.shim, "bare": bare}
    )
    for variable, value in LOADED_BY.items():
        with subprocess.Popen(["tar", "-C", rootfs, "-c", "."], stdout=subprocess.PIPE) as tar:
            change = ("--change", f"ENV {variable}={value}")
            docker("import", *change, "-", variable.lower(), stdin=tar.stdout)
    yield docker
    docker.remove_containers()
    docker.stop()
    docker.configuration.forget()


def test_docker_run_of_an_image_with_ld_preload(start_tally, docker_of_an_attacker, trap):
    """The image's ENV loads its library into a bare hook under Docker, and into none of ours."""
    tally = start_tally(SUITE, "docker run of such an image")
    docker = docker_of_an_attacker
    docker.configuration.spec(("one", {"hooks": [trap.entry("createContainer")]}))
    for variable in LOADED_BY:
        words = ("run", "--rm", "--network", "none")
        rest = ("--env", f"CDI_DEVICES={DEVICE}", variable.lower(), "true")
        docker(*words, "--runtime=bare", *rest)
        assert trap.sprung() == [["uid 0"], ["bare"]]
        docker(*words, "--runtime=cdi", *rest)
        loaded, ran = trap.sprung()
        assert ran == ["createContainer"]
        tally.note(loaded == [], f"{variable}: {loaded}")
    tally.check()


def test_podman_run_of_an_image_with_ld_preload(podman, busybox_rootfs, trap, tmp_path):
    """Under Podman a hook without env loads nothing of an image whose ENV asks for it."""
    rootfs = tmp_path / "rootfs"
    shutil.copytree(busybox_rootfs, rootfs, symlinks=True, copy_function=os.link)
    trap.plant(rootfs)
    run("tar", "-C", rootfs, "-cf", tmp_path / "image.tar", ".")
    variables = [f"--change=ENV {name}={value}" for name, value in LOADED_BY.items()]
    podman("import", *variables, tmp_path / "image.tar", "attacker")
    podman.configuration.spec(("one", {"hooks": [trap.entry(kind) for kind in ON_HOST]}))
    limits = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096")
    options = ("run", "--rm", "--network", "none", *limits, "--env", f"CDI_DEVICES={DEVICE}")
    seen = podman(*options, "attacker", "env").out.splitlines()
    loaded, ran = trap.sprung()

    assert {f"{name}={value}" for name, value in LOADED_BY.items()} <= set(seen)
    assert loaded == []
    assert set(ran) == set(ON_HOST)


PLANTED = [
    *("json", "_json", "time", "traceback", "difflib", "re", "yaml", "structlog", "encodings"),
    *("sitecustomize", "usercustomize", "cdi_runc", "shim", "codecs"),
]


def plant_modules(directory, mark):
    """Put modules into *directory* that tell when they are loaded."""
    for name in PLANTED:
        (directory / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})\n")
    (directory / "cdi_runc").mkdir()
    shutil.copy(directory / "cdi_runc.py", directory / "cdi_runc/__init__.py")


@pytest.fixture(params=["frozen", "from its modules"])
def either_shim(request, installation, tmp_path):
    """Return the launcher, with and without the frozen program."""
    if request.param == "frozen":
        return installation.shim
    home, launcher = tmp_path / "home", tmp_path / "cdi-runc-2"
    home.mkdir()
    for name in ("lib", "shim", "venv"):
        (home / name).symlink_to(installation.home / name)
    changed, count = re.subn(
        r"(?m)^cdi_home=.*$", f"cdi_home='{home}'", installation.shim.read_text()
    )
    assert count == 1
    launcher.write_text(changed)
    launcher.chmod(0o755)
    return launcher


def test_our_interpreter_loads_nothing_of_a_bundle_or_image(
    start_tally, either_shim, configuration, make_runtime, make_bundle, trap, tmp_path
):
    """Variables of the image or the caller, and modules where we are called, have no effect."""
    tally = start_tally(SUITE, "our own interpreter")
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", {"env": ["ACME=1"]}))
    mark = tmp_path / "mark"
    runtime = make_runtime(either_shim, configuration)
    for asked in (DEVICE, "acme.com/widget=oen", "none such"):
        bundle = make_bundle(rootfs=False).request(asked)
        plant_modules(bundle.path, mark)
        evil = trap.mark.parent / "evil.so"
        bundle.config["process"]["env"] += [
            *(f"{name}={bundle.path}" for name in ("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")),
            *(f"{name}={bundle.path}/json.py" for name in ("PYTHONSTARTUP", "BASH_ENV", "ENV")),
            *(f"{name}={evil}" for name in ("LD_PRELOAD", "LD_AUDIT")),
            f"CDI_RUNC_CONFIG={bundle.path}/config.yaml",
        ]
        bundle.save()
        run(need("python3"), "-c", "import json", cwd=bundle.path, check=False)
        assert mark.exists()  # the trap works
        mark.unlink()

        own = {name: str(bundle.path) for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE")}
        runtime.env = {**runtime.env, **own}
        runtime("create", "--bundle", ".", bundle.id, cwd=bundle.path, check=False)
        loaded = mark.read_text() if mark.exists() else ""
        tally.note(not loaded and trap.sprung() == [[], []], f"{asked}: {loaded}")
        edited = "ACME=1" in bundle.load()["process"]["env"]
        assert edited == (asked == DEVICE)
    tally.check()


def plant_link(place, victim):
    """Plant a symbolic link."""
    place.symlink_to(victim)


def plant_hard_link(place, victim):
    """Plant a hard link."""
    place.hardlink_to(victim)


def plant_fifo(place, _):
    """Plant a FIFO without a reader."""
    os.mkfifo(place)


def plant_directory(place, _):
    """Plant a directory."""
    place.mkdir()


@pytest.mark.parametrize("plant", [plant_link, plant_hard_link, plant_fifo, plant_directory])
def test_a_planted_temporary_file_leads_nowhere(
    runtime, configuration, make_bundle, tmp_path, plant
):
    """What lies where we write first is not written to; config.json is whole in any case."""
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", {"env": ["ACME=1"]}))
    bundle = make_bundle(rootfs=False).request(DEVICE)
    before = bundle.load()
    victim = tmp_path / "victim"
    victim.write_text("whole")
    plant(bundle.path / ".config.json.cdi-runc", victim)
    finished = runtime("create", "--bundle", bundle.path, bundle.id, check=False)

    assert victim.read_text() == "whole"
    if plant is plant_directory:
        assert finished.status == 1
        assert finished.err.startswith(f"cdi-runc: cannot write {bundle.config_path}: ")
        assert len(finished.err.splitlines()) == 1
        assert bundle.load() == before
    else:
        assert finished.status == 0
        assert "ACME=1" in bundle.load()["process"]["env"]
        assert os.listdir(bundle.path) == ["config.json"]


def test_a_config_json_that_is_a_link_stays_one(runtime, configuration, make_bundle, tmp_path):
    """The file that runc would read is edited, and the link to it left."""
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", {"env": ["ACME=1"]}))
    bundle = make_bundle(rootfs=False).request(DEVICE)
    other = tmp_path / "other.json"
    bundle.config_path.rename(other)
    bundle.config_path.symlink_to("../other.json")
    runtime("create", "--bundle", bundle.path, bundle.id)

    assert os.readlink(bundle.config_path) == "../other.json"
    assert "ACME=1" in json.loads(other.read_bytes())["process"]["env"]


FORGED = '"}\n{"level":"error","msg":"forged","time":"2026-01-01T00:00:00Z"}\n'
HOSTILE = {
    "path": "../../../../etc/passwd",
    "path-in-vendor": "acme.com/../widget=one",
    "path-in-name": "acme.com/widget=../one",
    "line-feed": "acme.com/widget=one\n",
    "forged-log-line": f"acme.com/widget=one{FORGED}",
    "forged-text-line": 'x" level=info\ntime="2026-01-01T00:00:00Z" level=error msg="forged"',
    "forged-record": 'x\n{"format":1,"id":"0","result":"edited"}\n',
    "terminal": "\x1b[2J\x1b]0;owned\x07\x9b2J\x7f\x08\r",
    "bidirectional": "acme.com/\u202ewidget=one\u2066",
    "line-separators": "a\u2028b\u2029c\u0085d\x0b\x0c\x1c",
    "look-alike": "acme.com/widget=\u043ene",
    "full-width": "acme.com\uff0fwidget\uff1done",
    "nul": "acme.com/widget=one\0",
    "lone-surrogate": "acme.com/widget=\ud800",
    "format": "%s%n%x{0.__class__}{self._settings}$(id)`id`",
    "comma": "acme.com/widget=one,",
    "only-commas": "," * 9999,
    "blank": " ",
    "huge": f"acme.com/widget={'o' * 1_000_000}",
    "another-device": "acme.com/widget=two",
    "wildcard": "acme.com/widget=*",
    "case": "ACME.com/widget=one",
}


def in_annotation(bundle, text):
    """Ask in an annotation's value."""
    bundle.config["annotations"] = {"cdi.k8s.io/x": text}


def in_annotation_key(bundle, text):
    """Ask with a key of the attacker's."""
    bundle.config["annotations"] = {f"cdi.k8s.io/{text}": "not a device"}


def in_environment(bundle, text):
    """Ask in a variable."""
    bundle.config["process"]["env"].append(f"CDI_DEVICES={text}")


def in_mount(bundle, text):
    """Ask with a mount of /dev/null."""
    mount = {"destination": f"/devices/{text}/x", "source": "/dev/null", "type": "bind"}
    bundle.config["mounts"].append(mount)


def steers(text):
    """Return what in *text* could steer a terminal."""
    return {one for one in text if not one.isprintable() and one != "\n"}


@pytest.mark.parametrize(
    ("place", "log_format"),
    [
        (in_annotation, "json"),
        (in_annotation_key, "text"),
        (in_environment, "json"),
        (in_mount, "text"),
    ],
)
def test_no_request_forges_a_line(
    start_tally, runtime, configuration, make_bundle, tmp_path, place, log_format
):
    """Whatever a request says, it is refused in one line of text, of log and of record."""
    tally = start_tally(SUITE, "hostile names")
    configuration.write(runtime="/bin/true", requests={"mounts": "/devices"})
    configuration.spec(("one", {"env": ["ACME=1"]}))
    log = tmp_path / "log"
    # In a path, this one is the mount of the test below.
    cases = [name for name in HOSTILE if (name, place) != ("path", in_mount)]
    for count, name in enumerate(cases, 1):
        bundle = make_bundle(rootfs=False)
        place(bundle, HOSTILE[name])
        bundle.save()
        before = bundle.config_path.read_bytes()
        words = ("--log", log, "--log-format", log_format, "create", "--bundle", bundle.path)
        finished = runtime(*words, bundle.id, check=False)
        lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
        if log_format == "json" and lines:
            entry = json.loads(lines[-1])
            said = entry["msg"] if set(entry) == {"level", "msg", "time"} else ""
        else:
            found = re.fullmatch(
                r'time="[^"\\]*" level=error msg=("(?:[^"\\]|\\.)*")',
                lines[-1].decode() if lines else "",
            )
            said = json.loads(found.group(1)) if found else ""
        records = configuration.records()
        wrong = [
            what
            for what, is_fine in {
                "status": finished.status == 1,
                "not one line": finished.err.count("\n") == 1,
                "steers a terminal": not steers(finished.err),
                "log is another": f"{said}\n" == finished.err and not steers(said),
                "log lines": len(lines) == count,
                "records": len(records) == count and records[-1]["result"] == "failed",
                "edited": bundle.config_path.read_bytes() == before,
                "traceback": "unexpected" not in said,
            }.items()
            if not is_fine
        ]
        tally.note(not wrong, f"{place.__name__} {name}: {wrong} {finished}"[:2000])
    tally.check()


def test_a_mount_that_leaves_the_prefix_asks_for_nothing(runtime, configuration, make_bundle):
    """A destination that only begins with the prefix is a mount like any other."""
    configuration.write(runtime="/bin/true", requests={"mounts": "/devices"})
    configuration.spec(("one", {"env": ["ACME=1"]}))
    bundle = make_bundle(rootfs=False)
    for place in (
        "/devices/../acme.com/widget/one",
        "/devices/..",
        "/devices2/a.com/b/c",
    ):
        mount = {"destination": place, "source": "/dev/null", "type": "bind"}
        bundle.config["mounts"].append(mount)
    bundle.save()
    runtime("create", "--bundle", bundle.path, bundle.id)

    assert bundle.load() == bundle.config
    assert configuration.records() == []


STEERING = "\x1b[2J\x1b]0;owned\x07\x9b31m\x7f\u202e\r\n{}"


def test_nothing_steers_the_terminal_of_who_looks(
    start_tally, installation, configuration, make_runtime, make_bundle, tmp_path
):
    """Names, values, files and ids with control characters reach a terminal as escapes."""
    tally = start_tally(SUITE, "cdictl at a terminal")
    configuration.write(runtime="/bin/true", audit={"env": "plain"})
    configuration.spec(("one", {"env": ["EVIL=good", "ACME=1"]}))
    # Names that no reader takes, in a file of the spec directory.
    bad = configuration.spec_dir / f"bad{STEERING.replace('/', '')}.json"
    bad.write_text(json.dumps({"cdiVersion": STEERING, STEERING: STEERING, "kind": STEERING}))
    runtime = make_runtime(installation.shim, configuration)
    bundle = make_bundle(rootfs=False)
    bundle.config["process"]["env"].append(f"EVIL={STEERING}")
    bundle.config["hooks"] = {"createRuntime": [{"path": f"/bin/false{STEERING}"}]}
    bundle.request(DEVICE)
    good = f"good{STEERING}"
    runtime("create", "--bundle", bundle.path, good)
    broken = make_bundle(rootfs=False)
    broken.config["annotations"] = {f"cdi.k8s.io/{STEERING}": f"{STEERING},{STEERING}"}
    broken.save()
    failed = runtime("create", "--bundle", broken.path, f"bad{STEERING}", check=False)
    assert len(configuration.records()) == 2
    ids = [record["id"] for record in configuration.records()]

    cdictl = Cdictl(installation.cdictl, configuration)
    error = f"error running hook #0: {STEERING}"
    calls = [
        *(("audit", "show", *more, one) for one in ids for more in ((), ("--json",))),
        *(("audit", words, *more) for words in ("list", "tail") for more in ((), ("--json",))),
        ("audit", "show", "--diff", ids[0]),
        ("audit", "show", STEERING),
        ("audit", "export", ids[0]),
        ("audit", "export", "--format", "docker", ids[0]),
        ("audit", "list", "--container", good),
        ("devices",),
        ("devices", "--json"),
        ("show", f"acme.com/widget={STEERING}"),
        ("validate", str(bad)),
        ("validate", "--json", str(bad)),
        ("inject", "--device", DEVICE, str(bundle.config_path)),
        ("inject", str(broken.config_path)),
        ("plan", "--bundle", str(bundle.path), "--device", DEVICE),
        ("plan", "--bundle", str(broken.path)),
        ("drift",),
        ("explain", error, "--bundle", str(bundle.path)),
        ("explain", error, "--container", good),
        ("explain", failed.err),
        ("doctor", "--bundle", str(bundle.path)),
        ("doctor", good),
        ("config", STEERING),
    ]
    for words in calls:
        shown = cdictl.on_terminal(*words, NO_COLOR="1")
        found = steers(shown.replace("\t", ""))
        tally.note(not found and shown.strip(), f"{words}: {found} {shown!r}")
        assert "Traceback" not in shown
    coloured = cdictl.on_terminal("audit", "show", ids[0])
    left = re.sub("\x1b\\[(0|1|2|31|32|33|36)m", "", coloured)
    tally.note("\x1b[" in coloured and not steers(left), f"in colours: {coloured!r}")
    for words in calls:
        if "--json" in words:
            out = cdictl(*words, check=False).out
            json.loads(out.splitlines()[0] if "tail" in words else out)
    tally.check()


def test_ids_and_roots_lead_nowhere_else(
    start_tally, runtime, configuration, make_bundle, tmp_path
):
    """No id or root with .. has us write, read or remove a file outside our state directory."""
    tally = start_tally(SUITE, "ids and roots")
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", {"env": ["ACME=1"]}))
    bundle = make_bundle(rootfs=False).request(DEVICE)
    runtime("create", "--bundle", bundle.path, bundle.id)  # its directories are there
    victim = tmp_path / "victim"
    victim.write_text("whole")
    up = "../" * 40
    state = Path("/run/cdi-runc/exec")
    for id_ in (f"{up}{str(victim)[1:]}", f"x/{up}{str(victim)[1:]}", "..", ".", "", "x" * 5000):
        bundle.save()
        for words in (
            ("create", "--bundle", bundle.path, id_),
            ("exec", "--process", victim, id_),
            ("delete", "--force", id_),
            ("run", "--bundle", bundle.path, id_),
            ("delete", id_),
        ):
            finished = runtime(*words, check=False)
            is_fine = "unexpected" not in finished.err and victim.read_text() == "whole"
            tally.note(is_fine, f"{words}: {finished}")
    outside = tmp_path / "outside"
    for root in (f"/{up}{str(outside)[1:]}", f"{up}{str(outside)[1:]}", f"{outside}/../.."):
        bundle.save()
        words = ("create", "--bundle", bundle.path, "c1")
        run(runtime.program, "--root", root, *words, env=runtime.env, cwd="/")
        env = bundle.load()["process"]["env"]
        tally.note("ACME=1" in env, f"{root}: not edited")
        tally.note(not outside.exists(), f"{root}: made {outside}")
    for root in (f"/{up}{str(victim.parent)[1:]}", f"{up}{str(victim.parent)[1:]}"):
        words = ("delete", "--force", victim.name)
        run(runtime.program, "--root", root, *words, env=runtime.env, cwd="/")
        tally.note(victim.exists(), f"{root}: removed {victim}")
    assert not (state / "c1").exists()
    tally.check()


def test_what_is_planted_in_an_image_leads_no_mount_or_node_to_the_host(
    start_tally, runtime, configuration, make_bundle, make_node, tmp_path
):
    """Mounts and nodes land in the container, though the image has links out of it on their way."""
    tally = start_tally(SUITE, "links in an image")
    host = tmp_path / "host"
    host.mkdir()
    library = tmp_path / "library"
    library.write_text("acme")
    node = make_node()
    links = [str(host), f"{'../' * 30}{str(host)[1:]}", f"/proc/1/root{host}"]
    paths = ["/opt/acme", "/opt/../opt/acme", "/../../opt/acme"]
    for link in links:
        for path in paths:
            edits = {
                "mounts": [{"hostPath": str(library), "containerPath": f"{path}/library"}],
                "deviceNodes": [{"path": f"{path}/node", "hostPath": str(node.path)}],
            }
            configuration.spec(("one", edits))
            bundle = make_bundle("true").request(DEVICE)
            (bundle.path / "rootfs/opt").mkdir()
            (bundle.path / "rootfs/opt/acme").symlink_to(link)
            finished = runtime.run(bundle, check=False)
            left = [str(one) for one in host.iterdir()]
            tally.note(left == [], f"{link} {path}: {left} {finished}")
            tally.note("unexpected" not in finished.err, f"{finished}")
    tally.check()


@pytest.mark.parametrize(
    "links",
    [
        {"lib": "/inside", "inside": "{host}"},
        {"lib": "usr/lib", "usr": "{host}/.."},
        {"lib": "{up}{host}"},
        {"lib": "lib"},
        {"lib": "./x/../..{host}"},
    ],
    ids=["two-links", "link-on-the-way", "up", "loop", "around"],
)
def test_no_link_of_an_image_has_us_look_at_the_host(
    runtime, configuration, make_bundle, tmp_path, links
):
    """Whether an image has glibc is not answered by directories of the host."""
    host = tmp_path / "lib"
    host.mkdir()
    (host / "ld-musl-x86_64.so.1").write_text("")
    configuration.write(runtime="/bin/true")
    library = tmp_path / "acme.so.1"
    library.write_text("")
    mount = {"hostPath": str(library), "containerPath": "/usr/lib/acme.so.1"}
    configuration.spec(("one", {"mounts": [mount]}))
    bundle = make_bundle(rootfs=False).request(DEVICE)
    (bundle.path / "rootfs").mkdir()
    for name, target in links.items():
        place = bundle.path / "rootfs" / name
        place.symlink_to(target.format(host=host, up="../" * 30))
    runtime("create", "--bundle", bundle.path, bundle.id)
    (bundle.path / "rootfs/lib").unlink()
    (bundle.path / "rootfs/lib").mkdir()
    (bundle.path / "rootfs/lib/ld-musl-x86_64.so.1").write_text("")
    bundle.save()
    runtime("create", "--bundle", bundle.path, bundle.id)
    first, second = configuration.records()

    assert first["warnings"] == []
    assert "the image has musl only" in second["warnings"][0]  # the trap works


def test_a_request_brings_what_specs_define_and_nothing_else(runtime, configuration, make_bundle):
    """A device asked for twice and in three ways comes once; others of the file do not come."""
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", {"env": ["ONE=1"]}), ("two", {"env": ["TWO=1"]}))
    bundle = make_bundle(rootfs=False)
    bundle.config["annotations"] = {f"cdi.k8s.io/{key}": f"{DEVICE},{DEVICE}" for key in "ab"}
    # Of two variables of one name the last counts, as it does for runc.
    asked = ["CDI_DEVICES=acme.com/widget=two", f"CDI_DEVICES={DEVICE}"]
    bundle.config["process"]["env"] += asked
    bundle.save()
    runtime("create", "--bundle", bundle.path, bundle.id)

    assert bundle.load()["process"]["env"] == ["PATH=/bin", *asked, "ONE=1"]
    (record,) = configuration.records()
    assert {request["device"] for request in record["requests"]} == {DEVICE}


@pytest.mark.parametrize(
    "members",
    [
        {"annotations": {"io.container.manager": "libpod", "io.kubernetes.cri-o.x": "y"}},
        {"annotations": {"io.container.manager": {"forged": True}, "cdi.k8s.io": "x"}},
        {"annotations": {"io.container.manager": "\x1b[2J" * 1000}},
        {"hostname": '","result":"failed', "ociVersion": {"a": [1]}},
    ],
)
def test_a_forged_engine_leaves_the_record_valid(runtime, configuration, make_bundle, members):
    """Whatever a configuration says of itself, its record is valid, and each call has its own."""
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", {"env": ["ACME=1"]}))
    for _ in range(2):  # the id of a container that is there already
        bundle = make_bundle(rootfs=False, **members)
        bundle.config.setdefault("annotations", {})["cdi.k8s.io/x"] = DEVICE
        bundle.save()
        runtime("create", "--bundle", bundle.path, "the-same-id")
    first, second = configuration.records()

    assert first["container"] == second["container"] == "the-same-id"
    assert first["id"] != second["id"]
    assert first["bundle"] != second["bundle"]
    assert first["engine"] in ("", "podman")


def confined():
    """Limit this process to 1 GiB of memory and a minute of processor time."""
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


RECORD = 32 << 20  # bytes: what is refused is told whole, however long it is


def heavy(depths):
    """Yield heavy configurations: a name for each, and its text."""

    def asking(value, key="x"):
        return json.dumps({"annotations": {f"cdi.k8s.io/{key}": value}})

    def with_env(entry, **members):
        return json.dumps({"process": {"env": [entry]}, **members})

    def nested(opening, closing, depth):
        return f'{asking(DEVICE)[:-1]}, "x": {opening * depth}0{closing * depth}}}'

    ours = {"cdi.k8s.io/x": DEVICE}
    yield "10,000 names", asking(",".join(f"acme.com/widget=w{n}" for n in range(10_000)))
    yield "10,000 times one name", asking(",".join([DEVICE] * 10_000))
    yield "1,000 times one name", asking(",".join([DEVICE] * 1000))
    yield "a key of 1 MiB", asking(",".join([DEVICE] * 1000), "k" * (1 << 20))
    requests = {f"cdi.k8s.io/{n}": DEVICE for n in range(200_000)}
    yield "200,000 requests", json.dumps({"annotations": requests})
    others = dict.fromkeys(map(str, range(1_000_000)), "")
    yield "1,000,000 annotations", json.dumps({"annotations": {**ours, **others}})
    yield "10 MiB in a variable", with_env(f"A={'a' * (10 << 20)}", annotations=ours)
    yield "10 MiB in CDI_DEVICES", with_env(f"CDI_DEVICES={'a' * (10 << 20)}")
    yield "10 MiB of commas", with_env(f"CDI_DEVICES={',' * (10 << 20)}")
    objects = ",".join(['{"":0}'] * ((LIMIT - 100) // len('{"":0},')))
    yield "as many objects as fit", f'{asking(DEVICE)[:-1]}, "x": [{objects}]}}'
    yield "too many objects", f'{asking(DEVICE)[:-1]}, "x": [{objects}, {objects}]}}'
    yield "100 MB", json.dumps({"annotations": ours, "x": "x" * 100_000_000})
    yield "1,000,000 digits", nested("9" * 1_000_000, "", 1)
    for depth in depths:
        yield f"{depth} lists deep", nested("[", "]", depth)
        yield f"{depth} objects deep", nested('{"a":', "}", depth)


def test_a_heavy_configuration_that_is_ignored_starts(
    start_tally, runtime, configuration, make_bundle
):
    """What the policy ignores is no reason not to start, however much it is."""
    tally = start_tally(SUITE, "heavy configurations that the policy ignores")
    configuration.write(runtime="/bin/true", policy=[{"do": "ignore"}])
    annotations = {f"cdi.k8s.io/{n}": "," * 16_000 for n in range(900)}
    names = (f"{n:x}" for n in range(1_000_000))
    named = {f"cdi.k8s.io/{n}": ",".join(itertools.islice(names, 2_600)) for n in range(380)}
    slowest = 0.0
    for config in (
        {"process": {"env": [f"CDI_DEVICES={'a' * (10 << 20)}"]}},
        {"process": {"env": [f"CDI_DEVICES={',' * (10 << 20)}"]}},
        {"annotations": {f"cdi.k8s.io/{n}": DEVICE for n in range(200_000)}},
        {"annotations": annotations},
        {"annotations": named},
    ):
        bundle = make_bundle(rootfs=False)
        bundle.config_path.write_text(json.dumps(config))
        begun = time.monotonic()
        words = ("create", "--bundle", bundle.path, bundle.id)
        finished = runtime(*words, check=False, preexec_fn=confined)
        slowest = max(slowest, time.monotonic() - begun)
        (record,) = configuration.records()
        is_short = (
            finished.err.count("\n") < 30 and configuration.audit_file.stat().st_size < RECORD
        )
        told = f"{str(config)[:100]}: {finished}"[:1500]
        tally.note(finished.status == 0 and is_short, told)
        tally.note(record["result"] == "unchanged", told)
        configuration.audit_file.unlink()
    tally.figure(f"slowest {slowest:.1f} s")
    tally.check()


def test_a_heavy_configuration_ends_in_time_and_in_words(
    start_tally, size, runtime, configuration, make_bundle
):
    """In 1 GiB and a minute it is edited whole, or refused in a line, and its record is small."""
    tally = start_tally(SUITE, "heavy configurations")
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", {"env": ["ACME=1"]}))
    slowest = 0.0
    for name, text in heavy((*range(900, 1010, size(25, 1)), 100_000)):
        bundle = make_bundle(rootfs=False)
        bundle.config_path.write_text(text)
        begun = time.monotonic()
        words = ("create", "--bundle", bundle.path, bundle.id)
        finished = runtime(*words, check=False, preexec_fn=confined)
        slowest = max(slowest, time.monotonic() - begun)
        edited = bundle.config_path.read_text() != text
        recorded = configuration.audit_file.exists() and configuration.audit_file.stat().st_size
        wrong = [
            what
            for what, is_fine in {
                "status": finished.status == (0 if edited else 1),
                "words": finished.err.count("\n") == (0 if edited else 1),
                "traceback": not re.search("unexpected|Traceback", finished.err),
                "record": recorded < RECORD,
                "long": len(finished.err) < 1100,
            }.items()
            if not is_fine
        ]
        tally.note(not wrong, f"{name}: {wrong} {finished}"[:1500])
        configuration.audit_file.unlink(missing_ok=True)
        bundle.config_path.unlink()
    tally.figure(f"slowest {slowest:.1f} s")
    tally.check()
