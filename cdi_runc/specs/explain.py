"""Words for a device that cannot be resolved: what is known, and what might have been meant."""

from __future__ import annotations

import difflib

from cdi_runc import paths
from cdi_runc.errors import UnknownDevice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdi_runc.registry import Registry
    from cdi_runc.settings import Settings

SHOWN = 20
SHOWN_FAULTS = 3


def unresolved(names: Sequence[str], registry: Registry, settings: Settings) -> UnknownDevice:
    """Return the error for the qualified *names* that *registry* cannot resolve."""
    defined: dict[str, dict[str, list[str]]] = {}
    for (path, _), (kind, _, devices, _) in zip(registry.files, registry.summary, strict=True):
        for name, _ in devices:
            defined.setdefault(kind, {}).setdefault(name, []).append(path)
    told = "; ".join(_cause(name, defined) for name in names)
    conflict = any(_paths(name, defined) for name in names)
    rejected = [] if conflict else _suspects(names, registry)
    absent = [path for path in settings.spec_dirs if not paths.exists(path)]
    if rejected:
        more = len(rejected) - SHOWN_FAULTS
        told += "; not usable: " + ", ".join(
            f"{path} ({why})" for path, why in rejected[:SHOWN_FAULTS]
        )
        told += f" and {more} more files" if more > 0 else ""
    elif not registry.files and absent:
        told += f"; {' and '.join(absent)} {'do' if len(absent) > 1 else 'does'} not exist"
    cure = None
    if conflict:
        cure = "remove the device from one of the two files"
    elif rejected:
        cure = f"see every fault with: cdictl validate {rejected[0][0]}"
    return UnknownDevice(told, cure=cure)


def _paths(name: str, defined: dict[str, dict[str, list[str]]]) -> list[str]:
    kind, _, device = name.partition("=")
    return defined.get(kind, {}).get(device, [])


def _cause(name: str, defined: dict[str, dict[str, list[str]]]) -> str:
    kind, _, device = name.partition("=")
    files = _paths(name, defined)
    if files:
        return f"device {name} is in conflict: {' and '.join(files)} both define it"
    if kind in defined:
        known = sorted(defined[kind])
        near = difflib.get_close_matches(device, known, 1, 0.5)
        shown = ", ".join(known[:SHOWN]) + (", ..." if len(known) > SHOWN else "")
        path = next(iter(defined[kind].values()))[0]
        return f"unknown device {name}: {path} has {kind}={shown}" + (
            f" (did you mean {near[0]}?)" if near else ""
        )
    vendor = kind.partition("/")[0]
    kinds = sorted(defined)
    near = difflib.get_close_matches(kind, kinds, 1, 0.6)
    meant = f" (did you mean {near[0]}?)" if near else ""
    if any(other.partition("/")[0] == vendor for other in kinds):
        own = ", ".join(other for other in kinds if other.partition("/")[0] == vendor)
        return f"unknown device {name}: vendor {vendor} has no such class, only {own}{meant}"
    told = f"known kinds: {', '.join(kinds[:SHOWN])}" if kinds else "no spec file defines a device"
    return f"unknown device {name}: unknown vendor {vendor}; {told}{meant}"


def _suspects(names: Sequence[str], registry: Registry) -> list[tuple[str, str]]:
    """Return the rejected files, those that seem to speak of a wanted kind first."""
    wanted = {name.partition("=")[0] for name in names}

    def speaks(fault: tuple[str, str]) -> bool:
        try:
            with open(fault[0], "rb") as file:
                text = file.read(1 << 16).decode(errors="replace")
        except OSError:
            return False
        return any(kind in text for kind in wanted)

    return sorted(registry.faults, key=lambda fault: not speaks(fault))
