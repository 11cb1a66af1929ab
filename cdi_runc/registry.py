"""The compiled registry: is it current, and what does it say of the devices asked for (C4).

One file, read piece by piece, so that a create costs what its devices cost: a head with the
signature of every spec file, a table of names for each kind, and a piece for each device.
``specs.compile`` writes it.  It is trusted only if our own user made it and nobody else can write
it, and current only while the signatures hold.
"""

from __future__ import annotations

import marshal
import posix

from cdi_runc import files, trust
from cdi_runc.record import Record
from cdi_runc.settings import STAMP, signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from cdi_runc.settings import Settings, Signature

PREFIX = 16  # bytes: the length of the head, as text


class Device(Record):
    """A resolved device: where it is defined, and its edits as plain data."""

    name: str
    path: str
    """The spec file."""
    place: str
    """JSON pointer of the device's own edits in it."""
    sha256: str
    version: str
    mtime_ns: int
    spec_edits: tuple[tuple[str, tuple[tuple[Any, ...], ...]], ...]
    edits: tuple[tuple[str, tuple[tuple[Any, ...], ...]], ...]


class Registry:
    """The compiled form of all spec files."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        """Read the head through *read*, which takes a length and an offset.

        Raises:
            ValueError, EOFError, TypeError: it is damaged, or another version wrote it.

        """
        length = int(read(PREFIX, 0))
        self._read = read
        self._kept: dict[tuple[int, int], Any] = {}
        self._start = PREFIX + length
        (
            stamp,
            self.spec_dirs,
            self.dirs,
            self._way,
            self.files,
            self._kinds,
            self.faults,
            self.conflicts,
            self._summary,
        ) = marshal.loads(read(length, PREFIX))  # noqa: S302  # ours alone, see _open
        if stamp != STAMP:
            raise ValueError("another version wrote it")

    spec_dirs: tuple[str, ...]
    dirs: tuple[Signature | None, ...]
    """Of each spec directory, None where it was missing."""
    files: tuple[tuple[str, Signature | None], ...]
    faults: tuple[tuple[str, str, str, int], ...]
    """Path of each file that cannot be used, why, the kind it speaks of, its directory's rank."""
    conflicts: dict[str, tuple[tuple[str, ...], str]]
    """Of each device that is defined twice in one directory: the files, and that in words."""

    def piece(self, place: tuple[int, int]) -> Any:
        """Return the value kept at *place*, an offset behind the head and a length."""
        if place not in self._kept:
            self._kept[place] = marshal.loads(self.raw(place))  # noqa: S302  # as above
        return self._kept[place]

    def raw(self, place: tuple[int, int]) -> bytes:
        """Return the bytes at *place*."""
        return self._read(place[1], self._start + place[0])

    @property
    def summary(self) -> Any:
        """What each file defines, and where its pieces are; see specs.compile."""
        return self.piece(self._summary)

    def is_current(self, spec_dirs: tuple[str, ...]) -> bool:
        """Tell whether all that it was made from, and the way there, is as it was then."""
        if spec_dirs != self.spec_dirs:
            return False
        for path, was in zip(spec_dirs, self.dirs, strict=True):
            if _signature(path) != was:
                return False
        for path, was in self.files:
            if _signature(path) != was:
                return False
        return trust.are_current(self._way)

    def broken_overrides(self, device: Device) -> list[tuple[str, str]]:
        """Return path and fault of each broken file that would come before *device*'s own."""
        directory = device.path.rpartition("/")[0]
        rank = self.spec_dirs.index(directory) if directory in self.spec_dirs else 0
        kind = device.name.partition("=")[0]
        return [
            (path, why)
            for path, why, other, other_rank in self.faults
            if other_rank > rank and other in (kind, "")
        ]

    def names(self) -> list[str]:
        """Return the qualified names of all devices that can be resolved, sorted."""
        return sorted(
            f"{kind}={name}" for kind, place in self._kinds.items() for name in self.piece(place)
        )

    def find(self, name: str) -> Device | None:
        """Return the device of that qualified name; None if it cannot be resolved."""
        kind, _, device = name.partition("=")
        if kind not in self._kinds:
            return None
        entry = self.piece(self._kinds[kind]).get(device)
        if entry is None:
            return None
        file, index, place, spec_place = entry
        sha256, version, mtime_ns, spec_edits = self.piece(spec_place)
        path, _ = self.files[file]
        return Device(
            name,
            path,
            f"/devices/{index}/containerEdits",
            sha256,
            version,
            mtime_ns,
            spec_edits,
            self.piece(place),
        )


def _signature(path: str) -> Signature | None:
    try:
        return signature(posix.stat(path))
    except OSError:
        return None


def current(settings: Settings) -> Registry:
    """Return the registry of the spec files as they are now, compiling it if need be."""
    try:
        found = _open(settings.state_dir)
        if found is not None and found.is_current(settings.spec_dirs):
            return found
    except (OSError, ValueError, EOFError, TypeError):
        pass
    from cdi_runc.specs import compile  # noqa: A004

    return compile.refresh(settings)


def _open(state_dir: str | None) -> Registry | None:
    if state_dir is None:
        return None
    if not trust.private(state_dir):
        return None
    fd = posix.open(f"{state_dir}/registry", posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOFOLLOW)
    if not files.is_ours(posix.fstat(fd)):
        posix.close(fd)
        return None
    return Registry(lambda length, offset: posix.pread(fd, length, offset))


def resolve(names: Sequence[str], settings: Settings) -> tuple[list[Device], Registry]:
    """Return the devices of the qualified *names*, in order.

    Raises:
        UnknownDevice: one or more cannot be resolved; the message tells what is known of each.

    """
    registry = current(settings)
    try:
        found = [registry.find(name) for name in names]
    except (OSError, ValueError, EOFError, TypeError):  # it is damaged behind its head
        from cdi_runc.specs import compile  # noqa: A004

        registry = compile.refresh(settings, anew=True)
        found = [registry.find(name) for name in names]
    devices = [device for device in found if device is not None]
    if len(devices) != len(names):
        from cdi_runc.specs import explain

        raise explain.unresolved(
            [name for name, device in zip(names, found, strict=True) if device is None],
            registry,
            settings,
        )
    return devices, registry
