"""What a container's process sees at a path, and where on the host that lies.

The image is not trusted: its links are followed here, inside the container's tree, never by the
host's kernel.
"""

from __future__ import annotations

import os
import stat

from cdi_runc import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    Mount = dict[str, Any]

LINKS = 40  # the kernel's own limit


class View:
    """The root file system of a container with its mounts.

    *layers* are the host's directories that it is made of, the topmost first; usually one.
    """

    def __init__(self, layers: Sequence[str], mounts: Iterable[Mount]) -> None:
        self.layers = tuple(layers)
        self.hidden: list[tuple[Mount, Mount]] = []
        """Each mount that cannot be seen, and the later one that hides it."""
        self._sources: dict[str, str | None] = {}
        made: list[tuple[str, Mount]] = []
        for mount in mounts:
            place = self.real(str(mount.get("destination") or "/"))
            for earlier, other in made:
                if f"{earlier}/".startswith(f"{place.rstrip('/')}/"):
                    self.hidden.append((other, mount))
                    self._sources.pop(earlier, None)
            made = [(p, m) for p, m in made if not f"{p}/".startswith(f"{place.rstrip('/')}/")]
            made.append((place, mount))
            self._sources[place] = source(mount)

    def host(self, path: str) -> str | None:
        """Return where the clean absolute *path* lies on the host; its links are not followed."""
        above, below = path, ""
        while above:
            if above in self._sources:
                mounted = self._sources[above]
                return None if mounted is None else f"{mounted}{below}"
            above, _, name = above.rpartition("/")
            below = f"/{name}{below}"
        for layer in self.layers:
            place = f"{layer}{path}"
            try:
                status = os.lstat(place)
            except OSError:
                continue
            gone = stat.S_ISCHR(status.st_mode) and status.st_rdev == 0  # overlayfs: a whiteout
            return None if gone else place
        return None

    def real(self, path: str) -> str:
        """Return *path* with its links followed as the container's processes would."""
        rest = path.split("/")[::-1]
        here, links = "", 0
        while rest:
            part = rest.pop()
            if part == "..":
                here = here.rpartition("/")[0]
            if part in ("", ".", ".."):
                continue
            place = f"{here}/{part}"
            try:
                target = os.readlink(self.host(place) or "")
            except OSError:  # no link
                here = place
                continue
            links += 1
            if links > LINKS:
                return place
            if target[:1] == "/":
                here = ""
            rest += target.split("/")[::-1]
        return here or "/"

    def find(self, path: str) -> str | None:
        """Return where on the host lies what the container sees at *path*, or None."""
        place = self.host(self.real(path))
        return place if place is not None and os.path.lexists(place) else None

    def names(self, path: str) -> list[str]:
        """Return the names in the directory *path*."""
        place = self.real(path)
        found = {name for layer in self.layers for name in _listed(f"{layer}{place}")}
        if any(f"{place}/".startswith(f"{mounted}/") for mounted in self._sources):
            found = set(_listed(self.host(place) or ""))
        found |= {p.rpartition("/")[2] for p in self._sources if p.rpartition("/")[0] == place}
        return sorted(name for name in found if self.host(f"{place}/{name}"))

    @property
    def is_known(self) -> bool:
        """Whether there is anything to look at: most engines unmount it when a container ends."""
        return any(_listed(layer) for layer in self.layers)


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def is_bind(mount: Mount) -> bool:
    """Tell whether *mount* shows a path of the host."""
    options = mount.get("options") or ()
    return mount.get("type") in ("bind", "none") or "bind" in options or "rbind" in options


def source(mount: Mount) -> str | None:
    """Return the path of the host that *mount* shows, links followed; None for a file system."""
    return os.path.realpath(str(mount.get("source"))) if is_bind(mount) else None


def destination(mount: Mount) -> str:
    """Return the cleaned destination of *mount*."""
    return paths.clean(str(mount.get("destination") or "/"))
