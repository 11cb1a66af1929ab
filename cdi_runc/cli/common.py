"""What several commands need: the settings in force, and the options that change them."""

from __future__ import annotations

import argparse
import os
import sys

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


def given(text: str) -> str:
    """Return *text*, what an argument names: an empty one, as of an unset variable, names nothing.

    Raises:
        argparse.ArgumentTypeError: it is empty.

    """
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def count(text: str) -> int:
    """Return the whole number, 0 or above, that *text* is.

    Raises:
        argparse.ArgumentTypeError: it is none.

    """
    if not (text.isascii() and text.isdigit() and len(text) < 10):  # noqa: PLR2004
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to 999999999")
    return int(text)


def usage(text: str) -> SystemExit:
    """Return what ends the command as a wrong usage does."""
    print(f"cdictl: {text}", file=sys.stderr)
    return SystemExit(2)


def add_json(parser: ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON, for machines")


def add_spec_dir(parser: ArgumentParser) -> None:
    """Add ``--spec-dir``."""
    parser.add_argument(
        "--spec-dir",
        action="append",
        type=given,
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
