"""Qualified device names, ``vendor/class=name`` (CDI SPEC, "CDI JSON Specification", "kind")."""

from __future__ import annotations

from cdi_runc import errors

LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
ALNUM = LETTERS | frozenset("0123456789")
_KIND = ALNUM | frozenset("-_.")
_DEVICE = _KIND | frozenset(":")  # the parser allows the colon, though the SPEC's text omits it


def fault_in_kind(what: str, word: str) -> str | None:
    """Return what is wrong with *word* as a vendor or class name (*what* says which), or None."""
    if not word:
        return f"the {what} is empty"
    if word[0] not in LETTERS:
        return f"the {what} {word!r} must begin with a letter"
    return _fault(what, word, _KIND, "'-', '_' and '.'")


def fault_in_device(name: str) -> str | None:
    """Return what is wrong with *name* as a device name, or None."""
    if not name:
        return "the device name is empty"
    if name[0] not in ALNUM:
        return f"the device name {name!r} must begin with a letter or a digit"
    return _fault("device name", name, _DEVICE, "'-', '_', '.' and ':'")


def _fault(what: str, word: str, allowed: frozenset[str], besides: str) -> str | None:
    for character in word:
        if character not in allowed:
            return (
                f"the {what} {word!r} holds {character!r};"
                f" only letters, digits, {besides} are allowed"
            )
    if word[-1] not in ALNUM:
        return f"the {what} {word!r} must end with a letter or a digit"
    return None


def fault(name: str) -> str | None:
    """Return what is wrong with *name* as a qualified device name, or None."""
    kind, equals, device = name.partition("=")
    vendor, slash, class_ = kind.partition("/")
    if not (equals and slash and vendor and class_ and device):
        if name.startswith("/"):
            return "it looks like a path, and only names of CDI devices are understood here"
        if not name:
            return "it is empty"
        if "=" not in name and "/" not in name:
            return "it looks like a short name: its vendor and class are missing"
        return "it is not of the form vendor.com/class=name"
    return (
        fault_in_kind("vendor", vendor) or fault_in_kind("class", class_) or fault_in_device(device)
    )


def parse(name: str) -> tuple[str, str, str]:
    """Split a qualified device name into vendor, class and device name.

    Raises:
        BadRequest: *name* is no qualified device name; the message says why.

    """
    wrong = fault(name)
    if wrong:
        raise errors.BadRequest(f"{name!r} is not the name of a CDI device: {wrong}", name=name)
    kind, _, device = name.partition("=")
    vendor, _, class_ = kind.partition("/")
    return vendor, class_, device
