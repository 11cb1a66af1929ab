"""``hooks``: programs to run in the container's life (CDI SPEC, "containerEdits.hooks")."""

from __future__ import annotations

import posix

from cdi_runc import edits as base
from cdi_runc import files
from cdi_runc.edits import Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cdi_runc.edits import Config, Report

SINCE = "0.3.0"
NAMES = (
    "prestart",
    "createRuntime",
    "createContainer",
    "startContainer",
    "poststart",
    "poststop",
)
# Under runc 1.1.5 a hook without env runs as root with the container's whole environment, the
# image's LD_PRELOAD included (the class of CVE-2025-23266).
SAFE_ENV = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",)


class Edit(base.Edit):
    """Run one program at one moment."""

    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] | None = None
    timeout: int | None = None

    def settle(self, config: Config) -> tuple[Edit, str]:
        """Give a hook without environment a safe one."""
        if self.env:
            return self, ""
        edit = Edit(self.hook_name, self.path, self.args, SAFE_ENV, self.timeout)
        return edit, "the hook has no env of its own, so it gets PATH alone"

    def preflight(self, config: Config) -> str:
        """Say whether a hook that runs on the host is no program there.

        startContainer runs from the container's own root file system, all others from the host's
        (OCI runtime-spec, "POSIX-platform Hooks").
        """
        if self.hook_name == "startContainer":
            return ""
        if self.path[:1] != "/":
            return f"hook {self.path} is no absolute path"
        try:
            status = posix.stat(self.path)
        except (OSError, ValueError):
            return f"hook {self.path} is not on this host"
        if not files.is_regular(status) or not status.st_mode & 0o111:
            return f"hook {self.path} is no executable file"
        return ""

    def entry(self) -> dict[str, Any]:
        """Return the entry of hooks."""
        hook: dict[str, Any] = {"path": self.path}
        if self.args:
            hook["args"] = list(self.args)
        if self.env:
            hook["env"] = list(self.env)
        if self.timeout is not None:
            hook["timeout"] = self.timeout
        return hook


def check(entries: list[dict[str, Any]], report: Report) -> None:
    """Check that a hook has one of the six names and a path; its env is checked as env is."""
    from cdi_runc.edits import env

    for index, entry in enumerate(entries):
        name = entry.get("hookName", "")
        if name not in NAMES:
            near = [other for other in NAMES if other.lower() == name.lower().replace("-", "")]
            meant = f"; {near[0]} was meant" if near else f"; the names are {', '.join(NAMES)}"
            report(f"/{index}/hookName" if name else f"/{index}", f"unknown hook {name!r}{meant}")
        if not entry.get("path"):
            report(f"/{index}", "a hook needs a path")
        env.check(entry.get("env", []), _below(f"/{index}/env", report))


def _below(place: str, report: Report) -> Report:
    return lambda pointer, message: report(f"{place}{pointer}", message)


def needs(entries: list[dict[str, Any]]) -> str:
    """Return the lowest CDI version that allows *entries*."""
    return SINCE


def parse(entries: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the arguments of each edit."""
    return [
        (
            entry["hookName"],
            entry["path"],
            tuple(entry.get("args", ())),
            tuple(entry["env"]) if "env" in entry else None,
            entry.get("timeout"),
        )
        for entry in entries
    ]


def apply(edits: list[Edit], config: Config, keep: bool = False) -> list[list[Effect]]:
    """Append each hook to those of its name, unless the same one is there already."""
    effects: list[list[Effect]] = [[] for _ in edits]
    sections = base.section(config, "hooks", {}, "/hooks", effects[0])
    for edit, own in zip(edits, effects, strict=True):
        place = f"/hooks/{edit.hook_name}"
        hooks = base.section(sections, edit.hook_name, [], place, own)
        hook = edit.entry()
        if hook in hooks:
            own.append(Effect("already present", f"{place}/{hooks.index(hook)}", hook, hook))
        else:
            own.append(Effect("added", f"{place}/{len(hooks)}", None, hook))
            hooks.append(hook)
    return effects
