"""``cdictl drift``: running containers whose devices are not what they were when they were made.

The devices on record are applied, as they are defined today, to a copy of the configuration that
the container runs with.  What that would change has changed since; what is on record and nobody
defines any more has vanished.
"""

from __future__ import annotations

import copy
import os
import re

from cdi_runc import jsonio, plan, registry
from cdi_runc.bundle import Bundle
from cdi_runc.cli import common, containers, records, rendering, standing, words
from cdi_runc.cli.rendering import Node, paint
from cdi_runc.edits import Doubt
from cdi_runc.errors import BadBundle, CdiRuncError
from cdi_runc.record import Record
from cdi_runc.specs import explain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator, Mapping
    from typing import Any

    from cdi_runc.cli.containers import Container
    from cdi_runc.cli.records import Entry
    from cdi_runc.cli.standing import Key, Standing
    from cdi_runc.registry import Device, Registry
    from cdi_runc.settings import Settings

EPILOG = """\
Which containers still run is read from their runtime's state.  A spec file
that was written anew is no reason by itself: only what its devices would change
in the container is.  The exit code is 1 if there is a container to be made
again.

examples:
  cdictl drift
  cdictl drift --json | jq -r '.[].container'
"""

_WORD = r'("(?:[^"\\]|\\.)*")'
_CALL = re.compile(
    rf'"container":{_WORD},"bundle":{_WORD},"engine":{_WORD},"root":{_WORD}'.encode()
)
_ESCAPE = re.compile(rb"\\([0-7]{3})")
COLOURS = {
    "changed": "yellow",
    "new": "green",
    "vanished": "red",
    "unavailable": "red",
    "missing": "red",
    "replaced": "yellow",
    "renumbered": "yellow",
}


class Reason(Record):
    """Why a container is to be made again."""

    device: str
    spec: str
    """The spec file on record."""
    what: str
    """``changed``, ``new``, ``vanished``, ``unavailable`` (the whole device), ``missing``,
    ``replaced`` or ``renumbered``."""
    text: str


class Drift(Record):
    """A running container, and what has changed since it was made."""

    record: Entry
    pid: int
    reasons: tuple[Reason, ...]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    common.add_json(parser)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """List the containers that are to be made again; 1 if there are any."""
    settings = common.in_force(args)
    path = settings.audit_file
    if (elsewhere := records.elsewhere(path)) and next(records.newest(path), None) is None:
        raise CdiRuncError(elsewhere)
    records.tell_elsewhere(path)
    today = registry.current(settings)
    running = list(running_containers(path))
    found = [
        Drift(record, pid, tuple(reasons))
        for record, pid in running
        if (reasons := list(dict.fromkeys(changes(record, pid, today, settings))))
    ]
    known = {one.record["id"]: _known(one.record) for one in found}
    if args.json:
        rendering.print_json([_told(one, known[one.record["id"]]) for one in found])
    else:
        print("\n".join(_lines(found, known, len(running))))
    return 1 if found else 0


def running_containers(path: str) -> Iterator[tuple[Entry, int]]:
    """Yield the newest record of each container that runs, and its first process."""
    kept: dict[bytes, set[bytes]] = {}

    def may_run(line: bytes) -> bool:
        match = _CALL.search(line)
        if match is None:
            return True
        root = match[4]
        if root not in kept:
            kept[root] = {jsonio.dumps(name) for name in containers.kept(jsonio.loads(root))}
        return match[1] in kept[root]

    seen = set()
    for record in records.newest(path, concerns=may_run):
        call = record["container"], record["root"]
        if record["result"] != "failed" and call not in seen:
            seen.add(call)
            pid = containers.running(*call)
            if pid:
                yield record, pid


def changes(record: Entry, pid: int, today: Registry, settings: Settings) -> Iterator[Reason]:
    """Yield what has changed of the devices in *record* since its container was made."""
    then = standing.of(record["edits"])
    specs = {one.device: one.spec for one in then.values()}
    asked = dict.fromkeys(
        one["device"]
        for one in record["requests"]
        if one["decision"] == "allow" or (one["decision"] == "optional" and one["device"] in specs)
    )
    devices = []
    for name in asked:
        device = today.find(name)
        if device is None:
            why = explain.unresolved([name], today, settings).message
            yield Reason(name, specs.get(name, ""), "unavailable", why)
        else:
            devices.append(device)
    try:
        config = Bundle(f"{record['bundle']}/config.json").config
        steps, problems = plan.examine(devices, config)
    except BadBundle:
        yield from _other_specs(record, devices)
        return
    for device, _, why in problems:
        yield Reason(device.name, device.path, "missing", f"{why}: it could not be made again")
    for step in steps:
        if type(step.note) is Doubt and step.note not in record["warnings"]:
            yield Reason(step.device, step.spec, "renumbered", step.note)
    told = " ".join(why for _, _, why in problems)
    yield from _behind_mounts(then, pid, told)
    now = standing.of(map(standing.entry, plan.carry_out(steps, copy.deepcopy(config))))
    found = {device.name for device in devices}
    yield from _differences(
        {key: one for key, one in then.items() if one.device in found}, now, record
    )


def _other_specs(record: Entry, devices: list[Device]) -> Iterator[Reason]:
    """Yield each device whose spec file is another: without the bundle nothing else is known."""
    then = {spec["path"]: spec["sha256"] for spec in record["specs"]}
    for device in devices:
        if then.get(device.path) != device.sha256:
            text = "the spec file is another; the bundle is gone, so its edits cannot be compared"
            yield Reason(device.name, device.path, "changed", text)


def _behind_mounts(then: Mapping[Key, Standing], pid: int, told: str) -> Iterator[Reason]:
    """Yield each mount whose source is not the host's any more; what was *told* is not repeated."""
    deleted = _deleted(pid)
    for (kind, destination), one in then.items():
        if kind != "mounts":
            continue
        source, options = one.value["source"], one.value.get("options") or ()
        is_bind = one.value.get("type") in (None, "none", "bind") or {"bind", "rbind"} & {*options}
        if is_bind and not os.path.exists(source):
            text = f"mount source {source} is not on this host"
            if text not in told:
                yield Reason(one.device, one.spec, "missing", f"{text} any more")
        elif destination in deleted:
            text = f"{source} was replaced on the host; the container has the one that was deleted"
            yield Reason(one.device, one.spec, "replaced", text)


def _deleted(pid: int) -> set[str]:
    """Return where the process *pid* has mounts of files that were deleted since."""
    found = set()
    try:
        with open(f"/proc/{pid}/mountinfo", "rb") as file:
            for line in file:
                root, place = line.split(b" ")[3:5]
                if root.endswith(b"//deleted"):
                    found.add(os.fsdecode(_ESCAPE.sub(lambda m: bytes([int(m[1], 8)]), place)))
    except OSError:
        pass  # it has ended
    return found


def _differences(
    then: Mapping[Key, Standing], now: Mapping[Key, Standing], record: Entry
) -> Iterator[Reason]:
    """Yield what stands on one side only, or otherwise."""
    kept = set()  # the container's own values, over which the devices do not decide
    rules: set[str] = set()  # of these numbers nothing is told, or all is told with the node
    for conflict in record["conflicts"]:
        if conflict["decision"] == "container":
            value = conflict["after"]
            kept.add(standing.key(conflict["kind"], conflict["where"], value))
            if conflict["kind"] == "deviceNodes":
                rules |= {f"{standing.rule_name(value)} "}
    for key in sorted({*then, *now} - kept):
        old, new = then.get(key), now.get(key)
        if old is not None and new is not None and old.value == new.value:
            continue
        either = [one for one in (old, new) if one is not None]
        if key[1].startswith("rule ") and key[0] == "deviceNodes":
            if key[1].startswith(tuple(rules)):
                continue
        elif key[0] == "deviceNodes":
            rules |= {f"{standing.rule_name(one.value)} " for one in either}
        told = [words.entry(one.where, one.value) for one in either]
        what = "vanished" if new is None else "new" if old is None else "changed"
        if len(either) > 1 and key[0] == "deviceNodes" and _numbers(old) != _numbers(new):
            what = "renumbered"
        yield Reason(
            either[0].device,
            either[0].spec,
            what,
            f"{key[0]}: {told[0]}" + (f", is now {told[1]}" if len(told) > 1 else ""),
        )


def _numbers(one: Standing | None) -> tuple[object, object]:
    return (one.value.get("major"), one.value.get("minor")) if one else (None, None)


def _known(record: Entry) -> Container | None:
    """Return what the container's engine calls it."""
    if record["engine"] == "docker":
        return containers.in_docker(record["container"])
    if record["engine"] == "podman":
        return containers.in_podman(record["container"])
    return None


def _told(one: Drift, known: Container | None) -> dict[str, Any]:
    record = one.record
    return {
        "container": record["container"],
        "name": known.name if known else "",
        "engine": record["engine"],
        "bundle": record["bundle"],
        "pid": one.pid,
        "created": record["time"],
        "record": record["id"],
        "reasons": [
            {"device": reason.device, "spec": reason.spec, "what": reason.what, "text": reason.text}
            for reason in one.reasons
        ],
    }


def _lines(
    found: list[Drift], known: Mapping[str, Container | None], running: int
) -> Iterator[str]:
    for one in found:
        record = one.record
        container = known[record["id"]]
        groups: dict[tuple[str, str], list[Node]] = {}
        for reason in one.reasons:
            node = Node(reason.what, reason.text, (), COLOURS[reason.what])
            groups.setdefault((reason.device, reason.spec), []).append(node)
        title = container.title if container else record["container"]
        yield f"{paint(title, 'bold')}, made {record['time'][:19].replace('T', ' ')}Z"
        yield from rendering.tree(
            [Node(device, spec, nodes) for (device, spec), nodes in groups.items()]
        )
        yield ""
    total = f"{running} running container{'s' if running != 1 else ''} with CDI devices"
    if not found:
        yield f"{paint('No drift', 'green')}: {total}, as defined today."
        return
    lost = [one for one in found if any(reason.what == "unavailable" for reason in one.reasons)]
    yield f"To be made again: {len(found)} of {total}."
    if lost:
        yield from rendering.paragraph(
            f"{len(lost)} of them would not start again, as their devices cannot be had today: see"
            " cdictl devices, and cdictl validate FILE, before you restart them.",
            "red",
        )
    for one in found:
        container = known[one.record["id"]]
        # Its engine makes the bundle anew at each start, and devices come in then.
        if container and one not in lost:
            yield f"  {one.record['engine']} restart {container.name}"
