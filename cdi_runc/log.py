"""Our own log: JSON lines through structlog, loaded only when something unusual happens (C9)."""

from __future__ import annotations

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEVELS = ("debug", "info", "warning", "error")
_to: list[tuple[str, str]] = []


def to(path: str, level: str) -> None:
    """Send what follows to the file *path*, from *level* on.  Without a call nothing is written."""
    _to[:] = [(path, level)]


def unusual(level: str, event: str, **facts: Any) -> None:
    """Log *event*.  Never fails: a log that cannot be written must not keep a container down."""
    if not _to or LEVELS.index(level) < LEVELS.index(_to[0][1]):
        return
    try:
        line = _line(level, event, facts)
        append(_to[0][0], line, 0o640)
    except OSError:
        pass


def _line(level: str, event: str, facts: dict[str, Any]) -> bytes:
    try:
        import structlog
    except ImportError:  # without our dependencies the line is made by hand
        import time

        from cdi_runc import jsonio

        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return jsonio.dumps({**facts, "event": event, "level": level, "timestamp": now}) + b"\n"
    lines: list[str] = []

    class Collector:
        def msg(self, message: str) -> None:
            lines.append(message)

        debug = info = warning = error = msg

    logger = structlog.wrap_logger(
        Collector(),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
    )
    getattr(logger, level)(event, **facts)
    return f"{lines[0]}\n".encode()


def append(path: str, line: bytes, mode: int) -> None:
    """Append *line* to the file *path* whole, or not at all.

    The lock keeps a line that a full disk cut short from being followed by another's.

    Raises:
        OSError: nothing of *line* is in the file.
    """
    flags = posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_CLOEXEC
    flags |= posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_NOCTTY
    try:
        fd = posix.open(path, flags, mode)
    except FileNotFoundError:
        _make_directories(path.rpartition("/")[0])
        fd = posix.open(path, flags, mode)
    try:
        if posix.fstat(fd).st_mode & 0o170000 != 0o100000:
            raise OSError(22, "it is not a regular file")
        posix.lockf(fd, posix.F_LOCK, 0)
        size = posix.fstat(fd).st_size
        try:
            written = posix.write(fd, line)
            while written < len(line):
                written += posix.write(fd, line[written:])
        except OSError:
            posix.ftruncate(fd, size)
            raise
    finally:
        posix.close(fd)


def _make_directories(directory: str) -> None:
    parts = directory.split("/")
    for depth in range(2, len(parts) + 1):
        try:
            posix.mkdir("/".join(parts[:depth]), 0o750)
        except OSError:
            if depth == len(parts):
                raise
