"""Devices that a host has once, or under names that the kernel fixes."""

from __future__ import annotations

from cdi_runc.authoring.found import Found, base, name_of, with_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.authoring.host import Host

NODES = {
    "fuse": ("/dev", "fuse"),
    "hwrng": ("/dev", "hwrng"),
    "kvm": ("/dev", "kvm"),
    "tpm": ("/dev", r"tpm(rm)?\d+"),
    "tun": ("/dev/net", "tun"),
}


def find(host: Host, class_: str) -> Found:
    """Return the nodes of the class *class_*, one of :data:`NODES`."""
    return Found(
        [(name_of(base(n)), with_nodes(host, [n])) for n in host.nodes(*NODES[class_])],
    )
