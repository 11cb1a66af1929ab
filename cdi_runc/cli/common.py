"""What several commands need: the settings in force, and the options that change them."""

from __future__ import annotations

import os

from cdi_runc import settings
from cdi_runc.errors import BadConfiguration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any


def add_command(commands: Any, name: str, summary: str) -> ArgumentParser:
    """Add the command *name* to what add_subparsers() returned; return its parser."""
    added: ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
    )
    return added


def add_json(parser: ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON, for machines")


def add_spec_dir(parser: ArgumentParser) -> None:
    """Add ``--spec-dir``."""
    parser.add_argument(
        "--spec-dir",
        action="append",
        metavar="DIR",
        help="read spec files from DIR instead of the configured directories;"
        " may be given again, and a later one wins",
    )


def in_force(args: Namespace) -> settings.Settings:
    """Return the settings that hold, with ``--spec-dir`` of *args* if it was given.

    Raises:
        BadConfiguration: the configuration cannot be used.

    """
    found = settings.current()
    if found.broken:
        raise BadConfiguration(found.broken)
    spec_dirs = getattr(args, "spec_dir", None)
    if spec_dirs:
        # Compiled in memory only: the kept registry is that of the configured directories.
        changed: settings.Settings = found.but(
            spec_dirs=tuple(os.path.abspath(path) for path in spec_dirs), state_dir=None
        )
        return changed
    return found
