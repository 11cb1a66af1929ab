"""How results look: columns, trees and diffs; colours and line breaks on a terminal only."""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import sys
import textwrap
from contextlib import contextmanager

from cdi_runc import jsonio
from cdi_runc.record import Record
from cdi_runc.report import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import IO, Any

COLOURS = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "bold": "1", "dim": "2"}
_PAINT = re.compile(rf"(\033\[(?:0|{'|'.join(COLOURS.values())})m)")
FORK, LAST, RAIL = "├─ ", "└─ ", "│  "
SHORT = 76
DEEP = 50
NARROW = 24
"""Columns: text is not wrapped into fewer."""


class Unwritable(Exception):
    """The output cannot be written, though somebody still reads it."""


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unwritable(f"cannot write the output: {error.strerror}") from error


class Guarded:
    """A stream that shows control characters as JSON's escapes, whoever wrote them.

    A container's name, an annotation or a spec file may hold some, and a terminal obeys them.
    Line feeds, tabs and our own colours pass.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write *text*."""
        if not text.replace("\n", "").isprintable():
            parts = _PAINT.split(text)
            parts[::2] = map(_escaped, parts[::2])
            text = "".join(parts)
        with _writing():
            return self._stream.write(text)

    def flush(self) -> None:
        """Write what was kept back."""
        with _writing():
            self._stream.flush()

    def writelines(self, lines: Iterable[str]) -> None:
        """Write *lines*."""
        for line in lines:
            self.write(line)


def _escaped(text: str) -> str:
    return "".join(
        one if one.isprintable() or one in "\n\t" else json.dumps(one)[1:-1] for one in text
    )


class Node(Record):
    """A line of a tree: a label, text in a column of its own, and what belongs to it."""

    label: str
    text: str = ""
    below: Sequence[Node] = ()
    colour: str = ""
    """Of the label."""


def paint(text: str, colour: str, stream: IO[str] | None = None) -> str:
    """Return *text* in *colour* where *stream*, by default standard output, shows colours."""
    text = printable(text)
    if not _is_coloured(stream or sys.stdout):
        return text
    return f"\033[{COLOURS[colour]}m{text}\033[0m"


def _is_coloured(stream: IO[str]) -> bool:
    """Tell whether *stream* is a terminal that shows colours, if the caller says nothing of it."""
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR")
    return forced != "0" if forced else stream.isatty() and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Return how many columns standard output has; 0 where it is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def cut(text: str, columns: int) -> str:
    """Return *text* in so many columns."""
    return text if len(text) <= columns else text[: max(columns - 3, 1)] + "..."


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, its columns as wide as their widest cell."""
    shown = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in shown) for i in range(len(head))]
    for number, row in enumerate(shown):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        line = "  ".join(cells).rstrip()
        yield line if number else paint(line, "bold")


def tree(nodes: Sequence[Node], indent: str = "") -> Iterator[str]:
    """Yield the lines of *nodes*, the texts of neighbours in one column."""
    labels = [printable(node.label) for node in nodes if node.text and node.label]
    column = max((len(label) + 2 for label in labels), default=0)
    columns = width()
    for number, node in enumerate(nodes, 1):
        fork, rail = (LAST, "   ") if number == len(nodes) else (FORK, RAIL)
        start = len(indent) + len(fork) + (column if node.text else 0)
        first, *rest = wrapped(node.text or node.label, columns - start if columns else 0)
        label = printable(node.label) if node.text else first
        gap = " " * (column - len(label)) + first if node.text else ""
        label = paint(label, node.colour) if node.colour else label
        yield f"{_drawn(indent + fork)}{label}{gap}"
        beside = indent + rail + (RAIL if node.below else "")
        yield from (_drawn(f"{beside:<{start}}") + line for line in rest)
        yield from tree(node.below, indent + rail)


def _drawn(guides: str) -> str:
    """Return *guides* in what standard output can show."""
    if (sys.stdout.encoding or "utf-8").lower().startswith("utf"):
        return guides
    return guides.translate(str.maketrans("├└│─", "|`|-"))


def wrapped(text: str, columns: int) -> list[str]:
    """Return the lines of *text* in so many columns; in one line for 0."""
    text = printable(text)
    if not columns or len(text) <= columns:
        return [text]
    return textwrap.wrap(text, max(columns, NARROW), break_on_hyphens=False)


def paragraph(text: str, colour: str) -> Iterator[str]:
    """Yield the lines of *text* in *colour*."""
    for line in wrapped(text, width()):
        yield paint(line, colour)


def fields(rows: Iterable[Node]) -> Iterator[str]:
    """Yield a line for each label and text, the colour being the text's; empty texts are left out.

    The texts stand in one column.
    """
    shown = [row for row in rows if row.text]
    column = max((len(row.label) for row in shown), default=0) + 4
    columns = width()
    for row in shown:
        first, *rest = wrapped(row.text, columns - column if columns else 0)
        yield f"  {row.label}".ljust(column) + (paint(first, row.colour) if row.colour else first)
        yield from (" " * column + line for line in rest)


def diff(before: Any, after: Any, names: tuple[str, str], context: int = 3) -> Iterator[str]:
    """Yield the lines of the unified diff of two values as JSON, each hunk with its place."""
    old, new = (list(json_lines(value, spread=True)) for value in (before, after))
    lines = list(difflib.unified_diff(old, new, *names, lineterm="", n=context))
    for number, line in enumerate(lines):
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        colour = "bold" if number < len(names) else colour
        shown = printable(line)
        if line[:3] == "@@ ":
            first = next(n for n, text in enumerate(lines[number:]) if text[0] in "+-") - 1
            start = int(line.partition("+")[2].partition(" ")[0].partition(",")[0])
            shown += f" {_place(new, start - 1 + first)}"
        yield paint(shown, colour) if colour else shown


def _place(lines: Sequence[str], number: int) -> str:
    """Return where in a value the line *number* of its :func:`json_lines` stands."""
    keys: list[str] = []
    depth = len(lines[number]) - len(lines[number].lstrip())
    for line in reversed(lines[:number]):
        own = len(line) - len(line.lstrip())
        if own < depth:
            depth = own
            if line.endswith(('": {', '": [')):
                keys.append(line.strip()[1:-4])
    return "/" + "/".join(reversed(keys))


def json_lines(value: Any, indent: str = "", spread: bool = False) -> Iterator[str]:
    """Yield the lines of *value* as JSON, indented, numbers as they were written.

    With *spread*, as a diff wants it, the entries of a list have a line each; a short object in a
    list has one too.  What is nested too deeply for a person stands in one line.
    """
    inner = f"{indent}  "
    if len(inner) > 2 * DEEP:
        yield jsonio.dumps(value).decode()
    elif isinstance(value, dict) and value:
        yield "{"
        yield from _members(
            ((jsonio.dumps(key).decode() + ": ", member) for key, member in value.items()),
            inner,
            spread,
        )
        yield f"{indent}}}"
    elif isinstance(value, list) and (
        (spread and value) or any(isinstance(entry, (dict, list)) for entry in value)
    ):
        yield "["
        yield from _members((("", entry) for entry in value), inner, spread)
        yield f"{indent}]"
    else:
        yield jsonio.dumps(value).decode()


def _members(members: Iterable[tuple[str, Any]], indent: str, spread: bool) -> Iterator[str]:
    held: list[str] = []
    for prefix, member in members:
        if held:
            yield from held[:-1]
            yield f"{held[-1]},"
        short = jsonio.dumps(member).decode() if spread and not prefix else ""
        if short and len(indent) + len(short) < SHORT:
            held = [indent + short]
        else:
            # What is in a list is spread no further: a mount's options stay in a line.
            first, *rest = json_lines(member, indent, spread and bool(prefix))
            held = [f"{indent}{prefix}{first}", *rest]
    yield from held


def print_json(value: Any) -> None:
    """Print *value* as indented JSON."""
    print("\n".join(json_lines(value)))
