"""Containers as people name them, and as their engines know them.

Docker is asked at its socket, Podman by its command; a containerd task and a container of the
runtime are found by their directories.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess

from cdi_runc import files, paths
from cdi_runc.engines import docker_api, dockerd
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECONDS = 10
STATE = 64 << 20
"""Bytes of a runtime's state file; it repeats parts of config.json."""
TASKS = "/run/containerd/io.containerd.runtime.v2.task"
"""Where containerd has a directory for each namespace, in it a bundle for each task."""


class Container(Record):
    """One container."""

    id: str
    """In full."""
    engine: str
    name: str = ""
    bundle: str = ""
    """Where its config.json lies; empty if there is none now, as of a container that ended."""
    details: dict[str, Any] = {}  # noqa: RUF012  # a record is immutable
    """What ``docker inspect`` or ``podman inspect`` says."""

    @property
    def title(self) -> str:
        """What to call it."""
        return f"{self.name} ({self.id[:12]})" if self.name else self.id[:12]


def resolve(name: str) -> Container | None:
    """Return the container of that name, id or beginning of an id; None if no engine knows it."""
    return in_docker(name) or in_containerd(name) or in_podman(name)


def docker_hosts() -> list[str]:
    """Return where Docker's API may answer."""
    named = os.environ.get("DOCKER_HOST")
    if named:
        return [named]
    own = os.environ.get("XDG_RUNTIME_DIR")
    return [dockerd.SOCKET, *([f"unix://{own}/docker.sock"] if own else [])]


def in_docker(name: str) -> Container | None:
    """Return Docker's container of that name, id or beginning of an id."""
    for host in docker_hosts():
        try:
            found = docker_api.inspect(host, name)
        except OSError:
            continue
        if found:
            pid = int((found.get("State") or {}).get("Pid") or 0)
            return Container(
                id=str(found["Id"]),
                engine="docker",
                name=str(found.get("Name") or "").removeprefix("/"),
                bundle=_bundle_of(pid) if pid else "",
                details=found,
            )
    return None


def _bundle_of(pid: int) -> str:
    """Return the bundle of the container whose first process is *pid*.

    Its parent is containerd's shim, whose working directory is the bundle.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            parent = int(file.read().rpartition(b")")[2].split()[1])
        place = os.readlink(f"/proc/{parent}/cwd")
    except (OSError, ValueError, IndexError):
        return ""
    return place if os.path.exists(f"{place}/config.json") else ""


def in_podman(name: str) -> Container | None:
    """Return Podman's container of that name, id or beginning of an id."""
    found = podman("container", "inspect", "--", name)
    if not found:
        return None
    path = str(found.get("OCIConfigPath") or "")
    return Container(
        id=str(found["Id"]),
        engine="podman",
        name=str(found.get("Name") or ""),
        bundle=os.path.dirname(path) if path and os.path.exists(path) else "",
        details=found,
    )


def podman(*arguments: str) -> dict[str, Any] | None:
    """Return the one thing that an inspect command of Podman tells of; None if it knows none."""
    program = shutil.which("podman")
    if program is None:
        return None
    try:
        told = subprocess.run(  # noqa: S603  # no shell; a name stands behind --
            [program, *arguments], capture_output=True, timeout=SECONDS, check=True
        )
        (found,) = json.loads(told.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return found if isinstance(found, dict) else None


def in_containerd(name: str, tasks: str = TASKS) -> Container | None:
    """Return containerd's task of that id, or the one whose id begins so."""
    bundles = [
        f"{tasks}/{namespace}/{task}"
        for namespace in _listed(tasks)
        for task in _listed(f"{tasks}/{namespace}")
        if task.startswith(name)
    ]
    exact = [bundle for bundle in bundles if os.path.basename(bundle) == name]
    if not exact and len(bundles) != 1:
        return None
    (bundle,) = exact[:1] or bundles
    return Container(id=os.path.basename(bundle), engine="containerd", bundle=bundle)


def _listed(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def kept(root: str) -> set[str]:
    """Return the containers of which the runtime keeps something in *root*, as for ``running``."""
    return {name for place in _roots(root) for name in _listed(place)}


def _roots(root: str) -> list[str]:
    return [root] if root else paths.runtime_roots()


def running(container: str, root: str) -> int:
    """Return the first process of *container* while it runs, by what its runtime keeps in *root*.

    An empty *root* is the runtime's own default.  A process that got the number of one that ended
    began at another time.
    """
    for place in _roots(root):
        for name, pid, start in (
            ("state.json", "init_process_pid", "init_process_start"),
            ("status", "pid", "process-start-time"),
        ):
            try:
                state = json.loads(files.read(f"{place}/{container}/{name}", STATE)[0])
                number = int(state[pid])
                if _started(number) == (int(state.get(start) or 0) or _started(number)):
                    return number
            except (OSError, ValueError, KeyError, TypeError):
                continue
    return 0


def _started(pid: int) -> int:
    """Return when the process *pid* began, in clock ticks since the boot.

    Raises:
        OSError: there is no such process.

    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        state, *fields = file.read().rpartition(b")")[2].split()
    if state in (b"Z", b"X"):
        raise ProcessLookupError(pid)
    return int(fields[18])
