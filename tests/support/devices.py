"""Device nodes on the host, and what a container may do with those it got."""

import os
import stat
from pathlib import Path

from support.programs import need

DEVICE = "/dev/acme0"
"""Where the tests' containers find their device."""

PROBE = """
read=yes write=yes
(exec <"$1") 2>/dev/null || read=no
(exec >"$1") 2>/dev/null || write=no
echo "$(stat -c '%F %t:%T %a %u:%g' "$1") read=$read write=$write"
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
    return [
        int(device.name.removeprefix("loop"))
        for device in sorted(Path("/sys/block").glob("loop*"), reverse=True)
        if not (device / "loop/backing_file").exists()
    ]


def probe():
    """Return the command that tells what a container may do with its :data:`DEVICE`."""
    return ["sh", "-c", PROBE, "probe", DEVICE]


def seen(node, mode="640", owner="0:0", read="yes", write="yes"):
    """Return the line with which :func:`probe` says that *node* is there."""
    numbers = f"{node.major:x}:{node.minor:x}"
    return f"block special file {numbers} {mode} {owner} read={read} write={write}"


def in_cgroup_v2():
    """Return the words that run a command where /sys/fs/cgroup is a cgroup2 file system.

    They make a mount namespace for it, so nobody else sees a change.
    """
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return []
    script = 'umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"'
    return [need("unshare"), "-m", "--propagation", "private", "sh", "-c", script, "sh"]
