"""A running Docker daemon: find it, ask it, have it read its configuration again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time

from cdi_runc.errors import CdiRuncError
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

CONFIG = "/etc/docker/daemon.json"
SOCKET = "unix:///var/run/docker.sock"
DATA_ROOT = "/var/lib/docker"
PATIENCE = 10.0
"""Seconds for a daemon to take up its configuration: it returns from the signal early."""


class Daemon(Record):
    """A running dockerd."""

    pid: int
    arguments: tuple[str, ...]
    config: str
    """Its daemon.json, links followed."""
    is_snap: bool = False

    def option(self, name: str, short: str = "") -> list[str]:
        """Return the values of the flag *name* in the daemon's command line."""
        return _option(self.arguments, name, short)

    @property
    def is_named(self) -> bool:
        """Whether a flag names its daemon.json, so that it cannot start without the file."""
        return bool(self.option("config-file"))


def running(proc: str = "/proc") -> list[Daemon]:
    """Return each dockerd of ours that runs, but none that runs inside a container."""
    return list(_running(proc))


def _running(proc: str) -> Iterator[Daemon]:
    root = os.stat("/")
    for pid in sorted(filter(str.isdigit, os.listdir(proc)), key=int):
        here = f"{proc}/{pid}"
        try:
            with open(f"{here}/cmdline", "rb") as file:
                arguments = tuple(os.fsdecode(word) for word in file.read().split(b"\0")[:-1])
            if not arguments or os.path.basename(arguments[0]) != "dockerd":
                continue
            is_snap = any("/snap/" in path for path in (arguments[0], os.readlink(f"{here}/exe")))
            if os.stat(here).st_uid != os.geteuid():
                continue
            if not is_snap and not os.path.samestat(os.stat(f"{here}/root"), root):
                continue
            named = _option(arguments, "config-file")
            config = os.path.join(os.readlink(f"{here}/cwd"), named[-1]) if named else default()
        except OSError:  # it has ended meanwhile, or is not ours to look at
            continue
        yield Daemon(int(pid), arguments, os.path.realpath(config), is_snap)


def default() -> str:
    """Return the daemon.json of a daemon of ours that no flag names."""
    if os.geteuid() == 0:
        return CONFIG
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return f"{home}/docker/daemon.json"


def _option(arguments: tuple[str, ...], name: str, short: str = "") -> list[str]:
    values = []
    rest = iter(arguments[1:])
    for word in rest:
        if word in (f"--{name}", f"-{short}"):
            values.append(next(rest, ""))
        elif word.startswith(f"--{name}="):
            values.append(word.partition("=")[2])
        elif short and word.startswith(f"-{short}"):
            values.append(word[2:].removeprefix("="))
    return values


class Client:
    """The ``docker`` command, talking to one daemon."""

    def __init__(self, daemon: Daemon, values: dict[str, Any]) -> None:
        self.daemon = daemon
        hosts = daemon.option("host", "H") or values.get("hosts") or []
        if isinstance(hosts, str):
            hosts = [hosts]
        hosts = [SOCKET if host.startswith("fd:") else host for host in hosts]
        self.host = min(hosts, key=lambda host: not host.startswith("unix:"), default=_socket())
        path = f"{os.environ.get('PATH', '')}:/usr/local/bin:/usr/bin:/bin"
        self.program = shutil.which("docker", path=path)

    def ask(self, *arguments: str, partly: bool = False) -> str:
        """Return what the docker command prints; *partly*: even if it failed for a part."""
        if self.program is None:
            raise CdiRuncError(
                "the docker command is not installed, so the daemon cannot be asked",
                cure="install it, or only write the file, with --no-reload",
            )
        kept = {k: v for k, v in os.environ.items() if not k.startswith("DOCKER_")}
        command = [self.program, "-H", self.host, *arguments]
        try:
            done = subprocess.run(  # noqa: S603  # no shell, and the words are ours
                command, env=kept, capture_output=True, text=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            raise self._silent("no answer") from None
        if done.returncode and not partly:
            raise self._silent(" ".join(done.stderr.split()))
        return done.stdout

    def _silent(self, reason: str) -> CdiRuncError:
        return CdiRuncError(
            f"the Docker daemon (pid {self.daemon.pid}) does not answer at {self.host}: {reason}",
            cure="see what is wrong with it, or only write the file, with --no-reload",
        )

    def info(self) -> dict[str, Any]:
        """Return what ``docker info`` says."""
        told = self.ask("info", "--format", "{{json .}}")
        info: dict[str, Any] = json.loads(told)
        if not isinstance(info.get("Runtimes"), dict):
            raise self._silent("; ".join(info.get("ServerErrors") or [told[:200]]))
        return info

    def containers(self, runtime: str) -> list[str]:
        """Return the daemon's containers, running or not, that were made for *runtime*."""
        ids = self.ask("ps", "-aq", "--no-trunc").split()
        if not ids:
            return []
        form = "{{.HostConfig.Runtime}}\t{{slice .Id 0 12}} ({{slice .Name 1}}, {{.State.Status}})"
        # One that has ended and is gone since then is no failure.
        told = self.ask("inspect", "--type", "container", "--format", form, *ids, partly=True)
        lines = (line.partition("\t") for line in told.splitlines())
        return [words for made_for, _, words in lines if made_for == runtime]

    def reload(self, until: Callable[[dict[str, Any]], bool]) -> bool:
        """Have the daemon read its file again, and tell whether *until* came true of its info."""
        os.kill(self.daemon.pid, signal.SIGHUP)
        end = time.monotonic() + PATIENCE
        while not until(self.info()):
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True


def _socket() -> str:
    if os.geteuid() == 0:
        return SOCKET
    return f"unix://{os.environ.get('XDG_RUNTIME_DIR', '')}/docker.sock"


def containers_on_disk(values: dict[str, Any], runtime: str) -> list[str]:
    """Return the containers made for *runtime*, of a daemon that does not run."""
    root = values.get("data-root") or values.get("graph") or DATA_ROOT
    found = []
    # With userns-remap everything lies one level down, in a directory named UID.GID.
    for place in (root, *(f"{root}/{name}" for name in _listed(root) if "." in name)):
        for name in _listed(f"{place}/containers"):
            try:
                with open(f"{place}/containers/{name}/hostconfig.json", "rb") as file:
                    made_for = json.load(file).get("Runtime")
            except (OSError, ValueError, AttributeError):
                continue
            if made_for == runtime:
                found.append(name[:12])
    return found


def _listed(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []
