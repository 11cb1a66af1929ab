"""``cdictl doctor``: what is wrong with this host, or with a container, and the cure."""

from __future__ import annotations

from cdi_runc import settings
from cdi_runc.cli import common, rendering
from cdi_runc.cli.rendering import Node
from cdi_runc.report import printable

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
  cdictl doctor web-1                   a name or id of Docker's or Podman's
  cdictl doctor 3dbe7f4e                the beginning of an id on record, of any engine
  cdictl doctor --bundle ./bundle
  cdictl doctor --json | jq -r '.findings[].cure'
"""
COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}
INDENT = " " * 9


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "container",
        nargs="?",
        type=common.given,
        metavar="CONTAINER",
        help="a container's name or id",
    )
    what.add_argument(
        "--bundle", type=common.given, metavar="DIR", help="the container of this bundle"
    )
    common.add_json(parser)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Print what was found."""
    report = _examine(args)
    if args.json:
        rendering.print_json(_told(report))
    else:
        print("\n".join(lines(report)))
    return 1 if any(one.severity == "error" for one in report.findings) else 0


def _examine(args: Namespace) -> Report:
    from cdi_runc.doctor import engines

    found = _settings()
    dockers = engines.dockers()
    if not args.container and not args.bundle:
        from cdi_runc.doctor import host

        return host.examine(found, dockers)
    from cdi_runc.doctor import container, containers

    if args.bundle:
        one = containers.in_bundle(args.bundle, found)
    else:
        one = containers.find(args.container, found, [d.host for d in dockers if d.host])
    return container.examine(one, found, engines.runtimes(one.host, dockers) if one.host else None)


def _settings() -> settings.Settings:
    """Return the settings in force; where they cannot be read, the defaults, which say why."""
    try:
        return settings.current()
    except Exception as error:  # noqa: BLE001  # a part of ours is missing, and host tells which
        why = f"the configuration cannot be read: {type(error).__name__}: {error}"
        broken: settings.Settings = settings.defaults().but(broken=why)
        return broken


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


def lines(report: Report) -> Iterator[str]:
    """Yield what a person reads."""
    yield from rendering.fields(Node(name, value) for name, value in report.facts)
    for finding in report.findings:
        yield ""
        yield from _shown(finding)
    yield ""
    yield _summary(report.findings)


def _shown(finding: Finding) -> Iterator[str]:
    columns = rendering.width()
    columns = max(columns - len(INDENT), 0)
    first, *rest = rendering.wrapped(finding.what, columns)
    severity = rendering.paint(finding.severity, COLOURS[finding.severity])
    yield f"{severity}{' ' * (len(INDENT) - len(finding.severity))}{rendering.paint(first, 'bold')}"
    yield from (f"{INDENT}{rendering.paint(line, 'bold')}" for line in rest)
    yield from (f"{INDENT}{line}" for line in rendering.wrapped(finding.why, columns))
    # Never wrapped, so that it can be copied.
    yield f"{INDENT}{rendering.paint('cure:', 'green')} {printable(finding.cure)}"


def _summary(findings: tuple[Finding, ...]) -> str:
    from cdi_runc.doctor import SEVERITIES, counted

    counts = {severity: sum(f.severity == severity for f in findings) for severity in SEVERITIES}
    told = [
        rendering.paint(counted(count, severity), COLOURS[severity])
        for severity, count in counts.items()
        if count
    ]
    return ", ".join(told) if told else rendering.paint("nothing is wrong", "green")
