"""What the configuration says (C10), compiled so that a create need not read YAML.

The configuration's file is trusted as its owner is: the operator.  The compiled form is trusted
only if our own user made it and nobody else can write it.
"""

from __future__ import annotations

import marshal
import posix
import sys

from cdi_runc import VERSION, files, paths, trust
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cdi_runc.policy import Rule

    Signature = tuple[int, int, int, int, int]


STAMP = f"cdi-runc {VERSION} {sys.hexversion:x} {__file__}"
"""What compiled files begin with: another version's, or another installation's, are not read."""


class Settings(Record):
    """The configuration; each field is the key of that name, or of SECTION_KEY."""

    spec_dirs: tuple[str, ...]
    state_dir: str | None
    audit_file: str
    log_file: str
    runtime: tuple[str, ...] = ("runc", "crun")
    annotations: tuple[str, ...] = ("cdi.k8s.io/",)
    environment: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("CDI_DEVICES", "", ("", "void", "none")),
    )
    """Variable, kind for unqualified names, words that mean no device."""
    mounts: str = ""
    default: tuple[str, ...] = ()
    policy: tuple[Rule, ...] = ()
    hook_loader_env: tuple[str, ...] = ()
    """Patterns of the devices whose hooks may set ``LD_*``."""
    restores: bool = False
    """Whether a restore is edited as a create is."""
    wait: int = 0
    """Seconds to wait for devices that are not there yet."""
    broken_override: str = "warn"
    conflicts: tuple[tuple[str, str], ...] = (("", "cdi"),)
    """For each kind of edit, and the empty text for all others: cdi, container or refuse."""
    exec: str = "merge"
    unsupported: str = "refuse"
    audit_required: bool = False
    audit_env: str = "digest"
    log_level: str = "warning"
    broken: str = ""
    """Why the configuration cannot be used, if so; the rest is then a guess (config.salvage)."""


def defaults() -> Settings:
    """Return what holds where no configuration says otherwise."""
    logs = paths.logs()
    return Settings(
        spec_dirs=paths.spec_dirs(),
        state_dir=paths.state(),
        audit_file=f"{logs}/audit.jsonl",
        log_file=f"{logs}/cdi-runc.log",
    )


def signature(status: posix.stat_result) -> Signature:
    """Return what changes whenever a file does (C4)."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def current() -> Settings:
    """Return the settings that hold now; ``broken`` says so if the configuration is unusable."""
    path, named = paths.config()
    if not named and not paths.exists(path):
        return defaults()
    found = compiled(path)
    if found is None:
        from cdi_runc.config import compile  # noqa: A004

        found = compile.refresh(path)
    return found


def directory(path: str) -> str | None:
    """Return where what was compiled from the configuration *path* lies, or None for nowhere."""
    state = paths.state()
    return f"{state}/launcher{path}" if state else None


def compiled(path: str) -> Settings | None:
    """Return the compiled settings, if they were made from the file at *path* as it is now."""
    try:
        kept = f"{directory(path)}/settings"
        made_from, way, fields = load(paths.state(), kept, 1 << 20)
        if made_from == (STAMP, signature(posix.stat(path))) and trust.are_current(way):
            return Settings(*fields)
    except (OSError, ValueError, EOFError, TypeError):
        pass
    return None


def load(state_dir: str | None, path: str, limit: int) -> Any:
    """Return what :func:`marshal.dumps` wrote to *path*, which lies below *state_dir*.

    Raises:
        OSError, ValueError, EOFError, TypeError: it is not there, is damaged, or somebody else
            could have written it.

    """
    if state_dir is None or not trust.private(state_dir):
        raise ValueError("the state directory is not ours alone")
    data, status = files.read(path, limit, posix.O_NOFOLLOW)
    if not files.is_ours(status):
        raise ValueError("it is not ours alone")
    return marshal.loads(data)  # noqa: S302  # written by our own user
