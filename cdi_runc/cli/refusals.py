"""What Docker refuses itself, before it asks any runtime: its words, what they mean, the cure."""

from __future__ import annotations

import re

from cdi_runc.engines import NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DEVICE = r"[A-Za-z][\w.-]*/[A-Za-z][\w.-]*=[A-Za-z0-9](?:[\w.:-]*[A-Za-z0-9])?"
"""A device's qualified name in any text."""
_ASK = f"docker run --runtime={NAME} -e CDI_DEVICES={{}} ..."
_NOT_ASKED = "Docker refused this itself, and cdi-runc was not asked: "
# As Docker 20.10 and 28 say it; a log has the quotation marks escaped.
_TABLE = (
    (
        re.compile(rf"{DEVICE}\S* is not an absolute path"),
        "this client of Docker takes what --device gets for a path",
        _ASK,
    ),
    (
        re.compile(rf'adding custom device \\?"/?{DEVICE}'),
        "Docker takes what --device gets for the path of a node",
        _ASK,
    ),
    (
        re.compile(r'could not select device driver \\?"cdi'),
        "its daemon cannot give CDI devices to --device",
        _ASK,
    ),
    (
        re.compile(rf"(?i)unknown (?:runtime specified|or invalid runtime name:?) {NAME}\b"),
        f"its daemon knows no runtime {NAME}",
        "sudo cdictl configure docker",
    ),
)


def find(told: str) -> Iterator[tuple[str, str, str]]:
    """Yield what each refusal in *told* means, the devices that are named, and the cure."""
    plain = " ".join(told.split())
    names = ",".join(dict.fromkeys(re.findall(DEVICE, plain)))
    for words, meaning, cure in _TABLE:
        if words.search(plain):
            yield _NOT_ASKED + meaning, names, cure.format(names or "NAME")
