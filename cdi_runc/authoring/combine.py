"""Specs that are there already: another version or form, and several in one."""

from __future__ import annotations

from cdi_runc.authoring import found
from cdi_runc.authoring.host import natural
from cdi_runc.errors import CdiRuncError
from cdi_runc.record import Record
from cdi_runc.specs import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cdi_runc.authoring.found import Edits, Spec

    Sources = Sequence[tuple[str, Spec]]
    """Path and content of each file."""


class Need(Record):
    """A version, what needs it, and the JSON pointer of each such thing."""

    version: str
    what: str
    pointers: tuple[str, ...]


def needs(spec: Spec) -> list[Need]:
    """Return what in *spec* needs a version, the highest first; nothing that every version has."""
    told: dict[tuple[str, str], list[str]] = {}
    for version, pointer, what in check.needs(spec):
        if version != check.VERSIONS[2]:
            told.setdefault((version, what), []).append(pointer)
    found_ = [Need(version, what, tuple(places)) for (version, what), places in told.items()]
    return sorted(found_, key=lambda need: check.number(need.version), reverse=True)


def as_version(spec: Spec, version: str, path: str) -> Spec:
    """Return *spec* as one of *version*; the one it has if that is empty.

    Raises:
        CdiRuncError: something in it needs a newer one; the message names all that does.

    """
    version = version or spec["cdiVersion"]
    newer = [
        f"{need.what} needs {need.version} ({places(need)})"
        for need in needs(spec)
        if check.number(need.version) > check.number(version.removeprefix("v"))
    ]
    if newer:
        raise CdiRuncError(f"{path} cannot be of cdiVersion {version}: {'; '.join(newer)}")
    return found.finished(spec, version)


def places(need: Need) -> str:
    """Return where the first thing with that *need* stands, and how many more there are."""
    first, *others = need.pointers
    return f"{first} and {len(others)} more" if others else first


def merged(sources: Sources) -> Spec:
    """Return one spec with the devices of all *sources*, sorted.

    A device ``all`` that is, in each file, all devices of that file is so in the result.

    Raises:
        CdiRuncError: they are of several kinds, define a device in two ways, or differ in what
            every container with any device of theirs gets.

    """
    first_path, first = sources[0]
    for path, spec in sources[1:]:
        for key, what in (
            ("kind", "are of different kinds"),
            ("containerEdits", "differ in the containerEdits for all their devices"),
            ("annotations", "differ in their annotations"),
        ):
            if (first.get(key) or {}) != (spec.get(key) or {}):
                kinds = f": {first['kind']} and {spec['kind']}" if key == "kind" else ""
                raise CdiRuncError(f"{first_path} and {path} {what}{kinds}")
    defined: dict[str, tuple[str, dict[str, Any]]] = {}
    is_union = all(_has_union(spec) for _, spec in sources)
    for path, spec in sources:
        for device in spec["devices"]:
            name = device["name"]
            if is_union and name == found.ALL:
                continue
            other, known = defined.setdefault(name, (path, device))
            if known != device:
                raise CdiRuncError(f"device {name} is defined in {other} and otherwise in {path}")
    devices = [device for _, device in defined.values()]
    if is_union:
        whole = found.union(device["containerEdits"] for device in devices)
        devices.append({"name": found.ALL, "containerEdits": whole})
    devices.sort(key=lambda device: natural(device["name"]))
    return found.finished({**first, "devices": devices})


def _has_union(spec: Spec) -> bool:
    own: dict[str, Edits] = {d["name"]: d["containerEdits"] for d in spec["devices"]}
    whole = own.pop(found.ALL, None)
    return whole is not None and bool(own) and whole == found.union(own.values())
