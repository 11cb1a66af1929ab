"""Edits of a record -> what stands in config.json in the end, each with its origin."""

from __future__ import annotations

from cdi_runc import jsonio, paths
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from cdi_runc.cli.records import Entry
    from cdi_runc.plan import Done

    Key = tuple[str, str]
    """The kind of an edit, and what it is about: a variable, a path, an interface."""

RULES = "/linux/resources/devices/"


class Standing(Record):
    """An entry of config.json that an edit put there, or found there."""

    kind: str
    where: str
    value: Any
    device: str
    spec: str
    pointer: str
    """Where in the spec file the edit stands."""
    action: str
    note: str


def of(edits: Iterable[Entry]) -> dict[Key, Standing]:
    """Return what *edits* left, a node's cgroup rule by itself."""
    found: dict[Key, Standing] = {}
    for edit in edits:
        where, value = edit["where"], edit["after"]
        if edit["action"] in ("kept", "superseded", "removed") or where == "/mounts":
            continue
        if value in ({}, []):  # room for others
            continue
        place = key(edit["kind"], where, value)
        found.pop(place, None)
        found[place] = Standing(
            edit["kind"],
            where,
            value,
            edit["device"],
            edit["spec"],
            edit["pointer"],
            edit["action"],
            edit.get("note") or "",
        )
    return found


def key(kind: str, where: str, value: Any) -> Key:
    """Return what the edit of *value* at *where* is about."""
    name = ""
    if where.startswith(RULES):
        name = f"{rule_name(value)} {value.get('access')}"
    elif kind == "env":
        name = value.partition("=")[0]
    elif kind in ("deviceNodes", "mounts"):
        name = paths.clean(value["path" if kind == "deviceNodes" else "destination"])
    elif kind == "hooks":  # nothing but itself tells a hook from another
        name = where.split("/")[2] + jsonio.dumps(value).decode()
    elif kind == "netDevices":
        name = where.rpartition("/")[2]
    elif kind == "additionalGids":
        name = str(value)
    return kind, name


def rule_name(node: dict[str, Any]) -> str:
    """Return what the cgroup rules of *node*, or a rule itself, are about."""
    return f"rule {node['type']} {node.get('major')}:{node.get('minor')}"


def entry(one: Done) -> Entry:
    """Return *one* as a record has it."""
    step, effect = one.step, one.effect
    return {
        "kind": step.key,
        "action": effect.action,
        "where": effect.where,
        "before": effect.before,
        "after": effect.after,
        "device": step.device,
        "spec": step.spec,
        "pointer": step.pointer,
        "note": one.note,
    }
