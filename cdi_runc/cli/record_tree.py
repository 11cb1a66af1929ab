"""One audit record for people: who asked, what was done by which spec file, what was in the way."""

from __future__ import annotations

from cdi_runc.cli import rendering, words
from cdi_runc.cli.rendering import Node, paint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdi_runc.cli.records import Entry

RESULTS = {"edited": "green", "unchanged": "green", "failed": "red"}
DECISIONS = {
    "cdi": "CDI's value stands",
    "container": "the container's value stands",
    "refuse": "the container does not start",
}


def lines(record: Entry) -> Iterator[str]:
    """Yield the lines that show *record* in full."""
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    result = record["result"]
    yield paint(rendering.printable(f"record {record['id']}"), "bold")
    yield from rendering.fields(
        (
            Node("time", f"{record['time']}, {record['duration_ms']} ms"),
            Node("container", record["container"]),
            Node("engine", f"{record['engine'] or 'not known'}, command {record['command']}"),
            Node("bundle", record["bundle"]),
            Node("runtime", f"{record['runtime']} ({versions})" if record["runtime"] else ""),
            Node("result", result, (), RESULTS.get(result, "bold")),
            Node("error", record.get("error", "")),
        )
    )
    yield from section("requests", [_request(one) for one in record["requests"]])
    yield from section("spec files", [_spec(one) for one in record["specs"]])
    yield from section("edits", edits(record["edits"]))
    yield from troubles(record)


def troubles(record: Entry) -> Iterator[str]:
    """Yield what was in the way."""
    yield from section("conflicts", [_conflict(one) for one in record["conflicts"]], "yellow")
    yield from section("warnings", [Node("", text) for text in record["warnings"]], "yellow")


def section(title: str, nodes: list[Node], colour: str = "bold") -> Iterator[str]:
    """Yield a title and what belongs to it, if anything does."""
    if nodes:
        yield ""
        yield paint(title, colour)
        yield from rendering.tree(nodes)


def _request(request: Entry) -> Node:
    asked = f"{request['source']} {request['key']}={request['value']}"
    if request["source"] == "command":
        asked = "--device"
    decision = request["decision"]
    colour = "" if decision == "allow" else "yellow"
    return Node(request["device"], f"{decision}: {asked}", (), colour)


def _spec(spec: Entry) -> Node:
    return Node(
        spec["path"],
        "",
        (
            Node("version", spec["cdiVersion"]),
            Node("written", spec["mtime"]),
            Node("sha256", spec["sha256"]),
        ),
    )


def edits(done: Iterable[Entry]) -> list[Node]:
    """Return *done*, the edits of a record, by device, spec file and kind."""
    groups: dict[str, dict[str, dict[str, list[Node]]]] = {}
    for edit in done:
        if is_section(edit):
            continue
        by_kind = groups.setdefault(edit["device"], {}).setdefault(edit["spec"], {})
        by_kind.setdefault(edit["kind"], []).append(_edit(edit))
    return [
        Node(
            device,
            "",
            [
                Node(spec, "", [Node(kind, "", nodes, "bold") for kind, nodes in kinds.items()])
                for spec, kinds in specs.items()
            ],
            "bold",
        )
        for device, specs in groups.items()
    ]


def is_section(edit: Entry) -> bool:
    """Tell whether *edit* only made room for others."""
    return edit["action"] in ("added", "replaced") and edit["after"] in ({}, [])


def _edit(edit: Entry) -> Node:
    action, where = edit["action"], edit["where"]
    below = []
    if where == "/mounts":
        text = "all mounts, sorted: a parent before its children"
    else:
        text = words.entry(where, edit["before"] if edit["after"] is None else edit["after"])
        if action == "replaced":
            below.append(Node("was", words.entry(str(edit.get("was", where)), edit["before"])))
    if "note" in edit:
        below.append(Node("note", edit["note"]))
    return Node(action, text, below, words.ACTIONS.get(action, ""))


def _conflict(conflict: Entry) -> Node:
    against = conflict["against"]
    other = "the container itself" if against == "container" else against
    where = conflict["where"]
    return Node(
        f"{conflict['kind']} at {where}",
        "",
        (
            Node(other, words.entry(where, conflict["before"])),
            Node(conflict["device"], words.entry(where, conflict["after"])),
            Node("decision", str(DECISIONS.get(conflict["decision"], "")), (), "bold"),
        ),
        "yellow",
    )
