"""``mounts``: host paths to mount (CDI SPEC, "containerEdits.mounts")."""

from __future__ import annotations

import posix
from _bisect import bisect_right

from cdi_runc import edits as base
from cdi_runc import paths
from cdi_runc.edits import Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cdi_runc.edits import Config, Report

SINCE = "0.3.0"


class Edit(base.Edit):
    """Mount one path of the host."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    type: str = ""

    def is_bind(self) -> bool:
        """Tell whether the source is a path of the host, not a file system's name."""
        options = self.options
        return self.type in ("", "none", "bind") or "bind" in options or "rbind" in options

    def settle(self, config: Config) -> tuple[Edit, str]:
        """Say "bind" where the spec left it out, and map ids in a user namespace.

        Without ``bind`` or ``rbind`` the kernel answers "no such device" (runc 1.1.5).  The id
        mapping is the reference library's after 1.1.0.
        """
        if not self.is_bind():
            return self, ""
        options, type_, notes = self.options, self.type, []
        if (
            "idmap" not in options
            and "ridmap" not in options
            and base.has_namespace(config, "user")
        ):
            options = (*options, "ridmap" if "rbind" in options else "idmap")
            notes.append(f"option {options[-1]} added for the user namespace")
        if "bind" not in options and "rbind" not in options:
            options, type_ = (*options, "rbind"), "bind"
            notes.append("option rbind added, as the spec names no kind of bind mount")
        if not notes:
            return self, ""
        return Edit(self.host_path, self.container_path, options, type_), "; ".join(notes)

    def preflight(self, config: Config) -> str:
        """Say whether the source is missing: runc's own words name neither device nor spec."""
        if self.is_bind():
            try:
                posix.stat(self.host_path)
            except (OSError, ValueError):
                return f"mount source {self.host_path} is not on this host"
        return ""

    def entry(self) -> dict[str, Any]:
        """Return the entry of mounts."""
        mount: dict[str, Any] = {"destination": self.container_path}
        if self.type:
            mount["type"] = self.type
        mount["source"] = self.host_path
        if self.options:
            mount["options"] = list(self.options)
        return mount


def check(entries: list[dict[str, Any]], report: Report) -> None:
    """Both paths are needed."""
    for index, entry in enumerate(entries):
        for key, what in (("hostPath", "source"), ("containerPath", "destination")):
            if not entry.get(key):
                report(f"/{index}", f"a mount needs a {what}: {key} is empty")


def needs(entries: list[dict[str, Any]]) -> str:
    """Return the lowest CDI version that allows *entries*."""
    return "0.4.0" if any(entry.get("type") for entry in entries) else SINCE


def parse(entries: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the arguments of each edit."""
    return [
        (
            entry["hostPath"],
            entry["containerPath"],
            tuple(entry.get("options", ())),
            entry.get("type", ""),
        )
        for entry in entries
    ]


def _destination(mount: object) -> str:
    destination = mount.get("destination") if type(mount) is dict else None
    return paths.clean(destination) if type(destination) is str else ""


def apply(edits: list[Edit], config: Config, keep: bool = False) -> list[list[Effect]]:
    """Add each mount behind all that are no deeper; one at the same cleaned path is replaced.

    The reference appends and then sorts all mounts by depth, stably.  Sorting first and inserting
    in order gives the same list, with one effect for each thing that happened.
    """
    effects: list[list[Effect]] = [[] for _ in edits]
    mounts = base.section(config, "mounts", [], "/mounts", effects[0])
    places = [_destination(mount) for mount in mounts]
    depths = [place.count("/") for place in places]
    if depths != sorted(depths):
        before = mounts.copy()
        mounts.sort(key=lambda mount: _destination(mount).count("/"))
        places = [_destination(mount) for mount in mounts]
        depths.sort()
        effects[0].append(Effect("replaced", "/mounts", before, mounts.copy()))
    wanted = [(paths.clean(edit.container_path), edit.entry()) for edit in edits]
    settled = {
        place
        for place, mount in dict(wanted).items()
        if place in places and mounts[_last(places, place)] == mount
    }
    kept = set(places) if keep else ()
    for (place, mount), own in zip(wanted, effects, strict=True):
        if place in settled:
            index = _last(places, place)  # here, as mounts move when others are put
            action: base.Action = "already present" if mounts[index] == mount else "superseded"
            own.append(Effect(action, f"/mounts/{index}", mounts[index], mounts[index]))
            continue
        if place in kept:
            index = _last(places, place)
            own.append(Effect("kept", f"/mounts/{index}", mounts[index], mounts[index]))
            continue
        action, was, replaced = "added", "", None
        if place in places:
            index = places.index(place)
            action, was, replaced = "replaced", f"/mounts/{index}", mounts[index]
            del mounts[index], depths[index], places[index]
        depth = place.count("/")
        index = bisect_right(depths, depth)
        mounts.insert(index, mount)
        depths.insert(index, depth)
        places.insert(index, place)
        own.append(Effect(action, f"/mounts/{index}", replaced, mount, was))
    return effects


def _last(places: list[str], place: str) -> int:
    return len(places) - 1 - places[::-1].index(place)
