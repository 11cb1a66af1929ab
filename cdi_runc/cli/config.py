"""``cdictl config check``: is our own configuration fit for use."""

from __future__ import annotations

import os
import sys

from cdi_runc import paths
from cdi_runc.cli import common, rendering
from cdi_runc.config import load
from cdi_runc.errors import BadConfiguration, CdiRuncError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from cdi_runc.cli.parsing import Parser

EPILOG = """\
examples:
  cdictl config check
  cdictl config check --json | jq -r '.errors[]'
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
    common.add_json(check)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Say whether the configuration can be used, and every fault with its line."""
    path, named = paths.config()
    path = os.path.abspath(args.file) if args.file else path
    exists = args.file or named or paths.exists(path)
    errors: list[str] = []
    if exists:
        try:
            errors = load.examine(path)
        except BadConfiguration as error:
            if not args.json:
                raise CdiRuncError(error.message, cure="") from error
            errors = [error.message]
    warnings = list(_warnings(path)) if exists and not errors else []
    if args.json:
        rendering.print_json(
            {"file": path, "valid": not errors, "errors": errors, "warnings": warnings}
        )
        return 1 if errors else 0
    for fault in errors:
        print(f"{path}: {fault}", file=sys.stderr)
    if errors:
        return 1
    print(f"{path}: valid" if exists else f"{path} does not exist: the defaults hold")
    for warning in warnings:
        print(f"warning: {warning}")
    return 0


def _warnings(path: str) -> Iterator[str]:
    for number, rule in enumerate(load.read(path).policy[:-1], 1):
        if not any(rule[:3]):
            yield f"rule {number} of the policy decides everything; none after it counts"
            return
