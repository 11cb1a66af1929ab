"""One container: its newest audit record, the configuration that its runtime got, its files.

Where the engine has removed the bundle, as Docker does when a container ends, the configuration is
put together from what Docker still says and what the record has.
"""

from __future__ import annotations

import glob
import gzip
import json
import os

from cdi_runc import paths, plan, registry, requests
from cdi_runc.bundle import Bundle
from cdi_runc.doctor import docker_api
from cdi_runc.errors import BadBundle, CdiRuncError
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from cdi_runc.edits import Config
    from cdi_runc.settings import Settings

    Entry = dict[str, Any]


class Injected(Record):
    """One thing that cdi-runc put into the configuration."""

    kind: str
    """The key of containerEdits."""
    where: str
    value: Any
    device: str
    spec: str

    @property
    def origin(self) -> str:
        """Device and spec file."""
        return f"{self.device} (spec {self.spec})"


class Container(Record):
    """A container as it was made."""

    id: str
    title: str
    again: str
    """The command that makes it again."""
    config: Config
    is_original: bool
    """Whether the configuration is the one that the runtime got."""
    record: Entry | None
    injected: tuple[Injected, ...]
    layers: tuple[str, ...]
    docker: Entry
    """What Docker says of it; empty if it is not Docker's."""

    def of(self, kind: str, below: str = "") -> list[Injected]:
        """Return what was injected of one kind, at one place."""
        return [one for one in self.injected if one.kind == kind and one.where.startswith(below)]

    @property
    def namespaced(self) -> bool:
        """Whether it has a user namespace of its own."""
        linux = self.config.get("linux") or {}
        return any(entry.get("type") == "user" for entry in linux.get("namespaces") or ())


def find(wanted: str, settings: Settings, hosts: Sequence[str]) -> Container:
    """Return the container of that id, its beginning, or a name of Docker's.

    *hosts* are the addresses of Docker daemons.

    Raises:
        CdiRuncError: nobody knows it.

    """
    docker: Entry = {}
    for host in hosts:
        try:
            docker = docker_api.inspect(host, wanted) or {}
        except OSError:
            continue
        if docker:
            break
    id_ = str(docker.get("Id") or wanted)
    record = newest(
        settings.audit_file, id_, lambda record: str(record["container"]).startswith(id_)
    )
    if not docker and record is None:
        raise CdiRuncError(
            f"no container {wanted!r}: no Docker daemon here knows it, and {settings.audit_file}"
            " has no record of such an id",
            cure="see those on record with: cdictl audit list; or name its bundle with --bundle",
        )
    config = None
    if record is not None:
        id_ = str(record["container"])
        try:
            config = Bundle(f"{record['bundle']}/config.json").config
        except BadBundle:
            pass  # it is gone, as it is with Docker when a container ends
    name = str(docker.get("Name", "")).removeprefix("/")
    engine = "docker" if docker else str((record or {}).get("engine") or "")
    return _container(
        id_,
        title=f"{name} ({id_[:12]})" if name else id_,
        again=f"{engine} restart {name or id_}" if engine in ("docker", "podman") else "",
        bundle=str((record or {}).get("bundle") or ""),
        config=config,
        record=record,
        docker=docker,
    )


def in_bundle(directory: str, settings: Settings) -> Container:
    """Return the container of the bundle in *directory*; without a record, as it would be made.

    Raises:
        CdiRuncError: it holds no configuration, or asks for what it cannot get.

    """
    config = Bundle(f"{directory}/config.json").config
    place = os.path.realpath(directory)
    record = newest(
        settings.audit_file,
        os.path.basename(place),
        lambda record: os.path.realpath(str(record["bundle"])) == place,
    )
    made: list[Entry] = []
    if record is None:
        made = planned(config, settings)
    id_ = str((record or {}).get("container") or os.path.basename(place))
    return _container(
        id_,
        title=id_,
        again="",
        bundle=directory,
        config=config,
        record=record,
        docker={},
        made=made,
    )


def _container(  # noqa: PLR0913
    id_: str,
    *,
    title: str,
    again: str,
    bundle: str,
    config: Config | None,
    record: Entry | None,
    docker: Entry,
    made: Iterable[Entry] = (),
) -> Container:
    injected = tuple(_injected(record["edits"] if record else made))
    whole = config if config is not None else _rebuilt(docker, injected)
    return Container(
        id=id_,
        title=title,
        again=again or "create it again",
        config=whole,
        is_original=config is not None,
        record=record,
        injected=injected,
        layers=_layers(whole, bundle, docker),
        docker=docker,
    )


def _injected(edits: Iterable[Entry]) -> list[Injected]:
    """Return what *edits* of a record, or of a plan, left in the configuration."""
    found: dict[tuple[str, str], Injected] = {}
    for edit in edits:
        after = edit["after"]
        if edit["action"] in ("removed", "kept") or edit["where"] == "/mounts" or after in ({}, []):
            continue  # what was taken away, another order, or an empty section
        one = Injected(edit["kind"], edit["where"], after, edit["device"], edit["spec"])
        found[one.kind, json.dumps(after, sort_keys=True)] = one
    return list(found.values())


def planned(config: Config, settings: Settings) -> list[Entry]:
    """Return the edits that a create would make to *config* now, and make them.

    Raises:
        CdiRuncError: it asks for what it cannot get.

    """
    wanted = requests.devices(requests.read(config, settings))
    if not wanted:
        return []
    devices, _ = registry.resolve(wanted, settings)
    return [
        {
            "kind": one.step.key,
            "action": one.effect.action,
            "where": one.effect.where,
            "after": one.effect.after,
            "device": one.step.device,
            "spec": one.step.spec,
        }
        for one in plan.carry_out(plan.build(devices, config), config)
    ]


def newest(path: str, word: str, fits: Callable[[Entry], bool]) -> Entry | None:
    """Return the newest record that *fits*, of those with *word* in them, rotated files included.

    A damaged line is passed over; ``cdictl audit`` reports it.
    """
    rotated = sorted(glob.glob(f"{glob.escape(path)}[.-]*"), key=os.path.getmtime, reverse=True)
    needle = json.dumps(word, ensure_ascii=False)[1:-1].encode("utf-8", "surrogateescape")
    for place in (path, *rotated):
        found: Entry | None = None
        try:
            with gzip.open(place) if place.endswith(".gz") else open(place, "rb") as file:
                for line in file:
                    if needle not in line:
                        continue
                    try:
                        record: Entry = json.loads(line)
                        found = record if fits(record) and "edits" in record else found
                    except (ValueError, KeyError, TypeError):
                        continue
        except (OSError, EOFError):
            continue
        if found is not None:
            return found
    return None


def _layers(config: Config, bundle: str, docker: Entry) -> tuple[str, ...]:
    """Return the directories of the root file system, from the bundle or from Docker's storage."""
    root = str((config.get("root") or {}).get("path") or "")
    if root:
        root = os.path.join(bundle, root)
        if os.path.isdir(root) and os.listdir(root):
            return (root,)
    driver = docker.get("GraphDriver") or {}
    data = driver.get("Data") or {}
    merged = str(data.get("MergedDir") or "")
    if merged and os.path.isdir(merged) and os.listdir(merged):
        return (merged,)
    upper = [str(data["UpperDir"])] if data.get("UpperDir") else []
    lower = str(data.get("LowerDir") or "").split(":") if data.get("LowerDir") else []
    return (*upper, *lower) or _plain_layer(docker)


def _plain_layer(docker: Entry) -> tuple[str, ...]:
    """Return the directory where Docker's vfs driver keeps the whole tree."""
    own = os.path.dirname(str(docker.get("LogPath") or docker.get("HostnamePath") or ""))
    data = os.path.dirname(os.path.dirname(own))
    try:
        with open(f"{data}/image/vfs/layerdb/mounts/{docker['Id']}/mount-id") as file:
            return (f"{data}/vfs/dir/{file.read().strip()}",)
    except (OSError, KeyError):
        return ()


def _rebuilt(docker: Entry, injected: Sequence[Injected]) -> Config:
    """Return what the runtime must have got, as far as the checks need it."""
    own, host = docker.get("Config") or {}, docker.get("HostConfig") or {}
    config: Config = {"process": {}, "mounts": [], "linux": {"devices": []}, "hooks": {}}
    if docker:
        dropped = {str(one).removeprefix("CAP_") for one in host.get("CapDrop") or ()}
        can_override = host.get("Privileged") or not dropped & {"ALL", "DAC_OVERRIDE"}
        config["process"] = {
            "args": [docker.get("Path", ""), *(docker.get("Args") or ())],
            "env": [*(own.get("Env") or ())],
            "capabilities": {"effective": ["CAP_DAC_OVERRIDE"] if can_override else []},
        }
        user = _user(str(own.get("User") or ""))
        if user:
            groups = [int(one) for one in host.get("GroupAdd") or () if str(one).isdigit()]
            config["process"]["user"] = {**user, "additionalGids": groups}
        config["mounts"] = [
            {"destination": one["Destination"], "source": one["Source"], "type": "bind"}
            for one in docker.get("Mounts") or ()
        ]
        config["annotations"] = host.get("Annotations") or {}
    for one in injected:
        if one.kind == "env":
            config["process"].setdefault("env", []).append(one.value)
        elif one.kind == "mounts":
            config["mounts"].append(one.value)
        elif one.kind == "additionalGids" and "user" in config["process"]:
            config["process"]["user"]["additionalGids"].append(one.value)
        elif one.kind == "deviceNodes" and one.where.startswith("/linux/devices/"):
            config["linux"]["devices"].append(one.value)
        elif one.kind == "hooks":
            config["hooks"].setdefault(one.where.split("/")[2], []).append(one.value)
    config["mounts"].sort(key=lambda mount: paths.clean(mount["destination"]).count("/"))
    return config


def _user(text: str) -> dict[str, int] | None:
    """Return the ids in Docker's *text*; names are the image's business, so they give None."""
    uid, _, gid = (text or "0").partition(":")
    if uid.isdigit() and (gid or "0").isdigit():
        return {"uid": int(uid), "gid": int(gid or "0")}
    return None
