"""The audit file, read from its end: a log of any length answers at once what is new in it.

Rotated parts are read too, compressed or not.  A damaged line is told on standard error and passed
over, and once it is told there if others could have written what is read.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import sys
import tempfile
import zlib
from fnmatch import fnmatchcase

from cdi_runc import files, jsonio, paths, trust
from cdi_runc.errors import CdiRuncError
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO, Any

    Entry = dict[str, Any]
    """One audit record, see audit.schema.json."""

BLOCK = 1 << 20
NEEDED = frozenset(
    "id time container bundle engine root requests specs edits conflicts warnings result".split()  # noqa: SIM905
)
TEXTS = ("id", "time", "container", "bundle", "engine", "root", "result")
LISTS = {"requests": "device", "specs": "path", "edits": "where", "conflicts": "where"}
"""Lists of objects, and a member of each object that is text."""
DEPTH = 500
"""What is nested deeper is not shown: a config.json of OCI has ten levels."""
LONGEST = 64 << 20
"""Bytes of a line; a record tells of parts of a config.json, which can be no larger."""
SHOWN_FAULTS = 3
NOT_REGULAR = "it is not a regular file"
UNPACKED = 1 << 30
"""Bytes of a compressed part, which is unpacked as a whole to be read from its end."""
IN_MEMORY = 16 << 20
"""Bytes of a compressed part; more of it lie in a temporary file."""
PATIENCE = 1000
"""So many lines in a row must be too old; those of calls at the same time are not in order."""
_ROTATED = re.compile(r"[.-](\d[\d-]*)(\.gz|\.bz2|\.xz)?")
_TIME = re.compile(rb'\{"format":\d+,"id":"\w+","time":"([^"]+)"')
_OPEN: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_told: set[str] = set()
"""Directories of which it is told that others could have written records there."""


class Filter(Record):
    """Which records are wanted; an empty field asks for nothing."""

    container: str = ""
    """The beginning of the container's id."""
    either: str = ""
    """The beginning of the container's id or of the record's."""
    device: str = ""
    """A qualified name, in which ``*`` and ``?`` stand for anything."""
    vendor: str = ""
    result: str = ""
    since: str = ""
    until: str = ""
    """Times as records have them."""

    def needles(self) -> list[bytes]:
        """Return what a line has to contain, so that most need not be parsed."""
        literal = re.split(r"[*?\[]", self.device, maxsplit=1)[0]
        vendor = f"{self.vendor}/" if self.vendor else ""
        words = (self.container, self.either, literal, vendor, self.result)
        return [jsonio.dumps(word)[1:-1] for word in words if word]

    def fits(self, record: Entry) -> bool:
        """Tell whether *record* is wanted.

        Raises:
            ValueError: it is no record.

        """
        try:
            devices = {request["device"] for request in record["requests"]}
            return (
                record["container"].startswith(self.container)
                and any(record[key].startswith(self.either) for key in ("container", "id"))
                and self.result in ("", record["result"])
                and self.since <= record["time"] <= (self.until or "9")
                and (not self.device or any(fnmatchcase(one, self.device) for one in devices))
                and (not self.vendor or any(one.startswith(f"{self.vendor}/") for one in devices))
            )
        except (KeyError, TypeError, AttributeError):
            raise ValueError("it is no audit record") from None


class Faults:
    """The damaged lines of one file, told as they are met."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._count = 0

    @property
    def is_told(self) -> bool:
        """Whether no more of them are told."""
        return self._count > SHOWN_FAULTS

    def tell(self, offset: int, why: str) -> None:
        """Tell of the line at *offset*."""
        self._count += 1
        if self._count <= SHOWN_FAULTS:
            place = f"line {_number(self._path, offset)} is damaged: {why}"
            print(f"cdictl: {self._path}: {place}", file=sys.stderr)
        elif self._count == SHOWN_FAULTS + 1:
            print(f"cdictl: {self._path}: and more damaged lines", file=sys.stderr)

    def stop(self, why: str) -> None:
        """Tell why nothing more of the file can be read."""
        print(f"cdictl: {self._path}: {why}", file=sys.stderr)


def parts(path: str) -> list[str]:
    """Return the audit file at *path* and its rotated parts, the newest first.

    Raises:
        CdiRuncError: they cannot be read.

    """
    directory, name = os.path.split(path)
    found = []
    try:
        names = os.listdir(directory or ".")
    except FileNotFoundError:
        return []
    except PermissionError as error:
        raise _closed(path, error) from error
    for other in names:
        rotated = _ROTATED.fullmatch(other.removeprefix(name)) if other.startswith(name) else None
        if other == name:
            if os.path.exists(path) and not os.path.isfile(path):
                raise not_regular(path)
            found.append((0, 0, path))
        elif rotated:
            number = int(rotated[1].replace("-", ""))
            # logrotate counts up from 1, or writes the date.
            order = (1, number) if number < 10_000 else (2, -number)  # noqa: PLR2004
            found.append((*order, os.path.join(directory, other)))
    return [path for _, _, path in sorted(found)]


def _closed(path: str, error: PermissionError) -> CdiRuncError:
    return CdiRuncError(
        f"cannot read the audit file {path}: {error.strerror}",
        cure="become root, or whoever may read it",
    )


def elsewhere(path: str) -> str:
    """Return where the records of root's engines are, if those at *path* are a user's own.

    Who may ask root's Docker daemon need not be root, and would take what is not here for all.
    """
    if paths.is_system() or path.startswith(f"{paths.LOGS}/") or not paths.exists(paths.LOGS):
        return ""
    return (
        f"only your own records, in {path}, are read here; those of root's engines are in"
        f" {paths.LOGS}: call it with sudo"
    )


def tell_elsewhere(path: str) -> None:
    """Tell on standard error that there are other records than those at *path*, if so."""
    if told := elsewhere(path):
        print(f"cdictl: {told}", file=sys.stderr)


def newest(
    path: str, wanted: Filter | None = None, concerns: Callable[[bytes], bool] | None = None
) -> Iterator[Entry]:
    """Yield the records of the audit file at *path* that are *wanted*, the newest first.

    *concerns* tells of a line whether it is worth to be parsed.
    """
    wanted = wanted or Filter()
    needles = wanted.needles()
    for faults, offset, line in _of_time(path, wanted.since.encode(), wanted.until.encode()):
        if line[:1] == b"{" and line[-1:] == b"}":
            if not (all(one in line for one in needles) and (not concerns or concerns(line))):
                continue
        elif faults.is_told:  # a damaged one is told in any case
            continue
        try:
            record = parsed(line)
            fits = wanted.fits(record)
        except ValueError as error:
            faults.tell(offset, str(error))
        else:
            if fits:
                yield record


def _of_time(path: str, since: bytes, until: bytes) -> Iterator[tuple[Faults, int, bytes]]:
    """Yield the lines that may be of that time, the newest first."""
    too_old = 0
    for part in parts(path):
        faults = Faults(part)
        for offset, line in _backwards(part, faults):
            match = _TIME.match(line) if since or until else None
            if match and match[1] < since:
                too_old += 1
                if too_old > PATIENCE:
                    return
            elif not (match and until and match[1] > until):
                too_old = 0
                yield faults, offset, line


def parsed(line: bytes) -> Entry:
    """Return the record that *line* holds.

    Raises:
        ValueError: it holds none.

    """
    try:
        record = jsonio.loads(line)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(record, dict) or not record.keys() >= NEEDED or not _is_sound(record):
        raise ValueError("it is no audit record")
    if line.count(b"[") + line.count(b"{") > DEPTH and _is_deep(record):
        raise ValueError("it is nested too deeply")
    found: Entry = record
    return found


def _is_sound(record: Entry) -> bool:
    """Tell whether the members that every reader needs are of their types."""
    return (
        all(type(record[key]) is str for key in TEXTS)
        and type(record.get("error", "")) is str
        and type(record["warnings"]) is list
        and all(type(one) is str for one in record["warnings"])
        and all(
            type(record[key]) is list
            and all(type(one) is dict and type(one.get(member)) is str for one in record[key])
            for key, member in LISTS.items()
        )
    )


def _is_deep(record: Entry) -> bool:
    level: list[Any] = [record]
    for _ in range(DEPTH):
        level = [
            below
            for one in level
            for below in (one.values() if isinstance(one, dict) else one)
            if isinstance(below, (dict, list))
        ]
    return bool(level)


def _backwards(path: str, faults: Faults) -> Iterator[tuple[int, bytes]]:
    """Yield offset and content of each line that is not empty, the last first."""
    try:
        with _unpacked(path, faults.stop) as file:
            file.seek(0, os.SEEK_END)
            end, tail = file.tell(), b""
            while end:
                start = max(0, end - BLOCK)
                file.seek(start)
                tail = file.read(end - start) + tail
                if len(tail) > LONGEST + BLOCK:
                    faults.stop(f"a line is longer than {LONGEST >> 20} MiB; no older one is read")
                    return
                first, *lines = tail.split(b"\n")
                offset = start + len(tail)
                for line in reversed(lines):
                    offset -= len(line)
                    if line:
                        yield offset, line
                    offset -= 1
                end, tail = start, first
            if tail:
                yield 0, tail
    except FileNotFoundError:
        pass  # rotated meanwhile: its lines are in another part
    except PermissionError as error:
        raise _closed(path, error) from error
    except (OSError, ValueError) as error:
        faults.stop(f"it cannot be read: {getattr(error, 'strerror', None) or error}")


def opened(path: str) -> IO[bytes]:
    """Open the audit file, or a part of it; say who else could have written it, if anybody.

    Raises:
        OSError: it cannot be opened.
        ValueError: it is no regular file.

    """
    fd = os.open(path, _READ)  # O_NONBLOCK: a FIFO must not hold us up
    status = os.fstat(fd)
    if not files.is_regular(status):
        os.close(fd)
        raise ValueError(NOT_REGULAR)
    _tell_of_others(path, status)
    return open(fd, "rb")


def not_regular(path: str) -> CdiRuncError:
    """Return the error of an audit file that is of another kind."""
    name = trust.quoted(path)
    return CdiRuncError(
        f"cannot read the audit file {path}: {NOT_REGULAR}", cure=f"mv {name} {name}.old"
    )


def _tell_of_others(path: str, status: os.stat_result) -> None:
    directory = os.path.dirname(path)
    if directory in _told:
        return
    try:
        found = trust.fault(path, of_log=True) or trust.fault_of_log(path, status)
    except FileNotFoundError:  # rotated meanwhile
        return
    if found:
        _told.add(directory)
        who, cure = found
        print(f"cdictl: others could have written these records: {who}; {cure}", file=sys.stderr)


def _unpacked(path: str, report: Callable[[str], None]) -> IO[bytes]:
    """Open a part for reading at any place; of a compressed one, as much as can be read."""
    opener = _OPEN.get(os.path.splitext(path)[1])
    if opener is None:
        return opened(path)
    whole: Any = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  # the caller closes it
    with opened(path) as packed, opener(packed) as file:
        try:
            while block := file.read1():
                whole.write(block)
                if whole.tell() > UNPACKED:
                    report(f"it is not read behind {UNPACKED >> 20} MiB")
                    break
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            report(f"its end is damaged: {error}")
    return whole  # type: ignore[no-any-return]


def _number(path: str, offset: int) -> int:
    """Return the number of the line at *offset*."""
    number = 1
    with _unpacked(path, lambda _: None) as file:
        file.seek(0)
        while offset > 0 and (block := file.read(min(BLOCK, offset))):
            number += block.count(b"\n")
            offset -= len(block)
    return number
