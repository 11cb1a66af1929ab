"""``cdictl audit``: what was put into which container, by whose request, from which file."""

from __future__ import annotations

import json
import sys

from cdi_runc import jsonio
from cdi_runc.cli import common, rendering
from cdi_runc.errors import CdiRuncError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator
    from typing import Any

    Entry = dict[str, Any]

EPILOG = """\
examples:
  cdictl audit list
  cdictl audit list --limit 5 --json
  cdictl audit show 3dbe7f4e
"""
ID_LENGTH = 12


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="audit")
    listing = commands.add_parser("list", help="list the records, the newest first")
    listing.add_argument("--limit", type=int, default=50, metavar="N", help="at most N (50)")
    common.add_json(listing)
    show = commands.add_parser("show", help="show one record in full")
    show.add_argument(
        "id",
        metavar="ID-PREFIX",
        help="the beginning of a record's or a container's id; of several the newest is shown",
    )
    common.add_json(show)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """List the audit records, or show one."""
    path = common.in_force(args).audit_file
    if args.audit == "list":
        newest = list(records(path))[: -args.limit - 1 : -1] if args.limit > 0 else []
        if args.json:
            rendering.print_json(newest)
        else:
            print("\n".join(_listing(newest)) if newest else f"no records in {path}")
        return 0
    found = None
    for record in records(path):
        if record["id"].startswith(args.id) or record["container"].startswith(args.id):
            found = record
    if found is None:
        raise CdiRuncError(
            f"no audit record of {args.id!r} in {path}", cure="see them all: cdictl audit list"
        )
    if args.json:
        rendering.print_json(found)
    else:
        print("\n".join(_shown(found)))
    return 0


def records(path: str) -> Iterator[Entry]:
    """Yield the records in *path*, the oldest first; a damaged line is reported and passed over."""
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    record = json.loads(line)
                    record["id"], record["container"], record["edits"]
                except (ValueError, KeyError, TypeError):
                    print(f"cdictl: {path}: line {number} is damaged", file=sys.stderr)
                    continue
                yield record
    except FileNotFoundError:
        return


def _listing(newest: list[Entry]) -> Iterator[str]:
    colours = {"edited": "green", "failed": "red"}
    rows = [
        (
            record["id"][:ID_LENGTH],
            record["time"],
            record["container"][:ID_LENGTH],
            record["result"],
            ",".join(dict.fromkeys(request["device"] for request in record["requests"])) or "-",
        )
        for record in newest
    ]
    head, *lines = rendering.table(("ID", "TIME", "CONTAINER", "RESULT", "DEVICES"), rows)
    yield head
    for line, row in zip(lines, rows, strict=True):
        colour = colours.get(row[3])
        yield line.replace(row[3], rendering.paint(row[3], colour), 1) if colour else line


def _shown(record: Entry) -> Iterator[str]:
    yield rendering.paint(f"record {record['id']}", "bold")
    engine = record["engine"] or "unknown engine"
    yield f"  time        {record['time']}  ({record['duration_ms']} ms)"
    yield f"  container   {record['container']}  ({engine}, {record['command']})"
    yield f"  bundle      {record['bundle']}"
    yield f"  runtime     {record['runtime']}"
    colour = "red" if record["result"] == "failed" else "green"
    yield f"  result      {rendering.paint(record['result'], colour)}"
    if "error" in record:
        yield f"  error       {record['error']}"
    for request in record["requests"]:
        asked = f"by {request['source']} {request['key']}={request['value']}"
        yield f"  asked       {request['device']}  {asked}: {request['decision']}"
    for spec in record["specs"]:
        yield f"  spec file   {spec['path']}  (CDI {spec['cdiVersion']}, written {spec['mtime']})"
        yield f"              sha256 {spec['sha256']}"
    for warning in record["warnings"]:
        yield f"  {rendering.paint('warning', 'yellow')}     {warning}"
    yield from _edits(record["edits"])
    for conflict in record["conflicts"]:
        yield (
            f"  {rendering.paint('conflict', 'yellow')}    {conflict['where']}:"
            f" {conflict['device']} over {conflict['against']}: {conflict['decision']} wins"
        )


def _edits(edits: list[Entry]) -> Iterator[str]:
    device = None
    for edit in edits:
        if edit["device"] != device:
            device = edit["device"]
            yield rendering.paint(f"  {device}", "bold")
        yield f"    {edit['kind']:<15}{edit['action']:<16}{edit['where']}"
        if edit["where"] == "/mounts" and edit["before"]:
            yield "      (all mounts sorted by depth, a parent before its children)"
            continue
        if edit["action"] in ("replaced", "removed", "kept"):
            yield f"      - {_value(edit['before'])}"
        if edit["action"] not in ("removed", "kept"):
            yield f"      + {_value(edit['after'])}"
        if "note" in edit:
            yield f"      ({edit['note']})"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else jsonio.dumps(value).decode()
