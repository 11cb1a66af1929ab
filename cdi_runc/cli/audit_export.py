"""``cdictl audit export``: a container's edits in a form that works without cdi-runc."""

from __future__ import annotations

import csv
import io
import os
import shlex
import stat
import sys

from cdi_runc import names
from cdi_runc.cli import rendering, standing
from cdi_runc.edits import KEYS
from cdi_runc.errors import CdiRuncError
from cdi_runc.specs import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from cdi_runc.cli.records import Entry

KIND = "exported.cdi-runc/container"
PROPAGATIONS = ("private", "rprivate", "shared", "rshared", "slave", "rslave")


def run(record: Entry, form: str) -> int:
    """Print the edits of *record* as a spec file or as options of ``docker run``."""
    own = container_edits(record["edits"])
    if not own:
        raise CdiRuncError(
            f"record {record['id']} has no edit to export",
            cure=f"see why with: cdictl audit show {record['id']}",
        )
    if form == "spec":
        rendering.print_json(spec(own, record))
    else:
        print(" \\\n".join(shlex.join(words) for words in docker_options(own)))
    return 0


def container_edits(done: list[Entry]) -> dict[str, Any]:
    """Return *done*, the edits of a record, as one ``containerEdits``: what stands in the end."""
    rules = {
        (edit["spec"], edit["pointer"]): edit["after"]["access"]
        for edit in done
        if edit["where"].startswith(standing.RULES)
    }
    own: dict[str, Any] = {}
    for one in standing.of(done).values():
        kind, value = one.kind, one.value
        if one.where.startswith(standing.RULES):
            continue
        if kind not in KEYS:
            raise ValueError(f"{kind!r} is no kind of edit")
        if kind == "intelRdt":
            own[kind] = value
            continue
        if kind == "mounts":
            rest = {key: value[key] for key in ("type", "options") if key in value}
            value = {"hostPath": value["source"], "containerPath": value["destination"], **rest}
        elif kind == "hooks":
            value = {"hookName": one.where.split("/")[2], **value}
        elif kind == "netDevices":
            interface = one.where.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
            value = {"hostInterfaceName": interface, "name": value["name"]}
        elif kind == "deviceNodes" and value["type"] != "p":
            value = {**value, "permissions": rules.get((one.spec, one.pointer), "none")}
        own.setdefault(kind, []).append(value)
    return own


def spec(own: dict[str, Any], record: Entry) -> dict[str, Any]:
    """Return a spec file of one device with the edits *own*, of the lowest version that will do."""
    name = record["container"][:12]
    name = record["id"] if names.fault_in_device(name) else name
    found = {"kind": KIND, "devices": [{"name": name, "containerEdits": own}]}
    return {"cdiVersion": check.minimum_version(found), **found}


def docker_options(own: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the options of ``docker run`` that do what *own* does; tell what no option can do."""
    for variable in own.get("env", ()):
        yield ["--env", variable]
    for node in own.get("deviceNodes", ()):
        yield from _node(node)
    lost: set[str] = set()
    for mount in own.get("mounts", ()):
        yield from _mount(mount, lost)
    if lost:
        _cannot(f"these options of mounts: {', '.join(sorted(lost))}")
    for gid in own.get("additionalGids", ()):
        yield ["--group-add", str(gid)]
    for hook in own.get("hooks", ()):
        command = shlex.join([hook["path"], *hook.get("args", ())[1:]])
        _cannot(f"the {hook['hookName']} hook {command}")
    for interface in own.get("netDevices", ()):
        _cannot(f"the network interface {interface['hostInterfaceName']}")
    if "intelRdt" in own:
        _cannot("intelRdt")


def _cannot(what: str) -> None:
    print(f"cdictl: docker run has no option for {what}", file=sys.stderr)


def _node(node: dict[str, Any]) -> Iterator[list[str]]:
    """Docker makes a node from one of the host's, so one of the same numbers has to be found."""
    place, access = node["path"], node.get("permissions", "")
    kind = {"b": stat.S_IFBLK, "c": stat.S_IFCHR}.get(node["type"])
    found = _on_host(place, kind, os.makedev(node["major"], node["minor"])) if kind else ""
    if found and access != "none":
        yield ["--device", f"{found}:{place}:{access}"]
        return
    if access not in ("", "none"):
        rule = f"{node['type']} {node['major']}:{node['minor']} {access}"
        yield ["--device-cgroup-rule", rule]
    numbers = f" {node['major']} {node['minor']}" if kind else ""
    _cannot(
        f"a node that this host has not (in the container: mknod {place} {node['type']}{numbers})"
    )


def _on_host(place: str, kind: int, numbers: int) -> str:
    """Return a node of those numbers; the one at *place* if it has them."""
    below = (
        os.path.join(directory, name) for directory, _, files in os.walk("/dev") for name in files
    )
    for path in (place, *sorted(below)):
        try:
            found = os.lstat(path)
        except OSError:
            continue
        if stat.S_IFMT(found.st_mode) == kind and found.st_rdev == numbers and ":" not in path:
            return path
    return ""


def _mount(mount: dict[str, Any], lost: set[str]) -> Iterator[list[str]]:
    """Yield the option for *mount*; what it has no words for is *lost*."""
    options, target = list(mount.get("options", ())), mount["containerPath"]
    if mount.get("type") == "tmpfs" and "bind" not in options and "rbind" not in options:
        # Docker forbids these three unless told otherwise.
        own = [one for one in ("exec", "suid", "dev") if f"no{one}" not in options]
        yield ["--tmpfs", f"{target}:{','.join(dict.fromkeys((*options, *own)))}"]
        return
    if mount.get("type", "") not in ("", "none", "bind") and not {"bind", "rbind"} & {*options}:
        _cannot(f"the mount of type {mount['type']} at {target}")
        return
    fields = ["type=bind", f"source={mount['hostPath']}", f"target={target}"]
    for option in options:
        if option == "ro":
            fields.append("readonly")
        elif option in PROPAGATIONS:
            fields.append(f"bind-propagation={option}")
        elif option not in ("rw", "bind", "rbind"):
            lost.add(option)
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    yield ["--mount", line.getvalue()]
