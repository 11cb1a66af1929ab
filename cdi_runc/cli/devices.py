"""``cdictl devices``: what this host offers."""

from __future__ import annotations

import sys

from cdi_runc import registry
from cdi_runc.cli import common, rendering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EPILOG = """\
examples:
  cdictl devices
  cdictl devices --json | jq -r '.devices[].name'
  cdictl devices --spec-dir ./cdi
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    common.add_spec_dir(parser)
    common.add_json(parser)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """List each device with its spec file; files that cannot be used go to standard error."""
    found = registry.current(common.in_force(args))
    devices = [
        {"name": name, "spec": device.path, "cdiVersion": device.version, "edits": summary(device)}
        for name in found.names()
        if (device := found.find(name)) is not None
    ]
    ignored = [{"file": path, "reason": why} for path, why, _, _ in found.faults]
    if args.json:
        rendering.print_json({"devices": devices, "ignored": ignored})
        return 0
    if devices:
        rows = [(str(d["name"]), str(d["spec"]), str(d["edits"])) for d in devices]
        print("\n".join(rendering.table(("DEVICE", "SPEC FILE", "EDITS"), rows)))
    else:
        where = " and ".join(found.spec_dirs)
        print(f"no devices: no usable spec file in {where}", file=sys.stderr)
    for fault in ignored:
        print(f"cdictl: not usable: {fault['file']}: {fault['reason']}", file=sys.stderr)
    return 0


def summary(device: registry.Device) -> str:
    """Say how many edits of which kind *device* brings, those of its spec file included."""
    counts: dict[str, int] = {}
    for key, entries in (*device.spec_edits, *device.edits):
        counts[key] = counts.get(key, 0) + len(entries)
    return ", ".join(f"{count} {key}" for key, count in counts.items() if count)
