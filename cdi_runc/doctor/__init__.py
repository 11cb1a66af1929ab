"""cdictl doctor: what is wrong with this host, or with one container, and its cure (cold).

A module is a family of findings, a function in it a check: it takes what it must know, with what
is real as defaults, changes nothing, and yields a finding for each fault.  ``host`` and
``container`` list the checks in the order from cause to effect.
"""

from __future__ import annotations

import shlex

from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Literal

    Severity = Literal["error", "warning", "note"]
    Check = Callable[[], Iterable["Finding"]]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""error: containers fail, or nobody is protected; warning: likely a mistake; note: good to know."""
SHOWN = 3


class Report(Record):
    """What there is to say of a host or a container."""

    facts: tuple[tuple[str, str], ...]
    """Label and text of what was looked at."""
    findings: tuple[Finding, ...]
    """The cause first."""


class Finding(Record):
    """One thing that is wrong."""

    severity: Severity
    what: str
    why: str
    """Why it matters."""
    cure: str
    """A command, or what to do where no command can do it."""
    check: str = ""
    """The id of the check that found it, which stays."""


def carry_out(checks: Mapping[str, Check]) -> list[Finding]:
    """Run *checks*, each by its id, and return what they found.

    A check that fails is a finding itself: what is broken here may break the checks too.
    """
    found: list[Finding] = []
    for name, check in checks.items():
        try:
            found += [finding.but(check=name) for finding in check()]
        except Exception as error:  # noqa: BLE001  # see above
            found.append(
                Finding(
                    "error",
                    f"the check {name} could not be made: {type(error).__name__}: {error}",
                    "What it looks for may be there too.",
                    "deal with the other findings first; if it stays, please report it",
                    name,
                )
            )
    return found


def ordered(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return *found* without repeats, errors first, and else in the order from cause to effect."""
    return tuple(
        sorted(dict.fromkeys(found), key=lambda finding: SEVERITIES.index(finding.severity))
    )


def named(words: Sequence[str], shown: int = SHOWN) -> str:
    """Return *words* as a list for reading, cut to *shown*."""
    unique = list(dict.fromkeys(words))
    more = f" and {len(unique) - shown} more" if len(unique) > shown else ""
    return ", ".join(unique[:shown]) + more


def edit(path: str, what: str = "") -> str:
    """Return the command that edits *path*; *what* is to be done there.

    With a plain ``$EDITOR`` that is not set, a shell would run the file.
    """
    return f"${{EDITOR:-vi}} {shlex.quote(path)}" + (f"  # {what}" if what else "")


def counted(number: int, one: str) -> str:
    """Return *number* and the noun *one*, in the plural where it has one."""
    return f"{number} {one}" if number == 1 else f"{number} {one}s"
