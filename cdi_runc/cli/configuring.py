"""What ``cdictl configure`` of every engine needs: options, our program, the change as a diff."""

from __future__ import annotations

import difflib
import os
import re

from cdi_runc.cli import common
from cdi_runc.engines import NAME
from cdi_runc.errors import CdiRuncError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from cdi_runc.engines.config_file import ConfigFile

RESERVED = ("runc", "crun", "io.containerd.")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options that every engine has."""
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--set-default",
        action="store_true",
        help="use it for every container; any image that sets CDI_DEVICES then asks for devices",
    )
    what.add_argument(
        "--remove", action="store_true", help="take away what was added, and nothing else"
    )
    add("--runtime-name", metavar="NAME", default=NAME, help=f"what the engine calls it ({NAME})")
    add(
        "--runtime-path",
        type=common.given,
        metavar="P",
        help="the cdi-runc to use (default: the one beside cdictl); with --remove: only if that",
    )
    add("--dry-run", action="store_true", help="show the change, and make none")


def check(args: Namespace) -> None:
    """Check the names in *args*.

    Raises:
        CdiRuncError: one of them cannot be used.

    """
    name = args.runtime_name
    if not re.fullmatch(r"[a-zA-Z0-9][\w.-]*", name, re.ASCII) or name.startswith(RESERVED):
        raise CdiRuncError(f"the runtime cannot be named {name!r}", cure=f"use a name like {NAME}")
    if args.runtime_path and args.runtime_path[0] != "/":
        raise CdiRuncError(
            f"{args.runtime_path!r} is not an absolute path", cure="write it in full"
        )


def program(given: str | None) -> str:
    """Return the path of the cdi-runc that an engine shall call.

    Raises:
        CdiRuncError: it is not there.

    """
    root, is_installed, _ = __file__.partition("/lib/cdi-runc/")
    beside = f"{root}/bin/cdi-runc" if is_installed else None
    for path in [given] if given else [beside, "/usr/local/bin/cdi-runc", "/usr/bin/cdi-runc"]:
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise CdiRuncError(
        f"{given} is not a program" if given else "cdi-runc was not found beside cdictl",
        cure="name it with --runtime-path",
    )


def difference(file: ConfigFile, text: str | None) -> list[str]:
    """Return the lines of a diff from *file* to *text*."""
    before, after = ((t or "").splitlines(keepends=True) for t in (file.text, text))
    lines = difflib.unified_diff(before, after, file.named, f"{file.named} (not written)")
    told = [line if line.endswith("\n") else f"{line}\n" for line in lines]
    return told or [f"{file.named}: nothing to change\n"]
