"""YAML through libyaml's composer: nodes with places, and values as go-yaml 2 resolves them."""

from __future__ import annotations

import re
from typing import Any

import yaml

from cdi_runc.errors import BadSpec
from cdi_runc.specs import document

# PyYAML built without libyaml is slower, and gives the same nodes.
_Parser: Any = getattr(getattr(yaml, "cyaml", None), "CParser", None)

_PLAIN, _QUOTED = "plain", "quoted"


class _Resolver:
    """Says only how a scalar was written; its meaning is ours to find."""

    def __init__(self) -> None:
        self._left = document.NODE_LIMIT

    def resolve(self, kind: type, _value: str, implicit: Any) -> str:
        if kind is not yaml.ScalarNode:
            return "collection"
        return _PLAIN if implicit and implicit[0] else _QUOTED

    def descend_resolver(self, *_: object) -> None:  # called for each node
        self._left -= 1
        if self._left < 0:
            raise BadSpec(f"more than {document.NODE_LIMIT} values; JSON may hold more")

    def ascend_resolver(self) -> None:
        pass


if _Parser is not None:

    class _Composer(_Resolver, _Parser):  # type: ignore[misc,no-any-unimported]
        def __init__(self, data: bytes) -> None:
            _Resolver.__init__(self)
            _Parser.__init__(self, data)

else:
    from yaml.composer import Composer
    from yaml.parser import Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class _Composer(  # type: ignore[no-redef]
        _Resolver, Reader, Scanner, Parser, Composer
    ):
        def __init__(self, data: bytes) -> None:
            _Resolver.__init__(self)
            Reader.__init__(self, data)
            Scanner.__init__(self)
            Parser.__init__(self)
            Composer.__init__(self)


def compose(data: bytes) -> Any:
    """Return the root node of the first document in *data*, or None.

    Raises:
        BadSpec: *data* is not YAML; the message gives line and column.

    """
    try:
        readable = _without_tabs(data)
        if _may_be_deep(data):
            _refuse_depth(readable)
        loader = _Composer(readable)
        root = loader.get_node() if loader.check_node() else None
    except yaml.MarkedYAMLError as error:
        told = " ".join(filter(None, (error.context, error.problem)))
        bad = _bad(f"not YAML: {told}", error.problem_mark or error.context_mark)
        bad.line = min(bad.line, data.count(b"\n") + (not data.endswith(b"\n")))  # at the end
        raise bad from error
    except (yaml.YAMLError, UnicodeError) as error:
        before = data[: getattr(error, "position", None) or 0]
        place = {"line": before.count(b"\n") + 1, "column": len(before.rpartition(b"\n")[2]) + 1}
        raise BadSpec(f"not YAML: {str(error).splitlines()[0]}", **place) from error
    except RecursionError:
        raise BadSpec("nested too deeply") from None
    if root is not None and b"\\/" in data:
        _refuse_escaped_slash(root, data)
    return root


def _may_be_deep(data: bytes) -> bool:
    """Tell whether *data* could exceed the limit: a level takes a bracket, or a column."""
    brackets = data.count(b"[") + data.count(b"{")
    return brackets + max(map(len, data.splitlines()), default=0) > document.DEPTH_LIMIT


def _refuse_depth(data: bytes) -> None:
    """Refuse what is nested too deeply: PyYAML 6.0, Debian 12's, overruns the stack on it."""
    parser = _Composer(data)
    depth = 0
    while parser.check_event():
        event = parser.get_event()
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > document.DEPTH_LIMIT:
            raise _bad("nested too deeply", event.start_mark)


def _refuse_escaped_slash(root: Any, data: bytes) -> None:
    r"""Refuse ``\/`` in quoted text: the reference's YAML does not know it, libyaml does."""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            raw = text[node.start_mark.index : node.end_mark.index]
            if node.style == '"' and _ESCAPED_SLASH.search(raw):
                raise _bad("not YAML: unknown escape character '/'", node.start_mark)
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
        else:
            waiting += [one for pair in node.value for one in pair]


_QUOTED_OR_TAB = re.compile(
    rb"""(?P<kept>"(?:[^"\\]|\\.)*"|'[^']*'|\#[^\n]*)|"(?:[^"\\]|\\.)*|\t""", re.DOTALL
)


def _without_tabs(data: bytes) -> bytes:
    # go-yaml allows tabs between the tokens of a flow collection, such as JSON; PyYAML does not.
    # A blank in the place of a tab changes nothing there, columns included.  A quotation mark that
    # is never closed takes all that follows: a search from each escaped one would be quadratic.
    if b"\t" in data and data.lstrip()[:1] in (b"{", b"["):
        return _QUOTED_OR_TAB.sub(
            lambda found: found["kept"] or found[0].replace(b"\t", b" "), data
        )
    return data


_ESCAPED_SLASH = re.compile(r"(?<!\\)(\\\\)*\\/")
_INTEGER = re.compile(r"[-+]?(0[bB][01_]+|0[oO][0-7_]+|0[xX][0-9a-fA-F_]+|[0-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys("y Y yes Yes YES true True TRUE on On ON".split(), True),  # noqa: SIM905
    **dict.fromkeys("n N no No NO false False FALSE off Off OFF".split(), False),  # noqa: SIM905
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}


def scalar(text: str) -> object:
    """Return what the plain scalar *text* stands for, as go-yaml 2 resolves it."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _INTEGER.fullmatch(text):
        number = _integer(text.replace("_", ""))
        if number is not None:
            return number
    if _FLOAT.fullmatch(text.replace("_", "")):
        return float(text.replace("_", ""))
    return text


def _integer(digits: str) -> int | None:
    sign = -1 if digits[0] == "-" else 1
    digits = digits.lstrip("+-")
    prefix = digits[:2].lower()
    base = {"0x": 16, "0b": 2, "0o": 8}.get(prefix)
    if base is not None:
        digits = digits[2:]
    elif digits[:1] == "0" and len(digits) > 1:
        base, digits = 8, digits[1:]
    else:
        base = 10
    try:
        number = sign * int(digits, base)
    except ValueError:  # 0888 is no octal number; go-yaml reads it as a float
        return None
    return number if -(1 << 63) <= number < 1 << 64 else None


class Construction:
    """Turns nodes into plain values: dict, list, str, int, float, bool, None."""

    def __init__(self) -> None:
        self._done: dict[int, tuple[Any, int]] = {}
        self._open: set[int] = set()
        self._pairs = _Pairs()

    def value(self, node: Any) -> Any:
        """Return *node*'s value.

        Raises:
            BadSpec: a key is given twice or is no text, or an alias expands without measure.

        """
        try:
            return self._value(node)[0]
        except RecursionError:
            raise BadSpec("nested too deeply") from None

    def _value(self, node: Any) -> tuple[Any, int]:
        """Return the value, and how many values it holds when aliases are written out."""
        key = id(node)
        if key in self._done:
            return self._done[key]
        if key in self._open:
            raise _bad("an alias refers to what holds it", node.start_mark)
        if isinstance(node, yaml.ScalarNode):
            return (scalar(node.value) if node.tag == _PLAIN else _tagged(node)), _size(node)
        self._open.add(key)
        if isinstance(node, yaml.SequenceNode):
            done: tuple[Any, int] = self._sequence(node)
        else:
            done = self._mapping(node)
        self._open.discard(key)
        if done[1] > document.EXPANSION_LIMIT:
            raise _bad("aliases expand to more than a million values", node.start_mark)
        self._done[key] = done
        return done

    def _sequence(self, node: Any) -> tuple[list[Any], int]:
        values, total = [], 1
        for entry in node.value:
            value, size = self._value(entry)
            values.append(value)
            total += size
        return values, total

    def _mapping(self, node: Any) -> tuple[dict[str, Any], int]:
        result: dict[str, Any] = {}
        places: dict[str, Any] = {}
        total = 1
        for key_node, value_node in self._pairs.of(node):
            key = _key(key_node)
            if key in places:
                first = places[key].start_mark.line + 1
                raise _bad(
                    f"key {key!r} is given twice, first in line {first}", key_node.start_mark
                )
            places[key] = key_node
            result[key], size = self._value(value_node)
            total += size + _size(key_node)
        return result, total


def _tagged(node: Any) -> Any:
    """Return the value of a scalar that is quoted, or has a tag of its own."""
    short = node.tag.removeprefix("tag:yaml.org,2002:")
    if node.tag == _QUOTED or short == "str":
        return node.value
    if short == node.tag:  # an unknown tag is ignored
        return node.value if node.style else scalar(node.value)
    value = scalar(node.value)
    if short == "float" and isinstance(value, int):
        return float(value)
    if short == "binary":
        import base64

        try:
            return base64.b64decode(node.value).decode()
        except ValueError:
            raise _bad("!!binary value is not base64", node.start_mark) from None
    return value


def _size(node: Any) -> int:
    return 1 + len(node.value) // document.TEXT_UNIT


class _Pairs:
    """The pairs of mappings, those of merge keys in the place of the merge key."""

    def __init__(self) -> None:
        self._left = document.EXPANSION_LIMIT

    def of(self, node: Any, depth: int = 0) -> Any:
        """Yield the pairs of *node*.

        Raises:
            BadSpec: a merge key has no mapping, or merge keys expand without measure.

        """
        if depth > document.DEPTH_LIMIT:
            raise _bad("an alias refers to what holds it", node.start_mark)
        for key_node, value_node in node.value:
            self._left -= 1
            if self._left < 0:
                raise _bad("merge keys expand to more than a million pairs", node.start_mark)
            is_scalar = isinstance(key_node, yaml.ScalarNode)
            if is_scalar and key_node.value == "<<" and not key_node.style:
                is_list = isinstance(value_node, yaml.SequenceNode)
                for one in value_node.value if is_list else [value_node]:
                    self._left -= 1
                    if not isinstance(one, yaml.MappingNode):
                        raise _bad("a merge key takes mappings only", one.start_mark)
                    yield from self.of(one, depth + 1)
            else:
                yield key_node, value_node


def _key(node: Any) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise _bad("a key must be text", node.start_mark)
    value = scalar(node.value) if node.tag == _PLAIN else node.value
    from cdi_runc.specs.decode import as_text

    text = as_text(value)
    if text is None or value is None:
        raise _bad("a key must be text", node.start_mark)
    return text


def _bad(message: str, mark: Any) -> BadSpec:
    """Return an error at the place *mark* of libyaml, which counts from 0."""
    return (
        BadSpec(message, line=mark.line + 1, column=mark.column + 1) if mark else BadSpec(message)
    )


class Places:
    """Where the values of a document stand."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._pairs = _Pairs()
        self._members: dict[int, dict[str, tuple[Any, Any]]] = {}

    def locate(self, pointer: str) -> tuple[int, int]:
        """Return line and column (from 1) of what *pointer* leads to, or of the nearest above."""
        node = place = self._root
        for part in pointer.split("/")[1:]:
            found = None
            if isinstance(node, yaml.MappingNode):
                wanted = part.replace("~1", "/").replace("~0", "~").lower()
                place, found = self._of(node).get(wanted, (place, None))
            elif isinstance(node, yaml.SequenceNode) and _is_index(part, node):
                place = found = node.value[int(part)]
            if found is None:
                break
            node = found
        return place.start_mark.line + 1, place.start_mark.column + 1

    def _of(self, node: Any) -> dict[str, tuple[Any, Any]]:
        """Return key and value of each member of a mapping by its key in lower case."""
        if id(node) not in self._members:
            self._members[id(node)] = {
                str(getattr(key_node, "value", "")).lower(): (key_node, value_node)
                for key_node, value_node in self._pairs.of(node)
            }
        return self._members[id(node)]


def _is_index(part: str, node: Any) -> bool:
    return part.isdecimal() and len(part) < 10 and int(part) < len(node.value)  # noqa: PLR2004
