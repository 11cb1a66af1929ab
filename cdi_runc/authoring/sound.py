"""Sound cards (ALSA)."""

from __future__ import annotations

import re

from cdi_runc.authoring.found import Found, base, name_of, with_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.authoring.host import Host


def find(host: Host) -> Found:
    """Return each card with all its nodes; the timer and the sequencer come with any of them."""
    links = host.links("/dev/snd/by-id", "/dev/snd/by-path")
    cards: dict[str, dict[str, str]] = {}
    for node in host.nodes("/dev/snd", r"(control|hw|midi|pcm|compr)C\d+.*"):
        number = re.sub(r"^\D*(\d+).*", r"\1", base(node))
        cards.setdefault(number, {})[node] = links.get(node, "")
    devices = []
    for number, nodes in cards.items():
        link = next(filter(None, nodes.values()), "")
        name = base(link) or host.text(f"/sys/class/sound/card{number}/id") or f"card{number}"
        devices.append((name_of(name), with_nodes(host, nodes)))
    shared = host.nodes("/dev/snd", "timer|seq")
    return Found(devices, with_nodes(host, shared) if shared else {})
