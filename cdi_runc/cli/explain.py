"""``cdictl explain``: from an engine's error to the edit, device and spec file behind it."""

from __future__ import annotations

import copy
import os
import re
import sys
from itertools import islice

from cdi_runc import files, plan, registry, requests
from cdi_runc.bundle import Bundle
from cdi_runc.cli import common, lookup, matching, records, refusals, rendering, standing, words
from cdi_runc.cli.rendering import Node
from cdi_runc.digest import sha256
from cdi_runc.edits import hooks, mounts
from cdi_runc.errors import BadBundle
from cdi_runc.record import Record
from cdi_runc.specs import document
from cdi_runc.specs import explain as unresolvable
from cdi_runc.specs.compile import SIZE_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator
    from typing import Any

    from cdi_runc.cli.matching import Match, Text
    from cdi_runc.cli.records import Entry
    from cdi_runc.cli.standing import Standing
    from cdi_runc.edits import Config
    from cdi_runc.settings import Settings

EPILOG = """\
Paste the error in quotes, or pipe it in.  Without a container or bundle, the
newest containers on record are tried.  A hook's number, as runc tells it,
counts the hooks of one kind in config.json, from 0.  The exit code is 1 if no
edit fits.

examples:
  cdictl explain --container web 'error running hook #3'
  docker start web 2>&1 | cdictl explain
  cdictl explain --bundle ./bundle 'stat /usr/lib/libcuda.so.550: no such file'
"""
RECORDS = 100
"""So many of the newest records are tried."""
OWN = 300
"""So many characters of our own errors are compared: engines may cut them."""
SHOWN = 5
NUMBERING = "runc counts the hooks of one kind from 0, in the order of config.json."
_NAME = re.compile(refusals.DEVICE)
_EXAMPLE = "vendor.com/class=name"
"""What our own errors give as an example."""
_ID = re.compile(r"\b[0-9a-f]{64}\b")


class Subject(Record):
    """A container that the error may be about."""

    title: str
    edits: tuple[Standing, ...]
    bundle: str
    specs: dict[str, str]
    """The SHA-256 of each spec file when the container was made; empty for what is made now."""


class Cause(Record):
    """What may be behind the error."""

    what: str
    device: str
    spec: str
    pointer: str
    facts: tuple[tuple[str, str], ...]
    line: int = 0
    """Of the spec file."""
    container: str = ""
    match: Match | None = None


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "text", nargs="*", metavar="TEXT", help="the error; - or nothing reads standard input"
    )
    base = parser.add_mutually_exclusive_group()
    base.add_argument(
        "--container", type=common.given, metavar="NAME", help="a container's name or id"
    )
    base.add_argument("--bundle", type=common.given, metavar="DIR", help="a bundle's directory")
    common.add_json(parser)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Name the edits that the error may come from; 1 if there are none."""
    settings = common.in_force(args)
    told = " ".join(args.text)
    if args.text in ([], ["-"]):
        if sys.stdin.isatty():
            print("Paste the error, then press Ctrl-D on a line of its own.", file=sys.stderr)
        told = sys.stdin.read()
    if not told.strip():
        raise common.usage("there is no text: paste the error, or pipe it in")
    text = matching.Text(told)
    subject = None
    causes = [*_by_docker(told), *_devices(told, settings), *_refused(told, settings)]
    is_chosen = bool(args.container or args.bundle)
    for subject in _subjects(args, told, settings) if is_chosen or not causes else ():
        found = [_cause(match, subject, text) for match in matching.matches(text, subject.edits)]
        if found:
            causes = found + causes
            break
    if args.json:
        rendering.print_json([_told(cause) for cause in causes])
    elif causes:
        print("\n".join(_lines(causes, is_chosen)))
    if not causes:
        _tell_nothing(text, subject if is_chosen else None)
        records.tell_elsewhere(settings.audit_file)
    return 0 if causes else 1


def _subjects(args: Namespace, told: str, settings: Settings) -> Iterator[Subject]:
    """Yield the containers that may be meant, the likeliest first."""
    path = settings.audit_file
    if args.bundle:
        yield _in_bundle(args.bundle, settings)
        return
    if args.container:
        yield _on_record(lookup.record(args.container, path))
        return
    for word in dict.fromkeys(_ID.findall(told)):
        yield from map(_on_record, islice(records.newest(path, records.Filter(container=word)), 1))
    yield from map(_on_record, islice(records.newest(path), RECORDS))


def _on_record(record: Entry) -> Subject:
    when = f"{record['time'][:19].replace('T', ' ')}Z"
    return Subject(
        f"{record['container']}, made {when} (record {record['id'][:8]})",
        tuple(standing.of(record["edits"]).values()),
        record["bundle"],
        {spec["path"]: spec["sha256"] for spec in record["specs"]},
    )


def _in_bundle(directory: str, settings: Settings) -> Subject:
    """Return the bundle's record, if it is of what lies there now; else what a create would do."""
    place = os.path.realpath(directory)
    file = Bundle(f"{place}/config.json")
    digest = sha256(file.data)
    for record in records.newest(
        settings.audit_file, concerns=lambda line: digest.encode() in line
    ):
        if record["config"]["after"] == digest and os.path.realpath(record["bundle"]) == place:
            return _on_record(record)
    asked = requests.devices(requests.read(file.config, settings))
    found = registry.current(settings)
    devices = [device for name in asked if (device := found.find(name)) is not None]
    steps, _ = plan.examine(devices, file.config)
    done = plan.carry_out(steps, copy.deepcopy(file.config), dict(settings.conflicts))
    edits = standing.of(map(standing.entry, done))
    return Subject(f"the bundle {directory}, as it is now", tuple(edits.values()), place, {})


def _by_docker(told: str) -> Iterator[Cause]:
    """Yield what Docker refused without asking any runtime."""
    for what, names, cure in refusals.find(told):
        yield Cause(what, names, "", "", (("cure", cure),))


def _devices(told: str, settings: Settings) -> Iterator[Cause]:
    """Yield what is wrong with the devices that the error names."""
    found = registry.current(settings)
    for name in dict.fromkeys(_NAME.findall(told.replace(_EXAMPLE, ""))):
        device = found.find(name)
        if device is None:
            error = unresolvable.unresolved([name], found, settings)
            yield Cause(error.message, name, "", "", (("cure", error.cure),))
            continue
        _, problems = plan.examine([device], {"linux": {"namespaces": [{"type": "network"}]}})
        for _, pointer, why in problems:
            cure = (("cure", "regenerate the spec file, or bring back what it names"),)
            yield Cause(why, name, device.path, pointer, cure, _line(device.path, pointer))


def _refused(told: str, settings: Settings) -> Iterator[Cause]:
    """Yield what the newest record of the same failure knows, if the error is our own."""
    plain = " ".join(told.split())
    wanted = records.Filter(result="failed")
    for record in islice(records.newest(settings.audit_file, wanted), RECORDS):
        error = " ".join(str(record.get("error") or "").split())[:OWN]
        if not error or error not in plain:
            continue
        container = _on_record(record).title
        specs = ", ".join(spec["path"] for spec in record["specs"])
        for one in record["conflicts"]:
            if one["decision"] == "refuse":
                other = "the container" if one["against"] == "container" else one["against"]
                facts = (
                    (other, words.entry(one["where"], one["before"])),
                    (one["device"], words.entry(one["where"], one["after"])),
                )
                what = f"{one['kind']} is set by both, and the configuration refuses that"
                yield Cause(what, one["device"], specs, "", facts, 0, container)
        if not record["conflicts"]:
            asked = ", ".join(dict.fromkeys(one["device"] for one in record["requests"]))
            yield Cause(record["error"], asked, specs, "", (), 0, container)
        return


def _cause(match: Match, subject: Subject, text: Text) -> Cause:
    edit = match.edit
    facts = [("spoken of", match.why)]
    if edit.kind == "deviceNodes":
        facts += _access(edit, subject, text)
    state = _now(edit)
    if state:
        facts.append(("now", state))
    changed = _spec_fault(edit.spec, subject.specs.get(edit.spec))
    if changed:
        facts.append(("but", changed))
    line = 0 if changed else _line(edit.spec, edit.pointer)
    if edit.note:
        facts.append(("note", edit.note))
    if edit.kind == "hooks":
        facts.append(("numbering", NUMBERING))
    what = f"{edit.kind}: {words.entry(edit.where, edit.value)}"
    return Cause(
        what, edit.device, edit.spec, edit.pointer, tuple(facts), line, subject.title, match
    )


def _now(edit: Standing) -> str:
    """Return what has become of what *edit* needs of the host."""
    value = edit.value
    if edit.kind == "mounts":
        mount = mounts.Edit(
            value["source"],
            value["destination"],
            tuple(value.get("options") or ()),
            value.get("type") or "",
        )
        return mount.preflight({}) or "the source is on this host"
    if edit.kind == "hooks":
        name = edit.where.split("/")[2]
        if name == "startContainer":
            return "the program is looked for among the container's own files"
        problem = hooks.Edit(name, value["path"]).preflight({})
        return problem or "the program is on this host: it failed by itself"
    return ""


def _access(edit: Standing, subject: Subject, text: Text) -> list[tuple[str, str]]:
    """Return what decides whether the container's process may open a node."""
    value = edit.value
    if "path" not in value:
        return []
    name = standing.rule_name(value)
    rules = [one.value for one in subject.edits if one.where.startswith(standing.RULES)]
    allowed = {
        letter for rule in rules if standing.rule_name(rule) == name for letter in rule["access"]
    }
    access = "".join(letter for letter in "rwm" if letter in allowed)
    mode = value.get("fileMode")
    owner = f"{value.get('uid', 0)}:{value.get('gid', 0)}"
    user = _user(subject.bundle)
    facts = [
        ("cgroup", f"allows {access}" if access else "allows nothing: the spec says so"),
        (
            "mode",
            f"{mode:04o}, owner {owner}"
            if mode is not None
            else f"not set, which some runtimes take for 0000; owner {owner}",
        ),
    ]
    if user:
        facts.append(("process", user))
    if "operation not permitted" in text.lower:
        facts.append(("refused by", "the device cgroup: what it does not allow is not permitted"))
    elif "permission denied" in text.lower:
        facts.append(("refused by", "the node's mode, which the process's user and groups decide"))
    return facts


def _user(bundle: str) -> str:
    """Return who the container's process is, as far as its bundle is still there."""
    try:
        config: Config = Bundle(f"{bundle}/config.json").config
    except BadBundle:
        return ""
    user = (config.get("process") or {}).get("user") or {}
    groups = ",".join(map(str, user.get("additionalGids") or ())) or "none"
    return f"{user.get('uid', 0)}:{user.get('gid', 0)}, further groups {groups}"


def _spec_fault(path: str, digest: str | None) -> str:
    """Return whether the spec file is another than when the container was made."""
    try:
        is_same = digest in (None, sha256(files.read(path, SIZE_LIMIT)[0]))
    except (OSError, ValueError):
        return "the spec file is gone"
    return "" if is_same else "the spec file is another now"


def _line(path: str, pointer: str) -> int:
    """Return the line of *pointer* in the spec file at *path*; 0 if it is not there."""
    try:
        return (document.locate(files.read(path, SIZE_LIMIT)[0], pointer) or (0, 0))[0]
    except (OSError, ValueError):
        return 0


def _told(cause: Cause) -> dict[str, Any]:
    match = cause.match
    own = match.edit if match else None
    return {
        "what": cause.what,
        "device": cause.device,
        "spec": cause.spec,
        "pointer": cause.pointer,
        "line": cause.line,
        "container": cause.container,
        "facts": dict(cause.facts),
        **({"kind": own.kind, "where": own.where, "value": own.value} if own else {}),
    }


def _lines(causes: list[Cause], is_chosen: bool) -> Iterator[str]:
    if not is_chosen and causes[0].container:
        told = f"In {causes[0].container}, the newest that fits; another: --container NAME"
        yield from rendering.wrapped(told, rendering.width())
        yield ""
    for number, cause in enumerate(causes[:SHOWN]):
        if number:
            yield ""
        yield from rendering.paragraph(cause.what, "bold")
        rows = [
            Node("device", cause.device),
            Node("spec file", f"{cause.spec}:{cause.line}" if cause.line else cause.spec),
            Node("place", cause.pointer),
            *(Node(label, text) for label, text in cause.facts),
        ]
        yield from rendering.tree([row for row in rows if row.text])
    if len(causes) > SHOWN:
        yield ""
        yield f"... and {len(causes) - SHOWN} more, see --json"


def _tell_nothing(text: Text, subject: Subject | None) -> None:
    where = subject.title if subject else f"the newest {RECORDS} containers on record"
    print(f"cdictl: nothing in this text speaks of an edit of {where}", file=sys.stderr)
    for kind, number in text.hooks:
        other = _foreign_hook(subject.bundle, kind, int(number), text) if subject else ""
        if other:
            print(f"cdictl: {other}", file=sys.stderr)


def _foreign_hook(bundle: str, kind: str, number: int, text: Text) -> str:
    """Return what the hook of that number is, if it is the container's own."""
    try:
        config: Config = Bundle(f"{bundle}/config.json").config
    except BadBundle:
        return ""
    for name in text.kinds(kind):
        own = (config.get("hooks") or {}).get(name) or []
        if number < len(own):
            return (
                f"{name} #{number} is {own[number].get('path')}, which is not CDI's but the"
                f" container's own; {NUMBERING}"
            )
    return ""
