"""Settings -> their compiled form, and the patterns that the launcher searches config.json for."""

from __future__ import annotations

import marshal
import posix
import time

from cdi_runc import files, log, paths, settings, trust
from cdi_runc.bundle import describe
from cdi_runc.config import load, salvage
from cdi_runc.errors import BadConfiguration
from cdi_runc.specs.compile import RACY_NS, lock, may_pass, unlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.settings import Settings

# busybox compares time stamps by the second, so a configuration this young may change unseen.
YOUNG_NS = 2_000_000_000


def refresh(path: str) -> Settings:
    """Read the configuration at *path*, keep what was compiled from it, and return it.

    A configuration that cannot be used gives settings whose ``broken`` says why, and whose
    requests are a guess that misses none.  Only one process compiles; the others wait for it.
    """
    held, waited = lock(settings.directory(path))
    try:
        made = settings.compiled(path) if waited else None
        return _compile(path) if made is None else made
    finally:
        if held is not None:
            unlock(held)


def _compile(path: str) -> Settings:
    try:
        status = posix.stat(path)
        try:
            found = load.read(path)
        except BadConfiguration as error:
            found = salvage.guess(path, error.message)
            log.unusual(found, "error", "configuration ignored", file=path, reason=error.message)
            if may_pass(error.__cause__, path):
                return found
    except OSError as error:
        return salvage.guess(path, f"cannot read the configuration {path}: {describe(error)}")
    _keep(path, found, status)
    return found


def _keep(path: str, found: Settings, status: posix.stat_result) -> None:
    where = settings.directory(path)
    if where is None:
        return
    now = time.time_ns()
    way = tuple(trust.marks(path))[:-1]  # the last one is in the signature
    made_from = settings.signature(status)
    if abs(now - max(made_from[3], made_from[4])) < RACY_NS:
        made_from = (0, 0, 0, 0, 0)
    try:
        above = posix.stat(path.rpartition("/")[0] or "/")
        newest = max(status.st_mtime_ns, status.st_ctime_ns, above.st_mtime_ns, above.st_ctime_ns)
        young = abs(now - newest) < YOUNG_NS
        files.make_private(where)
        data = marshal.dumps(((settings.STAMP, made_from), way, found.values()))
        files.replace(f"{where}/settings", data)
        # The launcher believes what has the time stamps of the configuration and its directory.
        earlier = YOUNG_NS if young else 0
        files.replace(f"{where}/directory", b"", mtime_ns=above.st_mtime_ns - earlier)
        files.replace(f"{where}/patterns", patterns(found), mtime_ns=status.st_mtime_ns - earlier)
        if path == paths.own_config() and not paths.is_system():
            _link(path, paths.config_link())
    except OSError as error:
        log.unusual(found, "warning", "compiled configuration not kept", reason=describe(error))


def _link(path: str, link: str) -> None:
    try:
        posix.symlink(path, link)
    except FileExistsError:
        if posix.readlink(link) != path:
            posix.unlink(link)
            posix.symlink(path, link)


def patterns(found: Settings) -> bytes:
    """Return what the launcher reads: the runtimes, then the texts that it has grep search for.

    The last line tells it that it has read all of it.
    """
    lines = ["#restore=edit"] if found.restores else []
    lines += ["{"] if found.default else []  # stands in every config.json
    lines += [f'"{prefix}' for prefix in found.annotations]
    lines += [f'"{variable}=' for variable, _, _ in found.environment]
    lines += ['"/dev/null"'] if found.mounts else []  # the source of every mount that asks
    return runtimes(found.runtime) + "".join(f"{line}\n" for line in [*lines, "#end"]).encode()


def runtimes(names: tuple[str, ...]) -> bytes:
    """Return the lines from which the launcher learns the real runtime."""
    return "".join(f"#runtime={name}\n" for name in names).encode()
