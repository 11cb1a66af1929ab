"""Words for a device that cannot be resolved: what is known, and what might have been meant."""

from __future__ import annotations

import errno
import os

from cdi_runc import paths, registry, trust
from cdi_runc.errors import BadRequest, UnknownDevice
from cdi_runc.specs import near

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdi_runc.registry import Registry
    from cdi_runc.settings import Settings

SHOWN = 20
SHOWN_FAULTS = 3
SHOWN_NAMES = 3
NAMES_ALIKE = 0.5
COMMAS = "separate names with commas"
FORBIDDEN = os.strerror(errno.EACCES)

Definitions = dict[str, dict[str, list[str]]]
"""Kind, device name: the files that define it."""


def unresolved(names: Sequence[str], registry: Registry, settings: Settings) -> UnknownDevice:
    """Return the error for the qualified *names* that *registry* cannot resolve."""
    defined = definitions(registry)
    suspects = [
        (path, why, kind)
        for path, why, kind, _ in registry.faults
        if not kind or any(name.startswith(f"{kind}=") for name in names)
    ]
    told = [_cause(name, defined, suspects, registry) for name in names[:SHOWN_NAMES]]
    if len(names) > SHOWN_NAMES:
        told.append(f"and {len(names) - SHOWN_NAMES} more devices")
    unknown = [(path, why) for path, why, kind in suspects if not kind]
    conflict = any(name in registry.conflicts for name in names)
    locked = [(path, why) for path, why in unknown if why == FORBIDDEN]
    unknown = [suspect for suspect in unknown if suspect not in locked]
    if locked and not conflict:
        told.append(f"cannot read {_listed(locked, '{}: {}')}")
    if unknown and not conflict:
        told.append(f"it may be in a file that cannot be used: {_listed(unknown, '{} ({})')}")
    if not registry.files and not locked:
        told.append(f"there is no spec file in {' or '.join(map(_seen, settings.spec_dirs))}")
    cure = None
    if conflict:
        cure = "leave the device in one of these files only"
    elif any(why.startswith(trust.REFUSED) for _, why, _ in suspects):
        cure = ""  # it is in the sentence
    elif locked and len(locked) == len(suspects):
        cure = f"if it is there, let the user read it; see: ls -ld {locked[0][0]}"
    elif suspects:
        cure = f"see every fault with: cdictl validate {suspects[0][0]}"
    return UnknownDevice("; ".join(told), cure=cure)


def misunderstood(error: BadRequest, settings: Settings, separate: str = COMMAS) -> BadRequest:
    """Return *error* with what its name may have been meant to be, if that is plain.

    *separate* says how several devices are asked for.
    """
    name, hint = error.name, ""
    if any(one in ",; \t\n" for one in name.strip()):
        hint = f"; {separate}"
    elif name and "=" not in name and "/" not in name:
        try:
            known = registry.current(settings).names()
        except (OSError, ValueError, EOFError, TypeError):  # it is damaged behind its head
            known = []
        same = [one for one in known if one.partition("=")[2] == name]
        hint = f" (did you mean {same[0]}?)" if len(same) == 1 else ""
    return BadRequest(error.message + hint, cure=error.cure, name=name)


def _listed(suspects: list[tuple[str, str]], form: str) -> str:
    more = len(suspects) - SHOWN_FAULTS
    shown = ", ".join(form.format(path, why) for path, why in suspects[:SHOWN_FAULTS])
    return shown + (f" and {more} more" if more > 0 else "")


def definitions(registry: Registry) -> Definitions:
    """Return every definition in the files of *registry*, those that do not count included."""
    defined: Definitions = {}
    for (path, _), (kind, _, devices, _) in zip(registry.files, registry.summary, strict=True):
        for name, _ in devices:
            defined.setdefault(kind, {}).setdefault(name, []).append(path)
    return defined


def _cause(
    name: str,
    defined: Definitions,
    suspects: Sequence[tuple[str, str, str]],
    registry: Registry,
) -> str:
    kind, _, device = name.partition("=")
    if name in registry.conflicts:
        return registry.conflicts[name][1]
    for path, why, other in suspects:
        if other == kind:
            return (
                f"device {name} is not available: {path}, which defines {kind}, is refused: {why}"
            )
    if kind in defined:
        known = sorted(defined[kind])
        shown = ", ".join(known[:SHOWN]) + (", ..." if len(known) > SHOWN else "")
        path = next(iter(defined[kind].values()))[0]
        hint = near.hint(device, known, NAMES_ALIKE)
        return f"unknown device {name}: {path} has {kind}={shown}{hint}"
    vendor, _, class_ = kind.partition("/")
    kinds = sorted(defined)
    own = [other for other in kinds if other.partition("/")[0] == vendor]
    if own:
        told = f"vendor {vendor} has no class {class_}, only {', '.join(own)}"
    elif kinds:
        told = f"unknown vendor {vendor}; known kinds: {', '.join(kinds[:SHOWN])}"
    else:
        told = f"unknown vendor {vendor}"
    return f"unknown device {name}: {told}{near.hint(kind, kinds)}"


def _seen(directory: str) -> str:
    return directory if paths.exists(directory) else f"{directory} (which does not exist)"
