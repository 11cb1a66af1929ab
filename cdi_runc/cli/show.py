"""``cdictl show DEVICE``: what one device puts into a container."""

from __future__ import annotations

from cdi_runc import edits, names, registry
from cdi_runc.cli import common, rendering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

EPILOG = """\
examples:
  cdictl show nvidia.com/gpu=0
  cdictl show --json nvidia.com/gpu=0 | jq .edits
"""
WIDTH = max(map(len, edits.KEYS)) + 2


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("device", metavar="DEVICE", help="qualified name: vendor.com/class=name")
    common.add_spec_dir(parser)
    common.add_json(parser)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Show the edits of one device as the spec file has them."""
    names.parse(args.device)
    (device,), _ = registry.resolve([args.device], common.in_force(args))
    told = [
        _told(key, index, arguments, place)
        for place, groups in (("/containerEdits", device.spec_edits), (device.place, device.edits))
        for key, entries in groups
        for index, arguments in enumerate(entries)
    ]
    if args.json:
        rendering.print_json(
            {
                "name": device.name,
                "spec": device.path,
                "sha256": device.sha256,
                "cdiVersion": device.version,
                "edits": told,
            }
        )
        return 0
    print(rendering.paint(device.name, "bold"))
    print(f"  {'spec file':<{WIDTH}}{device.path} (CDI {device.version})")
    print(f"  {'sha256':<{WIDTH}}{device.sha256}")
    for edit in told:
        shown = ", ".join(f"{key} {value}" for key, value in edit["edit"].items())
        print(f"  {edit['kind']:<{WIDTH}}{shown}")
    return 0


def _told(key: str, index: int, arguments: tuple[Any, ...], place: str) -> dict[str, Any]:
    edit = edits.kind(key).Edit(*arguments)
    fields = zip(edit._fields, edit.values(), strict=True)
    shown = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in fields
        if value not in ("", None, ())
    }
    # Not given: a create asks the host for them.
    if not shown.get("major") and not shown.get("minor"):
        shown = {name: value for name, value in shown.items() if name not in ("major", "minor")}
    return {"kind": key, "pointer": edits.pointer(place, key, index), "edit": shown}
