"""A machine for the documents: this one's files below an overlay, which is gone afterwards."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from support.engines import unmount_below
from support.installations import ROOT
from support.programs import environment, need

# The machine's root becomes an overlay over ours; what is written goes to memory.
SCRIPT = """
set -e
top=$1
mount -t tmpfs none "$top"
mkdir "$top/upper" "$top/work" "$top/root"
mount -t overlay -o "lowerdir=/,upperdir=$top/upper,workdir=$top/work" none "$top/root"
cd "$top/root"
for place in proc sys dev; do mount --rbind "/$place" "$place"; done
for place in run tmp var/lib/docker var/log home; do
    mkdir -p "$place"
    mount -t tmpfs none "$place"
done
chmod 1777 tmp
rm -rf etc/cdi etc/cdi-runc etc/docker etc/crio etc/containers/containers.conf*
rm -rf etc/containerd opt/cdi-runc usr/local/bin/cdi-runc usr/local/bin/cdictl
mkdir -p old home/you/cdi-runc etc/docker etc/containers
cp -R "$2/." home/you/cdi-runc/
printf '#!/bin/sh\\nexec "$@"\\n' >usr/local/bin/sudo
chmod 755 usr/local/bin/sudo
pivot_root . old
umount -l /old
echo ready
exec sleep 100000
"""
DAEMON = '{"storage-driver": "vfs", "bridge": "none", "iptables": false, "ip6tables": false}'
# Without the limits runc may not raise them.
PODMAN = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
"""
STORAGE = """
[storage]
driver = "vfs"
runroot = "/run/containers/storage"
graphroot = "/var/lib/containers/storage"
"""


class Machine:
    """A root file system of its own, with a Docker daemon and an image ``busybox:stable``.

    Podman has the image, too, and the daemon's containerd is where ``ctr`` looks for one.
    """

    def __init__(self, rootfs):
        self.top = Path(tempfile.mkdtemp(prefix="cdi-runc-docs-", dir="/var/tmp"))
        words = (need("unshare"), "-m", "--propagation", "private", "sh", "-c", SCRIPT, "sh")
        self.process = subprocess.Popen(
            [*words, self.top, ROOT],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.enter = (need("nsenter"), "--mount", f"--target={self.process.pid}", "--root")
        try:
            self._prepare(rootfs)
        except BaseException:
            self.stop()
            raise

    def _prepare(self, rootfs):
        for node in ("/dev/fuse", "/dev/net/tun"):
            assert Path(node).exists(), f"the documents use {node}, which is not here"
        assert self.process.stdout.readline() == b"ready\n"
        self.sh("cat >/etc/docker/daemon.json", input=DAEMON)
        self.sh(
            "dockerd >/var/log/docker.log 2>&1 & for i in $(seq 200); do"
            " docker version >/dev/null 2>&1 && exit; sleep 0.1; done;"
            " cat /var/log/docker.log; exit 1"
        )
        with tempfile.TemporaryFile() as archive:
            subprocess.run(["tar", "-C", rootfs, "-c", "."], check=True, stdout=archive)
            archive.seek(0)
            self.sh("docker import --change 'ENV PATH=/bin' - busybox:stable", stdin=archive)
        self.sh("cat >/etc/containers/containers.conf", input=PODMAN)
        self.sh("cat >/etc/containers/storage.conf", input=STORAGE)
        self.sh(
            "docker save busybox:stable | podman load; mkdir /run/containerd;"
            " ln -s /var/run/docker/containerd/containerd.sock /run/containerd/"
        )

    def sh(self, script, **options):
        """Run *script* in the checkout; return what it writes, and fail if it fails."""
        done = self.attempt(script, **options)
        assert done.returncode == 0, (script, done.stdout)
        return done.stdout

    def attempt(self, script, **options):
        """Run *script* in the checkout."""
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(
            [*self.enter, "sh", "-ec", f"cd /home/you/cdi-runc\n{script}"],
            check=False,
            env=environment(HOME="/home/you"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=280,
            **options,
        )

    def stop(self):
        """Stop the daemon and the machine."""
        self.attempt("kill $(cat /var/run/docker.pid) && sleep 1")
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        unmount_below(self.top)
        self.top.rmdir()


@pytest.fixture(scope="session")
def machine(busybox_rootfs):
    """Make the machine that all documents share, in their order."""
    machine = Machine(busybox_rootfs)
    yield machine
    machine.stop()
