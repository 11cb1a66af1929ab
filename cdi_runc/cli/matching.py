"""An error's text -> the edits that it may be about, the likeliest first."""

from __future__ import annotations

import re

from cdi_runc import paths
from cdi_runc.edits import hooks
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cdi_runc.cli.standing import Standing

HOOK, EXACT, NEAR, LIKELY = 4, 3, 2, 1
"""How sure a match is: by a hook's number, by what is named, by what it lies in or has, by name."""
_HOOK = re.compile(rf"(?:\b({'|'.join(hooks.NAMES)}) )?hooks? ?#(\d+)", re.IGNORECASE)
_QUOTED = re.compile(r"[\"'`](/[^\"'`]*)[\"'`]")
_ESCAPED = re.compile(r'\\"(/[^"\\]*)\\"')
"""A quoted path in a quoted text, as in a log."""
_PATH = re.compile(r"/[^\s\"'`,;:()\[\]{}<>\\]+")
_LIBRARY = re.compile(r"[\w+.-]+\.so(?:\.[\w.]*\w)?")
_NUMBERS = re.compile(r"(?<![\d:.])(\d+):(\d+)(?![\d:])")
_WORD = re.compile(r"[\w.-]+")
# runc does not say the kind of a hook, but when it failed.
_IN_CREATE = ("prestart", "createRuntime", "createContainer")


class Match(Record):
    """An edit that the text may be about."""

    edit: Standing
    sureness: int
    why: str
    """What in the text speaks of it."""


class Text:
    """What an error says, taken apart."""

    def __init__(self, text: str) -> None:
        plain = text.replace("\\n", "\n")
        self.lower = plain.lower()
        self.hooks = [(kind, number) for kind, number in _HOOK.findall(plain)]
        quotes = _ESCAPED if _ESCAPED.search(plain) else _QUOTED
        bare = _PATH.findall(quotes.sub(" ", plain))
        named = [word.rstrip(".") for word in (*quotes.findall(plain), *bare)]
        self.paths = list(dict.fromkeys(map(paths.clean, named)))
        self.libraries = list(dict.fromkeys(_LIBRARY.findall(plain)))
        self.numbers = {f"{major}:{minor}" for major, minor in _NUMBERS.findall(plain)}
        self.words = set(_WORD.findall(plain))

    def kinds(self, named: str) -> tuple[str, ...]:
        """Return the kinds that a hook may be of, of which the text names *named* or none."""
        if named:
            return tuple(kind for kind in hooks.NAMES if kind.lower() == named.lower())
        if "container init" in self.lower or "create failed" in self.lower:
            return _IN_CREATE
        return hooks.NAMES


def matches(text: Text, edits: Iterable[Standing]) -> list[Match]:
    """Return the *edits* that *text* may be about; weak matches only where there is no better."""
    found = []
    for edit in edits:
        sureness, why = max(_of_kind(edit)(text, edit), key=lambda found: found[0], default=(0, ""))
        if sureness:
            found.append(Match(edit, sureness, why))
    found.sort(key=lambda match: -match.sureness)
    least = min(found[0].sureness, NEAR) if found else 0
    return [match for match in found if match.sureness >= least]


def _of_kind(edit: Standing) -> Callable[[Text, Standing], list[tuple[int, str]]]:
    if edit.kind == "deviceNodes":
        return _node if edit.where.startswith("/linux/devices/") else _rule
    return {
        "mounts": _mount,
        "hooks": _hook,
        "env": _variable,
        "netDevices": _interface,
        "intelRdt": _rdt,
        "additionalGids": _group,
    }.get(edit.kind, lambda *_: [])


def _at(text: Text, place: str) -> list[tuple[int, str]]:
    """Return what in *text* speaks of the path *place*, or of a path in it."""
    place = paths.clean(place)
    found = []
    for path in text.paths:
        # A path in the root file system is often told as the host sees it.
        if path == place or (path.endswith(place) and place.count("/") > 1):
            found.append((EXACT, path))
        elif path.startswith(f"{place}/"):
            found.append((NEAR, path))
    name = place.rpartition("/")[2]
    stem = name.partition(".so")[0]
    if ".so" in name:
        found += [
            (EXACT if other == name else LIKELY, other)
            for other in text.libraries
            if other.partition(".so")[0] == stem
        ]
    return found


def _mount(text: Text, edit: Standing) -> list[tuple[int, str]]:
    return _at(text, edit.value["source"]) + _at(text, edit.value["destination"])


def _node(text: Text, edit: Standing) -> list[tuple[int, str]]:
    return _at(text, edit.value["path"]) + _rule(text, edit)


def _rule(text: Text, edit: Standing) -> list[tuple[int, str]]:
    numbers = f"{edit.value.get('major')}:{edit.value.get('minor')}"
    return [(NEAR, numbers)] if numbers in text.numbers else []


def _hook(text: Text, edit: Standing) -> list[tuple[int, str]]:
    _, _, kind, index = edit.where.split("/")
    found = [
        (HOOK, f"hook #{number}")
        for named, number in text.hooks
        if number == index and kind in text.kinds(named)
    ]
    found += _at(text, edit.value["path"])
    for word in edit.value.get("args", ())[1:]:
        if word in text.paths:
            found.append((EXACT, word))
    return found


def _variable(text: Text, edit: Standing) -> list[tuple[int, str]]:
    name = edit.value.partition("=")[0]
    return [(NEAR, name)] if name in text.words else []


def _interface(text: Text, edit: Standing) -> list[tuple[int, str]]:
    names = {edit.where.rpartition("/")[2], edit.value["name"]}
    return [(EXACT, name) for name in sorted(names & text.words)]


def _rdt(text: Text, edit: Standing) -> list[tuple[int, str]]:
    words = ("rdt", "resctrl", "closid", edit.value.get("closID") or "rdt")
    return [(NEAR, word) for word in words if word.lower() in text.lower]


def _group(text: Text, edit: Standing) -> list[tuple[int, str]]:
    if not re.search(r"group|gid", text.lower):
        return []
    return [(NEAR if str(edit.value) in text.words else LIKELY, "groups")]
