"""Whole ``docker run --rm`` lifecycles, on a Docker daemon of our own."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tests.bench import specs
from tests.bench.calls import OLD
from tests.bench.places import PATH
from tests.bench.timing import Broken, Call

IMAGE = "cdi-runc-bench"
PROGRAMS = ("dockerd", "docker", "busybox")
SECONDS = 60  # to start or to stop


def missing():
    """Return the programs that are missing here."""
    return [program for program in PROGRAMS if shutil.which(program, path=PATH) is None]


def lifecycles(docker):
    """Return what to compare: a container that ends at once, from its making to its removal."""

    def made(name, label, *options, plain=""):
        words = [*docker.words, "run", "--rm", "--network", "none", *options, IMAGE, "true"]
        label = f"docker run --rm{label}"
        return Call(name=name, label=label, words=words, env=docker.env, plain=plain)

    cdi, device = "--runtime=cdi", f"CDI_DEVICES={specs.KIND}=0"
    return [
        made("docker", ", runc"),
        made("docker-none", f" {cdi}", cdi, plain="docker"),
        made("docker-one", f" {cdi}, 1 device", cdi, "--env", device, plain="docker"),
    ]


class Docker:
    """A Docker daemon with its own configuration, data and socket, while the context lasts."""

    def __init__(self, places, shim, runc):
        self._configuration = places.configuration("docker", runc)
        specs.offer_gpus(self._configuration)
        time.sleep(OLD)
        self.env = {"PATH": PATH, "HOME": str(places.disk)}
        self._shim = shim

    def __enter__(self):
        """Start the daemon and make the image."""
        # Short, since a socket's path may not be long.
        self._directory = Path(tempfile.mkdtemp(prefix="cdi-bench-", dir="/tmp"))
        self._process = None
        socket = f"unix://{self._directory}/sock"
        self.words = [shutil.which("docker", path=PATH), "--host", socket]
        try:
            self._start(socket)
            self._make_image()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        """Stop the daemon by its pid, and remove all that it left."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        for place in reversed([line.split()[1] for line in mounts]):
            if place.startswith(f"{self._directory}/"):
                subprocess.run(["umount", "--lazy", place], check=False)
        shutil.rmtree(self._directory)

    def _start(self, socket):
        place = self._directory
        settings = {
            "bridge": "none",
            "iptables": False,
            "ip6tables": False,
            "data-root": f"{place}/data",
            "exec-root": f"{place}/exec",
            "pidfile": f"{place}/pid",
            "hosts": [socket],
            "runtimes": {"cdi": {"path": str(self._shim)}},
        }
        config, log = place / "daemon.json", place / "log"
        config.write_text(json.dumps(settings))
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [shutil.which("dockerd", path=PATH), "--config-file", config],
                env={**self._configuration.env, "HOME": self.env["HOME"]},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        until = time.monotonic() + SECONDS
        while self._call("version") != 0:
            if self._process.poll() is not None or time.monotonic() > until:
                last = "\n".join(log.read_text(errors="replace").splitlines()[-3:])
                raise Broken(f"dockerd did not start: {last}")
            time.sleep(0.05)

    def _make_image(self):
        binary = self._directory / "tree/bin"
        binary.mkdir(parents=True)
        shutil.copy(shutil.which("busybox", path=PATH), binary)
        os.symlink("busybox", binary / "true")
        with tempfile.TemporaryFile() as archive:
            words = ["tar", "-C", binary.parent, "-c", "."]
            subprocess.run(words, check=True, stdout=archive)
            archive.seek(0)
            if self._call("import", "-", IMAGE, stdin=archive) != 0:
                raise Broken("docker import failed")

    def _call(self, *arguments, stdin=subprocess.DEVNULL):
        return subprocess.run(
            [*self.words, *arguments],
            check=False,
            env=self.env,
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ).returncode
