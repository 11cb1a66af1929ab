"""``cdictl config check``: is our own configuration fit for use."""

from __future__ import annotations

import os

from cdi_runc import paths
from cdi_runc.config import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EPILOG = """\
examples:
  cdictl config check
  CDI_RUNC_CONFIG=./config.yaml cdictl config check
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    commands = parser.add_subparsers(metavar="check", required=True)
    check = commands.add_parser("check", help="name what is wrong in the configuration")
    check.add_argument("file", nargs="?", metavar="FILE", help="another file than the one in force")
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Say whether the configuration can be used; the first fault is an error, with its line."""
    path, named = paths.config()
    path = os.path.abspath(args.file) if args.file else path
    if not args.file and not named and not paths.exists(path):
        print(f"{path} does not exist: the defaults hold")
        return 0
    load.read(path)
    print(f"{path}: valid")
    return 0
