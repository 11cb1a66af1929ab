"""What a person calls a container, or a record -> the newest audit record of it."""

from __future__ import annotations

from cdi_runc import jsonio
from cdi_runc.cli import containers, records
from cdi_runc.cli.records import Filter
from cdi_runc.errors import CdiRuncError

SHOWN = 3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdi_runc.cli.containers import Container
    from cdi_runc.cli.records import Entry


def record(word: str, path: str) -> Entry:
    """Return the newest record in *path* of what *word* names.

    Docker's names come first; then the beginnings of ids on record; then the other engines' names.

    Raises:
        CdiRuncError: there is none, or *word* is the beginning of several names.

    """
    known = containers.in_docker(word)
    found = None if known else begun(word, path)
    if found is None:
        known = known or containers.resolve(word)
        found = _newest(Filter(container=known.id), path) if known else None
    if found is None:
        raise _unknown(word, known, path)
    return found


def begun(word: str, path: str, keys: Sequence[str] = ("container", "id")) -> Entry | None:
    """Return the newest record in *path* of which one of *keys* is *word*, or else begins with it.

    Raises:
        CdiRuncError: records of several containers begin with it.

    """
    quoted = jsonio.dumps(word)
    found: dict[str, Entry] = {}
    wanted = Filter(either=word) if "id" in keys else Filter(container=word)
    # When there are enough to be told, only the name itself is looked for.
    for one in records.newest(path, wanted, lambda line: len(found) <= SHOWN or quoted in line):
        if word in (one[key] for key in keys):
            return one
        found.setdefault(one["container"], one)
    if len(found) > 1:
        titles = [
            id_ if id_.startswith(word) else f"record {one['id']}" for id_, one in found.items()
        ]
        raise CdiRuncError(
            f"{word!r} is the beginning of several: {', '.join(titles[:SHOWN])}"
            + (" and more" if len(titles) > SHOWN else ""),
            cure="give more of the one that is meant; see them with: cdictl audit list",
        )
    return next(iter(found.values()), None)


def container(word: str, path: str) -> str:
    """Return the id, or the beginning of one, that *word* stands for in the records of *path*."""
    known = containers.in_docker(word)
    if known is None and _newest(Filter(container=word), path) is None:
        known = containers.resolve(word)
    return known.id if known else word


def _newest(wanted: Filter, path: str) -> Entry | None:
    return next(records.newest(path, wanted), None)


def _unknown(word: str, known: Container | None, path: str) -> CdiRuncError:
    elsewhere = records.elsewhere(path)
    if known and elsewhere:
        return CdiRuncError(
            f"{known.engine} knows the container {known.title}, and {path} has no record of it",
            cure=elsewhere,
        )
    if known:
        return CdiRuncError(
            f"{known.engine} knows the container {known.title}, but there is no audit record of it:"
            " it asked for no device, or was not made through cdi-runc",
            cure=f"see which runtime it has: {known.engine} inspect {word}",
        )
    return CdiRuncError(
        f"no audit record of {word!r} in {path}, and no engine here knows such a container",
        cure=elsewhere or "see all records: cdictl audit list",
    )
