"""Private engines: Docker, containerd and Podman, beside any other on this machine."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from support.configurations import forget
from support.programs import environment, need, run

IMAGE = "cdi-runc-test"
_ids = itertools.count(1)


def new_name():
    """Return a container name that no other test uses."""
    return f"cdi-runc-test-{os.getpid()}-{next(_ids)}"


class Dockerd:
    """A Docker daemon with its own configuration, data and socket.

    The runtimes that it calls see *configuration*, which each test writes anew.  *prefix* is put
    before the daemon's command line, and *settings* go into its daemon.json.
    """

    def __init__(self, configuration, runtimes, default="runc", prefix=(), **settings):
        self.configuration = configuration
        # Short, since a socket's path may not be long.
        self.directory = Path(tempfile.mkdtemp(prefix="cdi-runc-dockerd-", dir="/tmp"))
        self.socket = self.directory / "docker.sock"
        self.pidfile = self.directory / "docker.pid"
        self.log = self.directory / "docker.log"
        self.exec_root = self.directory / "exec"
        self.containerd = self.exec_root / "containerd/containerd.sock"
        content = {
            "bridge": "none",
            "iptables": False,
            "ip6tables": False,
            "data-root": str(self.directory / "data"),
            "exec-root": str(self.exec_root),
            "pidfile": str(self.pidfile),
            "hosts": [f"unix://{self.socket}"],
            "runtimes": {name: {"path": str(path)} for name, path in runtimes.items()},
            "default-runtime": default,
            "features": {"buildkit": False},
            **settings,
        }
        config = self.directory / "daemon.json"
        config.write_text(json.dumps(content))
        self.env = environment(**configuration.env)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*prefix, need("dockerd"), "--config-file", config],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def _wait_until_ready(self):
        deadline = time.monotonic() + 60
        while self("version", check=False).status != 0:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def __call__(self, *arguments, **options):
        """Call the docker command; *options* are those of :func:`support.programs.run`."""
        options.setdefault("env", self.env)
        return run(need("docker"), "--host", f"unix://{self.socket}", *arguments, **options)

    def load(self, rootfs):
        """Make the image from the tree at *rootfs*."""
        with tempfile.TemporaryFile() as archive:
            subprocess.run(["tar", "-C", rootfs, "-c", "."], check=True, stdout=archive)
            archive.seek(0)
            self("import", "-", IMAGE, stdin=archive)

    def run(self, *options, command=("true",), check=True):
        """Run a container of the image to its end."""
        words = ["run", "--rm", "--network", "none", *options, IMAGE, *command]
        return self(*words, check=check)

    def remove_containers(self):
        """Remove every container, running or not, but those that are going already."""
        deadline = time.monotonic() + 60
        while left := self("ps", "--all", "--quiet").out.split():
            removed = self("rm", "--force", *left, check=False)
            assert removed.status == 0 or time.monotonic() < deadline, removed
            time.sleep(0.05)

    def stop(self):
        """Stop the daemon by its pid, and remove all that it left."""
        if self.process.poll() is None:
            pid = int(self.pidfile.read_text()) if self.pidfile.exists() else self.process.pid
            os.kill(pid, signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        unmount_below(self.directory)
        shutil.rmtree(self.directory)
        forget(self.directory)


class Ctr:
    """The client of *docker*'s containerd; it makes containers of a plain root file system."""

    def __init__(self, docker, rootfs):
        self.configuration = docker.configuration
        self.address = docker.containerd
        self.rootfs = rootfs
        self.env = docker.env

    def __call__(self, *words, check=True):
        """Call ctr."""
        return run(need("ctr"), "--address", self.address, *words, check=check, env=self.env)

    def run(self, shim, *options, command=("true",), check=True, name=None):
        """Run a container, to its end unless it is detached, with *shim* as its runtime."""
        kept = () if name else ("--rm",)
        return self(
            *("run", *kept, "--runc-binary", shim, "--env", "PATH=/bin", *options),
            *("--rootfs", self.rootfs, name or new_name(), *command),
            check=check,
        )


class Podman:
    """Podman with its own storage; its runtime *shim* sees *configuration*."""

    def __init__(self, configuration, shim):
        self.configuration = configuration
        self.shim = shim
        self.directory = Path(tempfile.mkdtemp(prefix="cdi-runc-podman-", dir="/tmp"))
        settings = self.directory / "containers.conf"
        # Podman gives the runtime little of its own environment.
        self.given = {"PATH": os.environ["PATH"], **configuration.env}
        names = json.dumps([f"{name}={value}" for name, value in self.given.items()])
        settings.write_text(f"[engine]\nconmon_env_vars = {names}\n")
        self.env = environment(CONTAINERS_CONF=str(settings))

    def __call__(self, *arguments, **options):
        """Call Podman; *options* are those of :func:`support.programs.run`."""
        place = self.directory
        return self._run(
            *(need("podman"), "--root", place / "root", "--runroot", place / "run"),
            *("--tmpdir", place / "tmp", "--storage-driver", "vfs"),
            *("--cgroup-manager", "cgroupfs", "--runtime", self.shim, *arguments),
            **options,
        )

    def _run(self, *words, **options):
        return run(*words, env=self.env, **options)

    def load(self, rootfs):
        """Make the image from the tree at *rootfs*."""
        archive = self.directory / "image.tar"
        run("tar", "-C", rootfs, "-cf", archive, ".")
        self("import", archive, IMAGE)
        archive.unlink()

    def run(self, *options, command=("true",), check=True):
        """Run a container of the image to its end."""
        # Without the limits runc may not raise them.
        return self(
            *("run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024"),
            *("--ulimit", "nproc=4096:4096", *options, IMAGE, *command),
            check=check,
        )

    def start(self, *options, command):
        """Start a container of the image and leave it running."""
        return self.run("--detach", *options, command=command)

    def clean_up(self):
        """Remove all that Podman left."""
        self("rm", "--all", "--force", check=False)
        unmount_below(self.directory)
        shutil.rmtree(self.directory)
        forget(self.directory)


def unmount_below(directory):
    """Unmount every file system that is mounted below *directory*."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    for place in reversed([line.split(" ")[1] for line in lines]):
        if place.startswith(f"{directory}/"):
            run("umount", "--lazy", place, check=False)
