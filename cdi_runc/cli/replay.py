"""Effects -> the parts of config.json that they touched, before and after.

A record has what happened, not the whole file: what stands beside it and was not touched is shown
as entries that stay as they were.
"""

from __future__ import annotations

import re
from itertools import pairwise

from cdi_runc import jsonio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cdi_runc.cli.records import Entry
    from cdi_runc.edits import Config

MOST = 1_000_000
"""Entries of a list of config.json; a record that speaks of one behind them is damaged."""
_LIST = re.compile(
    r"/process/env|/process/user/additionalGids|/linux/devices|/linux/resources/devices|/mounts"
    r"|/hooks/[^/]+"
)


class _Cell:
    """An entry of a list; *origin* is its place in the list before, if it was there."""

    def __init__(self, origin: int | None = None, value: object = None) -> None:
        self.origin = origin
        self.value = value
        self.is_seen = origin is None

    def see(self, value: object) -> None:
        if not self.is_seen:
            self.value, self.is_seen = value, True


class _List:
    """A list of which the effects tell a part."""

    def __init__(self) -> None:
        self.before: list[_Cell] = []
        self.after: list[_Cell] = []
        self.is_new = False

    def play(self, edit: Entry, index: int) -> None:
        """Do what *edit* did at *index*."""
        action, before = edit["action"], edit["before"]
        place = int(str(edit.get("was", edit["where"])).rpartition("/")[2])
        if not 0 <= place <= MOST:
            raise ValueError(f"no list has an entry {place}")
        while len(self.after) < place + (action != "added"):
            cell = _Cell(len(self.before))
            self.before.append(cell)
            self.after.append(cell)
        if action in ("replaced", "removed"):
            self.after.pop(place).see(before)
        elif action != "added":
            self.after[place].see(before)
        if action in ("replaced", "added"):
            self.after.insert(index, _Cell(value=edit["after"]))

    def sort(self, before: list[Any], after: list[Any]) -> None:
        """Put the whole list in another order."""
        self.before = [_Cell(origin) for origin in range(len(before))]
        for cell, value in zip(self.before, before, strict=True):
            cell.see(value)
        left: dict[bytes, list[_Cell]] = {}
        for cell in reversed(self.before):
            left.setdefault(jsonio.dumps(cell.value), []).append(cell)
        for value in after:
            same = left.get(jsonio.dumps(value))
            if not same:
                raise ValueError("a list was put in another order, and holds other entries now")
            self.after.append(same.pop())

    def values(self, cells: list[_Cell]) -> list[Any]:
        """Return *cells*, one of the two lists, entries that were not seen in runs."""
        together = _neighbours(self.before) & _neighbours(self.after)
        shown: list[Any] = []
        run: list[int] = []
        for cell in cells:
            if run and (run[-1], cell.origin) not in together:
                shown.append(_unseen(run))
                run = []
            if cell.is_seen:
                shown.append(cell.value)
            else:
                run.append(cell.origin or 0)
        return [*shown, _unseen(run)] if run else shown


def _neighbours(cells: list[_Cell]) -> set[tuple[int | None, int | None]]:
    return {(a.origin, b.origin) for a, b in pairwise(cells) if not (a.is_seen or b.is_seen)}


def _unseen(run: list[int]) -> str:
    if len(run) == 1:
        return f"... entry {run[0]}, as it was"
    return f"... entries {run[0]} to {run[-1]}, as they were"


def replay(edits: list[Entry]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parts of config.json that *edits*, of one record, touched: before and after."""
    lists: dict[str, _List] = {}
    members: dict[str, tuple[Any, Any]] = {}
    for edit in edits:
        where, (parent, _, last) = edit["where"], edit["where"].rpartition("/")
        if _LIST.fullmatch(where):
            own = lists.setdefault(where, _List())
            own.is_new = not edit["before"]
            if edit["before"]:
                own.sort(edit["before"], edit["after"])
        elif _LIST.fullmatch(parent):
            lists.setdefault(parent, _List()).play(edit, int(last))
        elif edit["after"] != {}:
            first, _ = members.get(where, (edit["before"], None))
            members[where] = first, edit["after"]
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for where, one in lists.items():
        if not one.is_new:
            _put(before, where, one.values(one.before))
        _put(after, where, one.values(one.after))
    for where, (old, new) in members.items():
        if old is not None:
            _put(before, where, old)
        _put(after, where, new)
    return before, after


def undo(config: Config, edits: list[Entry]) -> None:
    """Take *edits*, all of one record, out of the *config* that they left.

    Raises:
        LookupError: they are not in it.

    """
    for edit in reversed(edits):
        where, before = edit["where"], edit["before"]
        parent, last = _parent(config, str(edit.get("was", where)))
        if isinstance(parent, list):
            if edit["action"] in ("added", "replaced"):
                parent.pop(int(where.rpartition("/")[2]))
            if edit["action"] in ("removed", "replaced"):
                parent.insert(int(last), before)
        elif edit["action"] == "added":
            del parent[last]
        elif edit["action"] == "replaced":
            parent[last] = before


def _parent(config: Config, pointer: str) -> tuple[Any, str]:
    *parents, last = _keys(pointer)
    found: Any = config
    for key in parents:
        found = found[int(key) if isinstance(found, list) else key]
    return found, last


def _keys(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _put(document: dict[str, Any], pointer: str, value: object) -> None:
    *parents, last = _keys(pointer)
    for part in parents:
        document = document.setdefault(part, {})
    document[last] = value
