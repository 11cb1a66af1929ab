"""Who else could write what we trust, or what keeps the record."""

from __future__ import annotations

import os
import stat

from cdi_runc import trust
from cdi_runc.doctor import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cdi_runc.doctor import Severity
    from cdi_runc.doctor.installation import Launcher
    from cdi_runc.registry import Registry
    from cdi_runc.settings import Settings


def distrusted(path: str, of_log: bool = False) -> tuple[str, str] | None:
    """Return who else could change *path*, and the cure; None if nobody, or nothing is there."""
    try:
        return trust.fault(path, of_log)
    except OSError:
        return None


def writable(
    settings: Settings, registry: Registry, launchers: Sequence[Launcher]
) -> Iterator[Finding]:
    """Look for files of ours that somebody else can change, on the way to them too."""
    code = [path for one in launchers for path in (one.path, one.home, f"{one.home}/lib")]
    files = [path for path, _ in registry.files]
    unused = "What it says would be carried out as root, so no device of such files exists."
    groups: tuple[tuple[Sequence[str], bool, Severity, str], ...] = (
        (code, False, "error", "It runs as root, so whoever can change it is root."),
        ([*registry.spec_dirs, *files], False, "error", unused),
        ([os.path.dirname(settings.log_file)], True, "warning", "Nothing is logged there."),
    )
    seen = set()
    for places, of_log, severity, why in groups:
        for path in places:
            found = distrusted(path, of_log)
            if found and found not in seen:
                seen.add(found)
                yield Finding(severity, found[0], why, found[1])


def state(settings: Settings) -> Iterator[Finding]:
    """Look for a state directory that is not ours alone, so that nothing in it is believed."""
    place = settings.state_dir
    if place is None:
        return
    cure = f"rm -rf {place}  # it is made again, by the next create"
    try:
        status = os.stat(place)
    except FileNotFoundError:
        return  # it is made when it is needed
    except OSError as error:
        fault = f"cannot be looked at: {error.strerror}"
    else:
        if not stat.S_ISDIR(status.st_mode):
            fault = "is no directory"
        elif found := distrusted(place):
            fault, cure = f"is not safe: {found[0]}", found[1]
        elif not os.access(place, os.W_OK):
            fault = "cannot be written"
        else:
            return
    yield Finding(
        "warning",
        f"the state directory {place} {fault}",
        "What is compiled there is not believed or not kept, so each create with a device"
        " reads all spec files anew.",
        cure,
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
