"""``cdictl devices``: what this host offers."""

from __future__ import annotations

import sys

from cdi_runc import registry
from cdi_runc.cli import common, rendering
from cdi_runc.specs import explain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

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
    """List each device with its spec file; what cannot be used goes to standard error."""
    found = registry.current(common.in_force(args))
    definitions = explain.definitions(found)
    devices: list[dict[str, Any]] = []
    for name in found.names():
        device = found.find(name)
        if device is not None:
            kind, _, own = name.partition("=")
            devices.append(
                {
                    "name": name,
                    "spec": device.path,
                    "hides": [path for path in definitions[kind][own] if path != device.path],
                    "cdiVersion": device.version,
                    "edits": summary(device),
                }
            )
    ignored = [{"file": path, "reason": why} for path, why, _, _ in found.faults]
    if args.json:
        conflicts = [
            {"name": name, "files": list(files)} for name, (files, _) in found.conflicts.items()
        ]
        rendering.print_json({"devices": devices, "conflicts": conflicts, "ignored": ignored})
        return 0
    if devices:
        rows = [(one["name"], _place(one), one["edits"]) for one in devices]
        print("\n".join(rendering.table(("DEVICE", "SPEC FILE", "EDITS"), rows)))
    elif not found.conflicts:
        where = " and ".join(found.spec_dirs)
        print(f"no devices: no usable spec file in {where}", file=sys.stderr)
    for _, why in found.conflicts.values():
        print(f"cdictl: {why}", file=sys.stderr)
    for fault in ignored:
        print(f"cdictl: not usable: {fault['file']}: {fault['reason']}", file=sys.stderr)
    return 0


def _place(device: dict[str, Any]) -> str:
    hidden = f" (hides {', '.join(device['hides'])})" if device["hides"] else ""
    return f"{device['spec']}{hidden}"


def summary(device: registry.Device) -> str:
    """Say how many edits of which kind *device* brings, those of its spec file included."""
    counts: dict[str, int] = {}
    for key, entries in (*device.spec_edits, *device.edits):
        counts[key] = counts.get(key, 0) + len(entries)
    return ", ".join(f"{count} {key}" for key, count in counts.items() if count)
