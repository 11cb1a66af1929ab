"""``cdictl spec``: make, convert and merge spec files."""

from __future__ import annotations

from cdi_runc.cli import (
    common,
    spec_convert,
    spec_from_docker,
    spec_generate,
    spec_merge,
    spec_minimum_version,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from cdi_runc.cli.parsing import Parser

COMMANDS = {
    "generate": (spec_generate, "describe the devices that this host has"),
    "from-docker": (spec_from_docker, "turn Docker's device mappings into a spec"),
    "convert": (spec_convert, "write a spec as YAML or JSON, or for another CDI version"),
    "minimum-version": (spec_minimum_version, "say which CDI version spec files need"),
    "merge": (spec_merge, "make one spec of several of the same kind"),
}
EPILOG = """\
What is written is valid, of the lowest CDI version that will do, sorted, and replaced in one step.

examples:
  cdictl spec generate --class video
  cdictl spec from-docker --device /dev/video0:/dev/cam:rw --output /etc/cdi/cam.yaml
  cdictl spec convert --to json vendor.yaml
  cdictl spec minimum-version --explain /etc/cdi/*.yaml
  cdictl spec merge one.yaml two.yaml --output both.yaml
  cdictl spec COMMAND --help
"""


def add_arguments(parser: Parser) -> None:
    """Add the commands below this one."""
    commands = parser.add_commands(dest="spec")
    for name, (module, summary) in COMMANDS.items():
        command = common.add_command(commands, name, summary)
        module.add_arguments(command)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Do what the command below says."""
    module, _ = COMMANDS[args.spec]
    code: int = module.run(args)
    return code
