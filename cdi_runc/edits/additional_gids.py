"""``additionalGids``: groups of the process (CDI SPEC, "containerEdits.additionalGids")."""

from __future__ import annotations

from cdi_runc import edits as base
from cdi_runc.edits import Doubt, Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdi_runc.edits import Config, Report

SINCE = "0.7.0"


class Edit(base.Edit):
    """Add one group to the process."""

    gid: int

    def settle(self, config: Config) -> tuple[Edit, str]:
        """Note where the group is another one on the host, whose nodes it does not open."""
        outside = [first + self.gid - own for own, first in self._ranges(config)]
        if not self.gid or not outside or outside == [self.gid]:
            return self, ""
        return self, Doubt(
            f"group {self.gid} is the host's {outside[0]} in this user namespace, so it opens"
            f" nothing of the host's group {self.gid}"
        )

    def preflight(self, config: Config) -> str:
        """Say whether the group cannot be had: runc's own words name neither it nor the device."""
        ranges = base.id_map(config, "gid")
        if not self.gid or ranges is None or list(self._ranges(config)):
            return ""
        shown = ", ".join(f"{own} to {own + size - 1}" for own, _, size in sorted(ranges))
        return (
            f"group {self.gid} cannot be given, as the user namespace has only groups {shown}"
            " (a user gets more in /etc/subgid)"
        )

    def _ranges(self, config: Config) -> Iterator[tuple[int, int]]:
        for own, first, size in base.id_map(config, "gid") or ():
            if own <= self.gid < own + size:
                yield own, first

    def entry(self) -> int:
        """Return the entry of process.user.additionalGids."""
        return self.gid


def check(entries: list[int], report: Report) -> None:
    """Everything that can be wrong with a group id, the schema says."""


def needs(entries: list[int]) -> str:
    """Return the lowest CDI version that allows *entries*."""
    return SINCE


def parse(entries: list[int]) -> list[tuple[int]]:
    """Return the arguments of each edit."""
    return [(gid,) for gid in entries]


def apply(edits: list[Edit], config: Config, keep: bool = False) -> list[list[Effect]]:
    """Append each group that the process lacks; group 0 is left out, as the reference does."""
    effects: list[list[Effect]] = [[] for _ in edits]
    if not any(edit.gid for edit in edits):
        return effects
    process = base.section(config, "process", {}, "/process", effects[0])
    user = base.section(process, "user", {}, "/process/user", effects[0])
    place = "/process/user/additionalGids"
    gids = base.section(user, "additionalGids", [], place, effects[0])
    for edit, own in zip(edits, effects, strict=True):
        if not edit.gid:
            continue
        if edit.gid in gids:
            where = f"{place}/{gids.index(edit.gid)}"
            own.append(Effect("already present", where, edit.gid, edit.gid))
        else:
            own.append(Effect("added", f"{place}/{len(gids)}", None, edit.gid))
            gids.append(edit.gid)
    return effects
