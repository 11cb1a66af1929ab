"""``cdictl configure ENGINE``: tell an engine about cdi-runc, and take that back."""

from __future__ import annotations

import argparse
import importlib

from cdi_runc.cli import configuring

ENGINES = {
    "docker": ("configure_docker", "daemon.json, and a reload by SIGHUP"),
    "podman": ("configure_files", "a drop-in for containers.conf"),
    "containerd": ("configure_files", "config.toml, for Kubernetes"),
    "crio": ("configure_files", "a drop-in for crio.conf"),
}
EPILOG = """\
examples:
  cdictl configure docker --dry-run      show what would change
  cdictl configure podman
  cdictl configure containerd --remove   take it back
  cdictl configure ENGINE --help
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the engines, each with its options."""
    parser.epilog = EPILOG
    engines = parser.add_subparsers(dest="engine", metavar="ENGINE", required=True)
    for name, (module, summary) in ENGINES.items():
        engine = engines.add_parser(
            name,
            help=summary,
            description=f"Tell {name} about cdi-runc, or take that back.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        configuring.add_arguments(engine)
        importlib.import_module(f"cdi_runc.cli.{module}").add_arguments(engine, name)


def run(args: argparse.Namespace) -> int:
    """Configure the engine."""
    configuring.check(args)
    module = importlib.import_module(f"cdi_runc.cli.{ENGINES[args.engine][0]}")
    code: int = module.run(args)
    return code
