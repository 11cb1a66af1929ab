"""Cameras, capture cards and tuners (video4linux)."""

from __future__ import annotations

from cdi_runc.authoring.found import Found, base, name_of, with_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.authoring.host import Host


def find(host: Host) -> Found:
    """Return each node of video4linux, named by its link, or as its by-path link would be."""
    links = host.links("/dev/v4l/by-id", "/dev/v4l/by-path")
    nodes = host.nodes("/dev", r"(video|vbi|radio|media|v4l-subdev)\d+")
    return Found(
        [
            (
                name_of(base(links.get(node, "")) or _name(host, base(node))),
                with_nodes(host, {node: links.get(node, "")}),
            )
            for node in nodes
        ]
    )


def _name(host: Host, node: str) -> str:
    for place in (f"/sys/class/video4linux/{node}", f"/sys/bus/media/devices/{node}"):
        bus, index = host.bus(place), host.text(f"{place}/index")
        if bus:
            return f"{bus}-{node.rstrip('0123456789')}" + (f"-index{index}" if index else "")
    return node
