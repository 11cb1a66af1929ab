"""What the host's own rules do to devices: systemd's view of them, and SELinux."""

from __future__ import annotations

import os
import re
import subprocess

from cdi_runc.doctor import Finding, counted, named
from cdi_runc.edits import mounts
from cdi_runc.edits.device_nodes import Edit as Node
from cdi_runc.errors import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cdi_runc.doctor.engines import Docker
    from cdi_runc.doctor.specs import Use

SYSTEMD = "/run/systemd/system"
ENFORCE = "/sys/fs/selinux/enforce"
BOOLEANS = "/sys/fs/selinux/booleans"
# runc 1.1.3 to 1.1.6 leave out of a unit's DeviceAllow what has no link below /dev/char (runc
# #3708), and so does any runc where systemd is older than 240.
FIXED_RUNC = (1, 1, 7)
FIXED_SYSTEMD = 240
# What container-selinux lets every container read, or run.
READABLE = frozenset(
    (
        *("container_file_t", "container_ro_file_t", "container_share_t", "svirt_sandbox_file_t"),
        *("usr_t", "lib_t", "bin_t", "ld_so_t", "textrel_shlib_t", "shell_exec_t", "locale_t"),
    )
)
USABLE = frozenset(("container_file_t", "svirt_sandbox_file_t", "null_device_t", "zero_device_t"))
# The booleans that open devices to containers, by the types that they are about.
OPENED = {
    "dri_device_t": "container_use_dri_devices",
    "xserver_misc_device_t": "container_use_xserver_devices",
}
ANY_DEVICE = "container_use_devices"


def systemd_version(program: str = "systemctl") -> int:
    """Return systemd's version, or 0."""
    try:
        told = subprocess.run(  # noqa: S603  # a fixed question, and no shell
            [program, "--version"], capture_output=True, text=True, timeout=10, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.match(r"systemd (\d+)", told)
    return int(match[1]) if match else 0


def uses_systemd(dockers: Sequence[Docker], place: str = SYSTEMD) -> bool:
    """Tell whether an engine has systemd manage the containers' cgroups."""
    drivers = [docker.info.get("CgroupDriver") for docker in dockers if docker.info]
    return "systemd" in drivers if drivers else os.path.isdir(place)


def links_for_systemd(
    found: Sequence[Use],
    with_systemd: bool,
    runtime: str,
    systemd: int,
    dev: str = "/dev",
) -> Iterator[Finding]:
    """Look for nodes that systemd does not see, where that takes the device away from containers.

    *runtime* is the real runtime's name and version, *systemd* the version of that.
    """
    if not with_systemd or not _needs_links(runtime, systemd):
        return
    missing = {}
    for use in found:
        if not isinstance(use.edit, Node):
            continue
        try:
            node, _ = use.edit.settle({})
        except Unusable:
            continue
        if node.type in ("c", "b"):
            kind = "char" if node.type == "c" else "block"
            link = f"{dev}/{kind}/{node.major}:{node.minor}"
            if not os.path.exists(link):
                missing[link] = use.edit.host_path or use.edit.path
    if missing:
        commands = [f"ln -s {node} {link}" for link, node in missing.items()]
        yield Finding(
            "warning",
            f"{counted(len(missing), 'device')} of the spec files"
            f" ({named([*missing.values()])}) have no link such as {next(iter(missing))},"
            f" and cgroups are systemd's, with {runtime or 'an unknown runtime'}",
            "systemd leaves such a device out of the container's rules, so access to it is lost"
            " at the next daemon-reload.",
            f"mkdir -p {dev}/char {dev}/block; {'; '.join(commands)}",
        )


def _needs_links(runtime: str, systemd: int) -> bool:
    name, _, version = runtime.partition(" ")
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if systemd and systemd < FIXED_SYSTEMD:
        return True
    return name == "runc" and bool(numbers) and numbers < FIXED_RUNC


def enforces(place: str = ENFORCE) -> bool:
    """Tell whether SELinux enforces its rules."""
    try:
        with open(place, encoding="ascii") as file:
            return file.read().strip() == "1"
    except OSError:
        return False


def label(path: str) -> str:
    """Return the SELinux type of the file at *path*, or the empty text."""
    try:
        context = os.getxattr(path, "security.selinux").rstrip(b"\0").decode()
    except (OSError, ValueError):
        return ""
    parts = context.split(":")
    return parts[2] if len(parts) > 2 else ""  # noqa: PLR2004


def paths_of(found: Iterable[Use]) -> tuple[list[str], list[str]]:
    """Return the nodes and the mount sources of *found*."""
    nodes, sources = [], []
    for use in found:
        if isinstance(use.edit, Node):
            nodes.append(use.edit.host_path or use.edit.path)
        elif isinstance(use.edit, mounts.Edit) and use.edit.is_bind():
            sources.append(use.edit.host_path)
    return nodes, sources


def selinux(
    nodes: Iterable[str],
    sources: Iterable[str],
    enforcing: bool,
    of: Callable[[str], str] = label,
    booleans: str = BOOLEANS,
) -> Iterator[Finding]:
    """Look for nodes and mount sources that SELinux keeps from containers by their type."""
    if not enforcing:
        return
    denied: dict[tuple[str, str], list[str]] = {}
    for path in dict.fromkeys(nodes):
        kind = of(path)
        boolean = OPENED.get(kind, ANY_DEVICE)
        if (
            kind
            and kind not in USABLE
            and not (_is_on(boolean, booleans) or _is_on(ANY_DEVICE, booleans))
        ):
            denied.setdefault((kind, f"setsebool -P {boolean} 1"), []).append(path)
    for path in dict.fromkeys(sources):
        kind = of(path)
        if kind and kind not in READABLE:
            cure = (
                f"semanage fcontext -a -t container_share_t '{path}(/.*)?' && restorecon -R {path}"
            )
            denied.setdefault((kind, cure), []).append(path)
    for (kind, cure), own in denied.items():
        yield Finding(
            "warning",
            f"SELinux enforces, and {named(own)} {'is' if len(own) == 1 else 'are'} of the type"
            f" {kind}, which containers may usually not use",
            'The container gets it, and every access ends in "permission denied".',
            cure,
        )


def _is_on(boolean: str, place: str) -> bool:
    try:
        with open(f"{place}/{boolean}", encoding="ascii") as file:
            return file.read().split()[:1] == ["1"]
    except OSError:
        return False
