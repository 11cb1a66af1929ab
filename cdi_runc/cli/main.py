"""``cdictl``: one module for each command, imported only when that command is called.

A command's module has ``add_arguments(parser)`` and ``run(args) -> int``, whose result is the
exit code: 0 fine, 1 found a fault, 2 wrong usage.
"""

from __future__ import annotations

import importlib
import os
import sys

from cdi_runc import VERSION, log, settings
from cdi_runc.cli import common
from cdi_runc.cli.parsing import Parser
from cdi_runc.cli.rendering import Guarded, Unwritable
from cdi_runc.errors import BadRequest, CdiRuncError
from cdi_runc.report import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence
    from typing import IO

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


def parser_for(arguments: Sequence[str]) -> Parser:
    """Return a parser that knows all commands by name, and the one in *arguments* in full."""
    parser = Parser(
        prog="cdictl",
        description="See, check and audit the CDI devices that cdi-runc puts into containers.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"cdictl {VERSION}")
    commands = parser.add_commands()
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
    sys.stdin = sys.stdin or _nowhere("r")
    out, err = sys.stdout or _nowhere("w"), sys.stderr or _nowhere("w")
    sys.stdout, sys.stderr = Guarded(out), Guarded(err)
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except BrokenPipeError:  # the reader, for example `head`, has seen enough
        _give_up(out)
        return 0
    except Unwritable as error:
        _give_up(out)
        return _fail(str(error))
    finally:
        sys.stdout, sys.stderr = out, err


def _run(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    try:
        try:
            args = parser_for(arguments).parse_args(arguments)
            code = _call(args)
        finally:  # also of --help, which ends here
            sys.stdout.flush()
    except CdiRuncError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return 130
    except (BrokenPipeError, Unwritable):
        raise
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except Exception as error:  # noqa: BLE001  # a traceback must never reach a user
        return _fail(_unexpected(error))
    return code


def _call(args: Namespace) -> int:
    try:
        code: int = args.run(args)
    except BadRequest as error:
        from cdi_runc.specs import explain

        separate = explain.COMMAS
        if getattr(args, "device", None):
            is_one = isinstance(args.device, str)
            separate = "give one name" if is_one else "give --device again for each name"
        raise explain.misunderstood(error, common.in_force(args), separate) from error
    return code


def _nowhere(mode: str) -> IO[str]:
    """Stand in for what the caller closed."""
    return open(os.devnull, mode)


def _give_up(stream: IO[str]) -> None:
    """Let the interpreter's end not try once more to write what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _fail(text: str) -> int:
    try:
        print(f"cdictl: {printable(text)}", file=sys.stderr, flush=True)
    except Unwritable:  # nobody can be told
        _give_up(sys.stderr)
    return 1


def _unexpected(error: Exception) -> str:
    """Put the traceback in our own log, and return one line in its place."""
    import traceback

    try:
        known = settings.current()
    except Exception:  # noqa: BLE001  # the defaults will do for telling
        known = settings.defaults()
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    log.unusual(known, "error", "unexpected error", traceback=trace)
    return f"unexpected {type(error).__name__}: {error}; the details are in {known.log_file}"


if __name__ == "__main__":
    sys.exit(main())
