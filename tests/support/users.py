"""An ordinary user of this machine, for as long as the tests run."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from support.configurations import audit_records
from support.engines import Podman, unmount_below
from support.programs import need, run

ID = 54321
NAME = "cdi-runc-test"
RANGE = (600000, 65536)
"""First id and number of those that the user may give to containers."""

# Each pytest that starts closes the directory above its own to others again.
NAMESPACE = """
mount --bind "$1/etc" /etc
case ${2%/*} in */pytest-of-*)
    mount --bind "$2" "$1/base"
    mount -t tmpfs -o mode=711 none "${2%/*}"
    mkdir "$2"
    mount --bind "$1/base" "$2"
    ;;
esac
echo ready
exec sleep infinity
"""


class User:
    """A user with a home, a runtime directory, and ids for containers.

    Only the user's own processes see an /etc in which the user exists, so nothing needs undoing.
    They can enter *base*, the directory of the tests.
    """

    def __init__(self, base):
        self.directory = Path(tempfile.mkdtemp(prefix="cdi-runc-user-", dir="/tmp"))
        self.directory.chmod(0o711)
        self.etc = self.directory / "etc"
        self.home = self.directory / "home"
        self.runtime_dir = self.directory / "runtime"
        run("cp", "-a", "/etc", self.etc)
        first, count = RANGE
        for file, line in {
            "passwd": f"{NAME}:x:{ID}:{ID}::{self.home}:/bin/sh",
            "group": f"{NAME}:x:{ID}:",
            "subuid": f"{NAME}:{first}:{count}",
            "subgid": f"{NAME}:{first}:{count}",
        }.items():
            with (self.etc / file).open("a") as lines:
                lines.write(f"{line}\n")
        self.spec_dir = self.home / ".config/cdi"
        self.state_dir = self.runtime_dir / "cdi-runc"
        self.audit_file = self.home / ".local/state/cdi-runc/audit.jsonl"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.runtime_dir),
        }
        self.reset()
        (self.directory / "base").mkdir()
        words = [need("unshare"), "-m", "--propagation", "private", "sh", "-ec", NAMESPACE, "sh"]
        self.namespace = subprocess.Popen(
            [*words, self.directory, base], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert self.namespace.stdout.readline() == b"ready\n"

    def reset(self):
        """Remove what the last test left: homes, and what is below /etc of ours."""
        for path in (self.home, self.state_dir, self.runtime_dir / "cdi"):
            shutil.rmtree(path, ignore_errors=True)
        for name in ("cdi", "cdi-runc"):
            shutil.rmtree(self.etc / name, ignore_errors=True)
        for path in (self.home, self.runtime_dir):
            path.mkdir(0o700, exist_ok=True)
            os.chown(path, ID, ID)
        (self.etc / "cdi").mkdir()

    def __call__(self, *words, env=None, **options):
        """Run a program as the user; *options* are those of :func:`support.programs.run`."""
        as_user = ("--reuid", str(ID), "--regid", str(ID), "--clear-groups")
        return run(
            *(need("nsenter"), f"--mount=/proc/{self.namespace.pid}/ns/mnt"),
            *(need("setpriv"), *as_user, "env", "-C", self.home, *words),
            env=self.env if env is None else env,
            **options,
        )

    def own(self, top):
        """Give *top* and the directories and files in it to the user."""
        for directory, _, files in os.walk(top):
            for path in (directory, *(f"{directory}/{file}" for file in files)):
                os.chown(path, ID, ID, follow_symlinks=False)

    def write(self, path, text):
        """Write a file of the user's own."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.own(self.home if path.is_relative_to(self.home) else path.parent)
        return path

    def spec(self, edits, directory=None, kind="acme.com/widget", device="one"):
        """Write a spec file of one device, to the user's own directory unless told otherwise."""
        devices = [{"name": device, "containerEdits": edits}]
        text = json.dumps({"cdiVersion": "0.7.0", "kind": kind, "devices": devices})
        path = (directory or self.spec_dir) / "acme.json"
        if directory is not None and directory.is_relative_to(self.etc):
            path.write_text(text)  # root's
            return path
        return self.write(path, text)

    def records(self):
        """Return the user's audit records, each valid by the schema that we ship."""
        return audit_records(self.audit_file)

    def remove(self):
        """End the namespace, and remove all that the user had."""
        self.namespace.kill()
        self.namespace.wait()
        self.namespace.stdout.close()
        shutil.rmtree(self.directory)


class RootlessPodman(Podman):
    """Podman of *user*, with its own storage; its runtime sees what Podman gives it."""

    def __init__(self, user, shim):
        self.user = user
        self.shim = shim
        self.directory = user.directory / "podman"
        self.directory.mkdir()
        user.own(self.directory)

    def _run(self, *words, **options):
        return self.user(*words, **options)

    def clean_up(self):
        """Remove all that Podman left, and end the processes that keep its user namespaces.

        There is one for each of its directories: doctor asks Podman as it is by itself.
        """
        self("rm", "--all", "--force", check=False)
        for place in (self.directory, self.user.runtime_dir / "libpod"):
            pause = place / "tmp/pause.pid"
            if pause.exists():
                os.kill(int(pause.read_text()), signal.SIGKILL)
        unmount_below(self.directory)
