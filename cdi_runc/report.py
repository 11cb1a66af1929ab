"""A failure, said as runc says its own: to the --log file and to standard error (C9)."""

from __future__ import annotations

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.invocation import Invocation

LIMIT = 1000  # characters; engines show the text in one line


def failure(message: str, call: Invocation, cure: str = "") -> None:
    """Tell the engine and the person why the container does not start, and the cure."""
    text = _shown(message, f"; {cure}" if cure else "")
    _to_standard_error(text)
    _to_engine("error", text, call)


def warning(message: str, call: Invocation) -> None:
    """Tell something that does not keep the container from starting.

    It goes to the engine's log; to standard error if there is none, as with Podman, which keeps it
    with what the container itself writes there.
    """
    if call.log:
        _to_engine("warning", _shown(message), call)
    else:
        _to_standard_error(_shown(message))


def _shown(message: str, end: str = "") -> str:
    """Return one line; what is too long is cut in the message, so that the cure stays."""
    text, end = (printable(" ".join(part.split())) for part in (f"cdi-runc: {message}", end))
    room = LIMIT - len(end)
    return (text if len(text) <= room else f"{text[: room - 3]}...") + end


def printable(text: str) -> str:
    """Return *text* with what could steer a terminal as an escape: it may come from an image."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _to_standard_error(text: str) -> None:
    try:
        posix.write(2, f"{text}\n".encode("utf-8", "replace"))
    except OSError:
        pass


def _to_engine(level: str, text: str, call: Invocation) -> None:
    if not call.log:
        return
    import time

    from cdi_runc import files, jsonio

    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if call.log_format == "json":
        line = jsonio.dumps({"level": level, "msg": text, "time": now})
    else:
        line = f'time="{now}" level={level} msg='.encode() + jsonio.dumps(text)
    flags = posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_CLOEXEC
    flags |= posix.O_NONBLOCK | posix.O_NOCTTY  # nobody may read from a FIFO
    try:
        fd = posix.open(call.log, flags, 0o600)
        try:
            files.write_all(fd, line + b"\n")
        finally:
            posix.close(fd)
    except OSError:
        pass  # standard error has it
