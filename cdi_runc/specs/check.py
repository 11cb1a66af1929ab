"""The rules of CDI 0.3.0 to 1.1.0 for one spec file, as the reference library checks them.

Checks never stop at the first fault, but at the thousandth.  Each fault has its place, as a JSON
pointer.
"""

from __future__ import annotations

from cdi_runc import edits, jsonio, names
from cdi_runc.errors import BadSpec
from cdi_runc.record import Record
from cdi_runc.specs import decode, document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Edits = tuple[tuple[str, tuple[tuple[Any, ...], ...]], ...]
    """For each kind in use: its key, and the arguments of its edits."""

# Versions that the reference knows; the first two are below what any file needs.
VERSIONS = "0.1.0 0.2.0 0.3.0 0.4.0 0.5.0 0.6.0 0.7.0 0.8.0 1.0.0 1.1.0".split()  # noqa: SIM905

MOST = 1_000  # faults that are told of one file
LONGEST = 500  # characters of one fault, which may quote what is in the file


class _Enough(Exception):
    """There are more faults than anybody would read."""


def cut(text: str) -> str:
    """Return *text*, its middle left out where it is too long."""
    half = LONGEST // 2 - 2
    return text if len(text) <= LONGEST else f"{text[:half]}...{text[-half:]}"


class Finding(Record):
    """One thing wrong with one place in one file."""

    pointer: str
    message: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """Say the place, then what is wrong there."""
        place = f"line {self.line}, column {self.column}: " if self.line else ""
        field = f"{cut(self.pointer)}: " if self.pointer else ""
        return f"{place}{field}{self.message}"


class Spec(Record):
    """A valid spec file, its edits as plain data."""

    version: str
    kind: str
    edits: Edits
    devices: tuple[tuple[str, Edits], ...]
    """Name and edits of each device, in the order of the file."""

    @property
    def names(self) -> list[str]:
        """The qualified names of the devices."""
        return [f"{self.kind}={name}" for name, _ in self.devices]


_schemas: list[dict[str, Any]] = []


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a spec file, put together from the frame and the kinds' own."""
    if not _schemas:
        frame = _read_schema(f"{__file__.rpartition('/')[0]}/spec.schema.json")
        folder = edits.__file__.rpartition("/")[0]
        members = {
            key: _read_schema(f"{folder}/{edits.file_name(key)}.schema.json") for key in edits.KEYS
        }
        for member in members.values():
            del member["$schema"]
        frame["properties"]["containerEdits"]["properties"] = members
        device = frame["properties"]["devices"]["items"]["properties"]
        device["containerEdits"] = frame["properties"]["containerEdits"]
        _schemas.append(frame)
    return _schemas[0]


def _read_schema(path: str) -> dict[str, Any]:
    with open(path, "rb") as file:
        found: dict[str, Any] = jsonio.loads(file.read())
    return found


def load(data: bytes) -> Spec:
    """Return the spec that the bytes of a file stand for.

    Raises:
        BadSpec: it is not valid; the message tells the first fault and how many more there are.

    """
    spec, findings = examine(data)
    if spec is None:
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        raise BadSpec(f"{findings[0]}{more}")
    return spec


def examine(data: bytes) -> tuple[Spec | None, list[Finding]]:
    """Return the spec, or None and every fault of the file with its line and column."""
    _, decoded, findings = decoded_spec(data)
    return (None if findings else _compiled(decoded)), findings


def decoded_spec(
    data: bytes, *, any_version: bool = False
) -> tuple[Any, dict[str, Any], list[Finding]]:
    """Return the value in *data*, the same decoded as the schema types it, and every fault.

    With *any_version*, what the file says of its version is not looked at.
    """
    try:
        value = document.read(data)
    except BadSpec as error:
        return None, {}, [Finding("", cut(error.message), error.line, error.column)]
    if value is None:
        return None, {}, [Finding("", "the file is empty: it holds no CDI spec")]
    found: list[Finding] = []

    def report(pointer: str, message: str) -> None:
        if len(found) == MOST:
            raise _Enough
        found.append(Finding(pointer, cut(message)))

    decoded = None
    try:
        decoded = decode.decode(value, schema(), report)
        faulty = {place for finding in found for place in _above(finding.pointer)}

        def consider(pointer: str, message: str) -> None:
            """Report what does not just follow from a member that could not be decoded."""
            if pointer not in faulty:
                report(pointer, message)

        if decoded is not None:
            _check(decoded, consider)
            if not any_version:
                _check_version(decoded, consider)
    except _Enough:
        more = Finding("", f"and there are more than these {MOST} faults")
        return value, {}, [*placed(found, data), more]
    return value, decoded or {}, placed(found, data)


def _above(pointer: str) -> Iterator[str]:
    """Yield *pointer* and every pointer to what holds its place."""
    while pointer:
        yield pointer
        pointer = pointer.rpartition("/")[0]
    yield ""


def placed(findings: list[Finding], data: bytes) -> list[Finding]:
    """Return *findings* with line and column, in the order of the file."""
    if not findings:
        return []
    found = []
    locate = document.locator(data)
    for finding in dict.fromkeys(findings):
        line, column = locate(finding.pointer) or (0, 0)
        found.append(finding.but(line=line, column=column))
    return sorted(found, key=lambda finding: (finding.line, finding.column))


def _check_kind(kind: str, report: edits.Report) -> None:
    vendor, slash, class_ = kind.partition("/")
    if not kind:
        report("/kind", "the file has no kind, which is of the form vendor.com/class")
    elif not (slash and vendor and class_):
        report("/kind", f"kind {kind!r} is not of the form vendor.com/class")
    else:
        for wrong in (names.fault_in_kind("vendor", vendor), names.fault_in_kind("class", class_)):
            if wrong:
                report("/kind", wrong)


def _check(spec: dict[str, Any], report: edits.Report) -> None:
    _check_kind(spec.get("kind", ""), report)
    devices = spec.get("devices", [])
    if not devices:
        report("/devices", "the file defines no devices")
    if "containerEdits" in spec:
        _check_edits(spec["containerEdits"], "/containerEdits", report)
    seen: dict[str, int] = {}
    for index, device in enumerate(devices):
        place = f"/devices/{index}"
        name = device.get("name", "")
        wrong = names.fault_in_device(name)
        if wrong:
            report(f"{place}/name" if name else place, wrong)
        elif name in seen:
            report(f"{place}/name", f"device {name!r} is defined twice in this file")
        seen.setdefault(name, index)
        own = device.get("containerEdits", {})
        if not any(own[key] or key == "intelRdt" for key in own):
            report(place, f"device {name!r} has no containerEdits of its own")
        _check_edits(own, f"{place}/containerEdits", report)


def _check_edits(own: dict[str, Any], place: str, report: edits.Report) -> None:
    for key, entries in own.items():

        def below(pointer: str, message: str, key: str = key) -> None:
            report(f"{place}/{key}{pointer}", message)

        edits.kind(key).check(entries, below)


def _check_version(spec: dict[str, Any], report: edits.Report) -> None:
    version = spec.get("cdiVersion", "")
    if version.removeprefix("v") not in VERSIONS:
        known = f"{', '.join(VERSIONS[2:-1])} and {VERSIONS[-1]}"
        what = f"unknown cdiVersion {version!r}" if version else "the file has no cdiVersion"
        report("/cdiVersion", f"{what}; known: {known}")
        return
    declared = number(version.removeprefix("v"))
    for needed, pointer, what in needs(spec):
        if number(needed) > declared:
            report(
                pointer, f"{what} needs cdiVersion {needed} or newer, and the file says {version}"
            )


def minimum_version(spec: dict[str, Any]) -> str:
    """Return the lowest version that allows everything in the decoded *spec*."""
    return max((needed for needed, _, _ in needs(spec)), key=number)


def number(version: str) -> list[int]:
    """Return a key that sorts versions."""
    return [int(part) for part in version.split(".")]


def needs(spec: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield what in the spec needs which version (CDI SPEC, "Released versions")."""
    yield "0.3.0", "/cdiVersion", "CDI"
    if "." in spec.get("kind", "").partition("/")[2]:
        yield "0.6.0", "/kind", "a dot in the class"
    holders = [("", spec), *((f"/devices/{i}", d) for i, d in enumerate(spec.get("devices", [])))]
    for place, holder in holders:
        if holder.get("annotations"):
            yield "0.6.0", f"{place}/annotations", "annotations"
        if place and holder.get("name", "")[:1] not in (*names.LETTERS, ""):
            yield "0.5.0", f"{place}/name", "a device name that begins with a digit"
        for key, entries in holder.get("containerEdits", {}).items():
            if entries or key == "intelRdt":
                needed = edits.kind(key).needs(entries)
                if needed != VERSIONS[2]:
                    yield needed, f"{place}/containerEdits/{key}", _newest(key, needed)


def _newest(key: str, version: str) -> str:
    newer = {
        ("deviceNodes", "0.5.0"): "hostPath of a device node",
        ("mounts", "0.4.0"): "type of a mount",
        ("intelRdt", "1.1.0"): "schemata or enableMonitoring of intelRdt",
    }
    return newer.get((key, version), key)


def _compiled(spec: dict[str, Any]) -> Spec:
    return Spec(
        version=spec["cdiVersion"],
        kind=spec["kind"],
        edits=_plain(spec.get("containerEdits", {})),
        devices=tuple(
            (device["name"], _plain(device["containerEdits"])) for device in spec["devices"]
        ),
    )


def _plain(own: dict[str, Any]) -> Edits:
    return tuple(
        (key, tuple(edits.kind(key).parse(own[key])))
        for key in edits.KEYS
        if key in own and (own[key] or key == "intelRdt")
    )
