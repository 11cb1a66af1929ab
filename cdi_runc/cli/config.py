"""``cdictl config check``: is our own configuration fit for use."""

from __future__ import annotations

import os
import sys

from cdi_runc import paths
from cdi_runc.cli import common
from cdi_runc.config import load
from cdi_runc.errors import BadConfiguration, CdiRuncError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from cdi_runc.cli.parsing import Parser

EPILOG = """\
examples:
  cdictl config check
  CDI_RUNC_CONFIG=./config.yaml cdictl config check
"""


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    commands = parser.add_commands("check")
    check = common.add_command(commands, "check", "name what is wrong in the configuration")
    check.add_argument(
        "file",
        nargs="?",
        type=common.given,
        metavar="FILE",
        help="another file than the one in force",
    )
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Say whether the configuration can be used, and every fault with its line."""
    path, named = paths.config()
    path = os.path.abspath(args.file) if args.file else path
    if not args.file and not named and not paths.exists(path):
        print(f"{path} does not exist: the defaults hold")
        return 0
    try:
        faults = load.examine(path)
    except BadConfiguration as error:
        raise CdiRuncError(error.message, cure="") from error
    for fault in faults:
        print(f"{path}: {fault}", file=sys.stderr)
    if faults:
        return 1
    print(f"{path}: valid")
    for number, rule in enumerate(load.read(path).policy[:-1], 1):
        if not any(rule[:3]):
            print(f"warning: rule {number} of the policy decides everything; none after it counts")
            break
    return 0
