"""How results look: aligned columns, colours on a terminal only, JSON as it is."""

from __future__ import annotations

import os
import sys

from cdi_runc import jsonio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

COLOURS = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "dim": "2"}


def paint(text: str, colour: str) -> str:
    """Return *text* in *colour* where standard output is a terminal (NO_COLOR, FORCE_COLOR)."""
    wanted = os.environ.get("FORCE_COLOR") or (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )
    return f"\033[{COLOURS[colour]}m{text}\033[0m" if wanted else text


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, its columns as wide as their widest cell."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for number, row in enumerate((head, *rows)):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        line = "  ".join(cells).rstrip()
        yield line if number else paint(line, "bold")


def json_lines(value: Any, indent: str = "") -> Iterator[str]:
    """Yield the lines of *value* as JSON, indented, numbers as they were written."""
    inner = f"{indent}  "
    if isinstance(value, dict) and value:
        yield "{"
        yield from _members(
            ((jsonio.dumps(key).decode() + ": ", member) for key, member in value.items()), inner
        )
        yield f"{indent}}}"
    elif isinstance(value, list) and any(isinstance(entry, (dict, list)) for entry in value):
        yield "["
        yield from _members((("", entry) for entry in value), inner)
        yield f"{indent}]"
    else:
        yield jsonio.dumps(value).decode()


def _members(members: Iterable[tuple[str, Any]], indent: str) -> Iterator[str]:
    held: list[str] = []
    for prefix, member in members:
        if held:
            yield from held[:-1]
            yield f"{held[-1]},"
        first, *rest = json_lines(member, indent)
        held = [f"{indent}{prefix}{first}", *rest]
    yield from held


def print_json(value: Any) -> None:
    """Print *value* as indented JSON."""
    print("\n".join(json_lines(value)))
