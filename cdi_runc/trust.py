"""Who else could change a file that we believe: every directory on the way to it counts.

A step of the way, a directory, link or file, is fine if root or our own user owns it and neither
group nor others may write it.  Others may write a sticky directory, as only a file's owner can
replace it there.  Group 0 is no exception: it is not root (some platforms run containers in it).
An ACL needs no look: its mask is what the group bits of the mode show, acl(5).

In a user namespace that host root is no part of, all outside owners look alike, so /etc seems to
be owned by nobody.  There such an owner is accepted: a process has only its caller's rights there,
and the mode counts as ever.  Below a sticky directory it could be anybody, so there what the way
leads to must be our own.
"""

from __future__ import annotations

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Step = tuple[str, posix.stat_result]
    Mark = tuple[int, int, int, int, int]

_FORMAT, _DIRECTORY, _REGULAR, _LINK = 0o170000, 0o040000, 0o100000, 0o120000
_STICKY, _GROUP, _OTHERS = 0o1000, 0o020, 0o002
_OPEN = _GROUP | _OTHERS
_LINKS = 40  # the kernel's own limit
_WHOLE = b"4294967295"  # how many users a namespace has that has them all
_found_private: set[str] = set()
REFUSED = "others could change it: "


def way(path: str) -> Iterator[Step]:
    """Yield each directory, link and file from / to where *path* leads, as the kernel goes.

    Raises:
        OSError: the next step is missing, or cannot be looked at.

    """
    todo = (path if path[:1] == "/" else f"{posix.getcwd()}/{path}").split("/")
    todo.reverse()
    yield "/", posix.lstat("/")
    here, links = "", 0
    while todo:
        part = todo.pop()
        if part == "..":
            here = here.rpartition("/")[0]
        elif part not in ("", "."):
            place = f"{here}/{part}"
            status = posix.lstat(place)
            yield place, status
            if status.st_mode & _FORMAT == _LINK:
                links += 1
                if links > _LINKS:
                    raise OSError(40, "Too many levels of symbolic links")
                target = posix.readlink(place)
                here = "" if target[:1] == "/" else here
                todo += reversed(target.split("/"))
            else:
                here = place


def fault(path: str, of_log: bool = False) -> tuple[str, str] | None:
    """Return who else could change what *path* leads to, and a command against it; None if nobody.

    The directory *of_log* may be sticky, and a group may write those above it, as syslog may write
    Ubuntu's /var/log: it can move what lies there, but make nothing that is ours.

    Raises:
        OSError: it is missing, or cannot be looked at.

    """
    return _judged([*way(path)], of_log)


def is_plain(status: posix.stat_result) -> bool:
    """Tell whether *status* is that of no link, and nobody else can change what it is of."""
    mode = status.st_mode
    owner = status.st_uid
    return mode & _FORMAT != _LINK and not mode & _OPEN and owner in (0, posix.geteuid())


def refusal(path: str) -> str:
    """Return the sentence of :func:`fault` on *path*, or the empty text.

    What is missing or cannot be looked at is not refused: reading it will tell.
    """
    try:
        found = fault(path)
    except OSError:
        return ""
    return f"{REFUSED}{'; '.join(found)}" if found else ""


def fault_of_log(path: str, status: posix.stat_result) -> tuple[str, str] | None:
    """Return who else could change the log *path*, which lies where nobody else can.

    A second name is the trick by which a log's writer writes to another file.
    """
    if status.st_nlink != 1:
        copy = quoted(f"{path}.copy")
        cure = f"cp -p {quoted(path)} {copy} && mv {copy} {quoted(path)}"
        return f"{path} has {status.st_nlink} names (hard links)", cure
    if status.st_uid not in (0, posix.geteuid()):
        return _wrong_owner(path, status, is_last=True)
    return _open_mode(path, status) if status.st_mode & _OPEN else None


def _judged(steps: Sequence[Step], of_log: bool = False) -> tuple[str, str] | None:
    user = posix.geteuid()
    last = steps[-1][1]
    nobody: int | None = None
    for place, status in steps:
        mode, owner = status.st_mode, status.st_uid
        kind = mode & _FORMAT
        if kind not in (_DIRECTORY, _REGULAR, _LINK):
            return None  # nothing is read from it
        if owner not in (0, user):
            nobody = _nobody() if nobody is None else nobody
            if owner != nobody:
                return _wrong_owner(place, status, status is last)
        if not mode & _OPEN or kind == _LINK:
            continue
        is_above = kind == _DIRECTORY and status is not last
        if mode & _STICKY and (is_above or of_log):
            nobody = nobody if last.st_uid == user else -1
        elif not (is_above and of_log) or mode & _OTHERS:
            return _open_mode(place, status)
    return None


def _wrong_owner(path: str, status: posix.stat_result, is_last: bool) -> tuple[str, str]:
    """Return what is wrong with the owner of *path*, and the cure."""
    user = posix.geteuid()
    option = "-h " if status.st_mode & _FORMAT == _LINK else ""
    cure = f"chown {option}{user or 'root'} {quoted(path)}"
    cure += "" if is_last or option else "  # or keep it elsewhere"
    return f"{path} belongs to user {status.st_uid}", cure


def _open_mode(path: str, status: posix.stat_result) -> tuple[str, str]:
    """Return what is wrong with the mode of *path*, and the cure."""
    mode = status.st_mode & 0o7777
    by_group = f"group {status.st_gid}" if mode & _GROUP else ""
    who = "everybody" if mode & _OTHERS else by_group
    letters = ("g" if by_group else "") + ("o" if mode & _OTHERS else "")
    cure = f"chmod {letters}-w {quoted(path)}"
    if mode & _STICKY:  # such as /tmp, which has to stay as it is
        cure = f"mkdir {quoted(f'{path}/cdi-runc')}  # and keep it there"
    return f"{path} is writable by {who} (mode {mode:04o})", cure


def private(directory: str) -> bool:
    """Tell whether *directory* is our own user's, and nobody else can change what is in it."""
    if directory in _found_private:  # nobody but us could have changed that since
        return True
    try:
        steps = [*way(directory)]
    except OSError:
        return False
    is_private = steps[-1][1].st_uid == posix.geteuid() and _judged(steps) is None
    if is_private:
        _found_private.add(directory)
    return is_private


def marks(path: str) -> Iterator[tuple[str, Mark]]:
    """Yield each step of the way to *path* with its mark, as far as it goes."""
    try:
        for place, status in way(path):
            yield place, _mark(status)
    except OSError:
        return


def are_current(marked: Sequence[tuple[str, Mark]]) -> bool:
    """Tell whether each step still has its mark."""
    for place, was in marked:  # noqa: SIM110  # all() with a generator is slower
        if _mark(posix.lstat(place)) != was:
            return False
    return True


def _mark(status: posix.stat_result) -> Mark:
    """Return what says whether a step is as it was; directories change their times all along."""
    mode = status.st_mode
    changed = status.st_ctime_ns if mode & _FORMAT == _LINK else 0
    return status.st_dev, status.st_ino, mode, status.st_uid, changed


def _nobody() -> int:
    """Return the owner that all outside our user namespace seem to have, host root among them.

    -1 where host root is in it, as on the host itself.
    """
    owner = posix.stat("/").st_uid
    try:
        is_outside = _WHOLE not in _told("/proc/self/uid_map")
        if is_outside and owner == int(_told("/proc/sys/kernel/overflowuid")):
            return owner
    except (OSError, ValueError):
        pass
    return -1


def _told(path: str) -> bytes:
    fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        return posix.read(fd, 1 << 12)
    finally:
        posix.close(fd)


def quoted(path: str) -> str:
    """Return *path* as a word for the shell."""
    is_plain = path.isascii() and path.translate(dict.fromkeys(map(ord, "/._-+:@%,="))).isalnum()
    return path if is_plain else "'" + path.replace("'", "'\\''") + "'"
