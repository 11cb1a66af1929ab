"""``cdictl audit``: what was put into which container, by whose request, from which file."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from itertools import islice

from cdi_runc import jsonio
from cdi_runc.cli import (
    audit_export,
    common,
    lookup,
    record_tree,
    records,
    rendering,
    replay,
)
from cdi_runc.errors import CdiRuncError
from cdi_runc.report import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator, Sequence

    from cdi_runc.cli.parsing import Parser
    from cdi_runc.cli.records import Entry

EPILOG = """\
A CONTAINER is named as its engine names it, or by the beginning of its id.
Rotated files are read too.

examples:
  cdictl audit list
  cdictl audit list --vendor nvidia.com --result failed --since 2d
  cdictl audit show web
  cdictl audit show web --diff
  cdictl audit tail -f
  cdictl audit export web --format docker
"""
LIMIT = 50
HEAD = ("ID", "TIME", "CONTAINER", "RESULT", "DEVICES")
SHORT_ID = 8
POLL = 0.25
"""Seconds between two looks at the file that is followed."""
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    commands = parser.add_commands(dest="audit")
    listing = common.add_command(commands, "list", "list the records, the newest first")
    listing.add_argument(
        "--limit", type=common.count, default=LIMIT, metavar="N", help="at most N (50)"
    )
    _add_filters(listing)
    common.add_json(listing)

    show = common.add_command(commands, "show", "show the newest record of a container in full")
    _add_subject(show)
    form = show.add_mutually_exclusive_group()
    form.add_argument("--diff", action="store_true", help="show config.json's changes as a diff")
    form.add_argument("--json", action="store_true", help="print JSON, for machines")

    tail = common.add_command(commands, "tail", "print the newest records, the newest last")
    tail.add_argument(
        "-n", type=common.count, default=10, metavar="N", help="how many to begin with (10)"
    )
    tail.add_argument("-f", "--follow", action="store_true", help="print new ones as they come")
    _add_filters(tail)
    tail.add_argument("--json", action="store_true", help="print each record as a line of JSON")

    export = common.add_command(
        commands, "export", "print a container's edits in a form that works without cdi-runc"
    )
    export.epilog = "What a form cannot express is told on standard error."
    _add_subject(export)
    export.add_argument(
        "--format",
        choices=("spec", "docker"),
        default="spec",
        help="a CDI spec file with one device (default), or options of docker run",
    )
    parser.epilog = EPILOG


def _add_subject(parser: ArgumentParser) -> None:
    parser.add_argument(
        "subject",
        type=common.given,
        metavar="CONTAINER|ID-PREFIX",
        help="a container's name or id, or a record's id; the beginning of an id will do",
    )


def _add_filters(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--container", type=common.given, metavar="NAME", help="a container's name or id"
    )
    parser.add_argument(
        "--device",
        type=common.given,
        metavar="NAME",
        help="a device; * and ? stand for anything",
    )
    parser.add_argument("--vendor", type=common.given, help="a vendor, for example nvidia.com")
    parser.add_argument("--result", default="", choices=(*record_tree.RESULTS,))
    parser.add_argument(
        "--since",
        type=moment,
        metavar="TIME",
        help="2026-12-31, 2026-12-31T23:59 (UTC, as shown), or an age: 90s, 10m, 2h, 3d, 1w",
    )
    parser.add_argument("--until", type=moment, metavar="TIME", help="the same")


def moment(text: str) -> str:
    """Return the time that *text* means, as records have it.

    Raises:
        argparse.ArgumentTypeError: nobody knows what it means.

    """
    age = re.fullmatch(r"(\d+)([smhdw])", text)
    try:
        if age:
            now = datetime.now(timezone.utc)
            found = now - timedelta(**{_UNITS[age[2]]: int(age[1])})
        else:
            found = datetime.fromisoformat(text.replace("Z", "+00:00"))
            found = found.astimezone(timezone.utc) if found.tzinfo else found
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a time such as 2026-12-31T23:59 nor an age such as 2h"
        ) from None
    return f"{found.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def run(args: Namespace) -> int:
    """List, show, follow or export audit records."""
    path = common.in_force(args).audit_file
    if args.audit in ("list", "tail"):
        records.tell_elsewhere(path)
    if args.audit == "list":
        return _list(args, path)
    if args.audit == "tail":
        return _tail(args, path)
    record = lookup.record(args.subject, path)
    if args.audit == "export":
        return show(record, "export", args.format)
    return show(record, "show", "json" if args.json else "diff" if args.diff else "")


def show(record: Entry, command: str, form: str) -> int:
    """Show or export one *record*.

    Raises:
        CdiRuncError: what it says of its edits makes no sense.

    """
    with damage(record):
        if command == "export":
            return audit_export.run(record, form)
        if form == "json":
            rendering.print_json(record)
        elif form == "diff":
            before, after = replay.replay(record["edits"])
            names = ("config.json before", f"config.json of {record['container']}")
            for line in rendering.diff(before, after, names, context=sys.maxsize):
                print(line)
        else:
            print("\n".join(record_tree.lines(record)))
    return 0


@contextmanager
def damage(record: Entry) -> Iterator[None]:
    """Say that *record* is damaged where its edits are not what an edit can be."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"
        raise CdiRuncError(
            f"record {record['id']} is damaged, its edits make no sense ({why})",
            cure="see it as it is with: cdictl audit tail --json",
        ) from error


def _wanted(args: Namespace, path: str) -> records.Filter:
    return records.Filter(
        container=lookup.container(args.container, path) if args.container else "",
        device=args.device or "",
        vendor=args.vendor or "",
        result=args.result,
        since=args.since or "",
        until=args.until or "",
    )


def _list(args: Namespace, path: str) -> int:
    if not args.limit:
        raise common.usage("--limit takes a whole number above 0")
    found = list(islice(records.newest(path, _wanted(args, path)), args.limit))
    if args.json:
        rendering.print_json(found)
    elif found:
        head, *lines = rendering.table(HEAD, [_row(record) for record in found])
        print(head)
        for line, record in zip(lines, found, strict=True):
            print(_painted(line, record))
    else:
        print(f"cdictl: no such records in {path}", file=sys.stderr)
    return 0


def _row(record: Entry) -> Sequence[str]:
    container = record["container"]
    named = dict.fromkeys(request["device"] for request in record["requests"])
    devices = ", ".join(named) or record.get("error", "")
    columns = rendering.width()
    return (
        record["id"][:SHORT_ID],
        f"{record['time'][:19].replace('T', ' ')}Z",
        container[:12] if re.fullmatch("[0-9a-f]{64}", container) else container,
        record["result"],
        rendering.cut(devices, max(columns - 57, 16)) if columns else devices,
    )


def _painted(line: str, record: Entry) -> str:
    """Return *line*, the row of *record*, its result in colour."""
    result = record["result"]
    before, _, after = line.partition(f"  {result}")
    return f"{before}  {rendering.paint(result, record_tree.RESULTS.get(result, 'bold'))}{after}"


def _tail(args: Namespace, path: str) -> int:
    if not args.n and not args.follow:
        raise common.usage("-n takes a whole number above 0; 0 is for --follow")
    wanted = _wanted(args, path)
    start = os.stat(path).st_size if args.follow and os.path.exists(path) else 0
    last = list(islice(records.newest(path, wanted), args.n))
    for record in reversed(last):
        _print(record, args)
    if args.follow:
        seen = {record["id"] for record in last}
        for record in follow(path, start):
            if record["id"] not in seen and wanted.fits(record):
                _print(record, args)
    return 0


def _print(record: Entry, args: Namespace) -> None:
    if args.json:
        print(jsonio.dumps(record).decode(), flush=True)
        return
    id_, when, container, result, devices = map(printable, _row(record))
    line = f"{id_}  {when}  {container:<12}  {result:<9}  {devices}"
    print(_painted(line, record), flush=True)


def follow(path: str, start: int) -> Iterator[Entry]:
    """Yield each record that is appended to *path* behind *start*, without an end.

    A file that is rotated is read to its end, then the new one from its begin.
    """
    file = None
    while True:
        if file is None:
            try:
                file = records.opened(path)
                file.seek(start)
            except FileNotFoundError:
                start = 0
            except ValueError as error:
                raise records.not_regular(path) from error
        is_replaced = file is not None and _is_replaced(path, file.fileno(), file.tell())
        time.sleep(POLL)  # what was opened before it was renamed may still be written to
        if file is not None:
            while (line := file.readline(records.LONGEST)).endswith(b"\n"):
                try:
                    yield records.parsed(line)
                except ValueError as error:
                    print(f"cdictl: a new line is damaged: {error}", file=sys.stderr)
            if len(line) == records.LONGEST:
                longest = f"{records.LONGEST >> 20} MiB"
                raise CdiRuncError(f"{path}: a line is longer than {longest}, no newer one is read")
            file.seek(-len(line), os.SEEK_CUR)
            if is_replaced:
                file.close()
                file, start = None, 0


def _is_replaced(path: str, fd: int, position: int) -> bool:
    try:
        now, ours = os.stat(path), os.fstat(fd)
    except FileNotFoundError:
        return False  # the new one is still to come
    return not os.path.samestat(now, ours) or now.st_size < position
