"""Docker's device mappings -> devices of a spec.

Read are the words of ``docker run --device``, the list ``HostConfig.Devices`` of Docker's API, and
``devices`` of Compose files.
"""

from __future__ import annotations

import os
import stat

from cdi_runc import files, jsonio, names, paths
from cdi_runc.authoring import found
from cdi_runc.bundle import describe
from cdi_runc.errors import BadSpec, CdiRuncError
from cdi_runc.record import Record
from cdi_runc.specs import document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from cdi_runc.authoring.found import Edits
    from cdi_runc.authoring.host import Host

KIND = "docker.local/device"
LIMIT = 1 << 20  # bytes of a file with mappings
_ALL = "rwm"
_API = ("PathOnHost", "PathInContainer", "CgroupPermissions")
_COMPOSE = ("source", "target", "permissions")


class Mapping(Record):
    """One device of the host, as a container is to see it."""

    host: str
    container: str
    permissions: str


def option(text: str) -> Mapping:
    """Return what ``HOST[:CONTAINER[:PERMISSIONS]]`` maps.

    ``HOST:PERMISSIONS`` is understood, too, as Docker does.

    Raises:
        CdiRuncError: it is no such mapping.

    """
    host, *rest = text.split(":")
    if len(rest) > 2:  # noqa: PLR2004
        raise CdiRuncError(
            f"device {text!r} has more than three parts",
            cure="write a path that holds a colon in a --file, as PathOnHost",
        )
    if not all(rest):
        raise CdiRuncError(f"device {text!r} has an empty part, which Docker refuses")
    if len(rest) == 1 and not rest[0].strip(_ALL) and "/" not in rest[0]:
        rest = ["", rest[0]]
    container, permissions = [*rest, "", ""][:2]
    return _mapping(host, container, permissions, f"device {text!r}")


def listed(path: str) -> list[Mapping]:
    """Return the mappings in the JSON file *path*: objects as in Docker's ``HostConfig.Devices``.

    Raises:
        CdiRuncError: it is no such list.

    """
    try:
        entries = jsonio.loads(_read(path))
    except ValueError as error:
        raise CdiRuncError(f"{path} is not JSON: {error}") from error
    if not isinstance(entries, list):
        raise CdiRuncError(f"{path}: a list of objects with {', '.join(_API)} is wanted")
    return [_object(entry, _API, f"{path}: entry {n}") for n, entry in enumerate(entries)]


def services(path: str, only: str | None = None) -> dict[str, list[Mapping]]:
    """Return the mappings of each service in the Compose file *path*, or of *only* that one.

    Services without any are left out, and so are devices that have a CDI name already.

    Raises:
        CdiRuncError: it is no Compose file, or a mapping in it is wrong.

    """
    try:
        content = document.read(_read(path))
    except BadSpec as error:
        raise CdiRuncError(f"{path}: line {error.line}: {error.message}") from error
    told = content.get("services") if isinstance(content, dict) else None
    if not isinstance(told, dict):
        raise CdiRuncError(f"{path} is no Compose file: it has no services")
    result = {}
    for name, service in told.items():
        devices = service.get("devices") if isinstance(service, dict) else None
        if not devices or only not in (None, name):
            continue
        where = f"{path}: service {name}"
        if not isinstance(devices, list):
            raise CdiRuncError(f"{where}: devices is no list")
        mapped = [one for one in devices if not isinstance(one, str) or names.fault(one)]
        if mapped:
            result[name] = [_in_compose(entry, where) for entry in mapped]
    return result


def _in_compose(entry: Any, where: str) -> Mapping:
    if "$" in str(entry):
        raise CdiRuncError(
            f"{where}: {entry!r} holds a variable",
            cure="let Compose fill it in: docker compose config > FILE",
        )
    if not isinstance(entry, str):
        return _object(entry, _COMPOSE, where)
    try:
        return option(entry)
    except CdiRuncError as error:
        raise CdiRuncError(f"{where}: {error}", cure="") from error


def _object(entry: Any, keys: Sequence[str], where: str) -> Mapping:
    if not isinstance(entry, dict):
        raise CdiRuncError(f"{where} is no object with {', '.join(keys)}")
    spelled = {key.lower(): key for key in keys}  # Docker's API, too, reads them in any case
    values = dict.fromkeys(keys, "")
    for key, value in entry.items():
        known = spelled.get(key.lower())
        if known is None:
            raise CdiRuncError(f"{where}: unknown key {key!r}; known here: {', '.join(keys)}")
        if not isinstance(value, str):
            raise CdiRuncError(f"{where}: {key} is no text")
        values[known] = value
    host, container, permissions = values.values()
    return _mapping(host, container, permissions, where)


def _mapping(host: str, container: str, permissions: str, where: str) -> Mapping:
    if names.fault(host) is None:
        raise CdiRuncError(f"{where}: {host} is a CDI device already; ask for it by that name")
    for path, what in ((host, "host"), (container or host, "container")):
        if path[:1] != "/":
            raise CdiRuncError(f"{where}: the path on the {what}, {path!r}, is not absolute")
    if permissions.strip(_ALL) or len(set(permissions)) < len(permissions):
        raise CdiRuncError(
            f"{where}: permissions {permissions!r} are not made of r (read), w (write) and"
            " m (mknod), each at most once"
        )
    ordered = "".join(letter for letter in _ALL if letter in (permissions or _ALL))
    return Mapping(paths.clean(host), paths.clean(container or host), ordered)


def _read(path: str) -> bytes:
    try:
        return files.read(path, LIMIT)[0]
    except (OSError, ValueError) as error:
        raise CdiRuncError(f"cannot read {path}: {describe(error)}") from error


def edits(host: Host, mappings: Sequence[Mapping]) -> tuple[Edits, list[str]]:
    """Return the edits that do what *mappings* say, and what is doubtful of them.

    A directory stands for all device nodes below it, as for Docker.

    Raises:
        CdiRuncError: the host has something else there, or two are to be at one place.

    """
    entries: dict[str, dict[str, str]] = {}
    doubts: list[str] = []
    for mapping in mappings:
        for source, target in _expanded(host, mapping, doubts):
            entry = {"path": target, "hostPath": source, "permissions": mapping.permissions}
            other = entries.setdefault(target, entry)
            if other != entry:
                raise CdiRuncError(
                    f"{other['hostPath']} and {source} are both to be {target} in the container,"
                    f" with {other['permissions']} and {entry['permissions']}"
                )
    nodes = [
        {key: value for key, value in entry.items() if key != "hostPath" or value != target}
        for target, entry in entries.items()
    ]
    return found.union([{"deviceNodes": nodes}]), doubts


def _expanded(host: Host, mapping: Mapping, doubts: list[str]) -> Iterator[tuple[str, str]]:
    status = host.status(mapping.host)
    source = host.real(mapping.host) if host.plain else mapping.host
    if status is None:
        doubts.append(f"{mapping.host} is not on this host")
    elif stat.S_ISDIR(status.st_mode):
        nodes = sorted(_below(host, mapping.host))
        if not nodes:
            raise CdiRuncError(f"the directory {mapping.host} holds no device node")
        for node in nodes:
            yield node, mapping.container + node[len(mapping.host) :]
        return
    elif not host.is_node(mapping.host):
        raise CdiRuncError(f"{mapping.host} is no device node and no directory")
    yield source, mapping.container


def _below(host: Host, directory: str) -> Iterator[str]:
    top = host.place(directory)
    for folder, _, own in os.walk(top):
        for name in own:
            path = os.path.join(folder, name)
            if stat.S_IFMT(os.lstat(path).st_mode) in (stat.S_IFCHR, stat.S_IFBLK):
                yield directory + path[len(top) :]


def devices(
    host: Host, mappings: Sequence[Mapping], name: str = ""
) -> tuple[list[tuple[str, Edits]], list[str]]:
    """Return one device *name* with all of *mappings*; without a name, one for each of them.

    That one has the name of its place in the container.
    """
    mappings = tuple(dict.fromkeys(mappings))
    whole, doubts = edits(host, mappings)
    if name:
        return [(name, whole)], doubts
    return [(_name(one), edits(host, [one])[0]) for one in mappings], doubts


def _name(mapping: Mapping) -> str:
    return found.name_of(mapping.container.removeprefix("/dev/").strip("/").replace("/", "-"))
