"""What a JSON Schema says against a configuration -> words for the person who wrote it."""

from __future__ import annotations

from itertools import islice

from cdi_runc.specs import near

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

KINDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "nothing",
    "object": "a map of keys",
    "string": "a text",
}
OF_SCALARS = ("enum", "pattern", "minimum", "maximum")


def told(error: Any, schema: dict[str, Any], most: int) -> Iterator[tuple[str, str]]:
    """Yield pointer and words of at most *most* faults that *error*, by *schema*, stands for."""
    error = _meant(error)
    path = list(error.absolute_path)
    pointer = "".join(f"/{part}" for part in path)
    if error.validator == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        for key in islice((key for key in error.instance if key not in known), most):
            words = f"unknown key {key!r}{near.hint(key, known)}; known: {', '.join(known)}"
            yield f"{pointer}/{key}", _placed(path, words)
    elif error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        yield pointer, _placed(path, f"{' and '.join(map(repr, missing))} is missing")
    else:
        yield pointer, _placed(path, _words(error, schema))


def _meant(error: Any) -> Any:
    """Return the fault in the alternative that the value was probably meant to be."""
    while error.validator == "anyOf":
        is_scalar = not isinstance(error.instance, (dict, list))
        fitting = [
            one
            for one in error.context or ()
            if one.validator != "type" and (one.validator in OF_SCALARS) <= is_scalar
        ]
        if not fitting:
            break
        error = min(fitting, key=lambda one: -len(one.absolute_path))
    return error


def _placed(path: Iterable[str | int], words: str) -> str:
    """Return *words* behind the name of the key that they are about."""
    name = "".join(f"[{one + 1}]" if isinstance(one, int) else f".{one}" for one in path)
    return f"{name[1:]}: {words}" if name else words


def _words(error: Any, schema: dict[str, Any]) -> str:
    value, wanted = error.instance, error.validator_value
    if error.validator == "type":
        kinds = [wanted] if isinstance(wanted, str) else wanted
        return f"{value!r} is not {_either([KINDS[kind] for kind in kinds if kind != 'null'])}"
    if error.validator == "enum":
        return f"{value!r} is not {_either(wanted)}{near.hint(value, wanted)}"
    if error.validator == "anyOf":
        words = [one for choice in wanted for one in _choices(choice)]
        return f"{value!r} is not {_either(dict.fromkeys(words))}"
    if error.validator in ("pattern", "propertyNames"):
        about = _description(error, schema)
        return f"{value!r} is not written as it must be{f': {about}' if about else ''}"
    return {
        "minimum": f"{value!r} is below {wanted}",
        "maximum": f"{value!r} is above {wanted}",
    }.get(error.validator, str(error.message))


def _choices(schema: dict[str, Any]) -> Iterator[str]:
    kind = schema.get("type")
    if "enum" in schema:
        yield from map(str, schema["enum"])
    elif isinstance(kind, str):
        yield KINDS[kind]
    else:
        yield "what is described for it in cdi-runc.yaml(5)"


def _description(error: Any, schema: dict[str, Any]) -> str:
    """Return what the *schema* says of the key that holds the value, the nearest of it."""
    found, place = "", schema
    for part in error.absolute_schema_path:
        place = place[part]
        if isinstance(place, dict):
            name = str(place.get("$ref", "")).rpartition("/")[2]
            place = {**schema["$defs"][name], **place} if name else place
            found = place.get("description", found)
    return str(found)


def _either(words: Iterable[object]) -> str:
    *others, last = [str(word) for word in words]
    return f"{', '.join(others)} or {last}" if others else last
