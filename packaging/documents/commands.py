"""What cdictl can be called with, read from its parsers."""

import argparse
import os
from typing import NamedTuple

from cdi_runc.cli import main as cli

os.environ["COLUMNS"] = "80"  # argparse asks the terminal for it


class Option(NamedTuple):
    """One option, or one argument if it has no names."""

    names: tuple[str, ...]
    metavar: str
    """Empty if it takes no value."""
    choices: tuple[str, ...]
    values: str
    """What a value names: devices, containers, directories, files or nothing of that."""
    help: str
    is_repeated: bool


class Command(NamedTuple):
    """A command: cdictl itself has no words, ``cdictl audit list`` has two."""

    words: tuple[str, ...]
    summary: str
    description: str
    epilog: str
    usage: str
    options: tuple[Option, ...]
    arguments: tuple[Option, ...]
    below: tuple[str, ...]
    """The words of the commands below it."""


def read():
    """Return every command, each before those below it."""
    return [
        *_walk((), "", cli.parser_for([]), deep=False),
        *(
            command
            for name, summary in cli.COMMANDS.items()
            for command in _walk((name,), summary, _below(cli.parser_for([name])).choices[name])
        ),
    ]


def _walk(words, summary, parser, *, deep=True):
    sub = _below(parser)
    actions = [action for action in parser._actions if action is not sub]
    yield Command(
        words,
        summary,
        parser.description or "",
        parser.epilog or "",
        parser.format_usage().removeprefix("usage: "),
        tuple(_option(action, parser) for action in actions if action.option_strings),
        tuple(_option(action, parser) for action in actions if not action.option_strings),
        tuple(sub.choices) if sub else (),
    )
    if sub and deep:
        told = {choice.dest: choice.help or "" for choice in sub._choices_actions}
        for name, command in sub.choices.items():
            yield from _walk((*words, name), told.get(name, ""), command)


def _below(parser):
    return next((a for a in parser._actions if isinstance(a, argparse._SubParsersAction)), None)


def _option(action, parser):
    choices = tuple(map(str, action.choices or ()))
    metavar = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
    if choices and not action.metavar:
        metavar = "|".join(choices)
    return Option(
        tuple(action.option_strings),
        metavar,
        choices,
        _values(action.dest, metavar),
        parser._get_formatter()._expand_help(action) if action.help else "",
        action.nargs in ("*", "+") or isinstance(action, argparse._AppendAction),
    )


def _values(dest, metavar):
    if dest == "device" or metavar == "DEVICE":
        return "devices"
    if dest == "container" or "CONTAINER" in metavar:
        return "containers"
    if metavar == "DIR":
        return "directories"
    return "files" if metavar in ("FILE", "F", "P", "CONFIG.json") else ""
