"""exec: give a further process of a container what CDI gave its first one (C8).

Engines make the process of an exec from their own copy of the configuration, which has none of our
edits.  What they need is kept for each container that we edited, below the state directory, under
the path of the runtime's root and the container's id; ``delete --force`` removes it (see the
launcher), and :func:`prune` what is left of containers that went without.  Which root the runtime
takes where none is given depends on the runtime and on who calls, so that one has a name of its
own.

Trusted: the kept file, as only our own user can write it.  Nothing here may keep an exec from
running.
"""

from __future__ import annotations

import marshal
import posix
import time

from cdi_runc import files, jsonio, paths, settings, trust

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from cdi_runc.invocation import Invocation
    from cdi_runc.plan import Done

    Variables = tuple[tuple[str, str, str | None], ...]
    """Name, value and the container's own entry of each variable."""

LIMIT = 16 << 20  # bytes of a process.json
FORMAT = "exec 1"
YOUNG = 600  # seconds in which a container may still be about to be created
DEFAULT = "-default"


def place(call: Invocation) -> str | None:
    """Return where what exec needs of the container of *call* is kept.

    Nowhere, where the id or the root would lead out of the state directory.
    """
    state = paths.state()
    root = absolute(call.root)
    if state is None or call.id in ("", ".", "..") or "/" in call.id or "/../" in f"{root}/":
        return None
    return f"{state}/exec{root}/{call.id}"


def absolute(root: str) -> str:
    """Return the runtime's root directory as an absolute path; its name where none is given."""
    if not root:
        return DEFAULT
    return root if root[0] == "/" else f"{posix.getcwd()}/{root}"


def remember(done: Iterable[Done], call: Invocation) -> None:
    """Keep the variables and groups among the effects *done*.

    Raises:
        OSError: they could not be kept.

    """
    state, where = paths.state(), place(call)
    if state is None or where is None:
        return
    if not trust.private(state):
        files.make_private(state)
    variables: dict[str, tuple[str, str | None]] = {}
    groups = []
    for one in done:
        edit, effect = one.step.edit, one.effect
        if one.step.key == "additionalGids" and effect.after == edit.entry():
            groups.append(edit.entry())
        elif one.step.key == "env" and effect.after == edit.entry():
            name, _, value = edit.entry().partition("=")
            own = variables[name][1] if name in variables else effect.before
            variables[name] = value, own if type(own) is str else None
    if not variables and not groups:
        try:
            posix.unlink(where)  # another container of that id may have left it
        except FileNotFoundError:
            pass
        return
    kept = tuple((name, value, own) for name, (value, own) in variables.items())
    data = marshal.dumps((FORMAT, kept, tuple(groups)))
    try:
        _write(where, data)
    except FileNotFoundError:
        _make_and_write(where, data)
    top = f"{state}/exec{'' if call.root else DEFAULT}"
    if posix.stat(top).st_mtime < time.time() - YOUNG:  # as old as the last look, see prune
        prune()


def _make_and_write(path: str, data: bytes) -> None:
    # Other calls may be about to remove empty directories, at each of its levels.
    for last in (*(False,) * 20, True):
        try:
            files.make_private(path.rpartition("/")[0])
            _write(path, data)
        except FileNotFoundError:
            if last:
                raise
        else:
            return


def _write(path: str, data: bytes) -> None:
    # In place, as nobody reads it before the container exists.
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_NOFOLLOW | posix.O_CLOEXEC
    fd = posix.open(path, flags, 0o600)
    try:
        files.write_all(fd, data)
    finally:
        posix.close(fd)


def merge(call: Invocation) -> None:
    """Merge what was kept into the process file of *call*, by rename.

    A variable that is absent, or has the value that the container's own configuration gave it,
    takes CDI's; one that this exec set otherwise stays.

    Raises:
        OSError, ValueError, TypeError, EOFError: the file is as it was.

    """
    where = place(call)
    if where is None or not call.process:
        return
    mark, variables, groups = settings.load(paths.state(), where, LIMIT)
    if mark != FORMAT:
        raise ValueError("another version of cdi-runc made this container")
    data, status = files.read(call.process, LIMIT)
    process = jsonio.loads(data)
    if _merged(process, variables, groups):
        files.replace(call.process, jsonio.dumps(process), like=status)


def _merged(process: dict[str, Any], variables: Variables, groups: tuple[int, ...]) -> bool:
    changed = False
    env = process.get("env")
    if env is None:
        env = process["env"] = []
    places = {entry.partition("=")[0]: index for index, entry in enumerate(env)}
    for name, value, own in variables:
        entry = f"{name}={value}"
        if name not in places:
            env.append(entry)
        elif env[places[name]] == own != entry:
            env[places[name]] = entry
        else:
            continue
        changed = True
    if groups:
        user = process.get("user")
        if user is None:
            user = process["user"] = {}
        gids = user.get("additionalGids") or []
        missing = [gid for gid in groups if gid not in gids]
        if missing:
            user["additionalGids"] = gids + missing
            changed = True
    return changed


def prune() -> None:
    """Remove what is kept of containers that the runtime no longer knows.

    Nobody tells us of the end of a ``run``, of a ``delete`` without ``--force`` that succeeded, or
    of a reboot.
    """
    state = paths.state()
    if state is None or not trust.private(state):
        return
    before = time.time() - YOUNG
    for top, roots in (("exec", ("",)), (f"exec{DEFAULT}", paths.runtime_roots())):
        try:
            posix.utime(f"{state}/{top}")
        except OSError:
            continue
        _prune(f"{state}/{top}", "", roots, before)


def _prune(top: str, below: str, roots: Iterable[str], before: float) -> None:
    try:
        names = posix.listdir(top + below)
    except NotADirectoryError:
        _forget(top + below, [root + below for root in roots], before)
        return
    except OSError:
        return
    for name in names:
        _prune(top, f"{below}/{name}", roots, before)
    if below:
        try:
            posix.rmdir(top + below)
        except OSError:
            pass  # in use


def _forget(kept: str, containers: Iterable[str], before: float) -> None:
    try:
        if not any(map(paths.exists, containers)) and posix.stat(kept).st_mtime < before:
            posix.unlink(kept)
    except FileNotFoundError:
        pass  # a delete was faster
