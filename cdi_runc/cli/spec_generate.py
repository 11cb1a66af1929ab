"""``cdictl spec generate``: what this host has, as spec files."""

from __future__ import annotations

import os
import sys
import time

from cdi_runc.authoring import generate, write
from cdi_runc.authoring.host import Host
from cdi_runc.bundle import describe
from cdi_runc.cli import common, rendering, spec_from_docker, spec_output
from cdi_runc.errors import CdiRuncError
from cdi_runc.names import fault_in_kind
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator, Sequence

    from cdi_runc.authoring.found import Spec
    from cdi_runc.authoring.generate import Result

EPILOG = f"""\
Classes: {", ".join(generate.CLASSES)}.
All but net are looked for unless --class says otherwise: a network interface is gone from the host
while a container has it.

A spec file holds one kind.  Names are made of udev's links and of places on the bus, which stay
over a reboot; each kind has a device "all".  Where not everybody may use a node, its group comes
along.  Nodes that have no link (USB as a whole, most of sound, InfiniBand, NVIDIA) and the
interfaces of net can be others after a reboot: then generate again, as the examples of a
systemd unit and of udev rules do (packaging/systemd and packaging/udev).

With --output-dir each kind has a file of its own.  Of the files there only those that were made by
this command are replaced, and removed when their kind has no device any more.

examples:
  cdictl spec generate
  cdictl spec generate --class video,dri --output-dir /etc/cdi
  cdictl spec generate --class nvidia --output /etc/cdi/nvidia.yaml
  cdictl spec generate --output-dir /var/run/cdi --watch 5
  cdictl spec generate --json | jq -r '.[].kind'
"""
COMMAND = "generate"
INTERVAL = 5.0


class Made(Record):
    """What became of one file."""

    file: str
    kind: str
    result: str
    devices: int


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--class",
        dest="classes",
        action="append",
        metavar="CLASS[,CLASS]",
        help="look for these classes only",
    )
    parser.add_argument(
        "--vendor",
        default=generate.VENDOR,
        metavar="VENDOR",
        help=f"the vendor in kinds that have none of their own ({generate.VENDOR})",
    )
    spec_from_docker.add_host(parser)
    spec_output.add_output(parser)
    parser.add_argument(
        "--output-dir",
        type=common.given,
        metavar="DIR",
        help="write a file for each kind, VENDOR-CLASS.yaml, to DIR",
    )
    parser.add_argument(
        "--watch",
        nargs="?",
        type=float,
        const=INTERVAL,
        metavar="SECONDS",
        help=f"go on, look again every SECONDS ({INTERVAL:g}), and write what has changed",
    )
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Print or write a spec for each kind of device that is here."""
    wanted = classes(args)
    host = Host(args.root or "", plain=args.resolve)
    told: set[str] = set()
    while True:
        results = list(generate.specs(host, wanted, args.vendor))
        notes = [note for result in results for note in result.notes]
        if args.classes and any(one.spec for one in results):
            notes += [f"no device of {one.kind} is here" for one in results if not one.spec]
        problems = list(_put(args, host, results))
        spec_output.tell(note for note in notes + problems if note not in told)
        told = {*notes, *problems}
        if args.watch is None:
            return 1 if problems else 0
        sys.stdout.flush()
        time.sleep(args.watch)


def classes(args: Namespace) -> Sequence[str]:
    """Return the classes to look for.

    Raises:
        SystemExit: the usage is wrong.

    """
    wrong = fault_in_kind("vendor", args.vendor)
    if wrong:
        raise common.usage(wrong)
    if args.output and args.output_dir:
        raise common.usage("--output and --output-dir exclude each other")
    if args.watch is not None and not (args.output or args.output_dir):
        raise common.usage("--watch needs --output or --output-dir")
    if args.watch is not None and not args.watch > 0:
        raise common.usage("--watch takes a number of seconds above 0")
    spec_output.form(args)
    if not args.classes:
        return generate.USUAL
    wanted = [name for words in args.classes for name in words.split(",")]
    for name in wanted:
        if name not in generate.CLASSES:
            known = ", ".join(generate.CLASSES)
            raise common.usage(f"unknown class {name!r}; known: {known}")
    return wanted


def _put(args: Namespace, host: Host, results: Sequence[Result]) -> Iterator[str]:
    """Print or write *results*; yield what went wrong: while one watches, it need not last."""
    if not args.output_dir:
        try:
            _print(args, host, [result.spec for result in results if result.spec is not None])
        except CdiRuncError as error:
            yield str(error)
        return
    made = []
    for result in results:
        try:
            made.append(_file(args.output_dir, host, result))
        except CdiRuncError as error:  # one kind's trouble is no other's
            yield str(error)
    _tell(args, [one for one in made if one is not None])


def _print(args: Namespace, host: Host, specs: Sequence[Spec]) -> None:
    if not specs:
        raise CdiRuncError(
            "none of the devices looked for is on this host",
            cure="see which classes there are: cdictl spec generate --help",
        )
    if args.output:
        if len(specs) > 1:
            kinds = ", ".join(spec["kind"] for spec in specs)
            raise CdiRuncError(
                f"a spec file holds one kind, and here are {kinds}",
                cure="choose one with --class, or write all to an --output-dir",
            )
        spec_output.emit(args, specs[0], spec_output.comment(COMMAND, specs[0], host))
    elif args.json:
        for spec in specs:
            write.rendered(spec, "json")
        rendering.print_json(specs)
    else:
        texts = [
            write.rendered(spec, "yaml", spec_output.comment(COMMAND, spec, host)) for spec in specs
        ]
        sys.stdout.buffer.write(b"---\n".join(texts))


def _file(directory: str, host: Host, result: Result) -> Made | None:
    path = os.path.join(directory, f"{result.kind.replace('/', '-')}.yaml")
    spec = result.spec
    is_ours = _is_ours(path)
    if spec is not None:
        if not is_ours and os.path.lexists(path):
            raise CdiRuncError(
                f"{path} is not written: it was not made by this command",
                cure="move it away, or name it as --output",
            )
        data = write.rendered(spec, "yaml", spec_output.comment(COMMAND, spec, host))
        word = spec_output.put(path, spec, data).partition(",")[0]
        return Made(path, result.kind, word, len(spec["devices"]))
    if not is_ours:
        return None
    try:
        os.unlink(path)
    except OSError as error:
        raise CdiRuncError(f"cannot remove {path}: {describe(error)}") from error
    return Made(path, result.kind, "removed", 0)


def _is_ours(path: str) -> bool:
    head = f"# {spec_output.made_by(COMMAND)}".encode()
    try:
        with open(path, "rb") as file:
            return file.read(len(head)) == head
    except OSError:
        return False


def _tell(args: Namespace, made: Sequence[Made]) -> None:
    if args.watch is not None:
        made = [one for one in made if one.result != "unchanged"]
    if args.json:
        fields = Made._fields
        rendering.print_json([dict(zip(fields, one.values(), strict=True)) for one in made])
        return
    for one in made:
        count = f", {one.devices} devices of {one.kind}" if one.devices else f", {one.kind}"
        print(f"{one.file}: {one.result}{count}")
