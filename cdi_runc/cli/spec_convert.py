"""``cdictl spec convert``: the same spec in another form or version."""

from __future__ import annotations

from cdi_runc.authoring import combine, write
from cdi_runc.cli import spec_output
from cdi_runc.specs import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EPILOG = """\
Members come in their usual order, and empty ones are left out; lists stay as they are.  Comments
are lost.  Without --cdi-version the version stays; a version that is too low for something in the
file is refused, and "minimum" is the lowest that will do.

examples:
  cdictl spec convert --to json /etc/cdi/vendor.yaml
  cdictl spec convert --cdi-version 0.5.0 vendor.yaml --output old.yaml
  cdictl spec convert --cdi-version minimum vendor.json --output vendor.yaml
"""
MINIMUM = "minimum"
VERSIONS = (*check.VERSIONS[2:], MINIMUM)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("file", metavar="FILE", help="a CDI spec file")
    parser.add_argument("--to", choices=("yaml", "json"), help="the form (yaml, unless --output)")
    parser.add_argument(
        "--cdi-version",
        choices=VERSIONS,
        metavar="VERSION",
        default="",
        help=f"the version: {', '.join(VERSIONS)}",
    )
    spec_output.add_output(parser)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Print or write the spec."""
    spec_output.form(args)  # before anything is read
    spec = write.read(args.file)
    version = args.cdi_version
    if version == MINIMUM:
        version = check.minimum_version(spec)
    spec = combine.as_version(spec, version, args.file)
    spec_output.emit(args, spec, "")
    return 0
