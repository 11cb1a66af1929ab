"""Device nodes and groups: may the container's process use what it was given."""

from __future__ import annotations

import grp
import os
import pwd
import stat

from cdi_runc import files, paths
from cdi_runc.doctor import Finding, edit, named
from cdi_runc.errors import BadSpec
from cdi_runc.specs import document
from cdi_runc.specs.compile import SIZE_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from cdi_runc.doctor.containers import Container, Injected
    from cdi_runc.edits import Config

    Node = dict[str, Any]
    Owner = tuple[int | None, int | None, int]
    """User, group and mode; None for an id that the user namespace does not have."""

LETTERS = {"r": (4, "read"), "w": (2, "write")}


def nodes(container: Container) -> list[Injected]:
    """Return the device nodes that were injected."""
    return container.of("deviceNodes", "/linux/devices/")


def lost(container: Container) -> Iterator[Finding]:
    """Look for a node that is not in the configuration any more."""
    if not container.is_original:
        return
    there = {paths.clean(str(node["path"])): node for node in _devices(container.config)}
    for one in nodes(container):
        node = there.get(paths.clean(one.value["path"]))
        if node is None or _numbers(node) != _numbers(one.value):
            now = f"is {_shown(node)} there" if node else "is not there"
            yield Finding(
                "error",
                f"{_shown(one.value)} of {one.origin} {now}: config.json was changed after"
                " cdi-runc",
                "The container does not have the device that it asked for.",
                container.again,
            )


def renumbered(container: Container) -> Iterator[Finding]:
    """Look for a node whose device has another number on the host by now."""
    for one in nodes(container):
        path = _host_path(one)
        try:
            status = os.stat(path)
        except OSError:
            continue  # the container has what it needs
        kind = {stat.S_IFCHR: "c", stat.S_IFBLK: "b"}.get(stat.S_IFMT(status.st_mode))
        now = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
        if kind == one.value["type"] and now != _numbers(one.value):
            yield Finding(
                "error",
                f"the container's {one.value['path']} is {_numbers(one.value)}, and the host's"
                f" {path} is {now} ({one.origin})",
                "The driver was loaded anew, or the spec file has wrong numbers: the node leads"
                " to another device or to none.",
                f"cdictl doctor && {container.again}",
            )


def _host_path(one: Injected) -> str:
    """Return the node of the host that *one* was made from, as its spec file says now."""
    path = str(one.value["path"])
    try:
        found = document.read(files.read(one.spec, SIZE_LIMIT)[0])
        for key in one.pointer.split("/")[1:]:
            found = found[int(key) if key.isdigit() else key]
        return str(found.get("hostPath") or path) if found["path"] == path else path
    except (OSError, ValueError, LookupError, TypeError, AttributeError, BadSpec):
        return path


def _devices(config: Config) -> list[Node]:
    found: list[Node] = (config.get("linux") or {}).get("devices") or []
    return found


def _numbers(node: Node) -> str:
    return f"{node.get('major', 0)}:{node.get('minor', 0)}"


def _shown(node: Node) -> str:
    return f"{node['path']} ({node['type']} {_numbers(node)})"


def without_rule(container: Container) -> Iterator[Finding]:
    """Look for nodes that the cgroup's rules keep the container from."""
    rules = _rules(container)
    for one in nodes(container):
        node = one.value
        if node["type"] not in ("c", "b"):
            continue
        wanted = _given(container, node)
        if not wanted & {*LETTERS}:
            yield Finding(
                "note",
                f"{node['path']} is there without access: so says {one.origin}",
                "With permissions: none there is no cgroup rule, and opening it fails.",
                f"cdictl show {one.device}",
            )
            continue
        if rules is None:
            continue
        denied = [
            word
            for letter, (_, word) in LETTERS.items()
            if letter in wanted - _allowed(rules, node)
        ]
        if denied:
            yield Finding(
                "error",
                f"the cgroup's rules do not let the container {' and '.join(denied)}"
                f" {node['path']} ({_numbers(node)}, {one.origin})",
                'Opening it fails with "operation not permitted", whatever its mode: a rule that'
                " denies comes after the one that allows, or that one is missing.",
                container.again,
            )


def _rules(container: Container) -> list[dict[str, Any]] | None:
    if not container.is_original:
        return None
    resources = (container.config.get("linux") or {}).get("resources") or {}
    return [rule for rule in resources.get("devices") or () if isinstance(rule, dict)]


def _given(container: Container, node: Node) -> set[str]:
    """Return the letters of the cgroup rule that was injected for *node*."""
    rules = [one.value for one in container.of("deviceNodes", "/linux/resources/devices/")]
    return {
        letter
        for rule in rules
        if (rule["type"], rule["major"], rule["minor"]) == _key(node)
        for letter in rule["access"]
    }


def _key(node: Node) -> tuple[str, int, int]:
    return node["type"], node.get("major", 0), node.get("minor", 0)


def _allowed(rules: list[dict[str, Any]], node: Node) -> set[str]:
    """Return the letters that *rules*, in order, leave allowed for *node*."""
    allowed: set[str] = set()
    for rule in rules:
        fits = rule.get("type", "a") in ("a", "", None, node["type"]) and all(
            rule.get(key) in (None, -1, node.get(key, 0)) for key in ("major", "minor")
        )
        if fits:
            letters = set(rule.get("access") or "rwm")
            allowed = allowed | letters if rule.get("allow") else allowed - letters
    return allowed


def forbidden(container: Container) -> Iterator[Finding]:
    """Look for nodes whose owner and mode keep the container's process from them."""
    process = container.config.get("process") or {}
    user = process.get("user")
    if user is None or os.geteuid():  # else see beyond_the_user
        return
    for one in nodes(container):
        owner = _owner(container, one.value)
        if owner is None or one.value["type"] not in ("c", "b"):
            continue
        uid, gid, mode = owner
        # What nobody may write is not meant to be written.
        meant = _given(container, one.value) - (set() if mode & 0o222 else {"w"})
        denied = [
            word
            for letter, (bit, word) in LETTERS.items()
            if letter in meant and not _may(user, _capabilities(process), owner, bit)
        ]
        if not denied:
            continue
        unknown = uid is None or gid is None
        who = f"user {user.get('uid', 0)}, groups {named([str(g) for g in _groups(user)], 8)}"
        ids = ":".join("nobody" if one_id is None else str(one_id) for one_id in (uid, gid))
        by_group = mode >> 3 & 6 == 6 and not unknown  # noqa: PLR2004
        yield Finding(
            "error",
            f"the container's process ({who}) may not {' and '.join(denied)}"
            f" {one.value['path']}, which is {mode:04o} {ids} there ({one.origin})",
            'Opening it fails with "permission denied".'
            + (" Its owner is outside the user namespace." if unknown else "")
            + ("" if by_group or unknown else " Its mode gives no group what is missing."),
            edit(one.spec, f"add to the device: additionalGids: [{gid}]")
            if by_group
            else edit(one.spec, "add to the node: fileMode: 0666"),
        )


def _groups(user: dict[str, Any]) -> list[int]:
    return [user.get("gid", 0), *(user.get("additionalGids") or ())]


def _capabilities(process: dict[str, Any]) -> set[str]:
    """Return the capabilities of the process after exec: those of others than root are ambient."""
    sets = process.get("capabilities") or {}
    is_root = not (process.get("user") or {}).get("uid")
    return set(sets.get("effective" if is_root else "ambient") or ())


def _may(user: dict[str, Any], capabilities: set[str], owner: Owner, bit: int) -> bool:
    uid, gid, mode = owner
    if "CAP_DAC_OVERRIDE" in capabilities and None not in (uid, gid):
        return True
    if uid == user.get("uid", 0):
        return bool(mode >> 6 & bit)
    if gid in _groups(user):
        return bool(mode >> 3 & bit)
    return bool(mode & bit)


def _owner(container: Container, node: Node) -> Owner | None:
    """Return owner, group and mode of the node inside, None for ids outside the namespace.

    In a user namespace the runtime cannot make nodes, and mounts the host's own node of that path
    over it.
    """
    if not container.namespaced:
        return node.get("uid", 0), node.get("gid", 0), node.get("fileMode", 0)
    try:
        status = os.stat(node["path"])
    except OSError:
        return None
    linux = container.config["linux"]
    return (
        _inside(status.st_uid, linux.get("uidMappings") or ()),
        _inside(status.st_gid, linux.get("gidMappings") or ()),
        status.st_mode & 0o7777,
    )


def _inside(host: int, mappings: Any) -> int | None:
    for one in mappings:
        if one["hostID"] <= host < one["hostID"] + one["size"]:
            return int(one["containerID"]) + host - int(one["hostID"])
    return None


def beyond_the_user(container: Container) -> Iterator[Finding]:
    """Look for nodes that the user who is not root, and so any container of theirs, may not use.

    What the record says of owner and mode has no meaning there: the node is the host's own.
    """
    if not os.geteuid():
        return
    for one in (*nodes(container), *container.of("mounts")):
        if "/deviceNodes/" not in one.pointer:
            continue
        path = str(one.value.get("source") or one.value["path"])
        try:
            status = os.stat(path)
        except OSError:
            continue
        owner = (status.st_uid, status.st_gid, status.st_mode)
        user = {"uid": os.geteuid(), "gid": os.getegid()}
        denied = [word for bit, word in LETTERS.values() if not _may(user, set(), owner, bit)]
        if denied:
            group = _name(grp.getgrgid, status.st_gid)
            join = f"usermod -aG {group} {_name(pwd.getpwuid, os.geteuid())} && "
            yield Finding(
                "error",
                f"your user may not {' and '.join(denied)} {path}, which is"
                f" {status.st_mode & 0o7777:04o} {_name(pwd.getpwuid, status.st_uid)}:{group}"
                f" ({one.origin})",
                "A container of a user who is not root may use what its user may, without the"
                " user's further groups: only crun can keep those.",
                ("" if os.access(path, os.R_OK | os.W_OK) else join)
                + "podman run --group-add keep-groups ...  # with crun as the real runtime",
            )


def _name(look_up: Callable[[int], tuple[Any, ...]], number: int) -> str:
    try:
        return str(look_up(number)[0])
    except KeyError:
        return str(number)


def missing_groups(container: Container) -> Iterator[Finding]:
    """Look for groups that are not in the configuration any more."""
    if not container.is_original:
        return
    user = (container.config.get("process") or {}).get("user") or {}
    for one in container.of("additionalGids", "/process/user/additionalGids/"):
        if one.value not in _groups(user):
            yield Finding(
                "error",
                f"the process does not have the group {one.value} of {one.origin}: config.json was"
                " changed after cdi-runc",
                "What only this group may use is closed to it.",
                container.again,
            )
