"""USB devices as a whole, for programs that speak USB themselves, with their raw nodes."""

from __future__ import annotations

from cdi_runc.authoring.found import Found, name_of, with_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdi_runc.authoring.host import Host

_DEVICES = "/sys/bus/usb/devices"
_HUB = "09"
_RAW = ("hidraw", "usbmisc")
"""Classes of sysfs whose nodes go with the device: security keys, printers, modems."""


def find(host: Host) -> Found:
    """Return each USB device but the hubs, named by its ids and serial number, else by its port.

    Its node has another number each time that it is plugged in.
    """
    raw = {host.real(f"/sys/class/{class_}/{n}"): n for class_, n in _entries(host)}
    devices = []
    for port in host.names(_DEVICES):
        place = f"{_DEVICES}/{port}"
        vendor, number = host.text(f"{place}/idVendor"), host.text(f"{place}/busnum")
        if not vendor or not number or host.text(f"{place}/bDeviceClass") == _HUB:
            continue
        node = f"/dev/bus/usb/{int(number):03d}/{int(host.text(f'{place}/devnum') or 0):03d}"
        below = f"{host.real(place)}/"
        nodes = [node, *(_node(host, where) for where in raw if where.startswith(below))]
        nodes = [path for path in nodes if host.is_node(path)]
        serial = host.text(f"{place}/serial")
        ids = f"usb-{vendor}:{host.text(f'{place}/idProduct')}"
        if nodes:
            name = f"{ids}-{serial}" if serial else f"usb-{port}"
            devices.append((name_of(name), with_nodes(host, nodes)))
    return Found(devices)


def _entries(host: Host) -> Iterator[tuple[str, str]]:
    for class_ in _RAW:
        for name in host.names(f"/sys/class/{class_}"):
            yield class_, name


def _node(host: Host, device: str) -> str:
    """Return the node of *device*, a directory of sysfs."""
    for line in host.text(f"{device}/uevent").splitlines():
        key, _, value = line.partition("=")
        if key == "DEVNAME":
            return f"/dev/{value}"
    return ""
