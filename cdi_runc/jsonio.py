"""JSON through CPython's C scanner and encoder, without the ``json`` package (13 ms).

``_json`` is private to CPython, so it is used here only, and every supported version is tested.
It misbehaves on bad input while ``json`` is not imported (SystemError in 3.10 and 3.11), so the
fast reader may only succeed: on any exception the json package reads the same text and words the
error.

A number is kept as it was written.  Where Python would write it otherwise (``1e3``, ``1.50``, more
digits than a float holds), the reader keeps the text, and the writer puts it back.
"""

from __future__ import annotations

import _json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Exact(str):
    """A number's own text, where Python would write that number in another way."""

    __slots__ = ()


_exact_seen: list[bool] = []


def _exact(text: str) -> Exact:
    _exact_seen.append(True)
    return Exact(text)


def _integer(text: str) -> object:
    # CPython refuses integers over 4,300 digits, and takes quadratic time for those below it.
    return int(text) if len(text) < 20 and text != "-0" else _exact(text)  # noqa: PLR2004


def _float(text: str) -> object:
    number = float(text)
    return number if float.__repr__(number) == text else _exact(text)


def _constant(text: str) -> object:
    raise ValueError(f"{text} is not JSON")


class Rules:
    """What the C scanner asks its context for; the same names as json.JSONDecoder has."""

    strict = True
    object_hook = None
    object_pairs_hook: Any = None
    parse_float: Any = staticmethod(_float)
    parse_int: Any = staticmethod(_integer)
    parse_constant = staticmethod(_constant)
    memo: dict[str, str] = {}  # noqa: RUF012  # the scanner clears it after each use


def scan(text: str, rules: Any) -> Any:
    """Return the value that the whole of *text* stands for.

    Raises:
        ValueError: it is not JSON; without any words, see above.

    """
    try:
        value, end = _json.make_scanner(rules)(text, 0)
    except (StopIteration, SystemError, AttributeError, TypeError, RecursionError):
        raise ValueError from None
    if end != len(text):
        raise ValueError
    return value


SPACE = " \t\n\r"


def loads(data: bytes) -> Any:
    """Return the value that *data*, JSON in UTF-8, stands for.

    Raises:
        ValueError: *data* is not JSON; the message gives line and column.

    """
    text = data.decode()
    try:
        return scan(text.strip(SPACE), Rules)
    except ValueError:
        pass
    import json  # noqa: TID251

    try:
        return json.loads(text, parse_float=_float, parse_int=_integer, parse_constant=_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is not JSON")


def _string(text: str) -> str:
    return str(text) if type(text) is Exact else _json.encode_basestring(text)


def _ascii_string(text: str) -> str:
    return str(text) if type(text) is Exact else _json.encode_basestring_ascii(text)


def _encode(value: object, string: Callable[[str], str]) -> str:
    return "".join(
        _json.make_encoder(None, _refuse, string, None, ":", ",", False, False, False)(value, 0)
    )


def dumps(value: object) -> bytes:
    """Return *value* as compact JSON in UTF-8, keys in their order.

    Raises:
        ValueError, TypeError: *value* holds what JSON cannot express.

    """
    # With its own string functions the C encoder is faster, but they cannot see an Exact.
    try:
        return _encode(value, _string if _exact_seen else _json.encode_basestring).encode()
    except UnicodeEncodeError:  # a lone surrogate, which only its escape can express
        return _encode(value, _ascii_string).encode()
