"""What the host has, as one spec for each kind of device."""

from __future__ import annotations

import importlib

from cdi_runc.authoring import found, single
from cdi_runc.authoring.host import natural
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdi_runc.authoring.found import Spec
    from cdi_runc.authoring.host import Host

VENDOR = "host.local"
MODULES = ("amd", "dri", "infiniband", "net", "nvidia", "serial", "sound", "usb", "video")
CLASSES = tuple(sorted((*MODULES, *single.NODES)))
USUAL = tuple(name for name in CLASSES if name != "net")
"""What is looked for unless asked: an interface is gone from the host while a container has it."""


class Result(Record):
    """What came of one class: its kind, its spec or None, and what to tell a person."""

    kind: str
    spec: Spec | None
    notes: tuple[str, ...] = ()


def specs(host: Host, classes: Iterable[str], vendor: str = VENDOR) -> Iterator[Result]:
    """Yield what there is of each of *classes*, sorted; *vendor* is that of kinds without one."""
    for class_ in sorted({*classes}, key=natural):
        if class_ in single.NODES:
            kind, seen = f"{vendor}/{class_}", single.find(host, class_)
        else:
            module = importlib.import_module(f"cdi_runc.authoring.{class_}")
            kind, seen = getattr(module, "KIND", f"{vendor}/{class_}"), module.find(host)
        spec = found.spec(kind, seen.devices, seen.edits) if seen.devices else None
        yield Result(kind, spec, seen.notes)
