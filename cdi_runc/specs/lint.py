"""What is valid in a spec file, and yet likely a mistake: the warnings of ``cdictl validate``."""

from __future__ import annotations

import re

from cdi_runc.specs import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Warnings = Iterator[tuple[str, str]]

_LOADER_OR_LIBC = re.compile(r"(libc\.so(\..*)?|libc-[0-9.]+\.so|ld-(linux|musl).*|ld\.so(\..*)?)")
_LIBRARY_DIR = re.compile(r"(/usr)?/lib(64)?(/[a-z0-9_]+-linux-\w+)?/?|/usr/local/lib/?")
_PRELOADS = "this lets a file of the image run with the hook's rights"


def warnings(spec: dict[str, Any], raw: Any) -> Warnings:
    """Yield place and text of each warning about the decoded *spec*, read from the value *raw*."""
    yield from _converted(raw, "")
    holders = [("", spec), *((f"/devices/{i}", d) for i, d in enumerate(spec.get("devices", [])))]
    for place, holder in holders:
        own = holder.get("containerEdits", {})
        below = f"{place}/containerEdits"
        yield from _env(own.get("env", []), f"{below}/env")
        for index, node in enumerate(own.get("deviceNodes", [])):
            yield from _node(node, f"{below}/deviceNodes/{index}")
        for index, mount in enumerate(own.get("mounts", [])):
            yield from _mount(mount, f"{below}/mounts/{index}")
        for index, hook in enumerate(own.get("hooks", [])):
            yield from _hook(hook, f"{below}/hooks/{index}")


def _converted(raw: Any, pointer: str) -> Warnings:
    """Warn of names that YAML does not read as text: ``007`` is 7, ``on`` is true."""
    devices = raw.get("devices") if isinstance(raw, dict) else None
    for index, device in enumerate(devices if isinstance(devices, list) else ()):
        name = device.get("name") if isinstance(device, dict) else None
        if name is not None and not isinstance(name, str):
            text = decode.as_text(name)
            yield (
                f"{pointer}/devices/{index}/name",
                f"the name is no text for YAML and is read as {text!r}; put it in quotes",
            )


def _env(entries: list[str], place: str) -> Warnings:
    for index, entry in enumerate(entries):
        name = entry.partition("=")[0]
        if name == "PATH" or name.startswith("LD_"):
            yield f"{place}/{index}", f"{name} takes the place of the container's own"


def _node(node: dict[str, Any], place: str) -> Warnings:
    mode = node.get("fileMode")
    if mode is not None:
        if mode > 0o7777:  # noqa: PLR2004
            yield f"{place}/fileMode", f"mode {mode} (octal {mode:o}) has bits above 07777"
        elif not _is_usual(mode) and set(str(mode)) <= set("01234567"):
            meant = int(str(mode), 8)
            if _is_usual(meant):
                yield (
                    f"{place}/fileMode",
                    (
                        f"mode {mode} is decimal (octal {mode:04o});"
                        f" 0{mode} or {meant} was likely meant"
                    ),
                )


def _is_usual(mode: int) -> bool:
    """Tell whether no class of users may do what the class before it may not."""
    owner, group, other = mode >> 6, mode >> 3 & 7, mode & 7
    return mode <= 0o777 and not group & ~owner and not other & ~group  # noqa: PLR2004


def _mount(mount: dict[str, Any], place: str) -> Warnings:
    source, target = mount.get("hostPath", ""), mount.get("containerPath", "")
    options, type_ = mount.get("options", []), mount.get("type", "")
    if target[:1] != "/":
        yield f"{place}/containerPath", f"{target!r} is no absolute path"
    elif ".." in target.split("/"):
        yield f"{place}/containerPath", f"{target!r} holds '..'"
    if target == "/proc" or target.startswith("/proc/"):
        yield f"{place}/containerPath", "runc refuses mounts under /proc"
    if _LOADER_OR_LIBC.fullmatch(source.rpartition("/")[2]):
        yield f"{place}/hostPath", "the host's C library or loader breaks images with another one"
    if _LIBRARY_DIR.fullmatch(target):
        yield f"{place}/containerPath", f"{target} of the image is hidden as a whole"
    if type_ in ("", "none", "bind") and not {"bind", "rbind"} & set(options):
        yield (
            place,
            (
                "neither bind nor rbind is among the options;"
                " other tools then fail with 'no such device'"
            ),
        )


def _hook(hook: dict[str, Any], place: str) -> Warnings:
    env = hook.get("env", [])
    if not env:
        yield (
            place,
            (
                "without env, runc 1.1 gives a hook the container's, LD_PRELOAD included"
                " (cdi-runc gives it PATH alone)"
            ),
        )
    for index, entry in enumerate(env):
        if entry.startswith("LD_"):
            name = entry.partition("=")[0]
            yield f"{place}/env/{index}", f"{name} in a hook's env: {_PRELOADS}"
    if hook.get("path", "")[:1] != "/":
        yield f"{place}/path", f"{hook.get('path', '')!r} is no absolute path"
    if hook.get("timeout", 1) <= 0:
        yield f"{place}/timeout", "the timeout is not above 0 seconds"
