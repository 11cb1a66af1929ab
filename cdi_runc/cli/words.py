"""What edits put into config.json, in words that fit in a line."""

from __future__ import annotations

import re
import shlex

from cdi_runc import jsonio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ACTIONS = {
    "added": "green",
    "replaced": "yellow",
    "removed": "red",
    "kept": "cyan",
    "superseded": "dim",
    "already present": "dim",
}
"""What can happen to an edit, each with its colour."""

_DIGEST = re.compile(r"(=sha256:[0-9a-f]{12})[0-9a-f]{52}$")


def entry(where: str, value: Any) -> str:
    """Return *value*, an entry of config.json at the JSON pointer *where*; a digest is cut."""
    for place, words in _WORDS.items():
        if where.startswith(place):
            try:
                return words(where, value)
            except (
                KeyError,
                TypeError,
                ValueError,
                AttributeError,
            ):  # not as the runtime-spec has it
                break
    return _DIGEST.sub(r"\1", value) if type(value) is str else jsonio.dumps(value).decode()


def _group(_: str, value: Any) -> str:
    return f"group {value + 0}"


def _node(_: str, value: Any) -> str:
    numbers = f" {value['major']}:{value['minor']}" if "major" in value else ""
    mode = f", mode {value['fileMode']:04o}" if "fileMode" in value else ""
    owner = (
        f", owner {value.get('uid', 0)}:{value.get('gid', 0)}" if {"uid", "gid"} & {*value} else ""
    )
    return f"{value['path']}: {value['type']}{numbers}{mode}{owner}"


def _rule(_: str, value: Any) -> str:
    numbers = ":".join(
        "*" if value.get(key) is None else str(value[key]) for key in ("major", "minor")
    )
    verb = "allow" if value["allow"] else "deny"
    return f"cgroup rule: {verb} {value.get('type') or 'a'} {numbers} {value.get('access', '')}"


def _mount(_: str, value: Any) -> str:
    options = ",".join(value.get("options") or ())
    told = ", ".join(one for one in (value.get("type"), options) if one)
    return f"{value['destination']} from {value['source']}" + (f" ({told})" if told else "")


def _hook(where: str, value: Any) -> str:
    _, _, name, index = where.split("/")
    command = shlex.join([value["path"], *(value.get("args") or ())[1:]])
    return f"{name} #{index}: {command}"


def _interface(where: str, value: Any) -> str:
    return f"{where.rpartition('/')[2]} of the host, here {value['name']}"


_WORDS = {
    "/process/user/additionalGids/": _group,
    "/linux/devices/": _node,
    "/linux/resources/devices/": _rule,
    "/linux/netDevices/": _interface,
    "/mounts/": _mount,
    "/hooks/": _hook,
}
