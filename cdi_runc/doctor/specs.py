"""Spec files: what is ignored, and what does not fit this host any more (stale)."""

from __future__ import annotations

import os
import time

from cdi_runc import edits, files, paths, trust
from cdi_runc.doctor import Finding, counted, edit, named
from cdi_runc.edits import Doubt, hooks, mounts
from cdi_runc.edits.device_nodes import Edit as Node
from cdi_runc.errors import Unusable
from cdi_runc.record import Record
from cdi_runc.specs import check, lint
from cdi_runc.specs.compile import ENDINGS, SIZE_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from cdi_runc.registry import Device, Registry

    Groups = tuple[tuple[str, tuple[tuple[Any, ...], ...]], ...]

GENERATORS = {
    "nvidia.com": "nvidia-ctk cdi generate --output={path}",
    "amd.com": "amd-ctk cdi generate --output={path}",
}
"""How the vendor's tool makes the file anew."""
# A container with namespaces of its own, so that only the host can be what an edit lacks.
CONTAINER = {"linux": {"namespaces": [{"type": "network"}]}}
GRACE = 600
"""Seconds after boot in which nodes are made: a spec file of before is no sign of anything."""


class Use(Record):
    """One edit of a device that containers can get."""

    spec: str
    mtime_ns: int
    device: str
    """Its name; for an edit of the whole file, ``any`` and its kind."""
    key: str
    edit: edits.Edit


def uses(registry: Registry) -> list[Use]:
    """Return every edit of every device that can be resolved, each spec file's own ones once."""
    found: list[Use] = []
    seen = set()
    for name in registry.names():
        device = registry.find(name)
        if device is None:
            continue
        if device.path not in seen:
            seen.add(device.path)
            found += _uses(device, f"any {name.partition('=')[0]}", device.spec_edits)
        found += _uses(device, name, device.edits)
    return found


def _uses(device: Device, name: str, groups: Groups) -> list[Use]:
    return [
        Use(device.path, device.mtime_ns, name, key, edits.kind(key).Edit(*arguments))
        for key, entries in groups
        for arguments in entries
    ]


def refused(registry: Registry) -> Iterator[Finding]:
    """Look for files that cannot be used, and for devices that two files define."""
    kinds = _kinds(registry)
    for name, (both, why) in registry.conflicts.items():
        yield Finding(
            "error",
            why,
            "No definition counts, so containers that ask for it do not start.",
            edit(both[0], f"leave {name} in one of these files only"),
        )
    for path, why, kind, rank in registry.faults:
        if why.startswith(trust.REFUSED):
            continue  # ownership tells it, with the cure, once for a directory
        below = [other for other, other_rank in kinds.get(kind, ()) if other_rank < rank]
        over = (
            f" It may be meant to override {named(below)}, which is used in its place."
            if below
            else ""
        )
        yield Finding(
            "error",
            f"{path} cannot be used: {why}",
            f"{'Devices of ' + kind if kind else 'Devices'} in it do not exist for containers."
            + over,
            f"cdictl validate {path}" if os.path.isfile(path) else f"ls -ld {path}",
        )


def _kinds(registry: Registry) -> dict[str, list[tuple[str, int]]]:
    """Return the sound files that define each kind, and the rank of their directory."""
    found: dict[str, list[tuple[str, int]]] = {}
    for (path, _), (kind, *_) in zip(registry.files, registry.summary, strict=True):
        directory = path.rpartition("/")[0]
        found.setdefault(kind, []).append((path, registry.spec_dirs.index(directory)))
    return found


def passed_over(spec_dirs: Sequence[str]) -> Iterator[Finding]:
    """Look for files that seem to be spec files, but are not read as such."""
    for directory in spec_dirs:
        try:
            entries = sorted(os.listdir(directory))
        except OSError:
            continue  # missing, or told by refused
        for name in entries:
            path = f"{directory}/{name}"
            if os.path.isdir(path):
                inside = [one for one in _listed(path) if one.endswith(ENDINGS)]
                if inside:
                    yield Finding(
                        "warning",
                        f"{path} is a directory, so {named(inside)} in it "
                        + ("is not read" if len(inside) == 1 else "are not read"),
                        "Spec files count only directly in a spec directory.",
                        f"mv {path}/{inside[0]} {directory}/",
                    )
            elif not name.endswith(ENDINGS) and _seems_a_spec(path):
                is_typo = name.lower().endswith((".yml", *ENDINGS))
                yield Finding(
                    "warning" if is_typo else "note",
                    f"{path} is not read: only names that end in .json or .yaml are",
                    "Devices that only this file defines do not exist for containers.",
                    f"mv {path} {os.path.splitext(path)[0] if is_typo else path}.yaml",
                )


def _listed(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def _seems_a_spec(path: str) -> bool:
    try:
        return b"cdiVersion" in files.read(path, SIZE_LIMIT)[0]
    except (OSError, ValueError):
        return False


def none(registry: Registry) -> Iterator[Finding]:
    """Look for a host that offers no device at all."""
    if not registry.files and not registry.faults:
        yield Finding(
            "warning",
            f"there is no spec file in {' or '.join(registry.spec_dirs)}",
            "There is no device that a container could ask for.",
            _generate(registry.spec_dirs),
        )


def _generate(spec_dirs: Sequence[str]) -> str:
    """Return the command that writes spec files where the caller may."""
    own = spec_dirs if paths.is_system() else [*filter(_is_own, reversed(spec_dirs))]
    if not own:
        return f"# have root call: cdictl spec generate --output-dir {spec_dirs[0]}"
    return f"cdictl spec generate --output-dir {own[0]}  # or your vendor's tool"


def _is_own(directory: str) -> bool:
    """Tell whether *directory*, or the nearest above it that is there, is the caller's own."""
    while not os.path.exists(directory):
        directory = os.path.dirname(directory)
    return os.stat(directory).st_uid == os.geteuid() and os.access(directory, os.W_OK)


def _regenerate(use: Use) -> str:
    vendor = use.device.removeprefix("any ").partition("/")[0]
    how = GENERATORS.get(vendor, "").format(path=use.spec)
    return how or f"mv {use.spec} {use.spec}.stale  # then make it anew with {vendor}'s tool"


def _date(ns: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(ns // 1_000_000_000))


def missing_sources(found: Sequence[Use]) -> Iterator[Finding]:
    """Look for mount sources that are gone, as after the upgrade of a driver."""
    for path, own in _by_spec(found, mounts.Edit):
        gone = [use for use in own if use.edit.preflight(CONTAINER)]
        if gone:
            count, sources = len(set(_sources(gone))), len(set(_sources(own)))
            yield Finding(
                "error",
                f"{count} of {counted(sources, 'mount source')} in {path} "
                f"{'is' if count == 1 else 'are'} not on this host: {named(_sources(gone))}",
                f"{_who(gone)} The file is of {_date(gone[0].mtime_ns)}: probably the driver is"
                " newer.",
                _regenerate(gone[0]),
            )


def _sources(found: Sequence[Use]) -> list[str]:
    return [use.edit.host_path for use in found if isinstance(use.edit, mounts.Edit)]


def missing_nodes(found: Sequence[Use]) -> Iterator[Finding]:
    """Look for device nodes that are gone, or are something else now."""
    for path, own in _by_spec(found, Node):
        told = [(why, use) for use in own if (why := _settled(use)[1])]
        if told:
            yield Finding(
                "error",
                f"{path}: {named([why for why, _ in told])}",
                f"{_who([use for _, use in told])} The file is of {_date(own[0].mtime_ns)}; is"
                " the driver loaded?",
                _regenerate(own[0]),
            )


def _settled(use: Use) -> tuple[str, str]:
    """Return the note on the edit as it would be carried out now, or why it cannot be."""
    try:
        return use.edit.settle({})[1], ""
    except Unusable as error:
        return "", error.message


def other_numbers(found: Sequence[Use]) -> Iterator[Finding]:
    """Look for nodes whose numbers in the spec file are not those of the host."""
    for path, own in _by_spec(found, Node):
        told = [
            (note, use)
            for use in own
            if isinstance(note := _settled(use)[0], Doubt) and note.startswith("the spec says")
        ]
        if told:
            yield Finding(
                "error",
                f"{path}: {named([note for note, _ in told], 1)}",
                f"A container that asks for {told[0][1].device} gets a node that leads to another"
                f" device or to none. The file is of {_date(own[0].mtime_ns)}.",
                _regenerate(own[0]),
            )


def missing_hooks(found: Sequence[Use]) -> Iterator[Finding]:
    """Look for hooks that are no programs."""
    for path, own in _by_spec(found, hooks.Edit):
        told = [(why, use) for use in own if (why := use.edit.preflight(CONTAINER))]
        if told:
            yield Finding(
                "error",
                f"{path}: {named([why for why, _ in told])}",
                _who([use for _, use in told]),
                _regenerate(told[0][1]),
            )


def _who(found: Sequence[Use]) -> str:
    return f"Containers that ask for {named([use.device for use in found])} do not start."


def missing_interfaces(found: Sequence[Use]) -> Iterator[Finding]:
    """Look for network interfaces that are gone."""
    for use in found:
        why = use.edit.preflight(CONTAINER) if use.key == "netDevices" else ""
        if why:
            yield Finding(
                "error",
                f"{use.spec}: {why}",
                f"Containers that ask for {use.device} do not start; a running one may have it.",
                "ip -brief link",
            )


def older_than_nodes(
    found: Sequence[Use], booted: float | None = None, grace: float = GRACE
) -> Iterator[Finding]:
    """Look for files older than the nodes that they describe: the driver was loaded anew since."""
    start = boot_time() if booted is None else booted
    for path, own in _by_spec(found, Node):
        newest, node, first = 0.0, "", own[0]
        for use in own:
            if isinstance(use.edit, Node):
                place = use.edit.host_path or use.edit.path
                try:
                    made = os.stat(place).st_mtime
                except OSError:
                    continue
                newest, node = max((newest, node), (made, place))
        written = first.mtime_ns / 1e9
        if newest <= written:
            continue
        # Nodes are made at each boot, so a file that outlives boots is always older than they.
        is_usual = written < start and newest < start + grace
        yield Finding(
            "note" if is_usual else "warning",
            f"{path} ({_date(first.mtime_ns)}) is older than {node} ({_date(int(newest * 1e9))})",
            "It was written before this boot; its names and numbers may have changed."
            if is_usual
            else "The device was made anew since, perhaps with other numbers or partitions.",
            _regenerate(first),
        )


def boot_time(stat: str = "/proc/stat") -> float:
    """Return when this host started, in seconds since 1970."""
    with open(stat, encoding="ascii") as file:
        for line in file:
            if line.startswith("btime "):
                return float(line.split()[1])
    return 0.0


def doubtful(registry: Registry) -> Iterator[Finding]:
    """Look for what is valid, and yet likely a mistake."""
    for (path, _), (_, _, devices, fault) in zip(registry.files, registry.summary, strict=True):
        if fault or not devices:
            continue
        raw, decoded, _ = check.decoded_spec(files.read(path, SIZE_LIMIT)[0])
        texts = [text for _, text in lint.warnings(decoded, raw)]
        if texts:
            more = f", and {len(texts) - 1} more" if len(texts) > 1 else ""
            yield Finding(
                "note",
                f"{path}: {texts[0]}{more}",
                "It is valid, and yet likely a mistake.",
                f"cdictl validate {path}",
            )


def _by_spec(found: Sequence[Use], kind: type[edits.Edit]) -> Iterator[tuple[str, list[Use]]]:
    grouped: dict[str, list[Use]] = {}
    for use in found:
        if isinstance(use.edit, kind):
            grouped.setdefault(use.spec, []).append(use)
    yield from grouped.items()
