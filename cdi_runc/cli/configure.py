"""``cdictl configure ENGINE``: tell an engine about cdi-runc, and take that back."""

from __future__ import annotations

import importlib

from cdi_runc.cli import common, configuring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from cdi_runc.cli.parsing import Parser

ENGINES = {
    "docker": ("configure_docker", "tell Docker, in daemon.json, and have it reload that"),
    "podman": ("configure_files", "tell Podman, in a drop-in for containers.conf"),
    "containerd": ("configure_files", "tell containerd, in config.toml, for Kubernetes"),
    "crio": ("configure_files", "tell CRI-O, in a drop-in for crio.conf"),
}
EPILOG = """\
examples:
  cdictl configure docker --dry-run      show what would change
  cdictl configure podman
  cdictl configure containerd --remove   take it back
  cdictl configure ENGINE --help
"""


def add_arguments(parser: Parser) -> None:
    """Add the engines, each with its options."""
    parser.epilog = EPILOG
    engines = parser.add_commands("ENGINE", dest="engine")
    for name, (module, summary) in ENGINES.items():
        engine = common.add_command(engines, name, summary)
        configuring.add_arguments(engine)
        importlib.import_module(f"cdi_runc.cli.{module}").add_arguments(engine, name)


def run(args: Namespace) -> int:
    """Configure the engine."""
    configuring.check(args)
    module = importlib.import_module(f"cdi_runc.cli.{ENGINES[args.engine][0]}")
    code: int = module.run(args)
    return code
