"""``netDevices``: host network interfaces to move in (CDI SPEC, "containerEdits.netDevices")."""

from __future__ import annotations

import posix

from cdi_runc import edits as base
from cdi_runc.edits import Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.edits import Config, Report

SINCE = "1.1.0"


class Edit(base.Edit):
    """Move one interface of the host into the container, under a name of its own."""

    host_interface: str
    name: str

    def entry(self) -> dict[str, str]:
        """Return the member of linux.netDevices."""
        return {"name": self.name}

    def preflight(self, config: Config) -> str:
        """Say whether the interface is missing, or has no namespace to go to."""
        try:
            posix.stat(f"/sys/class/net/{self.host_interface}")
        except (OSError, ValueError):
            return f"network interface {self.host_interface} is not on this host"
        if not base.has_namespace(config, "network"):
            return (
                f"network interface {self.host_interface} cannot be moved: the container has no"
                " network namespace of its own"
            )
        return ""


def check(entries: list[dict[str, str]], report: Report) -> None:
    """Both names are needed, and each may be given once only in one set of edits."""
    for key, what in (("hostInterfaceName", "host interface"), ("name", "container interface")):
        seen: dict[str, int] = {}
        for index, entry in enumerate(entries):
            name = entry.get(key, "")
            if not name:
                report(f"/{index}", f"a network device needs a {what}: {key} is empty")
            elif name in seen:
                report(f"/{index}/{key}", f"{what} {name!r} is named twice")
            seen[name] = index


def needs(entries: list[dict[str, str]]) -> str:
    """Return the lowest CDI version that allows *entries*."""
    return SINCE


def parse(entries: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Return the arguments of each edit."""
    return [(entry["hostInterfaceName"], entry["name"]) for entry in entries]


def apply(edits: list[Edit], config: Config, keep: bool = False) -> list[list[Effect]]:
    """Enter each interface in linux.netDevices under its host name."""
    effects: list[list[Effect]] = [[] for _ in edits]
    linux = base.section(config, "linux", {}, "/linux", effects[0])
    devices = base.section(linux, "netDevices", {}, "/linux/netDevices", effects[0])
    final = {edit.host_interface: edit.entry() for edit in edits}
    settled = {name for name, device in final.items() if devices.get(name) == device}
    kept = set(devices) if keep else ()
    for edit, own in zip(edits, effects, strict=True):
        key, device = edit.host_interface, edit.entry()
        where = "/linux/netDevices/" + key.replace("~", "~0").replace("/", "~1")
        before = devices.get(key)
        if before == device:
            own.append(Effect("already present", where, before, device))
        elif key in settled:
            own.append(Effect("superseded", where, before, before))
        elif key in kept:
            own.append(Effect("kept", where, before, before))
        else:
            own.append(Effect("added" if key not in devices else "replaced", where, before, device))
            devices[key] = device
    return effects
