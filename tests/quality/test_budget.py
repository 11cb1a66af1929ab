"""What a create with a fresh registry loads and opens, counted (DESIGN, C12)."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import time

import pytest
from support.configurations import Configuration, forget
from support.installations import ROOT
from support.programs import environment, need

DEVICE = "acme.com/widget=one"
SHIM = """\
import sys
sys.path[:0] = {library!r}
from cdi_runc.shim import main
main(sys.argv)
"""
# Tells what was loaded at the moment of the exec, instead of making it.
WATCH = """\
import marshal, posix, sys
before = set(sys.modules)
def tell(path, arguments, environ):
    posix.write(1, " ".join(sorted(set(sys.modules) - before)).encode())
    posix._exit(0)
posix.execve = tell
sys.argv = sys.argv[1:]
with open(sys.argv[0], "rb") as file:
    program = file.read()
if sys.argv[0].endswith(".pyc"):
    exec(marshal.loads(program[16:]))
else:
    exec(program)
"""
ALLOWED = {
    *("_bisect", "_json", "_sha256", "_sha2", "_signal", "__future__"),  # of the interpreter
    *("_imp", "gc", "marshal"),  # built in, and used by the frozen program
    "cdi_runc",
    *(f"cdi_runc.{name}" for name in ("audit", "bundle", "create", "digest", "errors", "files")),
    *(f"cdi_runc.{name}" for name in ("exec_process", "invocation", "jsonio", "names", "paths")),
    *(f"cdi_runc.{name}" for name in ("plan", "record", "registry", "requests", "runtime")),
    *(f"cdi_runc.{name}" for name in ("settings", "shim", "trust", "edits", "edits.env")),
    *(f"cdi_runc.{name}" for name in ("edits.device_nodes", "edits.hooks", "edits.mounts")),
    *("cdi_runc.conflicts", "cdi_runc.rootfs"),  # the frozen program has them, packed
}


def edits(library):
    """Return what a GPU brings: a variable that the image sets too, a shared object, and so on."""
    return {
        "env": ["ACME=1"],
        "deviceNodes": [{"path": "/dev/acme0", "hostPath": "/dev/null"}],
        "mounts": [{"hostPath": library, "containerPath": "/opt/acme", "options": ["rbind"]}],
        "hooks": [{"hookName": "createContainer", "path": "/bin/true"}],
    }


@pytest.fixture(params=["shim", "hot.pyc"])
def create(request, tmp_path):
    """Return a function that makes a create of its own, *prefix* before the interpreter."""
    program = tmp_path / request.param
    if request.param == "shim":
        library = [str(ROOT), sysconfig.get_path("purelib")]
        program.write_text(SHIM.format(library=library))
    else:
        # The library of the frozen program is where it finds what it does not hold.
        library = tmp_path / "lib"
        library.mkdir()
        (library / "cdi_runc").symlink_to(ROOT / "cdi_runc")
        for path in os.scandir(sysconfig.get_path("purelib")):
            (library / path.name).exists() or (library / path.name).symlink_to(path.path)
        subprocess.run([sys.executable, ROOT / "packaging/freeze", library, program], check=True)
    configuration = Configuration(tmp_path / "configured")
    configuration.write(runtime="/bin/true")
    shared_object = tmp_path / "libacme.so.1"
    shared_object.touch()
    configuration.spec(("one", edits(str(shared_object))))
    bundle = tmp_path / "bundle"
    bundle.mkdir()

    def make(*words):
        (bundle / "config.json").write_text(
            json.dumps({"process": {"env": [f"CDI_DEVICES={DEVICE}", "ACME=0"]}})
        )
        return subprocess.run(
            [
                *(*words, program, "/nonexistent/launcher"),
                *("--root", tmp_path / "root", "create", "--bundle", bundle, "c1"),
            ],
            check=True,
            env=environment(**configuration.env),
            capture_output=True,
            text=True,
        )

    python = [sys.executable, "-I", "-S"]
    time.sleep(0.1)  # what is younger counts as changing still, and is compiled again
    make(*python)
    make(*python)
    make.python = python
    make.configuration = configuration
    yield make
    forget(tmp_path)


def traced(words, out):
    """Run a program; return the names of the calls that open a file or start a program."""
    strace = [need("strace"), "-f", "-qq", "-e", "trace=open,openat,execve", "-o", out]
    words(*strace) if callable(words) else subprocess.run([*strace, *words], check=True)
    return re.findall(r"^(?:\d+ +)?(\w+)\(.* = \d+$", out.read_text(), re.MULTILINE)


def test_modules_are_few_and_known(create):
    """A create loads our hot modules and a few of the interpreter's that are next to free."""
    loaded = {*create(*create.python, "-c", WATCH).stdout.split()}

    assert loaded <= ALLOWED
    assert "cdi_runc.create" in loaded


def test_files_opened_are_few(create, tmp_path):
    """Beyond the interpreter's start, a create opens few files, and starts one program.

    These are: the program, which CPython opens three times; its modules, where it is the shim; an
    extension module or two; settings, config.json, the registry, what is kept for exec, the new
    config.json, the audit file and /proc/self/environ.
    """
    start = traced([*create.python, "-c", "pass"], tmp_path / "start")
    runtime = traced(["/bin/true"], tmp_path / "true")
    before = len(create.configuration.records())
    runs = [
        traced(lambda *strace: create(*strace, *create.python), tmp_path / "create")
        for _ in range(3)  # another test may clear away what they keep, so the best counts
    ]
    best = min(runs, key=len)

    assert before + len(runs) == len(create.configuration.records())
    assert best.count("execve") == 2
    assert len(best) - len(start) - len(runtime) <= (12 if (tmp_path / "hot.pyc").exists() else 60)
