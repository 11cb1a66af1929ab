"""One container: its newest audit record, the configuration that its runtime got, its files.

Where the engine has removed the bundle, as Docker does when a container ends, the configuration is
put together from what Docker still says and what the record has.
"""

from __future__ import annotations

import copy
import os
import shlex

from cdi_runc import paths, requests
from cdi_runc.bundle import Bundle
from cdi_runc.cli import containers, lookup, plan, records, standing
from cdi_runc.cli.bases import Base
from cdi_runc.cli.records import Filter
from cdi_runc.cli.standing import Standing
from cdi_runc.engines import docker_api
from cdi_runc.errors import BadBundle, CdiRuncError
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cdi_runc.cli.plan import Outcome
    from cdi_runc.cli.records import Entry
    from cdi_runc.edits import Config
    from cdi_runc.settings import Settings


class Injected(Standing):
    """One thing that cdi-runc put into the configuration."""

    @property
    def origin(self) -> str:
        """Device and spec file."""
        return f"{self.device} in {self.spec}"


class Container(Record):
    """A container as it was made."""

    id: str
    title: str
    engine: str
    """``docker``, ``podman``, ``containerd``, ``cri-o``, or nothing."""
    bundle: str
    config: Config
    is_original: bool
    """Whether the configuration is the one that the runtime got."""
    record: Entry | None
    would_fail: str
    """Why a create would fail now, if it was tried: only where none succeeded."""
    injected: tuple[Injected, ...]
    layers: tuple[str, ...]
    details: Entry
    """What the engine's own inspect says of it; empty if there is no such thing."""
    host: str
    """The address of the Docker daemon that says so, or nothing."""

    def of(self, kind: str, below: str = "") -> list[Injected]:
        """Return what was injected of one kind, at one place."""
        return [one for one in self.injected if one.kind == kind and one.where.startswith(below)]

    @property
    def namespaced(self) -> bool:
        """Whether it has a user namespace of its own."""
        linux = self.config.get("linux") or {}
        return any(entry.get("type") == "user" for entry in linux.get("namespaces") or ())

    @property
    def again(self) -> str:
        """The command that makes it again."""
        if self.engine in ("docker", "podman"):
            return f"{self.engine} restart {self.title.partition(' ')[0]}"
        if self.engine or self.record is None:
            return "# let its engine create it again"
        root = self.record["root"]
        runtime = shlex.join(["cdi-runc", *(["--root", root] if root else [])])
        words = shlex.join(["create", "--bundle", self.bundle, self.id])
        return f"{runtime} delete --force {shlex.quote(self.id)}; {runtime} {words}"


def find(wanted: str, settings: Settings, hosts: Sequence[str] = ()) -> Container:
    """Return the container of that id, its beginning, or a name of Docker's or Podman's.

    *hosts* are the addresses of Docker daemons besides the usual ones.

    Raises:
        CdiRuncError: nobody knows it, or it is the beginning of several ids.

    """
    details, host = _in_docker(wanted, (*containers.docker_hosts(), *hosts))
    engine, bundle = "docker" if details else "", ""
    id_ = str(details.get("Id") or wanted)
    record = lookup.begun(id_, settings.audit_file, ("container",))
    if not details and (record is None or record["engine"] == "podman"):
        known = containers.resolve(record["container"] if record else wanted)
        if known:
            id_, engine, bundle, details = known.id, known.engine, known.bundle, known.details
            record = next(records.newest(settings.audit_file, Filter(container=id_)), None)
    if not engine and record is None:
        raise CdiRuncError(
            f"no engine here knows a container {wanted!r}, and {settings.audit_file} has no record"
            " of such an id",
            cure=records.elsewhere(settings.audit_file)
            or "see those on record with: cdictl audit list; or name its bundle with --bundle",
        )
    bundle = bundle or str((record or {}).get("bundle") or "")
    config = None
    try:
        config = Bundle(f"{bundle}/config.json").config if bundle else None
    except BadBundle:
        pass  # it is gone, as it is with Docker when a container ends
    if record is not None:
        id_ = record["container"]
    name = str(details.get("Name") or "").removeprefix("/")
    return _container(
        id_,
        title=f"{name} ({id_[:12]})" if name else id_,
        engine=engine or str((record or {}).get("engine") or ""),
        bundle=bundle,
        config=config,
        record=record,
        details=details,
        host=host,
        settings=settings,
    )


def _in_docker(wanted: str, hosts: Sequence[str]) -> tuple[Entry, str]:
    for host in dict.fromkeys(hosts):
        try:
            found = docker_api.inspect(host, wanted)
        except OSError:
            continue
        if found:
            return found, host
    return {}, ""


def in_bundle(directory: str, settings: Settings) -> Container:
    """Return the container of the bundle in *directory*; without a record, as it would be made.

    Raises:
        BadBundle: it holds no configuration.

    """
    config = Bundle(f"{directory}/config.json").config
    place = os.path.realpath(directory)
    name = os.path.basename(place)
    found = records.newest(settings.audit_file, concerns=lambda line: os.fsencode(name) in line)
    record = next((one for one in found if os.path.realpath(one["bundle"]) == place), None)
    return _container(
        record["container"] if record else name,
        title=record["container"] if record else name,
        engine=record["engine"] if record else "",
        bundle=place,
        config=config,
        record=record,
        details={},
        host="",
        settings=settings,
    )


def _create(config: Config, record: Entry | None, bundle: str, settings: Settings) -> Outcome | str:
    """Return what a create would make of *config* now, or why that cannot be told.

    A container that failed asks for what it asked for then.
    """
    wanted = list(dict.fromkeys(one["device"] for one in (record or {}).get("requests", ())))
    base = Base(copy.deepcopy(config), "it", (record or {}).get("root", ""), bundle)
    try:
        if not wanted and not requests.read(config, settings):
            return ""
        return plan.tried(base, wanted, settings)
    except CdiRuncError as error:
        return str(error)


def _container(  # noqa: PLR0913
    id_: str,
    *,
    title: str,
    engine: str,
    bundle: str,
    config: Config | None,
    record: Entry | None,
    details: Entry,
    host: str,
    settings: Settings,
) -> Container:
    left = standing.of(record["edits"] if record else ()).values()
    whole = config if config is not None else _rebuilt(details, left)
    outcome: Outcome | str = ""
    if record["result"] == "failed" if record else config is not None:
        outcome = _create(whole, record, bundle, settings)
    if not isinstance(outcome, str) and record is None:
        left, whole = standing.of(outcome.record["edits"]).values(), outcome.after
    return Container(
        id=id_,
        title=title,
        engine=engine,
        bundle=bundle,
        config=whole,
        is_original=config is not None,
        record=record,
        would_fail=outcome if isinstance(outcome, str) else outcome.error,
        injected=tuple(Injected(*one.values()) for one in left),
        layers=_layers(whole, bundle, details),
        details=details,
        host=host,
    )


def _layers(config: Config, bundle: str, details: Entry) -> tuple[str, ...]:
    """Return the directories of the root file system, from the bundle or from Docker's storage."""
    root = str((config.get("root") or {}).get("path") or "")
    if root:
        root = os.path.join(bundle, root)
        if os.path.isdir(root) and os.listdir(root):
            return (root,)
    driver = details.get("GraphDriver") or {}
    data = driver.get("Data") or {}
    merged = str(data.get("MergedDir") or "")
    if merged and os.path.isdir(merged) and os.listdir(merged):
        return (merged,)
    upper = [str(data["UpperDir"])] if data.get("UpperDir") else []
    lower = str(data.get("LowerDir") or "").split(":") if data.get("LowerDir") else []
    return (*upper, *lower) or _plain_layer(details)


def _plain_layer(details: Entry) -> tuple[str, ...]:
    """Return the directory where Docker's vfs driver keeps the whole tree."""
    own = os.path.dirname(str(details.get("LogPath") or details.get("HostnamePath") or ""))
    data = os.path.dirname(os.path.dirname(own))
    try:
        with open(f"{data}/image/vfs/layerdb/mounts/{details['Id']}/mount-id") as file:
            return (f"{data}/vfs/dir/{file.read().strip()}",)
    except (OSError, KeyError):
        return ()


def _rebuilt(details: Entry, injected: Collection[Standing]) -> Config:
    """Return what the runtime must have got, as far as the checks need it."""
    own, host = details.get("Config") or {}, details.get("HostConfig") or {}
    config: Config = {"process": {}, "mounts": [], "linux": {"devices": []}, "hooks": {}}
    if details:
        dropped = {str(one).removeprefix("CAP_") for one in host.get("CapDrop") or ()}
        can_override = host.get("Privileged") or not dropped & {"ALL", "DAC_OVERRIDE"}
        config["process"] = {
            "args": [details.get("Path", ""), *(details.get("Args") or ())],
            "env": [*(own.get("Env") or ())],
            "capabilities": {"effective": ["CAP_DAC_OVERRIDE"] if can_override else []},
        }
        user = _user(str(own.get("User") or ""))
        if user:
            groups = [int(one) for one in host.get("GroupAdd") or () if str(one).isdigit()]
            config["process"]["user"] = {**user, "additionalGids": groups}
        config["mounts"] = [
            {"destination": one["Destination"], "source": one["Source"], "type": "bind"}
            for one in details.get("Mounts") or ()
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
