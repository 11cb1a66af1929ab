"""``intelRdt``: cache and memory bandwidth classes (CDI SPEC, "containerEdits.intelRdt")."""

from __future__ import annotations

from cdi_runc import edits as base
from cdi_runc.edits import Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cdi_runc.edits import Config, Report

SINCE = "0.7.0"


class Edit(base.Edit):
    """Set the resctrl settings as a whole; those of the device requested last stand."""

    clos_id: str = ""
    l3_cache_schema: str = ""
    mem_bw_schema: str = ""
    schemata: tuple[str, ...] | None = None
    enable_monitoring: bool = False

    def entry(self) -> dict[str, Any]:
        """Return linux.intelRdt."""
        values: tuple[tuple[str, Any], ...] = (
            ("closID", self.clos_id),
            ("l3CacheSchema", self.l3_cache_schema),
            ("memBwSchema", self.mem_bw_schema),
            ("schemata", list(self.schemata or ())),
            ("enableMonitoring", self.enable_monitoring),
        )
        return {key: value for key, value in values if value}


def check(entries: dict[str, Any], report: Report) -> None:
    """Check that the class of service can be a directory of resctrl; ``/`` is the root class."""
    clos_id = entries.get("closID", "")
    if clos_id != "/" and (
        clos_id in (".", "..") or "/" in clos_id or "\n" in clos_id or len(clos_id.encode()) >= 4096  # noqa: PLR2004
    ):
        shown = clos_id if len(clos_id) < 40 else f"{clos_id[:40]}..."  # noqa: PLR2004
        report(
            "/closID",
            f"class of service {shown!r} is no file name: no '/' (but alone, for the root class),"
            " no line break, neither '.' nor '..', under 4096 bytes",
        )


def needs(entries: dict[str, Any]) -> str:
    """Return the lowest CDI version that allows *entries*."""
    newer = "schemata" in entries or entries.get("enableMonitoring")
    return "1.1.0" if newer else SINCE


def parse(entries: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the arguments of the edit."""
    return [
        (
            entries.get("closID", ""),
            entries.get("l3CacheSchema", ""),
            entries.get("memBwSchema", ""),
            tuple(entries["schemata"]) if "schemata" in entries else None,
            entries.get("enableMonitoring", False),
        )
    ]


def apply(edits: list[Edit], config: Config, keep: bool = False) -> list[list[Effect]]:
    """Replace linux.intelRdt as a whole, as the reference does."""
    effects: list[list[Effect]] = [[] for _ in edits]
    linux = base.section(config, "linux", {}, "/linux", effects[0])
    where = "/linux/intelRdt"
    kept = keep and linux.get("intelRdt") is not None
    settled = linux.get("intelRdt") == edits[-1].entry()
    for edit, own in zip(edits, effects, strict=True):
        before, after = linux.get("intelRdt"), edit.entry()
        if before == after:
            own.append(Effect("already present", where, before, after))
        elif settled:
            own.append(Effect("superseded", where, before, before))
        elif kept:
            own.append(Effect("kept", where, before, before))
        else:
            action: base.Action = "replaced" if "intelRdt" in linux else "added"
            own.append(Effect(action, where, before, after))
            linux["intelRdt"] = after
    return effects
