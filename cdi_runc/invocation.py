"""argv as runc and crun read it: which command, which bundle, where to report.

runc uses Go's flag package: one or two dashes, ``--flag value`` or ``--flag=value``; its commands
take flags before and after the id.  crun takes the same and ``-bVALUE``.  The launcher walks argv
by the same table; tests/unit/argv_cases.py is run through both.
"""

from __future__ import annotations

from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Flags that take a value: runc 1.1 to 1.4, crun 1.8 to 1.20.  All others stand alone.
GLOBAL_VALUES = frozenset(
    ("root", "log", "log-format", "log-level", "criu", "rootless", "cgroup-manager")
)
GLOBAL_ALONE = ("debug", "systemd-cgroup")
COMMAND_VALUES = frozenset(
    [
        "bundle",
        "config",
        "console-socket",
        "pidfd-socket",
        "pid-file",
        "preserve-fds",
        # of restore alone
        "image-path",
        "work-path",
        "manage-cgroups-mode",
        "empty-ns",
        "lsm-profile",
        "lsm-mount-context",
    ]
)
EXEC_VALUES = frozenset(
    [
        "console-socket",
        "pidfd-socket",
        "cwd",
        "env",
        "e",
        "user",
        "u",
        "additional-gids",
        "g",
        "process",
        "p",
        "pid-file",
        "process-label",
        "apparmor",
        "cap",
        "c",
        "preserve-fds",
        "cgroup",
    ]
)
_LONG = {"b": "bundle", "f": "config", "p": "process"}
COMMANDS = frozenset(
    [
        "checkpoint",
        "create",
        "delete",
        "events",
        "exec",
        "features",
        "help",
        "init",
        "kill",
        "list",
        "mounts",
        "pause",
        "ps",
        "restore",
        "resume",
        "run",
        "spec",
        "start",
        "state",
        "update",
    ]
)
EDITED = frozenset(("create", "run", "restore"))


class Invocation(Record):
    """One call of the runtime."""

    command: str
    id: str = ""
    bundle: str = "."
    """As given, which may be relative to the working directory."""
    config: str = ""
    """crun's ``--config``: a configuration elsewhere than in the bundle."""
    process: str = ""
    """exec's ``--process``: a file with the process to start."""
    root: str = ""
    log: str = ""
    log_format: str = "text"

    @property
    def config_path(self) -> str:
        """The configuration that the real runtime will read."""
        return self.config or f"{self.bundle}/config.json"


def parse(arguments: Sequence[str]) -> Invocation:
    """Read *arguments*, argv without the program's name.  Never fails."""
    options: dict[str, str] = {}
    rest = iter(arguments)
    command = _command(rest, options)
    words = _words(rest, options, EXEC_VALUES if command == "exec" else COMMAND_VALUES)
    return Invocation(
        command=command,
        id=words[0] if words else "",
        bundle=options.get("bundle") or ".",
        config=options.get("config", ""),
        process=options.get("process", ""),
        root=options.get("root", ""),
        log=options.get("log", ""),
        log_format=options.get("log-format", "text"),
    )


def _command(rest: Iterator[str], options: dict[str, str]) -> str:
    """Take the global flags from *rest*, and return the word behind them."""
    unknown = False
    for argument in rest:
        if argument == "--":
            return next(rest, "")
        if argument[:1] != "-" or argument == "-":
            # After a flag we do not know, a word that is no command is that flag's value.
            if not unknown or argument in COMMANDS:
                return argument
            continue
        name, equals, value = argument[1 + (argument[:2] == "--") :].partition("=")
        if name in GLOBAL_VALUES:
            options[name] = value if equals else next(rest, "")
        elif not equals and name not in GLOBAL_ALONE:
            unknown = True
    return ""


def _words(rest: Iterator[str], options: dict[str, str], values: frozenset[str]) -> list[str]:
    """Take the command's flags from *rest*, and return its words."""
    words: list[str] = []
    for argument in rest:
        name, equals, value = argument[1 + (argument[:2] == "--") :].partition("=")
        name = _LONG.get(name, name)
        if argument == "--":
            return [*words, *rest]
        if argument[:1] != "-" or argument == "-":
            words.append(argument)
            if values is EXEC_VALUES:
                return words  # what follows the id is the program's own
        elif name in values:
            options[name] = value if equals else next(rest, "")
        elif argument[:2] in ("-b", "-f") and argument[2:3] in ("/", "."):
            options[_LONG[argument[1]]] = argument[2:]
    return words
