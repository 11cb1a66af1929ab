"""Our own parts: the configuration, the launcher and what it starts, the real runtime."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess

from cdi_runc import paths, runtime
from cdi_runc.doctor import Finding, edit, named, ownership
from cdi_runc.errors import BadConfiguration, NoRuntime
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cdi_runc.settings import Settings

SECONDS = 20
REINSTALL = "./install.sh  # in a checkout of cdi-runc; or reinstall its package"
_MARK = b"cdi-runc: the OCI runtime that an engine calls."
_VERSION = re.compile(r"version[ ]+(\S+)")

# What the interpreter of the launcher is asked, started as the launcher starts it.
PROBE = """
import importlib, json, sys
try:
    with open(f"{sys.argv[1]}/shim", encoding="utf-8") as file:
        exec(file.read().partition("from cdi_runc")[0])  # where it searches
except OSError:
    sys.path.insert(0, f"{sys.argv[1]}/lib")
told = {"magic": importlib.import_module("importlib.util").MAGIC_NUMBER.hex(), "faults": {}}
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        told["faults"][name] = f"{type(error).__name__}: {error}"
print(json.dumps(told))
"""
OWN = ("cdi_runc.shim", "cdi_runc.create", "cdi_runc.specs.compile")
NEEDED = ("yaml", "jsonschema")
USEFUL = ("structlog", "elftools")


class Launcher(Record):
    """A cdi-runc that an engine can call, and what its installer wrote into it."""

    path: str
    python: str
    home: str

    @property
    def shim(self) -> str:
        """The program that it starts for a container with a request."""
        frozen = f"{self.home}/hot.pyc"
        return frozen if os.access(frozen, os.R_OK) else f"{self.home}/shim"


def is_launcher(path: str) -> bool:
    """Tell whether the program at *path* is cdi-runc's launcher."""
    try:
        with open(path, "rb") as file:
            return _MARK in file.read(400)
    except OSError:
        return False


def beside(file: str = __file__) -> str:
    """Return where the launcher of this installation lies; nothing if this is a checkout."""
    if file.startswith("/opt/cdi-runc/"):
        return "/usr/local/bin/cdi-runc"
    root, is_installed, _ = file.partition("/lib/cdi-runc/")
    return f"{root}/bin/cdi-runc" if is_installed else ""


def launchers(programs: Sequence[str], own: str | None = None) -> list[Launcher]:
    """Return the launchers that engines call, those among *programs*, and our *own*."""
    own = beside() if own is None else own
    found = {
        os.path.realpath(path): path
        for path in (own or shutil.which("cdi-runc") or "", *programs)
        if is_launcher(path)
    }
    return [_read(path) for path in found.values()]


def _read(path: str) -> Launcher:
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    words = {}
    for name in ("python", "home"):
        match = re.search(rf"^cdi_{name}=(.*)$", text, re.MULTILINE)
        words[name] = "".join(shlex.split(match[1])) if match else ""
    return Launcher(path, words["python"], words["home"])


def configuration(settings: Settings, path: str | None = None) -> Iterator[Finding]:
    """Look for a configuration that cannot be used."""
    if settings.broken:
        place = path or paths.config()[0]
        found = ownership.distrusted(place)
        cure = BadConfiguration(settings.broken).cure
        if cure == BadConfiguration.cure:
            cure = f"{edit(place)} && cdictl config check"
        yield Finding(
            "error",
            f"the configuration {place} is ignored: {found[0]}" if found else settings.broken,
            "No container that asks for a device starts until it is corrected.",
            found[1] if found else cure,
        )


def installed(own: str | None = None) -> Iterator[Finding]:
    """Look for the launcher of this installation."""
    own = beside() if own is None else own
    if own and not is_launcher(own):
        fault = "is not cdi-runc's launcher" if os.path.exists(own) else "is missing"
        yield Finding(
            "error", f"{own} {fault}", "Engines cannot call what is not there.", REINSTALL
        )


def interpreter(found: Sequence[Launcher]) -> Iterator[Finding]:
    """Look for a launcher whose interpreter, home or program is gone."""
    for one in found:
        gone = ""
        if not os.access(one.python, os.X_OK) or not os.path.isfile(one.python):
            gone = f"the interpreter {one.python or '(none)'} is missing or not executable"
        elif not os.path.isdir(one.home):
            gone = f"its home {one.home or '(none)'} is missing"
        elif not os.access(one.shim, os.R_OK):
            gone = f"neither {one.home}/hot.pyc nor {one.shim} is there"
        if gone:
            yield Finding(
                "error",
                f"{one.path} cannot work: {gone}",
                "Containers that ask for a device do not start; all others do.",
                REINSTALL,
            )


def works(found: Sequence[Launcher]) -> Iterator[Finding]:
    """Start what each launcher starts, as it does, and look for what cannot be imported."""
    for one in found:
        if any(interpreter([one])):
            continue
        told = _probe(one)
        if isinstance(told, str):
            yield Finding(
                "error",
                f"the interpreter {one.python} of {one.path} does not run: {told}",
                "Containers that ask for a device do not start; all others do.",
                REINSTALL,
            )
            continue
        magic, faults = told
        if one.shim.endswith(".pyc"):
            with open(one.shim, "rb") as file:
                made_for = file.read(4).hex()
            if made_for != magic:
                yield Finding(
                    "error",
                    f"{one.shim} was made for another version of Python than {one.python} is now",
                    "Containers that ask for a device do not start; all others do.",
                    REINSTALL,
                )
                continue
        else:
            yield Finding(
                "warning",
                f"{one.home}/hot.pyc is missing, so {one.shim} is used",
                "Containers start, but with a device some milliseconds later.",
                REINSTALL,
            )
        yield from _imports(one, faults)


def _imports(one: Launcher, faults: dict[str, str]) -> Iterator[Finding]:
    """Tell what the interpreter cannot import, and else whether the program as a whole runs."""
    own = {name: why for name, why in faults.items() if name in OWN}
    needed = {name: why for name, why in faults.items() if name in NEEDED}
    if needed or own:
        name, why = next(iter((needed or own).items()))
        yield Finding(
            "error",
            f"the Python package {name.partition('.')[0]} in {one.home}/lib cannot be imported:"
            f" {why}",
            "Spec files or the configuration cannot be read anew, so no container that asks for"
            " a device starts once one of them changes.",
            REINSTALL,
        )
        return
    if any(name in faults for name in USEFUL):
        yield Finding(
            "warning",
            f"Python packages in {one.home}/lib cannot be imported:"
            f" {named([name for name in USEFUL if name in faults])}",
            "The log is plainer (structlog), or the doctor sees less (elftools).",
            REINSTALL,
        )
    fault = _run(one.python, "-I", "-S", one.shim)[1]
    if fault:
        yield Finding(
            "error",
            f"{one.shim} does not run under {one.python}: {fault}",
            "Containers that ask for a device do not start; all others do.",
            REINSTALL,
        )


def _probe(one: Launcher) -> tuple[str, dict[str, str]] | str:
    names = (*OWN, *NEEDED, *USEFUL)
    out, fault = _run(one.python, "-I", "-S", "-c", PROBE, one.home, *names)
    if fault:
        return fault
    try:
        told = json.loads(out)
        return str(told["magic"]), dict(told["faults"])
    except (ValueError, KeyError, TypeError):
        return "it is not Python"


def _run(*words: str) -> tuple[str, str]:
    """Return what a program prints, and how it failed, if so."""
    try:
        done = subprocess.run(  # noqa: S603  # our own parts
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except OSError as error:
        return "", error.strerror or str(error)
    except subprocess.TimeoutExpired:
        return "", f"no answer in {SECONDS} s"
    lines = (done.stderr or done.stdout).strip().splitlines()
    fault = (lines[-1] if lines else f"exit status {done.returncode}") if done.returncode else ""
    return done.stdout, fault


def real_runtime(
    settings: Settings, found: Sequence[Launcher], config: str | None = None
) -> Iterator[Finding]:
    """Look for the real runtime: that it is there, is not ourselves, and answers."""
    launcher = found[0].path if found else ""
    key = edit(config or paths.config()[0], "runtime: /path/to/runc")
    try:
        path = runtime.find(settings.runtime, launcher)
    except NoRuntime as error:
        itself = [word for word in settings.runtime if word[:1] == "/" and is_launcher(word)]
        also = f"; {itself[0]} is cdi-runc itself" if itself else ""
        yield Finding(
            "error",
            error.message + also,
            "cdi-runc prepares containers and leaves the rest to it: no container starts.",
            key if itself else f"apt-get install runc  # or: {key}",
        )
        return
    if is_launcher(path):
        yield Finding(
            "error",
            f"the real runtime that was found, {path}, is cdi-runc again",
            "The two may call each other without end.",
            key,
        )
    elif fault := _run(path, "--version")[1]:
        yield Finding(
            "error",
            f"the real runtime {path} does not work: {path} --version: {fault}",
            "No container starts.",
            f"apt-get install --reinstall {os.path.basename(path)}",
        )


def runtime_version(path: str) -> str:
    """Return the version of the runtime at *path*, as ``runc 1.1.5``, or the empty text."""
    told = _run(path, "--version")[0]
    match = _VERSION.search(told)
    return f"{told.split()[0]} {match[1]}" if match else ""
