"""Docker's daemon.json: read strictly, and changed as text, so that all else in it stays."""

from __future__ import annotations

import json
import re

from cdi_runc.engines.config_file import BadConfigFile, ConfigFile
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Key = tuple[str | int, ...]

STOCK = "runc"
_BOM = "\ufeff"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


class BadDaemonJson(BadConfigFile):
    """A daemon.json that is not ours to change: we cannot read it without a doubt."""


def added(text: str | None, name: str, path: str, set_default: bool) -> str:
    """Return *text* with the runtime *name*, whose program is *path*."""
    values = read(text)
    entry = values.get("runtimes", {}).get(name)
    if entry is not None and (not isinstance(entry, dict) or "path" not in entry):
        raise BadDaemonJson(f"it has a runtime {name!r} of another make")
    text = text or ""
    if entry is None:
        text = put(text, ("runtimes", name), {"path": path})
    elif entry["path"] != path:
        text = put(text, ("runtimes", name, "path"), path)
    if set_default and values.get("default-runtime") != name:
        text = put(text, ("default-runtime",), name)
    return text


def removed(file: ConfigFile, name: str) -> str | None:
    """Return the text of *file* without what we added to it; None if there was no file."""
    text = file.text or ""
    runtimes = read(text).get("runtimes", {})
    try:
        before = ConfigFile.load(file.backup)
        earlier = read(before.text)
    except BadConfigFile as error:
        raise BadDaemonJson(f"its backup {file.backup} is no use: {error.message}") from None
    if name in runtimes:
        text = drop(text, ("runtimes", name))
        if len(runtimes) == 1 and "runtimes" not in earlier:
            text = drop(text, ("runtimes",))
    if read(text).get("default-runtime") == name:
        default = earlier.get("default-runtime")
        if default != name and default in ("", STOCK, *runtimes):  # Docker takes "" for its own
            text = put(text, ("default-runtime",), default)
        else:
            text = drop(text, ("default-runtime",))
    return before.text if read(text) == {} == earlier else text


def spelled_out(text: str | None, *, default: bool) -> str:
    """Return *text* with what it leaves to Docker's defaults.

    A reload takes an absent key for "as it was" (measured: Docker 20.10).
    """
    values = read(text)
    text = text or ""
    if "runtimes" not in values:
        text = put(text, ("runtimes",), {})
    if default and "default-runtime" not in values:
        text = put(text, ("default-runtime",), STOCK)
    return text


class Member(Record):
    """A member of an object in the text: its key, and where key and value stand."""

    key: Key
    start: int
    value: int
    end: int


def read(text: str | None) -> dict[str, Any]:
    """Return what *text* says; Docker takes an empty file for an empty object.

    Raises:
        BadDaemonJson: it is not one strict JSON object, or we could not tell what Docker makes
            of it.

    """
    body = (text or "").removeprefix(_BOM)
    if not body.strip():
        return {}
    try:
        values = json.loads(body)
        members = _members(body)
    except json.JSONDecodeError as error:
        raise BadDaemonJson(f"line {error.lineno}: {_explained(error)}") from None
    except ValueError:  # Python takes no integer over 4,300 digits, and Docker none of 310
        raise BadDaemonJson("a number in it has too many digits") from None
    except RecursionError:
        raise BadDaemonJson("it is nested too deeply") from None
    if not isinstance(values, dict):
        raise BadDaemonJson("line 1: it is not an object")
    seen = set()
    for member in members:
        if member.key in seen:
            line = body.count("\n", 0, member.start) + 1
            raise BadDaemonJson(f"line {line}: the key {member.key[-1]!r} is there twice")
        seen.add(member.key)
    for key, kind in (("runtimes", dict), ("default-runtime", str)):
        if not isinstance(values.get(key, kind()), kind):
            word = {dict: "an object", str: "a text"}[kind]
            raise BadDaemonJson(f"{key!r} is not {word}")
    return values


def put(text: str, key: Key, value: object) -> str:
    """Return *text* with *value* at *key*, written in the manner of what is around it."""
    if not text.removeprefix(_BOM).strip():
        text = f"{text.rstrip()}{{}}\n"
    members = {member.key: member for member in _members(text)}
    found = members.get(key)
    if found:
        return text[: found.value] + json.dumps(value, ensure_ascii=False) + text[found.end :]
    if key[:-1] not in members:
        return put(text, key[:-1], {key[-1]: value})

    parent = members[key[:-1]]
    inside = _children(members, parent)
    first = next((m for m in members.values() if len(m.key) == 1), None)
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = re.sub(r".*\n", "", text[text.index("{") + 1 : first.start]) if first else "    "
    if inside:
        at = inside[-1].end
        gap = text[text.rindex("{", 0, inside[0].start) + 1 : inside[0].start]
        lines = "\n" in gap
        indent = gap.rpartition("\n")[2]
    else:
        at = parent.value + 1
        lines = first is None or "\n" in text[text.index("{") : first.start]
        indent = unit * len(key)
    if lines:
        told = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + indent)
        new = f"{newline}{indent}{json.dumps(key[-1])}: {told}"
        closing = "" if inside else newline + unit * (len(key) - 1)
    else:
        colon = ": " if first is None or re.search(r'"\s*:\s', text) else ":"
        comma = ", " if colon == ": " else ","
        told = json.dumps(value, separators=(comma, colon), ensure_ascii=False)
        new = f"{comma[1:] if inside else ''}{json.dumps(key[-1])}{colon}{told}"
        closing = ""
    if inside:
        return f"{text[:at]},{new}{text[at:]}"
    return f"{text[:at]}{new}{closing}{text[parent.end - 1 :]}"


def drop(text: str, key: Key) -> str:
    """Return *text* without *key*, which it has, and without the comma that went with it."""
    members = {member.key: member for member in _members(text)}
    parent = members[key[:-1]]
    inside = _children(members, parent)
    at = inside.index(members[key])
    if at + 1 < len(inside):
        start, end = inside[at].start, inside[at + 1].start
    elif at:
        start, end = inside[at - 1].end, inside[at].end
    else:
        start, end = parent.value + 1, parent.end - 1
    return text[:start] + text[end:]


def _children(members: dict[Key, Member], parent: Member) -> list[Member]:
    inside = [m for key, m in members.items() if key and key[:-1] == parent.key]
    return sorted(inside, key=lambda member: member.start)


def _members(text: str) -> list[Member]:
    """Return every member of every object in the valid JSON *text*, and the whole as ``()``."""
    found: list[Member] = []
    tokens = _TOKEN.finditer(text, len(text) - len(text.removeprefix(_BOM)))

    def walk(token: re.Match[str], key: Key) -> int:
        if token[0] in ("NaN", "Infinity", "-Infinity"):
            reason = f"the value {token[0]}, which JSON does not have"
            raise json.JSONDecodeError(reason, text, token.start())
        if token[0] not in ("{", "["):
            return token.end()
        is_object = token[0] == "{"
        count = 0
        for part in tokens:
            if part[0] in ("}", "]"):
                return part.end()
            if part[0] == ",":
                continue
            if is_object:
                next(tokens)
                value = next(tokens)
                inner: Key = (*key, json.loads(part[0]))
                end = walk(value, inner)
                found.append(Member(inner, part.start(), value.start(), end))
            else:
                walk(part, (*key, count))
            count += 1
        raise AssertionError(text)

    top = next(tokens)
    found.append(Member((), top.start(), top.start(), walk(top, ())))
    return found


def _explained(error: json.JSONDecodeError) -> str:
    """Say in a person's words what is usually the matter."""
    before, after = error.doc[: error.pos].rstrip(), error.doc[error.pos :].lstrip()
    if after[:2] in ("//", "/*") or after[:1] == "#":
        return "a comment, which JSON does not have"
    if after[:1] in ("}", "]") and before[-1:] == ",":
        return f"a comma before {after[0]}"
    if error.msg.startswith("Illegal trailing comma"):
        return "a comma before the end"
    if error.msg == "Extra data":
        return "something follows after the end of the object"
    return error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
