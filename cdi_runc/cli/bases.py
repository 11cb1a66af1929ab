"""The configuration that a create would start from: a bundle's, a container's, an image's."""

from __future__ import annotations

import os
import stat
import urllib.parse

from cdi_runc import jsonio
from cdi_runc.bundle import Bundle
from cdi_runc.cli import containers, lookup, replay
from cdi_runc.digest import sha256
from cdi_runc.engines import docker_api
from cdi_runc.errors import BadBundle, CdiRuncError
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cdi_runc.cli.records import Entry
    from cdi_runc.edits import Config


class Base(Record):
    """A configuration without CDI's edits, and where it is from."""

    config: Config
    title: str
    root: str = ""
    """The runtime's, by which the engine is known."""
    bundle: str = ""
    """Where it lies, by which the engine is known too."""


def standard() -> Base:
    """Return a minimal configuration, such as ``runc spec`` writes."""
    with open(f"{os.path.dirname(__file__)}/standard_config.json", "rb") as file:
        return Base(jsonio.loads(file.read()), "a container of nothing but the standard")


def of_bundle(directory: str) -> Base:
    """Return the configuration of a bundle.

    Raises:
        BadBundle: it holds none.

    """
    config = Bundle(os.path.join(directory, "config.json")).config
    return Base(config, f"the bundle {directory}", bundle=os.path.abspath(directory))


def of_image(name: str) -> Base:
    """Return the standard configuration with what an image of Docker's or Podman's adds.

    Raises:
        CdiRuncError: neither knows the image.

    """
    found = None
    for host in containers.docker_hosts():
        try:
            found = found or docker_api.get(host, f"/images/{urllib.parse.quote(name)}/json")
        except OSError:
            continue
    found = found or containers.podman("image", "inspect", "--", name)
    if not found:
        raise CdiRuncError(
            f"neither Docker nor Podman here knows an image {name!r}", cure=f"docker pull {name}"
        )
    return Base(_engine_config(found), f"the image {name}")


def of_container(word: str, path: str) -> Base:
    """Return what the container *word* was made from, before CDI's edits.

    *path* is the audit file.

    Raises:
        CdiRuncError: nobody knows it, or nobody knows any more.

    """
    known = containers.resolve(word)
    record: Entry | None = None
    try:
        record = lookup.record(word, path)
    except CdiRuncError:
        if known is None:
            raise
    bundle = known.bundle if known and known.bundle else (record or {}).get("bundle", "")
    title = f"the container {known.title if known else word}"
    root = (record or {}).get("root", "")
    try:
        file = Bundle(f"{bundle}/config.json")
    except BadBundle:
        if known and known.details:  # it has ended, and the engine makes the bundle anew each time
            return Base(_engine_config(known.details), title, root, bundle)
        raise
    if record is not None and record["config"]["after"] == sha256(file.data):
        replay.undo(file.config, record["edits"])
    return Base(file.config, title, root, bundle)


def _engine_config(inspected: dict[str, Any]) -> Config:
    """Return what an engine would write, as far as CDI's edits can meet it."""
    config = standard().config
    own, host = inspected.get("Config") or {}, inspected.get("HostConfig") or {}
    process = config["process"]
    process["env"] = own.get("Env") or process["env"]
    process["args"] = [*(own.get("Entrypoint") or ()), *(own.get("Cmd") or ())] or process["args"]
    uid, _, gid = str(own.get("User") or "0").partition(":")
    if uid.isdigit():  # a name is in the image's own files
        process["user"] = {"uid": int(uid), "gid": int(gid) if gid.isdigit() else 0}
    config["mounts"] += [
        {
            "destination": mount["Destination"],
            "type": "bind",
            "source": mount.get("Source", ""),
            "options": ["rbind", *([] if mount.get("RW", True) else ["ro"])],
        }
        for mount in inspected.get("Mounts") or ()
    ]
    nodes = [_node(node) for node in host.get("Devices") or ()]
    if nodes:
        config["linux"]["devices"] = nodes
    if host.get("Annotations"):
        config["annotations"] = host["Annotations"]
    return config


def _node(device: dict[str, str]) -> dict[str, Any]:
    node: dict[str, Any] = {"path": device["PathInContainer"]}
    try:
        found = os.stat(device["PathOnHost"])
    except OSError:
        return node
    node["type"] = "b" if stat.S_ISBLK(found.st_mode) else "c"
    node["major"], node["minor"] = os.major(found.st_rdev), os.minor(found.st_rdev)
    return node
