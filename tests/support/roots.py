"""A clean root file system of this machine's distribution, from the mirror that apt uses here."""

import os
import platform
import shutil
from pathlib import Path

from support.programs import environment, need, run

# The test's own mounts and processes: nothing in there sees the daemons of this machine.
ENTER = """
mount --bind "$0" "$0" # runc pivots away from a mount only
mount -t proc proc "$0/proc"
mount --rbind /sys "$0/sys"
mount --rbind /dev "$0/dev"
exec chroot "$0" "$@"
"""
VOLATILE = ("dev", "proc", "sys", "tmp", "var/cache", "var/lib/apt", "var/lib/dpkg", "var/log/apt")


class Root:
    """A root file system at *path*."""

    def __init__(self, path):
        self.path = path

    def make(self):
        """Make it, with the packages that every system has."""
        path = self.path
        suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
        env = environment(**_proxy())
        words = ("--variant=minbase", suite, path, _mirror(suite))
        run(need("debootstrap"), *words, timeout=280, env=env)
        apt = path / "etc/apt"
        (apt / "sources.list").unlink(missing_ok=True)
        for name in ("sources.list", "sources.list.d", "apt.conf.d", "trusted.gpg.d"):
            place = Path("/etc/apt") / name
            if place.is_dir():
                shutil.copytree(place, apt / name, dirs_exist_ok=True)
            elif place.exists():
                shutil.copy(place, apt / name)
        shutil.copytree("/usr/share/keyrings", path / "usr/share/keyrings", dirs_exist_ok=True)
        # It is thrown away, so nothing has to reach the disk.
        (path / "etc/dpkg/dpkg.cfg.d/unsafe").write_text("force-unsafe-io\n")
        self("apt-get", "-q", "update")

    def __call__(self, *words, **options):
        """Run a program in there; *options* are those of :func:`support.programs.run`."""
        env = {"PATH": os.environ["PATH"], "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        enter = (need("unshare"), "--mount", "--pid", "--fork", "sh", "-euc", ENTER)
        return run(*enter, self.path, *words, env=env, **options)

    def apt(self, *words):
        """Run ``apt-get -y`` in there."""
        return self("apt-get", "-y", "-q", "--no-install-recommends", *words)

    def files(self):
        """Return what is in there, but for what dpkg keeps for itself and compiled files."""
        found = set()
        for folder, folders, names in os.walk(self.path):
            below = os.path.relpath(folder, self.path)
            folders[:] = [
                name
                for name in folders
                if os.path.normpath(f"{below}/{name}") not in VOLATILE
                and (name != "__pycache__" or "cdi-runc" in below)
            ]
            found |= {os.path.normpath(f"{below}/{name}") for name in (*folders, *names)}
        return found


def _mirror(suite):
    words = ("$(REPO_URI)", "$(RELEASE)", "$(COMPONENT)", "$(CREATED_BY)")
    out = run("apt-get", "indextargets", "--format", " ".join(words)).out
    for line in out.splitlines():
        address, *rest = line.split()
        if rest == [suite, "main", "Packages"]:
            return address
    raise AssertionError(f"apt has no mirror of {suite}")


def _proxy():
    out = run("apt-config", "shell", "http_proxy", "Acquire::http::Proxy").out
    return {"http_proxy": out.partition("'")[2].rstrip("'\n")} if out else {}
