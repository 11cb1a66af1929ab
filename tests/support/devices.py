"""Device nodes on the host, and what a container may do with those it got."""

import os
import stat
from pathlib import Path

from support.programs import need

PROBE = """
for node; do
    read=yes write=yes
    (exec <"$node") 2>/dev/null || read=no
    (exec >"$node") 2>/dev/null || write=no
    echo "$(stat -c '%n %F %t:%T %a %u:%g' "$node" | tr ' ' '_') read=$read write=$write"
done
"""


class Node:
    """A block device node on the host: a loop device that nobody uses.

    Every container may use /dev/null and its like, so those prove nothing about cgroup rules.
    """

    def __init__(self, path, minor, mode=0o640):
        self.path = path
        self.major, self.minor = 7, minor
        os.mknod(path, stat.S_IFBLK | mode, os.makedev(self.major, self.minor))
        path.chmod(mode)


def free_loop_numbers():
    """Return the minor numbers of the loop devices that have no file behind them."""
    numbers = []
    for device in sorted(Path("/sys/block").glob("loop*"), reverse=True):
        if not (device / "loop/backing_file").exists():
            numbers.append(int(device.name.removeprefix("loop")))
    return numbers


def probe(*paths):
    """Return the command that tells what a container may do with the nodes at *paths*."""
    return ["sh", "-c", PROBE, "probe", *paths]


def seen(path, node, mode="640", owner="0:0", read="yes", write="yes"):
    """Return the line with which :func:`probe` says so."""
    numbers = f"{node.major:x}:{node.minor:x}"
    return f"{path}_block_special_file_{numbers}_{mode}_{owner} read={read} write={write}"


def in_cgroup_v2():
    """Return the words that run a command where /sys/fs/cgroup is a cgroup2 file system.

    They make a mount namespace for it, so nobody else sees a change.
    """
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return []
    script = 'umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"'
    return [need("unshare"), "-m", "--propagation", "private", "sh", "-c", script, "sh"]
