"""``cdictl``: one module for each command, imported only when that command is called.

A command's module has ``add_arguments(parser)`` and ``run(args) -> int``, whose result is the
exit code: 0 fine, 1 found a fault, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from cdi_runc import VERSION, log, settings
from cdi_runc.cli import common
from cdi_runc.cli.rendering import Guarded
from cdi_runc.errors import CdiRuncError
from cdi_runc.report import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "devices": "list the devices that this host offers",
    "show": "show what one device puts into a container",
    "validate": "check spec files, and name every fault in them",
    "inject": "print a config.json as it would be with devices in it",
    "plan": "show what a create would do, before it happens",
    "audit": "list and show what was put into which container",
    "drift": "list the running containers that are to be made again",
    "explain": "find the edit behind an engine's error",
    "doctor": "find what is wrong with this host, or with a container, and the cure",
    "spec": "make, convert and merge spec files",
    "configure": "tell a container engine about cdi-runc, or take that back",
    "config": "check cdi-runc's own configuration",
}
EPILOG = """\
examples:
  cdictl devices
  cdictl validate /etc/cdi/*.yaml
  cdictl audit list
  cdictl configure docker
  cdictl COMMAND --help

exit codes: 0 fine, 1 found a fault, 2 wrong usage
"""


def parser_for(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser that knows all commands by name, and the one in *arguments* in full."""
    parser = argparse.ArgumentParser(
        prog="cdictl",
        description="See, check and audit the CDI devices that cdi-runc puts into containers.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"cdictl {VERSION}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    called = next((word for word in arguments if word[:1] != "-"), None)
    for name, summary in COMMANDS.items():
        command = common.add_command(commands, name, summary)
        if name == called:
            module = importlib.import_module(f"cdi_runc.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that *arguments* (or argv) name, and return the exit code."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = Guarded(out), Guarded(err)
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    finally:
        sys.stdout, sys.stderr = out, err


def _run(arguments: Sequence[str]) -> int:
    try:
        args = parser_for(arguments).parse_args(arguments)
        code: int = args.run(args)
        sys.stdout.flush()
    except CdiRuncError as error:
        return _fail(str(error))
    except BrokenPipeError:  # the reader, for example `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except Exception as error:  # noqa: BLE001  # a traceback must never reach a user
        return _fail(_unexpected(error))
    return code


def _fail(text: str) -> int:
    print(f"cdictl: {printable(text)}", file=sys.stderr)
    return 1


def _unexpected(error: Exception) -> str:
    """Put the traceback in our own log, and return one line in its place."""
    import traceback

    known = settings.defaults()
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    log.unusual(known, "error", "unexpected error", traceback=trace)
    return f"unexpected {type(error).__name__}: {error}; the details are in {known.log_file}"


if __name__ == "__main__":
    sys.exit(main())
