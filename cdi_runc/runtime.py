"""Become the real runtime, without a trace that we stood before it (C1)."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal itself loads enum
import posix

from cdi_runc import errors, files, paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def find(wanted: Sequence[str], launcher: str) -> str:
    """Return the path of the first program of *wanted* that is there and is not *launcher*.

    A name is looked up in PATH and then in the usual directories.

    Raises:
        NoRuntime: none of them was found.

    """
    ourselves = _identity(launcher)
    for word in wanted:
        if word[:1] == "/":
            places = [word]
        else:
            directories = [*paths.variable("PATH").split(":"), *paths.RUNTIME_DIRS]
            places = [f"{place}/{word}" for place in directories if place[:1] == "/"]
        for place in places:
            identity = _identity(place)
            if identity and identity != ourselves and posix.access(place, posix.X_OK):
                return place
    raise errors.NoRuntime(f"no real runtime was found: looked for {', '.join(wanted)}")


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = posix.stat(path)
    except OSError:
        return None
    if not files.is_regular(status):
        return None
    return status.st_dev, status.st_ino


def become(path: str, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by the runtime at *path*.

    CPython ignores SIGPIPE and SIGXFSZ from its start, and may add LC_CTYPE to the environment;
    both would survive exec.  The kernel's copy of the environment is as it was.

    Raises:
        NoRuntime: the program cannot be executed.

    """
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)
    block = b""
    try:
        fd = posix.open("/proc/self/environ", posix.O_RDONLY | posix.O_CLOEXEC)
        while more := posix.read(fd, 1 << 17):
            block += more
        posix.close(fd)
        environ = dict(entry.split(b"=", 1) for entry in block.split(b"\0") if b"=" in entry)
    except OSError:
        environ = posix.environ  # better a trace of us than no container
    try:
        posix.execve(path, [path, *arguments], environ)
    except OSError as error:
        told = f"the runtime {path} cannot be executed: {error.strerror}"
        raise errors.NoRuntime(told) from error
