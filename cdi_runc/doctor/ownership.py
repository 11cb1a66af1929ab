"""Who else could write what we trust, or what keeps the record."""

from __future__ import annotations

import os
import stat

from cdi_runc import paths
from cdi_runc.doctor import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cdi_runc.doctor import Severity
    from cdi_runc.doctor.installation import Launcher
    from cdi_runc.registry import Registry
    from cdi_runc.settings import Settings


def others_can_write(path: str, user: int) -> str:
    """Return who besides root and *user* can change *path*, or the empty text."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    if status.st_uid not in (0, user):
        return f"the user {status.st_uid}, who owns it"
    if status.st_mode & stat.S_IWOTH:
        return "everybody"
    if status.st_mode & stat.S_IWGRP and status.st_gid not in (0, os.getegid()):
        return f"the group {status.st_gid}"
    return ""


def writable(
    settings: Settings,
    registry: Registry,
    launchers: Sequence[Launcher],
    config: str | None = None,
    user: int | None = None,
) -> Iterator[Finding]:
    """Look for files of ours that somebody else can change."""
    user = os.geteuid() if user is None else user
    root = "What it says is carried out as root, so whoever can change it is root."
    code = [path for one in launchers for path in (one.path, one.home, f"{one.home}/lib")]
    specs = [*registry.spec_dirs, *(path for path, _ in registry.files)]
    forged = "Whoever can change it can take back or invent what is on record."
    groups: tuple[tuple[Sequence[str], Severity, str], ...] = (
        ([config or paths.config()[0]], "error", root),
        (code, "error", "It runs as root, so whoever can change it is root."),
        (specs, "error", root),
        ([settings.audit_file, os.path.dirname(settings.audit_file)], "error", forged),
        ([os.path.dirname(settings.log_file)], "warning", forged),
    )
    seen = set()
    for places, severity, why in groups:
        for path in places:
            who = others_can_write(path, user)
            if who and path not in seen:
                seen.add(path)
                cure = f"chown root:root {path} && chmod go-w {path}"
                yield Finding(severity, f"{path} can be changed by {who}", why, cure)


def state(settings: Settings, user: int | None = None) -> Iterator[Finding]:
    """Look for a state directory that is not ours alone, so that nothing in it is believed."""
    place, user = settings.state_dir, os.geteuid() if user is None else user
    if place is None:
        return
    fault = ""
    try:
        status = os.lstat(place)
    except FileNotFoundError:
        return  # it is made when it is needed
    except OSError as error:
        fault = f"cannot be looked at: {error.strerror}"
    else:
        if not stat.S_ISDIR(status.st_mode):
            fault = "is no directory"
        elif status.st_uid != user:
            fault = f"belongs to the user {status.st_uid}"
        elif status.st_mode & 0o022:
            fault = f"can be written by others (mode {status.st_mode & 0o7777:04o})"
        elif not os.access(place, os.W_OK):
            fault = "cannot be written"
    if fault:
        yield Finding(
            "warning",
            f"the state directory {place} {fault}",
            "What is compiled there is not believed or not kept, so each create with a device"
            " reads all spec files anew.",
            f"rm -rf {place}  # it is made again, by the next create",
        )


def readable(settings: Settings) -> Iterator[Finding]:
    """Look for an audit file that everybody can read, where it may hold secrets."""
    try:
        mode = os.stat(settings.audit_file).st_mode
    except OSError:
        return
    if mode & stat.S_IROTH and settings.audit_env == "plain":
        yield Finding(
            "warning",
            f"everybody can read {settings.audit_file}, and variables are recorded in plain text"
            " (audit.env)",
            "Variables of containers are often secrets.",
            f"chmod 0640 {settings.audit_file}",
        )
