"""What a program or a library needs, from its ELF headers (pyelftools)."""

from __future__ import annotations

import itertools
import os
import re

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection
from elftools.elf.segments import InterpSegment

from cdi_runc import files
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

MAGIC = b"\x7fELF"
MANY = 20_000
"""Entries of all tables of a file: one of an image can claim to have any number."""
LIBC_LIMIT = 64 << 20  # bytes
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")


class Object(Record):
    """An ELF file."""

    path: str
    """Where the container sees it."""
    machine: str
    bits: int
    interpreter: str
    """The loader that a program asks for."""
    soname: str
    needed: tuple[str, ...]
    runpath: str
    versions: tuple[tuple[str, tuple[str, ...]], ...]
    """Library, and the symbol versions needed from it."""
    defined: tuple[str, ...]
    """The symbol versions that it offers."""

    @property
    def is_library(self) -> bool:
        """Whether programs load it by its name."""
        return bool(self.soname)


def read(host: str, path: str) -> Object | None:
    """Return the ELF file that lies at *host* and is seen at *path*; None if it is no such file."""
    try:
        fd = os.open(host, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError):
        return None
    with os.fdopen(fd, "rb") as file:
        if not files.is_regular(os.fstat(fd)) or file.read(4) != MAGIC:
            return None
        file.seek(0)
        try:
            return _read(file, path)
        except Exception:  # noqa: BLE001  # pyelftools on a damaged file: anything
            return None


def _read(file: BinaryIO, path: str) -> Object:
    elf = ELFFile(file)
    budget = iter(range(MANY))
    found: dict[str, list[str]] = {}
    interpreter = ""
    for segment, _ in zip(elf.iter_segments(), budget, strict=False):
        if isinstance(segment, InterpSegment):
            interpreter = segment.get_interp_name()
        if isinstance(segment, DynamicSegment):
            for tag, _ in zip(segment.iter_tags(), budget, strict=False):
                for name in ("needed", "soname", "runpath", "rpath"):
                    if hasattr(tag, name):
                        found.setdefault(name, []).append(getattr(tag, name))
    versions, defined = _versions(elf, budget)
    return Object(
        path=path,
        machine=str(elf["e_machine"]).removeprefix("EM_"),
        bits=elf.elfclass,
        interpreter=interpreter,
        soname=(found.get("soname") or [""])[0],
        needed=tuple(found.get("needed", ())),
        runpath=(found.get("runpath") or found.get("rpath") or [""])[0],
        versions=versions,
        defined=defined,
    )


def _versions(
    elf: ELFFile, budget: Iterator[int]
) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[str, ...]]:
    """Return library and symbol versions needed from it, and the symbol versions on offer."""
    needed: list[tuple[str, tuple[str, ...]]] = []
    defined: list[str] = []
    for section, _ in zip(elf.iter_sections(), budget, strict=False):
        if isinstance(section, GNUVerNeedSection):
            needed += [
                (str(one.name), tuple(str(part.name) for part, _ in zip(own, budget, strict=False)))
                for (one, own), _ in zip(section.iter_versions(), budget, strict=False)
            ]
        elif isinstance(section, GNUVerDefSection):
            for (_, own), _ in zip(section.iter_versions(), budget, strict=False):
                defined += [str(part.name) for part in itertools.islice(own, 1)]
    return tuple(needed), tuple(defined)


def glibc_version(host: str) -> tuple[int, ...]:
    """Return the version of the glibc whose libc.so.6 lies at *host*: its newest symbols'."""
    try:
        data, _ = files.read(host, LIBC_LIMIT)
    except (OSError, ValueError):
        return ()
    return max(((int(match[1]), int(match[2])) for match in _GLIBC.finditer(data)), default=())


def glibc_needed(versions: Iterator[str]) -> tuple[int, ...]:
    """Return the newest glibc among symbol *versions*."""
    found = (_GLIBC.fullmatch(one.encode()) for one in versions)
    return max(((int(match[1]), int(match[2])) for match in found if match), default=())
