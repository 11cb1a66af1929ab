"""Serial ports that belong to hardware."""

from __future__ import annotations

from cdi_runc.authoring.found import Found, base, name_of, with_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.authoring.host import Host

_TTY = "/sys/class/tty"


def find(host: Host) -> Found:
    """Return each port, named by its link; the host's own console is left out.

    A port of type 0 is one that the driver reserved, and no chip answers (serial_core.h,
    PORT_UNKNOWN).
    """
    links = host.links("/dev/serial/by-id", "/dev/serial/by-path")
    consoles = host.text(f"{_TTY}/console/active").split()
    devices = []
    for name in host.names(_TTY):
        node = f"/dev/{name}"
        if name in consoles or not host.is_directory(f"{_TTY}/{name}/device"):
            continue
        if host.text(f"{_TTY}/{name}/type") == "0" or not host.is_node(node):
            continue
        link = links.get(node, "")
        told = base(link) or host.bus(f"{_TTY}/{name}/device") or name
        # Of two ports of one chip on PCI only the kernel's name tells which is which.
        told = f"{told}-{name}" if not link and told.startswith("pci-") else told
        devices.append((name_of(told), with_nodes(host, {node: link})))
    return Found(devices)
