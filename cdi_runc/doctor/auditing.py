"""The audit file: can a record be written, and does something keep it small."""

from __future__ import annotations

import fnmatch
import glob
import os
import shutil
import stat

from cdi_runc import paths, trust
from cdi_runc.doctor import Finding, ownership

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cdi_runc.settings import Settings

ROTATION = ("/etc/logrotate.conf", "/etc/logrotate.d/*")
OWN = "/etc/logrotate.d/cdi-runc"
ROOM = 1 << 20
"""Bytes that should be free: some hundred records."""
LARGE = 200 << 20
"""Bytes of an audit file that nobody rotates, or not often enough."""


def writable(settings: Settings) -> Iterator[Finding]:
    """Look for what would keep a record from being written."""
    path = settings.audit_file
    fault, cure = _fault(path)
    if fault:
        yield Finding(
            "error",
            f"no audit record can be written to {path}: {fault}",
            "No container that asks for a device starts (audit.required)."
            if settings.audit_required
            else "Containers start, and nothing tells what was put into them.",
            cure,
        )


def _fault(path: str) -> tuple[str, str]:
    """Return what keeps *path* from being written, and the cure."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return _fault_above(path)
    except OSError as error:
        return error.strerror or str(error), f"ls -l {path}"
    if stat.S_ISLNK(status.st_mode):
        return f"it is a symbolic link to {os.readlink(path)}, and none is followed", f"rm {path}"
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file", f"mv {path} {path}.old"
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW))
    except OSError as error:
        return error.strerror or str(error), f"lsattr {path}; ls -l {path}"
    above = ownership.distrusted(os.path.dirname(path), of_log=True)
    return above or trust.fault_of_log(path, status) or _full(path)


def _fault_above(path: str) -> tuple[str, str]:
    """Return what keeps *path* from being made, with the directories that are missing."""
    directory = os.path.dirname(path)
    while not os.path.lexists(directory):
        directory = os.path.dirname(directory)
    wanted = os.path.dirname(path)
    if not os.path.isdir(directory):
        return f"{directory} is no directory", f"rm {directory} && mkdir -p -m 0750 {wanted}"
    if found := ownership.distrusted(directory, of_log=True):
        return found
    if not os.access(directory, os.W_OK | os.X_OK):
        if os.stat(directory).st_uid != os.geteuid():
            cure = f"ls -ld {directory}  # set audit.file, or HOME or XDG_STATE_HOME"
            return f"{directory} cannot be written to", cure
        if os.statvfs(directory).f_flag & os.ST_RDONLY:
            cure = f"mount -o remount,rw $(findmnt -no TARGET -T {directory})"
            return f"{directory} is on a read-only file system", cure
        return f"{directory} cannot be written to", f"chattr -i {directory}; chmod u+w {directory}"
    return _full(directory)


def _full(path: str) -> tuple[str, str]:
    room = os.statvfs(path)
    if room.f_blocks and room.f_bavail * room.f_frsize < ROOM:
        return "its file system is full", f"df -h {path}  # then free some of it"
    if room.f_files and not room.f_favail:
        return "its file system has no inode left", f"df -i {path}  # then free some of them"
    return "", ""


def rotated(
    settings: Settings,
    patterns: Sequence[str] = ROTATION,
    large: int = LARGE,
    program: str = "logrotate",
) -> Iterator[Finding]:
    """Look for an audit file that only grows."""
    path = settings.audit_file
    size = os.stat(path).st_size if os.path.isfile(path) else 0
    rules = f"{path} {{\\n weekly\\n rotate 8\\n compress\\n missingok\\n notifempty\\n}}\\n"
    grown = f", and has grown to {size >> 20} MiB" if size >= large else ""
    if not paths.is_system():  # whose files are not the system's logrotate's affair
        if grown:
            yield Finding(
                "warning",
                f"{path} has grown to {size >> 20} MiB",
                "It grows by about 2 KiB with each container that gets a device.",
                f"mv {path} {path}-$(date +%Y%m%d)  # cdictl audit reads it there too",
            )
        return
    if not any(_rotates(one, path) for one in patterns):
        yield Finding(
            "warning" if grown else "note",
            f"nothing rotates {path}{grown}",
            "It grows by about 2 KiB with each container that gets a device.",
            f"printf '{rules}' >>{OWN}",
        )
    elif not shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
        yield Finding(
            "warning" if grown else "note",
            f"logrotate, which should rotate {path}, is not installed{grown}",
            "It grows by about 2 KiB with each container that gets a device.",
            "apt-get install logrotate",
        )
    elif grown:
        yield Finding(
            "warning",
            f"{path} has grown to {size >> 20} MiB although logrotate has rules for it",
            "logrotate may not run, or its rules ask too little.",
            f"logrotate --debug {OWN}",
        )


def _rotates(pattern: str, path: str) -> bool:
    """Tell whether a file of logrotate's that *pattern* matches speaks of *path*."""
    for place in glob.glob(pattern):
        try:
            with open(place, encoding="utf-8", errors="replace") as file:
                lines = [line.partition("#")[0] for line in file]
        except OSError:
            continue
        words = [word.strip("\"'{}") for line in lines for word in line.split()]
        if any(word[:1] == "/" and fnmatch.fnmatch(path, word) for word in words):
            return True
    return False
