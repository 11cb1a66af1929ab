"""Plain values -> values of the types that a JSON Schema names, as Go decodes into a struct.

The schemas beside the edits say which members there are and of which type; this module adds what
the reference does on the way: keys match without regard to case, null means absent, and where text
is wanted a number or boolean is written as text.  Everything else is a fault.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Schema = dict[str, Any]
    Report = Callable[[str, str], None]


_G_LOWEST, _G_PRECISION = -4, 6  # powers of ten that Go's shortest %g writes out


class _Fault(Exception):
    """A value that has no sense at its place; it is reported already."""


def decode(value: Any, schema: Schema, report: Report) -> Any:
    """Return *value* as *schema* types it; None if that cannot be.

    Every fault goes to *report*, as its JSON pointer and what is wrong.
    """
    try:
        return _decode(value, schema, report, "")
    except _Fault:
        return None


def _decode(value: Any, schema: Schema, report: Report, pointer: str) -> Any:
    wanted = schema["type"]
    if wanted == "object":
        return _object(value, schema, report, pointer)
    if wanted == "array":
        return _array(value, schema, report, pointer)
    if wanted == "string":
        text = as_text(value)
        if text is None:
            _wrong(value, "text", report, pointer)
        if "\0" in str(text) or not _is_unicode(str(text)):
            report(pointer, "text holds a NUL character or half a surrogate pair")
            raise _Fault
        return text
    if wanted == "integer":
        return _integer(value, schema, report, pointer)
    if type(value) is not bool:
        _wrong(value, "true or false", report, pointer)
    return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _wrong(value: Any, wanted: str, report: Report, pointer: str) -> None:
    report(pointer, f"{wanted} is wanted here, not {_described(value)}")
    raise _Fault


def _described(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f"the text {value!r}"
    if value is None:
        return "null"
    return f"the boolean {str(value).lower()}" if isinstance(value, bool) else f"the number {value}"


def _object(value: Any, schema: Schema, report: Report, pointer: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _wrong(value, "an object", report, pointer)
    members: dict[str, Schema] = schema.get("properties", {})
    others = schema.get("additionalProperties", False)
    spelled = {name.lower(): name for name in members}
    result: dict[str, Any] = {}
    # The reference decodes members in the order of their sorted keys: the last spelling wins.
    for key in sorted(value) if members else value:
        below = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
        name = key if key in members else spelled.get(key.lower())
        if name is None and not others:
            report(below, _unknown(key, members))
            continue
        member = members[name] if name is not None else others
        if value[key] is None:
            if name is None:
                result[key] = ""
            continue
        try:
            result[name if name is not None else key] = _decode(value[key], member, report, below)
        except _Fault:
            continue
    return result


def _unknown(key: str, members: dict[str, Schema]) -> str:
    import difflib

    near = difflib.get_close_matches(key, members, 1, 0.6)
    meant = f"; {near[0]!r} was meant" if near else f"; known here: {', '.join(sorted(members))}"
    return f"unknown field {key!r}{meant}"


def _array(value: Any, schema: Schema, report: Report, pointer: str) -> list[Any]:
    if not isinstance(value, list):
        _wrong(value, "a list", report, pointer)
    items = schema["items"]
    result = []
    for index, entry in enumerate(value):
        below = f"{pointer}/{index}"
        if entry is None and items["type"] == "object" and not items.get("x-null-is-empty"):
            report(below, "a list entry is null")
            continue
        try:
            result.append(_empty(items) if entry is None else _decode(entry, items, report, below))
        except _Fault:
            continue
    return result


def _empty(schema: Schema) -> Any:
    return {"string": "", "integer": 0, "object": {}}[schema["type"]]


def _integer(value: Any, schema: Schema, report: Report, pointer: str) -> int:
    if isinstance(value, float) and value == value // 1 and abs(value) < 1 << 53:
        value = int(value)
    if type(value) is not int:
        _wrong(value, "an integer", report, pointer)
    number: int = value
    low = schema.get("minimum", -(1 << 63))
    high = schema.get("maximum", (1 << 63) - 1)
    if not low <= number <= high:
        report(pointer, f"{number} is out of range: {low} to {high}")
        raise _Fault
    return number


def as_text(value: Any) -> str | None:
    """Return a scalar as the reference writes it where text is wanted; None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float_text(value)
    return "" if value is None else None


def _float_text(number: float) -> str:
    """Return *number* as Go's ``strconv.FormatFloat(number, 'g', -1, 32)`` does.

    That is what the reference calls: the shortest text that is the same 32-bit float.
    """
    import struct

    if number != number:  # noqa: PLR0124
        return "NaN"
    try:
        wanted = struct.pack("f", number)
    except OverflowError:
        wanted = struct.pack("f", float("inf") if number > 0 else float("-inf"))
    if struct.unpack("f", wanted)[0] in (float("inf"), float("-inf")):
        return "+Inf" if number > 0 else "-Inf"
    shortest = next(
        text
        for text in (f"{number:.{digits}e}" for digits in range(10))
        if struct.pack("f", float(text)) == wanted
    )
    mantissa, _, exponent = shortest.partition("e")
    power = int(exponent)
    if not _G_LOWEST <= power < _G_PRECISION:
        return f"{mantissa}e{power:+03d}"
    digits = len(mantissa.lstrip("-").replace(".", ""))
    return f"{float(shortest):.{max(0, digits - 1 - power)}f}"
