"""Where a benchmark keeps its files: on a disk, in memory, and nothing after it."""

import json
import shutil
import tempfile
from pathlib import Path

COMPILED = Path("/run/cdi-runc/launcher")
"""Below it cdi-runc keeps what it compiles from a configuration, under that file's path."""

KEPT = Path("/run/cdi-runc/exec")
"""Below it cdi-runc keeps what exec needs of a container, under its root's path and its id."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""As a system's daemon has it."""


class Places:
    """Two directories of our own, gone when the context ends."""

    def __enter__(self):
        """Make both."""
        self.disk = Path(tempfile.mkdtemp(prefix="cdi-runc-bench-", dir="/var/tmp"))
        self.memory = Path(tempfile.mkdtemp(prefix="cdi-runc-bench-", dir=_tmpfs()))
        self._configurations = []
        return self

    def __exit__(self, *_):
        """Remove both, and what was compiled from our configurations."""
        for configuration in self._configurations:
            configuration.forget()
        shutil.rmtree(self.memory)
        shutil.rmtree(self.disk)

    def configuration(self, name, runtime):
        """Return a new configuration that names *runtime* as the real one."""
        made = Configuration(self.disk / name, self.memory / name, runtime)
        self._configurations.append(made)
        return made


def _tmpfs():
    """Return a directory in memory, as the one in which an engine keeps its bundles."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    kinds = {where: kind for _, where, kind, *_ in mounts}
    return next((place for place in ("/run", "/dev/shm") if kinds.get(place) == "tmpfs"), None)


class Configuration:
    """A config.yaml; spec files and audit records lie on the disk, the state in memory."""

    def __init__(self, directory, memory, runtime):
        self.path = directory / "etc/config.yaml"
        self.spec_dir = directory / "cdi"
        self.state_dir = memory / "state"
        self.audit_file = directory / "log/audit.jsonl"
        self.env = {"PATH": PATH, "CDI_RUNC_CONFIG": str(self.path)}
        self.spec_dir.mkdir(parents=True)
        self.path.parent.mkdir()
        memory.mkdir()
        content = {
            "runtime": str(runtime),
            "spec_dirs": [str(self.spec_dir)],
            "state_dir": str(self.state_dir),
            "audit": {"file": str(self.audit_file)},
            "log": {"file": str(directory / "log/cdi-runc.log")},
        }
        self.path.write_text(json.dumps(content, indent=1))

    def registry(self):
        """Return what tells one compiled registry from the next, None if there is none."""
        try:
            status = (self.state_dir / "registry").stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns

    def forget(self):
        """Remove what was compiled from this file outside its directory."""
        compiled = COMPILED / str(self.path).lstrip("/")
        shutil.rmtree(compiled, ignore_errors=True)
        for parent in compiled.parents:
            if not parent.is_relative_to(COMPILED) or not parent.is_dir() or any(parent.iterdir()):
                break
            parent.rmdir()
