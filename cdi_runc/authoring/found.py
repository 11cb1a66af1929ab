"""What a family of devices found on a host, and how that becomes a spec."""

from __future__ import annotations

from cdi_runc import names
from cdi_runc.authoring.host import natural
from cdi_runc.record import Record
from cdi_runc.specs import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from cdi_runc.authoring.host import Host

    Edits = dict[str, Any]
    """``containerEdits`` as a spec file has them."""
    Spec = dict[str, Any]
    Devices = Iterable[tuple[str, Edits]]

ALL = "all"


class Found(Record):
    """Devices by name, what each container with any of them needs, and what to tell a person."""

    devices: list[tuple[str, Edits]]
    edits: Edits = {}  # noqa: RUF012  # never changed
    notes: tuple[str, ...] = ()


def name_of(text: str) -> str:
    """Return *text* as a device name: what the grammar forbids is an underscore."""
    allowed = names.ALNUM | set("-_.:")
    kept = "".join(one if one in allowed else "_" for one in text)
    return kept.strip("-_.:") or "device"


def base(path: str) -> str:
    """Return the last part of *path*."""
    return path.rpartition("/")[2]


def with_nodes(host: Host, nodes: Mapping[str, str] | Iterable[str]) -> Edits:
    """Return the edits that bring *nodes*, each with its link if it has one.

    The node is there under its own path, and under that of its link, as on the host.  Where not
    everybody may use it, its group comes along (CDI 0.7.0).
    """
    entries, gids = [], set()
    links = nodes if isinstance(nodes, dict) else dict.fromkeys(nodes, "")
    for path, link in links.items():
        rest: dict[str, Any] = {"permissions": "rw"}
        status = host.status(path)
        if status and status.st_gid and status.st_mode & 0o060 and status.st_mode & 0o006 != 0o006:  # noqa: PLR2004
            rest["gid"] = status.st_gid
            gids.add(status.st_gid)
        for place in (path, link) if link else (path,):
            source = path if host.plain or not link else link
            entries.append(
                {"path": place, **({"hostPath": source} if source != place else {}), **rest}
            )
    own: Edits = {"deviceNodes": sorted(entries, key=lambda entry: natural(entry["path"]))}
    if gids:
        own["additionalGids"] = sorted(gids)
    return own


def union(devices: Iterable[Edits]) -> Edits:
    """Return edits that do what all of *devices* do, each thing once."""
    whole: Edits = {}
    for own in devices:
        for key, entries in own.items():
            if key == "intelRdt":
                whole[key] = entries
                continue
            kept = whole.setdefault(key, [])
            kept += [entry for entry in entries if entry not in kept]
    if "deviceNodes" in whole:
        whole["deviceNodes"].sort(key=lambda entry: natural(entry["path"]))
    if "additionalGids" in whole:
        whole["additionalGids"].sort()
    return whole


def spec(kind: str, devices: Devices, shared: Edits | None = None, *, whole: bool = True) -> Spec:
    """Return the spec of *kind*, of the lowest version that will do, devices sorted by name.

    A name given twice gets a number; with *whole*, a device ``all`` is added.
    """
    named: dict[str, Edits] = {}
    for name, own in devices:
        free, number = name, 1
        while free in named:
            number += 1
            free = f"{name}-{number}"
        named[free] = own
    if whole and ALL not in named:
        named[ALL] = union(named.values())
    listed = sorted(named.items(), key=lambda pair: natural(pair[0]))
    return finished(
        {
            "kind": kind,
            "containerEdits": shared or {},
            "devices": [{"name": name, "containerEdits": own} for name, own in listed],
        }
    )


def finished(content: Spec, version: str = "") -> Spec:
    """Return *content* with its members in their usual order, empty ones left out.

    It gets *version*, or the lowest that allows all it holds.
    """
    content = {**content, "cdiVersion": version or check.minimum_version(content)}
    arranged: Spec = _arranged(content, check.schema())
    return {key: arranged[key] for key in sorted(arranged, key="devices".__eq__)}


def _arranged(value: Any, schema: dict[str, Any], keep_empty: bool = False) -> Any:
    if isinstance(value, list):
        return [_arranged(entry, schema["items"]) for entry in value]
    if not isinstance(value, dict):
        return value
    members = schema.get("properties")
    if members is None:
        return dict(sorted(value.items()))
    return {
        key: _arranged(value[key], members[key], keep_empty=key == "intelRdt")
        for key in members
        # An empty intelRdt, or an empty list in it, says something (CDI SPEC, "intelRdt").
        if key in value and (value[key] not in ({}, [], "") or keep_empty or key == "intelRdt")
    }
