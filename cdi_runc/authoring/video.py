"""Cameras, capture cards and tuners (video4linux)."""

from __future__ import annotations

from cdi_runc.authoring.found import Found, base, name_of, with_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.authoring.host import Host


def find(host: Host) -> Found:
    """Return each node of video4linux, named by its link."""
    links = host.links("/dev/v4l/by-id", "/dev/v4l/by-path")
    nodes = host.nodes("/dev", r"(video|vbi|radio|media|v4l-subdev)\d+")
    return Found(
        [
            (name_of(base(links.get(node, node))), with_nodes(host, {node: links.get(node, "")}))
            for node in nodes
        ]
    )
