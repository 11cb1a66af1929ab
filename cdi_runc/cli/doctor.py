"""``cdictl doctor``: what is wrong with this host, or with a container, and the cure."""

from __future__ import annotations

import shutil
import textwrap

from cdi_runc import settings
from cdi_runc.cli import common, rendering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from cdi_runc.doctor import Finding, Report

EPILOG = """\
Without CONTAINER it looks at the host: engines, launcher, spec files, permissions, audit.  With
one it looks at what that container got: libraries, nodes, groups, hooks, mounts.  Errors come
first, and the cause before its effects.  Nothing is changed.  The exit code is 1 if there is an
error.

examples:
  cdictl doctor
  cdictl doctor web-1                   a name or id of Docker's
  cdictl doctor 3dbe7f4e                the beginning of an id on record, of any engine
  cdictl doctor --bundle ./bundle
  cdictl doctor --json | jq -r '.findings[].cure'
"""
COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}
WIDTH = 80
INDENT = " " * 9


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("container", nargs="?", metavar="CONTAINER", help="a container's name or id")
    what.add_argument("--bundle", metavar="DIR", help="the container of this bundle")
    common.add_json(parser)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Print what was found."""
    from cdi_runc.doctor import engines, host

    found = settings.current()
    dockers = engines.dockers()
    if args.container or args.bundle:
        from cdi_runc.doctor import container, containers
        from cdi_runc.engines import dockerd

        if args.bundle:
            one = containers.in_bundle(args.bundle, found)
        else:
            hosts = [docker.host for docker in dockers if docker.host] or [dockerd.SOCKET]
            one = containers.find(args.container, found, hosts)
        runtimes = frozenset(name for d in dockers for name in (*d.known, *d.listed))
        report = container.examine(one, found, runtimes)
    else:
        report = host.examine(found, dockers)
    if args.json:
        rendering.print_json(_told(report))
    else:
        print("\n".join(_lines(report)))
    return 1 if any(one.severity == "error" for one in report.findings) else 0


def _told(report: Report) -> dict[str, object]:
    return {
        "facts": [{"name": name, "value": value} for name, value in report.facts],
        "findings": [
            {
                "severity": one.severity,
                "check": one.check,
                "what": one.what,
                "why": one.why,
                "cure": one.cure,
            }
            for one in report.findings
        ],
    }


def _lines(report: Report) -> Iterator[str]:
    width = min(shutil.get_terminal_size((WIDTH, 24)).columns, 100)
    label = max(len(name) for name, _ in report.facts) + 2
    for name, value in report.facts:
        first, *rest = _wrapped(value, width - label) or [""]
        yield f"{rendering.paint(name, 'dim')}{' ' * (label - len(name))}{first}"
        yield from (f"{' ' * label}{line}" for line in rest)
    for finding in report.findings:
        yield ""
        yield from _shown(finding, width - len(INDENT))
    yield ""
    yield _summary(report.findings)


def _shown(finding: Finding, width: int) -> Iterator[str]:
    first, *rest = _wrapped(finding.what, width)
    severity = rendering.paint(finding.severity, COLOURS[finding.severity])
    yield f"{severity}{' ' * (len(INDENT) - len(finding.severity))}{rendering.paint(first, 'bold')}"
    yield from (f"{INDENT}{rendering.paint(line, 'bold')}" for line in rest)
    yield from (f"{INDENT}{line}" for line in _wrapped(finding.why, width))
    yield f"{INDENT}{rendering.paint('cure:', 'green')} {finding.cure}"  # whole, to be copied


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _summary(findings: tuple[Finding, ...]) -> str:
    from cdi_runc.doctor import SEVERITIES, counted

    counts = {severity: sum(f.severity == severity for f in findings) for severity in SEVERITIES}
    told = [
        rendering.paint(counted(count, severity), COLOURS[severity])
        for severity, count in counts.items()
        if count
    ]
    return ", ".join(told) if told else rendering.paint("nothing is wrong", "green")
