"""``deviceNodes``: nodes and their cgroup rules (CDI SPEC, "containerEdits.deviceNodes").

Every node goes into linux.devices and its rule into linux.resources.devices, where the runtime's
saved state knows it: access given behind the runtime's back is lost at the next cgroup update.
"""

from __future__ import annotations

import posix

from cdi_runc import edits as base
from cdi_runc import errors, paths
from cdi_runc.edits import Doubt, Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cdi_runc.edits import Config, Report

SINCE = "0.3.0"
# Every container has these nodes (OCI runtime-spec, "Default Devices").
STANDARD = {
    "/dev/null": (1, 3),
    "/dev/zero": (1, 5),
    "/dev/full": (1, 7),
    "/dev/random": (1, 8),
    "/dev/urandom": (1, 9),
    "/dev/tty": (5, 0),
    "/dev/console": (5, 1),
    "/dev/ptmx": (5, 2),
}
_TYPES = {0o020000: "c", 0o060000: "b", 0o010000: "p"}


class Edit(base.Edit):
    """Make one device node."""

    path: str
    host_path: str = ""
    type: str = ""
    major: int = 0
    minor: int = 0
    file_mode: int | None = None
    permissions: str = ""
    uid: int | None = None
    gid: int | None = None

    def settle(
        self, config: Config, stat: Callable[[str], posix.stat_result] = posix.stat
    ) -> tuple[Edit, str]:
        """Fill in type, numbers, mode and owner, from the host's node and the container's user.

        The host's path may be a symbolic link, such as udev's by-id names.  A node whose type and
        major number the spec gives needs no node on the host; it still takes its mode from one.
        """
        edit, note = self, ""
        host_path = self.host_path or self.path
        found = None
        try:
            found = stat(host_path)
        except (OSError, ValueError) as error:
            if not self._is_complete():
                why = error.strerror if isinstance(error, OSError) else str(error)
                raise errors.Unusable(
                    f"device node {host_path} is not on this host ({why})"
                ) from error
        if found is not None:
            edit, note = self._filled(found, host_path)
        user = base.look(config, "process", "user")
        owner = {
            key: user[key] for key in ("uid", "gid") if getattr(edit, key) is None and user.get(key)
        }
        numbers = STANDARD.get(paths.clean(self.path))
        if numbers and (edit.type, edit.major, edit.minor) != ("c", *numbers):
            note = Doubt(f"{self.path} takes the place of a standard node")
        return (edit.but(**owner) if owner else edit), note

    def pass_on(self, note: str) -> tuple[base.Edit, str]:
        """Leave a node to the runtime if it mounts the right one, else mount it ourselves."""
        return _passed_on(self, note)

    def _is_complete(self) -> bool:
        return bool(self.type and (self.major or self.type == "p"))

    def _filled(self, found: posix.stat_result, host_path: str) -> tuple[Edit, str]:
        kind = _TYPES.get(found.st_mode & 0o170000)
        if kind is None:
            if self._is_complete():
                return self, ""
            raise errors.Unusable(f"{host_path} is no device node on this host")
        changes: dict[str, object] = {}
        if self.file_mode is None:
            changes["file_mode"] = found.st_mode & 0o7777
        major, minor = posix.major(found.st_rdev), posix.minor(found.st_rdev)
        if not self._is_complete():
            if self.type and self.type != kind:
                raise errors.Unusable(
                    f"device node {host_path} is of type {kind} on this host,"
                    f" and the spec says {self.type}"
                )
            changes["type"] = kind
            if not self.major and kind != "p":
                changes["major"], changes["minor"] = major, minor
        elif kind == self.type and kind != "p" and (major, minor) != (self.major, self.minor):
            return self.but(**changes), Doubt(
                f"the spec says {self.major}:{self.minor} for {self.path},"
                f" and {host_path} on this host is {major}:{minor}"
            )
        return self.but(**changes) if changes else self, ""

    def entry(self) -> dict[str, Any]:
        """Return the entry of linux.devices."""
        node: dict[str, Any] = {"path": self.path, "type": self.type}
        if self.type != "p":
            node["major"], node["minor"] = self.major, self.minor
        if self.file_mode is not None:
            node["fileMode"] = self.file_mode
        if self.uid is not None:
            node["uid"] = self.uid
        if self.gid is not None:
            node["gid"] = self.gid
        return node

    def rule(self) -> dict[str, Any] | None:
        """Return the entry of linux.resources.devices, or None where there is no access to give.

        runc refuses a rule whose access is empty, so ``none`` makes the node and no rule.
        """
        if self.type not in ("b", "c") or self.permissions == "none":
            return None
        return {
            "allow": True,
            "type": self.type,
            "major": self.major,
            "minor": self.minor,
            "access": self.permissions or "rwm",
        }


def _passed_on(edit: Edit, note: str) -> tuple[base.Edit, str]:
    """Return what gives the container *edit* where the runtime can only mount the host's nodes.

    It goes by the path in the container, so a node of another path would be another device or
    none (runc 1.1.5).
    """
    if _is_at(edit, edit.path):
        return edit, note
    host_path = edit.host_path or edit.path
    if paths.is_system() or host_path == edit.path or not _is_at(edit, host_path):
        raise errors.Unusable(
            f"device node {edit.path} ({edit.type} {edit.major}:{edit.minor}) can be had in a user"
            " namespace only if this host has the same node at that path"
        )
    mount = base.kind("mounts").Edit(host_path, edit.path, ("bind",), "bind")
    return mount, "mounted, as no node can be made in a user namespace"


def _is_at(edit: Edit, path: str) -> bool:
    """Tell whether *path* on the host is the node of *edit*."""
    try:
        found = posix.stat(path)
    except (OSError, ValueError):
        return False
    numbers = (posix.major(found.st_rdev), posix.minor(found.st_rdev))
    same = _TYPES.get(found.st_mode & 0o170000) == ("c" if edit.type == "u" else edit.type)
    return same and (edit.type == "p" or numbers == (edit.major, edit.minor))


def check(entries: list[dict[str, Any]], report: Report) -> None:
    """Check paths, types, numbers and permissions."""
    for index, entry in enumerate(entries):
        if not entry.get("path"):
            report(f"/{index}", "a device node needs a path")
        if entry.get("type", "") not in ("", "b", "c", "u", "p"):
            report(
                f"/{index}/type",
                f"device type {entry['type']!r} is none of b (block), c (character),"
                " u (unbuffered character) and p (FIFO)",
            )
        permissions = entry.get("permissions", "")
        if permissions != "none" and permissions.strip("rwm"):
            report(
                f"/{index}/permissions",
                f"permissions {permissions!r} are not made of r (read), w (write) and m (mknod),"
                " and are not the word none",
            )
        for key in ("major", "minor"):
            if entry.get(key, 0) < 0:
                report(f"/{index}/{key}", f"{key} {entry[key]} is negative, a cgroup wildcard")


def needs(entries: list[dict[str, Any]]) -> str:
    """Return the lowest CDI version that allows *entries*."""
    return "0.5.0" if any(entry.get("hostPath") for entry in entries) else SINCE


def parse(entries: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the arguments of each edit."""
    return [
        (
            entry["path"],
            entry.get("hostPath", ""),
            entry.get("type", ""),
            entry.get("major", 0),
            entry.get("minor", 0),
            entry.get("fileMode"),
            entry.get("permissions", ""),
            entry.get("uid"),
            entry.get("gid"),
        )
        for entry in entries
    ]


def apply(edits: list[Edit], config: Config, keep: bool = False) -> list[list[Effect]]:
    """Add each node, replacing one at the same cleaned path, and its rule at the end of the rules.

    runc applies rules in order, so an allow before the engine's deny-all would be void.
    """
    effects: list[list[Effect]] = [[] for _ in edits]
    linux = base.section(config, "linux", {}, "/linux", effects[0])
    nodes = base.section(linux, "devices", [], "/linux/devices", effects[0])
    places = [paths.clean(str(node.get("path"))) if type(node) is dict else "" for node in nodes]
    wanted = [(paths.clean(edit.path), edit.entry()) for edit in edits]
    settled = {place: node for place, node in dict(wanted).items() if node in nodes}
    kept = set(places) if keep else ()
    rules = None
    in_force: dict[Any, int] = {}
    for edit, (place, node), own in zip(edits, wanted, effects, strict=True):
        if place in settled:
            index = nodes.index(settled[place])  # here, as nodes move when others are put
            action: base.Action = "already present" if nodes[index] == node else "superseded"
            own.append(Effect(action, f"/linux/devices/{index}", nodes[index], nodes[index]))
        elif place in kept:
            index = places.index(place)
            own.append(Effect("kept", f"/linux/devices/{index}", nodes[index], nodes[index]))
            continue
        else:
            _put_node(nodes, places, place, node, own)
        rule = edit.rule()
        if rule is None:
            continue
        if rules is None:
            where = "/linux/resources"
            resources = base.section(linux, "resources", {}, where, own)
            rules = base.section(resources, "devices", [], f"{where}/devices", own)
            in_force = _in_force(rules)
        index = in_force.setdefault(frozenset(rule.items()), len(rules))
        where = f"/linux/resources/devices/{index}"
        if index < len(rules):
            own.append(Effect("already present", where, rule, rule))
        else:
            own.append(Effect("added", where, None, rule))
            rules.append(rule)
    return effects


def _in_force(rules: list[Any]) -> dict[Any, int]:
    """Return where each rule stands that no deny follows: what is before one may be void."""
    found: dict[Any, int] = {}
    for index, rule in enumerate(rules):
        if type(rule) is not dict:
            continue
        if not rule.get("allow"):
            found.clear()
            continue
        try:
            found[frozenset(rule.items())] = index
        except TypeError:
            pass  # it holds an object or a list, so it is none of ours
    return found


def _put_node(
    nodes: list[Any], places: list[str], place: str, node: dict[str, Any], own: list[Effect]
) -> None:
    """Append *node*; as in the reference, the first node at its place goes before.

    A second node at that place is replaced where it stands.
    """
    if place not in places:
        own.append(Effect("added", f"/linux/devices/{len(nodes)}", None, node))
        nodes.append(node)
        places.append(place)
        return
    index = places.index(place)
    was, before = f"/linux/devices/{index}", nodes.pop(index)
    del places[index]
    if place in places:
        own.append(Effect("removed", was, before, None))
        index = places.index(place)
        was, before = f"/linux/devices/{index}", nodes[index]
        nodes[index] = node
    else:
        index = len(nodes)
        nodes.append(node)
        places.append(place)
    own.append(Effect("replaced", f"/linux/devices/{index}", before, node, was))
