"""Reading, replacing and appending whole: nothing is ever half-written (C2, C7)."""

from __future__ import annotations

import posix

from cdi_runc import trust

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_READ = posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK | posix.O_NOCTTY
_LOCK_SECONDS = 2.0
_REGULAR, _FORMAT = 0o100000, 0o170000


def seconds(ns: int) -> int:
    """Return a file's time stamp in seconds, moved into the years 1000 to 9999.

    A tmpfs takes any; RFC 3339 has four digits for a year.
    """
    return min(max(ns // 1_000_000_000, -30_610_224_000), 253_402_300_799)


def is_regular(status: posix.stat_result) -> bool:
    """Tell whether *status* is a regular file's."""
    return status.st_mode & _FORMAT == _REGULAR


def read(path: str, limit: int, flags: int = 0) -> tuple[bytes, posix.stat_result]:
    """Return a regular file's bytes and its status as of the open.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no regular file, or larger than *limit* bytes.

    """
    fd = posix.open(path, _READ | flags)  # O_NONBLOCK: a FIFO must not hold us up
    try:
        status = posix.fstat(fd)
        if not is_regular(status):
            raise ValueError("it is not a regular file")
        if status.st_size > limit:
            raise ValueError(f"it is larger than {limit >> 20} MiB")
        data = posix.read(fd, status.st_size + 1)
        while len(data) <= limit and (more := posix.read(fd, 1 << 20)):
            data += more
        if len(data) > limit:
            raise ValueError(f"it is larger than {limit >> 20} MiB")
        return data, status
    finally:
        posix.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write all of *data*."""
    while data:
        data = data[posix.write(fd, data) :]


def replace(
    path: str,
    data: bytes,
    like: posix.stat_result | None = None,
    mtime_ns: int | None = None,
    before_rename: Callable[[], None] | None = None,
) -> None:
    """Put *data* in place of the file *path*, with the owner and mode of *like*.

    The temporary file's name is fixed, so a killed call leaves at most one, which the next call
    removes.

    Raises:
        OSError: it was not replaced, and the temporary file is gone.

    """
    directory, slash, name = path.rpartition("/")
    temporary = f"{directory}{slash}.{name}.cdi-runc"
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW | posix.O_CLOEXEC
    try:
        fd = posix.open(temporary, flags, 0o600)
    except FileExistsError:
        posix.unlink(temporary)
        fd = posix.open(temporary, flags, 0o600)
    try:
        try:
            write_all(fd, data)
            if like is not None:
                posix.fchown(fd, like.st_uid, like.st_gid)
                posix.fchmod(fd, like.st_mode & 0o7777)
            if mtime_ns is not None:
                posix.utime(fd, ns=(mtime_ns, mtime_ns))
        finally:
            posix.close(fd)
        if before_rename is not None:
            before_rename()
        posix.rename(temporary, path)
    except BaseException:
        posix.unlink(temporary)
        raise


def append(path: str, line: bytes, mode: int) -> None:
    """Append *line* to the file *path* whole, or not at all.

    The lock keeps a line that a full disk cut short from being followed by another's.

    Raises:
        OSError: nothing of *line* is in the file; it may be one that others could change.

    """
    flags = posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_CLOEXEC
    flags |= posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_NOCTTY
    directory = path.rpartition("/")[0] or "/"
    try:
        wrong = trust.fault(directory, of_log=True)
    except FileNotFoundError:
        _make_directories(directory, 0o750)
        wrong = trust.fault(directory, of_log=True)
    _refuse(wrong)
    fd = posix.open(path, flags, mode)
    try:
        status = posix.fstat(fd)
        if not is_regular(status):
            raise OSError(22, "it is not a regular file")
        _refuse(trust.fault_of_log(path, status))
        _lock(fd)
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


def _lock(fd: int) -> None:
    """Lock the file, but do not wait for ever: whoever may read it can hold a lock as well."""
    until = 0.0
    while True:
        try:
            posix.lockf(fd, posix.F_TLOCK, 0)
        except BlockingIOError:
            import time

            until = until or time.monotonic() + _LOCK_SECONDS
            if time.monotonic() > until:
                raise OSError(11, "another process keeps it locked, see lslocks") from None
            time.sleep(0.002)
        else:
            return


def _refuse(wrong: tuple[str, str] | None) -> None:
    if wrong:
        raise PermissionError(13, f"{trust.REFUSED}{'; '.join(wrong)}")


def _make_directories(directory: str, mode: int) -> None:
    parts = directory.split("/")
    for depth in range(2, len(parts) + 1):
        try:
            posix.mkdir("/".join(parts[:depth]), mode)
        except FileExistsError:  # perhaps since a moment ago
            continue
        except OSError:
            if depth == len(parts):
                raise


def is_ours(status: posix.stat_result) -> bool:
    """Tell whether only our own user can have made and can change the file."""
    return status.st_uid == posix.geteuid() and not status.st_mode & 0o022


def make_private(directory: str) -> None:
    """Make *directory*, and what is missing above it, for our own user only.

    Raises:
        OSError: it cannot be made, or somebody else made it or can change it.

    """
    _make_directories(directory, 0o700)
    if not trust.private(directory):
        _refuse(trust.fault(directory))
        raise PermissionError(13, f"{directory} belongs to another user")
