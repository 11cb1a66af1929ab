"""Network interfaces of hardware, virtual functions of SR-IOV included (CDI 1.1.0)."""

from __future__ import annotations

from cdi_runc.authoring.found import Found, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.authoring.host import Host

_NET = "/sys/class/net"
_ANY_IPV4, _ANY_IPV6 = "0" * 8, "0" * 32


def find(host: Host) -> Found:
    """Return each interface by its place on the bus, but for those that the host itself lives on.

    An interface moves into the container and is gone from the host meanwhile, so one that has the
    default route, or is part of a bond or bridge, is left out.
    """
    own = _with_default_route(host)
    devices, notes = [], []
    for name in host.names(_NET):
        place = f"{_NET}/{name}"
        if not host.is_directory(f"{place}/device"):
            continue
        if name in own or host.is_directory(f"{place}/master"):
            why = "the host's default route" if name in own else "part of a bond or bridge"
            notes.append(f"{name} is left out: it is {why}")
            continue
        port = host.text(f"{place}/dev_port") or "0"
        told = host.bus(f"{place}/device") or name
        devices.append(
            (
                name_of(told if port == "0" else f"{told}-port{port}"),
                {"netDevices": [{"hostInterfaceName": name, "name": name}]},
            )
        )
    return Found(devices, notes=tuple(notes))


def _with_default_route(host: Host) -> set[str]:
    own = set()
    for line in host.text("/proc/net/route").splitlines():
        interface, destination, *_ = line.split()
        if destination == _ANY_IPV4:
            own.add(interface)
    for line in host.text("/proc/net/ipv6_route").splitlines():
        destination, length, *_, interface = line.split()
        if (destination, length) == (_ANY_IPV6, "00"):
            own.add(interface)
    return own
