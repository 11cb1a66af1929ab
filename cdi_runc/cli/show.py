"""``cdictl show DEVICE``: what one device puts into a container."""

from __future__ import annotations

import shlex

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
PLAIN = ("env", "additionalGids")
"""Kinds whose edits are text or a number in a spec file, as in config.json."""
KEYS = {"clos_id": "closID", "host_interface": "hostInterfaceName"}
"""What CDI calls fields that are not the same in other letters."""
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
        print(f"  {edit['kind']:<{WIDTH}}{_text(edit['edit'])}")
    return 0


def _told(key: str, index: int, arguments: tuple[Any, ...], place: str) -> dict[str, Any]:
    edit = edits.kind(key).Edit(*arguments)
    return {
        "kind": key,
        "pointer": edits.pointer(place, key, index),
        "edit": edit.entry() if key in PLAIN else _members(edit),
    }


def _members(edit: edits.Edit) -> dict[str, Any]:
    """Return the members that the spec file gives *edit*, by the keys of CDI."""
    shown = {
        _key(name): list(value) if isinstance(value, tuple) else value
        for name, value in zip(edit._fields, edit.values(), strict=True)
        if value not in ("", None, ()) and value is not False
    }
    # Not given: a create asks the host for them.
    if not shown.get("major") and not shown.get("minor"):
        shown = {key: value for key, value in shown.items() if key not in ("major", "minor")}
    return shown


def _key(field: str) -> str:
    first, *rest = field.split("_")
    return KEYS.get(field) or first + "".join(map(str.capitalize, rest))


def _text(edit: Any) -> str:
    if not isinstance(edit, dict):
        return str(edit)
    return ", ".join(f"{key} {_value(key, value)}" for key, value in edit.items())


def _value(key: str, value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    return ",".join(value) if key == "options" else shlex.join(value)
