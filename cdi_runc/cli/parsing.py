"""The command line: argparse, with words that help whoever mistyped."""

from __future__ import annotations

import argparse
import sys

from cdi_runc.specs import near

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """A parser whose commands are parsed by others of its kind.

    Options that nobody knows are told by the command that got them, each with what was meant, and
    a command that needs another one and got none shows what there is.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options
        )
        self._commands: dict[str, Parser] | None = None

    def add_commands(self, metavar: str = "COMMAND", dest: str = argparse.SUPPRESS) -> Any:
        """Return what commands are added to with :func:`common.add_command`; one has to be given.

        *dest* is the name under which the chosen command is found.
        """
        commands = self.add_subparsers(metavar=metavar, dest=dest, required=True)
        self._commands = commands.choices
        return commands

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse *args*, and stop at what nobody knows."""
        words = sys.argv[1:] if args is None else [*args]
        if self._commands is not None and not words:
            self.print_help(sys.stderr)
            self.exit(2)
        found, rest = super().parse_known_args(words, namespace)
        if rest:
            self._stop_at(rest)
        return found, rest

    def _stop_at(self, rest: Sequence[str]) -> NoReturn:
        word = rest[0]
        if word[:1] == "-":
            name = word.partition("=")[0]
            known = [option for action in self._actions for option in action.option_strings]
            self.error(f"unknown option {name}{near.hint(name, known)}")
        self.error(f"one argument too many: {word!r}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(one) for one in action.choices]
        hint, one_of = near.hint(value, known), f"there are {', '.join(known)}"
        if action.choices is self._commands:
            raise argparse.ArgumentError(None, f"unknown command {value!r}{hint}; {one_of}")
        raise argparse.ArgumentError(action, f"{value!r} is unknown{hint}; {one_of}")

    def error(self, message: str) -> NoReturn:
        """Show usage and *message*, and end with status 2."""
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: {message}; see: {self.prog} --help\n")
