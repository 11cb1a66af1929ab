"""``cdictl spec merge``: several spec files of one kind in one."""

from __future__ import annotations

from cdi_runc.authoring import combine, write
from cdi_runc.cli import spec_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EPILOG = """\
The files must be of one kind and have the same containerEdits for all their devices, and no two
may define one device in two ways.  A device "all" that is everything in each file is everything in
the result.  The version is the lowest that will do.

examples:
  cdictl spec merge cam0.yaml cam1.yaml
  cdictl spec merge cam*.yaml --output /etc/cdi/cameras.yaml
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a CDI spec file")
    spec_output.add_output(parser)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Print or write the merged spec."""
    spec_output.form(args)
    spec = combine.merged([(path, write.read(path)) for path in args.files])
    spec_output.emit(args, spec, "")
    return 0
