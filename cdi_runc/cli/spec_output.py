"""Where the specs go that ``cdictl spec`` makes: standard output, or a file."""

from __future__ import annotations

import os
import sys

from cdi_runc import settings
from cdi_runc.authoring import write
from cdi_runc.cli import common
from cdi_runc.errors import CdiRuncError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable

    from cdi_runc.authoring.found import Spec
    from cdi_runc.authoring.host import Host

LINKS = """\
Some paths on the host are links, as udev keeps them over a reboot. cdi-runc follows them each time
it makes a container. Other tools may want the device nodes themselves: make this with --resolve.
"""


def tell(notes: Iterable[str]) -> None:
    """Print *notes* on standard error."""
    for note in notes:
        print(f"cdictl: {note}", file=sys.stderr)


def add_output(parser: ArgumentParser) -> None:
    """Add ``--output`` and ``--json``."""
    parser.add_argument(
        "--output",
        type=common.given,
        metavar="FILE",
        help="write to FILE (.yaml or .json), in one step, instead of standard output",
    )
    common.add_json(parser)


def form(args: Namespace) -> str:
    """Return in which form the output is: YAML, unless an option or the file's name says JSON.

    Raises:
        SystemExit: the file's name is no spec file's, or two of them contradict each other.

    """
    said = {"--json": "json"} if args.json else {}
    if getattr(args, "to", None):
        said[f"--to {args.to}"] = args.to
    if args.output:
        found = write.form_of(args.output)
        if not found:
            reason = "a spec file is called .yaml or .json, or no tool reads it"
            raise common.usage(f"{args.output}: {reason}")
        said[f"--output {args.output}"] = found
    if len({*said.values()}) > 1:
        told = ", ".join(f"{option} means {form.upper()}" for option, form in said.items())
        raise common.usage(f"these contradict each other: {told}")
    return next(iter(said.values()), "yaml")


def made_by(command: str) -> str:
    """Return the first line of what *command* makes."""
    return f"Made by: cdictl spec {command}\n"


def comment(command: str, spec: Spec, host: Host) -> str:
    """Return the comment at the head of *spec*, which *command* made of what *host* has."""
    sources = [
        node.get("hostPath", node["path"])
        for device in spec["devices"]
        for node in device["containerEdits"].get("deviceNodes", ())
    ]
    linked = any(host.real(path) != path for path in sources)
    return made_by(command) + (LINKS if linked else "")


def emit(args: Namespace, spec: Spec, head: str) -> None:
    """Put *spec* where ``--output`` says.

    Raises:
        CdiRuncError: it is not valid, or another file has its devices.

    """
    data = write.rendered(spec, form(args), head)
    if args.output:
        spec_dirs = settings.current().spec_dirs
        directory = os.path.dirname(os.path.abspath(args.output))
        if directory not in spec_dirs and not os.path.isdir(directory):
            raise CdiRuncError(
                f"there is no directory {directory}",
                cure=f"make it first; spec files count in {' and '.join(spec_dirs)}",
            )
        print(f"{args.output}: {put(args.output, spec, data)}")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def put(path: str, spec: Spec, data: bytes) -> str:
    """Write *data*, the text of *spec*, to *path*; return in words what became of it."""
    write.refuse_conflicts(path, spec, settings.current().spec_dirs)
    try:
        changed = write.replace(path, data)
    except OSError as error:
        raise CdiRuncError(f"cannot write {path}: {os.strerror(error.errno or 0)}") from error
    count = len(spec["devices"])
    devices = f"{count} device{'s' if count != 1 else ''} of {spec['kind']}"
    return f"{'written' if changed else 'unchanged'}, {devices}"
