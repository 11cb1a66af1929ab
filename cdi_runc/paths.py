"""Every path on the host, once.

The launcher knows the same rules; tests/unit/test_launcher.py holds the two together.
"""

from __future__ import annotations

import posix

CONFIG = "/etc/cdi-runc/config.yaml"
SPEC_DIRS = ("/etc/cdi", "/var/run/cdi")
STATE = "/run/cdi-runc"
LOGS = "/var/log/cdi-runc"

# A daemon's PATH is often short, so these are searched after it (observed: snap, CRI-O).
RUNTIME_DIRS = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/usr/libexec/crio",
)


def variable(name: str) -> str:
    """Return the environment variable *name*, or the empty text."""
    return posix.environ.get(name.encode(), b"").decode("utf-8", "surrogateescape")


def is_system() -> bool:
    """Tell whether the caller is the host's root.

    A rootless engine calls us in a user namespace, where the effective uid is 0 too, but the
    host's root directory belongs to nobody.  In a container with a root directory of its own the
    root there is the one meant.  The launcher asks the same with ``[ -O / ]``.
    """
    return posix.stat("/").st_uid == posix.geteuid()


def _directory(name: str) -> str:
    """Return the directory that an XDG variable names; one that is not absolute does not count."""
    path = variable(name)
    return path if path[:1] == "/" else ""


def _home(name: str, below: str) -> str:
    return _directory(name) or f"{_directory('HOME') or '/nonexistent'}/{below}"


def config() -> tuple[str, bool]:
    """Return the configuration file's path, and whether the caller named it.

    Podman gives its runtime no ``HOME`` for start, kill and delete, which need the real runtime
    that create used; so config.compile leaves a link to the user's own file among the state.
    """
    named = variable("CDI_RUNC_CONFIG")
    if named:
        return (named if named[0] == "/" else f"{posix.getcwd()}/{named}"), True
    if not is_system():
        own = own_config() or config_link()
        if exists(own):
            return own, False
    return CONFIG, False


def own_config() -> str:
    """Return where a user's own configuration lies, or the empty text if nothing tells."""
    if _directory("XDG_CONFIG_HOME") or _directory("HOME"):
        return f"{_home('XDG_CONFIG_HOME', '.config')}/cdi-runc/config.yaml"
    return ""


def config_link() -> str:
    """Return the link to a user's own configuration."""
    return f"{state() or '/nonexistent'}/config.yaml"


def state() -> str | None:
    """Return the directory for compiled state, or None where a caller has none.

    A caller who is not root has one only below ``XDG_RUNTIME_DIR``: any other place could have
    been made by somebody else.
    """
    if is_system():
        return STATE
    runtime_dir = _directory("XDG_RUNTIME_DIR")
    return f"{runtime_dir}/cdi-runc" if runtime_dir else None


def logs() -> str:
    """Return the directory for the audit record and our own log."""
    return LOGS if is_system() else f"{_home('XDG_STATE_HOME', '.local/state')}/cdi-runc"


def spec_dirs() -> tuple[str, ...]:
    """Return the default spec directories, the later ones with the higher priority."""
    if is_system():
        return SPEC_DIRS
    runtime_dir = _directory("XDG_RUNTIME_DIR")
    own = f"{_home('XDG_CONFIG_HOME', '.config')}/cdi"
    return (*SPEC_DIRS, own, *((f"{runtime_dir}/cdi",) if runtime_dir else ()))


def runtime_roots() -> list[str]:
    """Return where runc and crun may keep their containers when no ``--root`` is given."""
    above = ("/run", *filter(None, [_directory("XDG_RUNTIME_DIR")]))
    return [f"{directory}/{name}" for directory in above for name in ("runc", "crun")]


def exists(path: str) -> bool:
    """Tell whether *path* leads to something."""
    try:
        posix.stat(path)
    except (OSError, ValueError):
        return False
    return True


def clean(path: str) -> str:
    """Return *path* without doubled slashes, ``.`` and ``..`` parts, as Go's path.Clean does."""
    if "//" not in path and "/." not in path and path[-1:] != "/" and path[:1] == "/":
        return path
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif (part == ".." and path[:1] != "/") or part not in ("", ".", ".."):
            parts.append(part)
    return ("/" if path[:1] == "/" else "") + "/".join(parts) or "."
