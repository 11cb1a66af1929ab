"""Bundles: a root file system of busybox alone, and a whole config.json."""

import itertools
import json
import os
from pathlib import Path

from support.programs import environment, need, run

_ids = itertools.count(1)

CAPABILITIES = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_MKNOD",
    "CAP_SETGID",
    "CAP_SETUID",
]


def make_rootfs(directory):
    """Make a root file system in which busybox is every command."""
    busybox = need("busybox")
    for name in ("bin", "dev", "etc", "proc", "sys", "tmp"):
        (directory / name).mkdir(parents=True)
    (directory / "bin/busybox").write_bytes(Path(busybox).read_bytes())
    (directory / "bin/busybox").chmod(0o755)
    for applet in run(busybox, "--list").out.split():
        if applet != "busybox":
            (directory / "bin" / applet).symlink_to("busybox")
    return directory


def config(*args):
    """Return a whole config.json that runs *args*, as ``runc spec`` would write it."""
    bind = ["nosuid", "noexec", "nodev"]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": list(args or ("true",)),
            "env": ["PATH=/bin"],
            "cwd": "/",
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), CAPABILITIES),
            "noNewPrivileges": True,
        },
        "root": {"path": "rootfs", "readonly": False},
        "hostname": "bundle",
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {
                "destination": "/dev",
                "type": "tmpfs",
                "source": "tmpfs",
                "options": ["nosuid", "strictatime", "mode=755", "size=65536k"],
            },
            {
                "destination": "/sys",
                "type": "sysfs",
                "source": "sysfs",
                "options": [*bind, "ro"],
            },
        ],
        "linux": {
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
            "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")],
        },
    }


class Bundle:
    """A directory that a runtime makes a container from."""

    def __init__(self, path, content):
        self.path = path
        self.id = f"cdi-runc-test-{os.getpid()}-{next(_ids)}"
        self.config_path = path / "config.json"
        self.config = content
        self.save()

    def save(self):
        """Write ``config`` to the bundle."""
        self.config_path.write_text(json.dumps(self.config))

    def load(self):
        """Return what config.json says now."""
        return json.loads(self.config_path.read_bytes())

    def request(self, *devices):
        """Ask for *devices* as Kubernetes does, in an annotation."""
        self.config["annotations"] = {"cdi.k8s.io/test": ",".join(devices)}
        self.save()
        return self


class Runtime:
    """An OCI runtime with a root directory of its own, which sees *configuration*."""

    def __init__(self, program, root, configuration, prefix=()):
        self.program = program
        self.root = root
        self.configuration = configuration
        self.env = environment(**configuration.env)
        self.prefix = prefix

    def __call__(self, *arguments, **options):
        """Call the runtime; *options* are those of :func:`support.programs.run`."""
        return run(
            *self.prefix, self.program, "--root", self.root, *arguments, env=self.env, **options
        )

    def run(self, bundle, **options):
        """Run the container of *bundle* to its end."""
        return self("run", "--bundle", bundle.path, bundle.id, **options)

    def start(self, bundle):
        """Create and start the container of *bundle*, and leave it running."""
        self("create", "--bundle", bundle.path, bundle.id)
        self("start", bundle.id)

    def clean_up(self):
        """Delete every container that is left."""
        if self.root.is_dir():
            for container in self.root.iterdir():
                self("delete", "--force", container.name, check=False)
