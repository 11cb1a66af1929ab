"""The kinds of edit: one module for each key of ``containerEdits``, its JSON Schema beside it.

A kind's module offers:

``SINCE``
    the CDI version that brought the key.
``check(entries, report)``
    the rules that a schema cannot word well (cold).
``needs(entries)``
    the lowest CDI version that allows *entries* (cold).
``parse(entries)``
    decoded entries -> the arguments of each ``Edit``, plain data that ``marshal`` can keep (cold).
``Edit``
    one edit; ``settle(config)`` makes it final against the host and the container, and
    ``preflight(config)`` says what would keep it from working.
``apply(edits, config, keep)``
    carry out all edits of this kind in order; one list of effects for each edit.  With *keep*,
    what the container's own configuration says stays where an edit says otherwise.

Each kind owns its own places in config.json, so kinds commute.
"""

from __future__ import annotations

import posix

from cdi_runc import errors
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, Protocol

    Config = dict[str, Any]
    Action = Literal["added", "replaced", "removed", "kept", "superseded", "already present"]
    Report = Callable[[str, str], None]
    """Takes the place of a fault below the entries, as a JSON pointer, and what is wrong there."""

    class Kind(Protocol):
        """A kind's module."""

        SINCE: str
        Edit: type[Edit]

        check: Callable[[Any, Report], None]
        needs: Callable[[Any], str]
        parse: Callable[[Any], list[tuple[Any, ...]]]
        apply: Callable[[list[Any], Config, bool], list[list[Effect]]]


# In the order of the reference library's Apply, which is the order of the audit record.
KEYS = ("env", "deviceNodes", "netDevices", "mounts", "hooks", "intelRdt", "additionalGids")

WHOLE = [(0, 0, 4294967295)]
"""The map of the host's own user namespace (user_namespaces(7))."""


class Effect(Record):
    """What an edit did at one place of config.json.

    Replayed in order on the file before, effects give the file after: ``added`` inserts into a
    list or sets a member, ``removed`` undoes that, ``replaced`` puts ``after`` in the place of
    ``before``.  The others change nothing: ``already present``; ``superseded``, as the value of a
    later edit stands there from a pass before; ``kept``, as the container's own value stays.
    """

    action: Action
    where: str
    """JSON pointer, valid at the moment of the effect."""
    before: object = None
    after: object = None
    was: str = ""
    """For a replaced list entry that moves: where it was."""


class Doubt(str):
    """A note on an edit that deserves a warning."""

    __slots__ = ()


class Edit(Record):
    """Base of the edits of all kinds."""

    def settle(self, config: Config) -> tuple[Edit, str]:
        """Return the edit as it is to be carried out, and a note on what is special about it.

        Raises:
            Unusable: the host lacks what the edit is made from.

        """
        return self, ""

    def pass_on(self, note: str) -> tuple[Edit, str]:
        """Return what does the same where the runtime can make no node, only mount the host's.

        Raises:
            Unusable: nothing does.

        """
        return self, note

    def entry(self) -> Any:
        """Return what the edit puts into config.json."""
        raise NotImplementedError

    def preflight(self, config: Config) -> str:
        """Return what would keep this edit from working in *config* on this host, or nothing."""
        return ""


def file_name(key: str) -> str:
    """Return what the files of the kind *key* are called: ``netDevices`` is ``net_devices``."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in key)


def pointer(place: str, key: str, index: int) -> str:
    """Return where in a spec file the edit number *index* of the kind *key* stands."""
    return f"{place}/{key}" if key == "intelRdt" else f"{place}/{key}/{index}"


_kinds: dict[str, Kind] = {}


def kind(key: str) -> Kind:
    """Return the module of the ``containerEdits`` key *key*, one of :data:`KEYS`."""
    if key not in _kinds:
        name = file_name(key)
        _kinds[key] = __import__(f"{__name__}.{name}").edits.__dict__[name]
    return _kinds[key]


def look(config: Config, *keys: str) -> dict[str, Any]:
    """Return the section that *keys* lead to; an empty one where it is missing or null.

    Raises:
        BadBundle: a section on the way is no object.

    """
    found = config
    for depth, key in enumerate(keys, 1):
        found = found.get(key) or {}
        if type(found) is not dict:
            raise errors.BadBundle(f"config.json: /{'/'.join(keys[:depth])} is not an object")
    return found


def has_namespace(config: Config, kind: str) -> bool:
    """Tell whether the container has a namespace of that kind."""
    entries = look(config, "linux").get("namespaces")
    for entry in entries if type(entries) is list else ():
        if type(entry) is dict and entry.get("type") == kind:
            return True
    return False


def id_map(config: Config, ids: str) -> list[tuple[int, int, int]] | None:
    """Return the container's ids, ``uid`` or ``gid``: first inside, first outside, how many.

    None where the container has the host's own, or nothing tells.
    """
    if not has_namespace(config, "user"):
        return own_map(ids)
    entries = look(config, "linux").get(f"{ids}Mappings")
    try:
        return [(one["containerID"], one["hostID"], one["size"]) for one in entries or ()] or None
    except (TypeError, KeyError):
        return None


def own_map(ids: str) -> list[tuple[int, int, int]] | None:
    """Return the ids of our own user namespace, None where they are the host's.

    A rootless engine calls us in one, and its containers have no other.
    """
    try:
        fd = posix.open(f"/proc/self/{ids}_map", posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return None
    try:
        lines = posix.read(fd, 1 << 16).splitlines()
    finally:
        posix.close(fd)
    found = [(int(own), int(first), int(size)) for own, first, size in map(bytes.split, lines)]
    return None if found == WHOLE else found


def section(parent: dict[str, Any], key: str, empty: Any, place: str, effects: list[Effect]) -> Any:
    """Return member *key* of *parent*; where it is missing or null, put *empty* there first.

    Raises:
        BadBundle: the member is of another type than the OCI runtime-spec gives it.

    """
    found = parent.get(key)
    if found is None:
        effects.append(Effect("replaced" if key in parent else "added", place, None, empty.copy()))
        parent[key] = found = empty
    if type(found) is not type(empty):
        wanted = "an object" if type(empty) is dict else "a list"
        raise errors.BadBundle(f"config.json: {place} is not {wanted}")
    return found
