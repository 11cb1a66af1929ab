"""Graphics cards and their render nodes (DRI)."""

from __future__ import annotations

from cdi_runc.authoring.found import Found, base, name_of, with_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.authoring.host import Host


def find(host: Host) -> Found:
    """Return each card whole, and each of its nodes alone: ``pci-...-render`` does without modes.

    The names are those of udev's by-path links.
    """
    devices = []
    for name, nodes in cards(host).items():
        devices.append((name_of(name), with_nodes(host, nodes)))
        if len(nodes) > 1:
            for node, link in nodes.items():
                role = "render" if base(node).startswith("render") else "card"
                devices.append((name_of(f"{name}-{role}"), with_nodes(host, {node: link})))
    return Found(devices)


def cards(host: Host) -> dict[str, dict[str, str]]:
    """Return the nodes of each card with their links; a card is known by its place on the bus."""
    found: dict[str, dict[str, str]] = {}
    links = host.links("/dev/dri/by-path")
    for node in host.nodes("/dev/dri", r"(card|renderD)\d+"):
        link = links.get(node, "")
        linked = base(link).removesuffix("-card").removesuffix("-render")
        name = linked or host.bus(f"/sys/class/drm/{base(node)}/device") or base(node)
        found.setdefault(name, {})[node] = link
    return found
