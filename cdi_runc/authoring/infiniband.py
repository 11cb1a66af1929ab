"""InfiniBand and RoCE adapters: the verbs of each, and what all of them share."""

from __future__ import annotations

from cdi_runc.authoring.found import Found, name_of, with_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.authoring.host import Host

_CLASSES = ("infiniband_verbs", "infiniband_mad")


def find(host: Host) -> Found:
    """Return each adapter by its place on the bus; the connection manager comes with any."""
    adapters: dict[str, list[str]] = {}
    for class_ in _CLASSES:
        for name in host.names(f"/sys/class/{class_}"):
            adapter = host.text(f"/sys/class/{class_}/{name}/ibdev")
            node = f"/dev/infiniband/{name}"
            if adapter and host.is_node(node):
                adapters.setdefault(adapter, []).append(node)
    devices = [
        (
            name_of(host.bus(f"/sys/class/infiniband/{adapter}/device") or adapter),
            with_nodes(host, nodes),
        )
        for adapter, nodes in adapters.items()
    ]
    shared = host.nodes("/dev/infiniband", "rdma_cm")
    return Found(devices, with_nodes(host, shared) if shared else {})
