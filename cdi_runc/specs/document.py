"""Spec files read as the reference reads them: bytes -> plain values.

The reference (sigs.k8s.io/yaml 1.3.0 over go-yaml 2) reads YAML 1.1 scalars, refuses a key given
twice, takes the first document only, and reads a .json file as YAML.  PyYAML's own resolver
differs (``0o17``, ``1e3``, ``y``, ``1:30``, dates), so scalars are resolved here.

JSON without escapes means the same in both languages, and is read by the C scanner: no YAML is
loaded for it.
"""

from __future__ import annotations

from cdi_runc import jsonio
from cdi_runc.errors import BadSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# An alias may repeat what it refers to, but not without measure ("billion laughs").
EXPANSION_LIMIT = 1_000_000
NODE_LIMIT = 500_000
"""Of YAML; each takes some 500 bytes."""
TEXT_UNIT = 64  # characters that count as one value more when an alias repeats them
DEPTH_LIMIT = 1_000


def read(data: bytes) -> Any:
    """Return the value of the first document in *data*; None if there is none.

    Raises:
        BadSpec: *data* cannot be read; the message gives the line.

    """
    if data[:1] in (b"{", b"[") and data.isascii() and not (b"\\" in data or b"\x7f" in data):
        try:
            return _read_json(data)
        except ValueError:  # not JSON, or not JSON that YAML reads alike
            pass
    return _read_yaml(data)


def _read_json(data: bytes) -> Any:
    class Rules(jsonio.Rules):
        object_pairs_hook = staticmethod(_unique)
        parse_float = float
        parse_int = staticmethod(_integer)

    return jsonio.scan(data.decode().strip(jsonio.SPACE), Rules)


def _integer(text: str) -> object:
    """Return an integer, or a float where 64 bits do not hold it, as go-yaml does."""
    number = int(text) if len(text) <= len(f"{1 << 64}") else 1 << 64
    return number if -(1 << 63) <= number < 1 << 64 else float(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs) or "<<" in found:
        raise ValueError
    return found


def _read_yaml(data: bytes) -> Any:
    from cdi_runc.specs import yaml_nodes

    root = yaml_nodes.compose(data)
    return None if root is None else yaml_nodes.Construction().value(root)


def locate(data: bytes, pointer: str) -> tuple[int, int] | None:
    """Return line and column (from 1) of what *pointer* leads to, or of the nearest above it."""
    return locator(data)(pointer)


def locator(data: bytes) -> Callable[[str], tuple[int, int] | None]:
    """Return :func:`locate` for many pointers into *data*, which is read once."""
    from cdi_runc.specs import yaml_nodes

    try:
        root = yaml_nodes.compose(data)
    except BadSpec:
        root = None
    return (lambda _: None) if root is None else yaml_nodes.Places(root).locate
