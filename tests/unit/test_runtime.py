"""The real runtime: found, never ourselves, and become without a trace."""

import os
import posix
import signal
import subprocess
import sys

import pytest
from support.installations import ROOT

from cdi_runc import paths, runtime
from cdi_runc.errors import NoRuntime


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Return two directories in PATH; the usual ones are left out."""
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
    monkeypatch.setitem(posix.environ, b"PATH", os.fsencode(f"{first}:{second}"))
    monkeypatch.setattr(paths, "RUNTIME_DIRS", ())
    return first, second


def program(path, mode=0o755):
    """Make a program, and return its path."""
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return str(path)


def test_first_that_is_there_is_found(places):
    """Names are looked up in PATH one after the other, and a path is taken as it is."""
    first, second = places
    runc, crun = program(second / "runc"), program(first / "crun")

    assert runc == runtime.find(["runc", "crun"], "/launcher")
    assert crun == runtime.find(["nosuch", "crun", "runc"], "/launcher")
    assert crun == runtime.find(["/nonexistent/runc", crun], "/launcher")


@pytest.mark.parametrize("kind", ["link", "hard-link", "itself", "directory", "mode", "dangling"])
def test_what_is_no_runtime_is_passed_over(places, kind):
    """Ourselves by any name, and what is no program, are passed over for the next."""
    first, second = places
    launcher = program(first / "launcher")
    other = program(second / "runc")
    if kind == "link":
        (first / "runc").symlink_to(launcher)
    elif kind == "hard-link":
        (first / "runc").hardlink_to(launcher)
    elif kind == "itself":
        launcher = program(first / "runc")
    elif kind == "directory":
        (first / "runc").mkdir()
    elif kind == "mode":
        program(first / "runc", 0o644)
    else:
        (first / "runc").symlink_to("nowhere")

    assert other == runtime.find(["runc"], launcher)


def test_path_may_hold_anything(places, monkeypatch):
    """Relative and empty entries of PATH are not looked into: the engine decides where we run."""
    first, second = places
    runc = program(second / "runc")
    program(first / "runc")
    monkeypatch.chdir(first)
    monkeypatch.setitem(posix.environ, b"PATH", os.fsencode(f":.:../first:{second}"))

    assert runc == runtime.find(["runc"], "/launcher")


def test_nothing_found_names_what_was_looked_for(places):
    """Without any of them the error lists them."""
    with pytest.raises(NoRuntime, match="looked for runc, /x/crun") as caught:
        runtime.find(["runc", "/x/crun"], "/launcher")

    assert "key: runtime" in str(caught.value)


@pytest.mark.parametrize(
    "environ",
    [
        pytest.param({}, id="empty"),
        pytest.param({"PATH": "/bin", "LC_ALL": "C"}, id="c-locale"),
        pytest.param({"a.b": "1", "A B": "2", "\udcff": "\udcff", "E": "", "F": "="}, id="odd"),
        pytest.param({"LONG": "x" * 100_000, "ALSO": "y" * 100_000}, id="long"),
    ],
)
def test_become_leaves_no_trace(environ):
    """Environment and signals are what they would be without us, arguments byte for byte."""
    ours = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from cdi_runc import runtime\nruntime.become('/bin/cat', sys.argv[1:])\n"
    )
    python = [sys.executable, "-I", "-S", "-c", ours]
    seen = []
    for prefix in ([*python], ["/bin/cat"]):
        told = [
            subprocess.run([*prefix, *words], check=True, env=environ, capture_output=True).stdout
            for words in (["/proc/self/environ", "/proc/self/cmdline"], ["/proc/self/status"])
        ]
        signals = [line for line in told[1].splitlines() if line.startswith((b"Sig", b"Umask"))]
        seen.append((told[0], [line for line in signals if not line.startswith(b"SigQ")]))
    through, direct = seen

    assert direct == through
    assert b"SigIgn" in b"".join(direct[1])


def test_program_that_cannot_be_executed_is_an_error(tmp_path):
    """What is no program for this machine gives an error, and no exec."""
    (tmp_path / "runc").write_bytes(b"\x7fELF")
    (tmp_path / "runc").chmod(0o755)
    before = signal.getsignal(signal.SIGPIPE), signal.getsignal(signal.SIGXFSZ)
    try:
        with pytest.raises(NoRuntime, match="runc cannot be executed: Exec format"):
            runtime.become(str(tmp_path / "runc"), [])
    finally:
        signal.signal(signal.SIGPIPE, before[0])
        signal.signal(signal.SIGXFSZ, before[1])
