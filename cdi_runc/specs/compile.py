"""Spec directories -> the compiled registry, parsing only files that changed (C4)."""

from __future__ import annotations

import errno
import marshal
import posix
import time

from cdi_runc import exec_process, files, log, trust
from cdi_runc import registry as hot
from cdi_runc.bundle import describe
from cdi_runc.digest import sha256
from cdi_runc.errors import BadSpec
from cdi_runc.settings import STAMP, signature
from cdi_runc.specs import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cdi_runc.settings import Settings, Signature

    Known = dict[str, tuple[Signature | None, Any, hot.Registry]]
    """Of each path what it was made from, its line of the summary, and the registry of both."""

ENDINGS = (".json", ".yaml")
"""Of the names of spec files; no other file is read."""
SIZE_LIMIT = 16 << 20  # bytes of one spec file
FILES_LIMIT = 10_000  # in one directory; each costs a create three microseconds
REGISTRY_LIMIT = 1 << 30
LOCK_SECONDS = 10.0
# A file written within one tick of the kernel's clock can change again without a new time stamp,
# so it counts as settled only when its stamps are older than this.
RACY_NS = 50_000_000
NEVER: Signature = (0, 0, 0, 0, 0)
# Missing, below a file, a circle of links, a socket, too long a name.
LASTING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG)


class _Parts:
    """The pieces behind the head, and where each one is."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> tuple[int, int]:
        place = (self._size, len(piece))
        self._pieces.append(piece)
        self._size += len(piece)
        return place

    def joined(self) -> bytes:
        return b"".join(self._pieces)


def refresh(settings: Settings, *, anew: bool = False) -> hot.Registry:
    """Return the current registry; compile it, and keep it if the state directory allows.

    Only one process compiles; the others wait for it and use what it wrote.  With *anew* nothing
    of the one that was kept is used.
    """
    held, waited = lock(settings.state_dir)
    try:
        previous = None if anew else _previous(settings.state_dir)
        if waited and previous is not None and previous.is_current(settings.spec_dirs):
            return previous
        try:
            data = compiled(settings.spec_dirs, previous)
        except (ValueError, EOFError, TypeError):  # the previous one is damaged behind its head
            if previous is None:
                raise
            previous = None
            data = compiled(settings.spec_dirs)
        registry = hot.Registry(lambda length, offset: data[offset : offset + length])
        if held is not None:
            exec_process.prune()
            try:
                files.replace(f"{settings.state_dir}/registry", data)
            except OSError as error:
                log.unusual(settings, "warning", "registry not kept", reason=describe(error))
    finally:
        if held is not None:
            unlock(held)
    _tell(registry, previous, settings)  # nobody has to wait for that
    return registry


def unlock(held: int) -> None:
    """Give back what :func:`lock` returned."""
    try:
        posix.close(held)
    except OSError:
        pass  # it ends with this process


def _previous(state_dir: str | None) -> hot.Registry | None:
    """Return the registry that was kept last, read whole as most of it will be needed."""
    if state_dir is None or not trust.private(state_dir):
        return None
    try:
        data, status = files.read(f"{state_dir}/registry", REGISTRY_LIMIT, posix.O_NOFOLLOW)
        if files.is_ours(status):
            return hot.Registry(lambda length, offset: data[offset : offset + length])
    except (OSError, ValueError, EOFError, TypeError):
        pass
    return None


def lock(directory: str | None) -> tuple[int | None, bool]:
    """Return a locked file of a private *directory*, or None; and whether it took waiting."""
    if directory is None:
        return None, False
    try:
        files.make_private(directory)
        flags = posix.O_RDWR | posix.O_CREAT | posix.O_CLOEXEC | posix.O_NOFOLLOW
        fd = posix.open(f"{directory}/lock", flags, 0o600)
    except OSError:
        return None, False
    until = time.monotonic() + LOCK_SECONDS
    waited = False
    while True:
        try:
            posix.lockf(fd, posix.F_TLOCK, 0)
        except BlockingIOError:
            if time.monotonic() > until:
                posix.close(fd)
                return None, True
            waited = True
            time.sleep(0.005)
        except OSError:  # a file system without locks: there is nothing to wait for
            posix.close(fd)
            return None, waited
        else:
            return fd, waited


def may_pass(error: BaseException | None, path: str) -> bool:
    """Tell whether *error*, met on reading *path*, may be gone at the next try.

    What has such a cause is not kept.  All else stays so until the file's status changes, which
    its signature tells.
    """
    if isinstance(error, PermissionError):
        return posix.access(path, posix.R_OK, effective_ids=True)
    return isinstance(error, OSError) and error.errno not in LASTING


def _tell(registry: hot.Registry, previous: hot.Registry | None, settings: Settings) -> None:
    known = previous.faults if previous is not None else ()
    for fault in registry.faults:
        path, why, _, _ = fault
        if fault not in known:
            log.unusual(settings, "warning", "spec file ignored", file=path, reason=why)
    known_conflicts = previous.conflicts if previous is not None else {}
    for name, conflict in registry.conflicts.items():
        if known_conflicts.get(name) != conflict:
            log.unusual(settings, "warning", "device in conflict", device=name, reason=conflict[1])


def in_memory(spec_dirs: tuple[str, ...]) -> hot.Registry:
    """Return the registry of what lies in *spec_dirs* now, and keep and log nothing."""
    data = compiled(spec_dirs)
    return hot.Registry(lambda length, offset: data[offset : offset + length])


def compiled(spec_dirs: tuple[str, ...], previous: hot.Registry | None = None) -> bytes:
    """Return the registry of what lies in *spec_dirs* now, taking over from *previous*."""
    known = _known(previous)
    parts = _Parts()
    way: dict[str, trust.Mark] = {}
    directories, found, unreadable = _list(spec_dirs, way)
    faults = [(path, why, "", rank) for path, why, rank in unreadable]
    head_files: list[tuple[str, Signature | None]] = []
    summary: list[Any] = []
    definitions: dict[str, dict[str, list[tuple[int, Any]]]] = {}
    for number, (priority, path, refused) in enumerate(found):
        made_from, entry = _entry(path, refused, known, parts, way)
        head_files.append((path, made_from))
        summary.append(entry)
        kind, spec_place, devices, fault = entry
        if fault:
            faults.append((path, fault, _spoken_kind(path), priority))
        for index, (name, place) in enumerate(devices):
            definitions.setdefault(kind, {}).setdefault(name, []).append(
                (priority, (number, index, place, spec_place))
            )
    tables: dict[str, dict[str, Any]] = {kind: {} for kind in definitions}
    conflicts: dict[str, tuple[tuple[str, ...], str]] = {}
    for kind, own in definitions.items():
        for name, entries in own.items():
            highest = _highest(entries)
            if len(highest) == 1:
                tables[kind][name] = highest[0]
            else:
                paths = tuple(head_files[number][0] for number, *_ in highest)
                conflicts[f"{kind}={name}"] = paths, in_conflict(f"{kind}={name}", paths)
    head = marshal.dumps(
        (
            STAMP,
            spec_dirs,
            tuple(directories),
            tuple(way.items()),
            tuple(head_files),
            {kind: parts.add(marshal.dumps(own)) for kind, own in tables.items()},
            tuple(faults),
            conflicts,
            parts.add(marshal.dumps(tuple(summary))),
        )
    )
    return b"%0*d" % (hot.PREFIX, len(head)) + head + parts.joined()


def _spoken_kind(path: str) -> str:
    """Return the kind that a file which cannot be used seems to define, or the empty text."""
    try:
        if not files.is_regular(posix.stat(path)):
            return ""
        data, _ = files.read(path, SIZE_LIMIT)
    except (OSError, ValueError):
        return ""
    import re

    # Blanks, not \s: a search from each line over all lines that follow would be quadratic.
    pattern = rb"""(?:^|[{,])[ \t]*["']?kind["']?\s*:\s*["']?([^\s"'#,}]+)"""
    found = re.search(pattern, data[: 1 << 16], re.IGNORECASE | re.MULTILINE)
    return found[1].decode("utf-8", "replace") if found else ""


def _highest(entries: list[tuple[int, Any]]) -> list[Any]:
    """Return the definitions in the highest directory: one, or those in conflict."""
    highest = max(priority for priority, _ in entries)
    return [entry for priority, entry in entries if priority == highest]


def in_conflict(name: str, paths: Sequence[str]) -> str:
    """Say that the files at *paths* keep the device *name* from being used."""
    *files, last = paths
    both = "both" if len(files) == 1 else "all"
    return (
        f"device {name} cannot be used: {', '.join(files)} and {last} in the same directory"
        f" {both} define it"
    )


def _list(
    spec_dirs: tuple[str, ...], way: dict[str, trust.Mark]
) -> tuple[list[Signature | None], list[tuple[int, str, str]], list[tuple[str, str, int]]]:
    """Return each directory's signature, each spec file, and faults; note the *way* to each.

    A file comes with its directory's rank, and why nothing in that directory is believed, if so.
    """
    directories: list[Signature | None] = []
    found: list[tuple[int, str, str]] = []
    unreadable: list[tuple[str, str, int]] = []
    seen: set[tuple[int, int]] = set()
    for priority, directory in enumerate(spec_dirs):
        above = [*trust.marks(directory)]
        try:
            status = posix.stat(directory)
            directories.append(_settled(signature(status)))
            above.pop()  # the directory itself, which has a signature
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            entries = sorted(posix.listdir(directory))
        except OSError as error:
            if len(directories) <= priority:
                directories.append(None)
            if not isinstance(error, FileNotFoundError):
                unreadable.append((directory, describe(error), priority))
            if may_pass(error, directory):
                directories[priority] = NEVER
            continue
        finally:
            way.update(above)
        entries = [name for name in entries if name.endswith(ENDINGS)]
        if len(entries) > FILES_LIMIT:
            why = f"of its {len(entries)} spec files only {FILES_LIMIT} are read, by name"
            unreadable.append((directory, why, priority))
        refused = trust.refusal(directory)
        found += [(priority, f"{directory}/{name}", refused) for name in entries[:FILES_LIMIT]]
    return directories, found, unreadable


def _settled(found: Signature) -> Signature:
    newest = max(found[3], found[4])
    return NEVER if abs(time.time_ns() - newest) < RACY_NS else found


def _known(previous: hot.Registry | None) -> Known:
    if previous is None:
        return {}
    return {
        path: (made_from, entry, previous)
        for (path, made_from), entry in zip(previous.files, previous.summary, strict=True)
    }


def _entry(
    path: str,
    refused: str,
    known: Known,
    parts: _Parts,
    way: dict[str, trust.Mark],
) -> tuple[Signature | None, Any]:
    """Return a file's signature and its line of the summary: kind, piece, devices, fault.

    *refused* says why nothing in its directory is believed, if so.
    """
    nothing: tuple[str, None, tuple[()]] = ("", None, ())
    made_from: Signature | None = None
    try:
        status = posix.lstat(path)
        if not trust.is_plain(status):
            way.update([*trust.marks(path)][:-1])
            status = posix.stat(path)
            refused = refused or trust.refusal(path)
        made_from, was = signature(status), known.get(path)
        if refused:
            return _settled(made_from), (*nothing, refused)
        if was and was[0] == made_from and not was[1][3].startswith(trust.REFUSED):
            return made_from, _taken_over(was[1], was[2], parts)
        if not files.is_regular(status):  # opening a device can do something
            return _settled(made_from), (*nothing, "it is not a regular file")
        data, status = files.read(path, SIZE_LIMIT)
        made_from = _settled(signature(status))
        spec = check.load(data)
    except OSError as error:
        seen = NEVER if may_pass(error, path) else _signature_of(path)
        # Our own schema, say, is not the spec file's fault.
        other = f"{error.filename}: " if error.filename not in (None, path) else ""
        return seen, (*nothing, other + describe(error))
    except (ValueError, BadSpec) as error:
        return made_from, (*nothing, error.message if isinstance(error, BadSpec) else str(error))
    spec_place = parts.add(
        marshal.dumps((sha256(data), spec.version, status.st_mtime_ns, spec.edits))
    )
    devices = tuple((name, parts.add(marshal.dumps(own))) for name, own in spec.devices)
    return made_from, (spec.kind, spec_place, devices, "")


def _signature_of(path: str) -> Signature | None:
    try:
        return _settled(signature(posix.stat(path)))
    except OSError:
        return None


def _taken_over(entry: Any, previous: hot.Registry, parts: _Parts) -> Any:
    kind, spec_place, devices, fault = entry
    if fault:
        return entry
    return (
        kind,
        parts.add(previous.raw(spec_place)),
        tuple((name, parts.add(previous.raw(place))) for name, place in devices),
        "",
    )
