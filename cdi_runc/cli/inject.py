"""``cdictl inject``: the reference library's function, from a file to standard output (C11)."""

from __future__ import annotations

from cdi_runc import names, plan, registry, requests
from cdi_runc.bundle import Bundle
from cdi_runc.cli import common, rendering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EPILOG = """\
Device nodes are filled in from this host; mount sources and hooks are not looked at.
Without --device, the configuration's own requests count: annotations and environment.
Nothing is printed and the exit code is 1 if any device fails.

examples:
  cdictl inject --device nvidia.com/gpu=0 config.json
  cdictl inject --spec-dir ./cdi --device acme.example/widget=w0 config.json | diff config.json -
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("config", metavar="CONFIG.json", help="an OCI runtime configuration")
    parser.add_argument(
        "--device",
        action="append",
        metavar="NAME",
        help="a device's qualified name; may be given again",
    )
    common.add_spec_dir(parser)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Print the configuration with the devices in it; change no file."""
    settings = common.in_force(args)
    config = Bundle(args.config).config
    if args.device is None:
        wanted = requests.devices(requests.read(config, settings))
    else:
        wanted = list(dict.fromkeys(args.device))
        for name in wanted:
            names.parse(name)
    devices, _ = registry.resolve(wanted, settings) if wanted else ([], None)
    plan.carry_out(plan.build(devices, config, preflight=False), config)
    rendering.print_json(config)
    return 0
