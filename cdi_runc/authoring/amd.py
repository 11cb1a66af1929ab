"""AMD's GPUs for computing: /dev/kfd with the nodes of each card (ROCm)."""

from __future__ import annotations

import re

from cdi_runc.authoring import dri
from cdi_runc.authoring.found import Found, name_of, with_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.authoring.host import Host

KIND = "amd.com/gpu"
_TOPOLOGY = "/sys/class/kfd/kfd/topology/nodes"


def find(host: Host) -> Found:
    """Return each GPU by its number, as AMD's tools count them, and by its place on the bus."""
    if not host.is_node("/dev/kfd"):
        return Found([])
    cards = dri.cards(host)
    devices, number = [], 0
    for entry in host.names(_TOPOLOGY):
        properties = host.text(f"{_TOPOLOGY}/{entry}/properties")
        minor = re.search(r"^drm_render_minor ([1-9]\d*)$", properties, re.MULTILINE)
        render = f"/dev/dri/renderD{minor[1]}" if minor else ""
        name, nodes = next((own for own in cards.items() if render in own[1]), ("", {}))
        if nodes:  # a node of the topology without a card is a processor
            own = with_nodes(host, {"/dev/kfd": "", **nodes})
            devices += [(str(number), own), (name_of(name), own)]
            number += 1
    return Found(devices)
