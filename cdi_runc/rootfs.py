"""The container's root file system, where an edit could not work in it; loaded only when it may.

What lies there is the image's: names are read, one link is followed and only inside it, nothing is
opened.
"""

from __future__ import annotations

import posix

from cdi_runc.edits import look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.edits import Config
    from cdi_runc.plan import Step


def is_shared_object(step: Step) -> bool:
    """Tell whether *step* mounts what its name says is a shared object."""
    return step.key == "mounts" and ".so" in getattr(step.edit, "host_path", "").rpartition("/")[2]


def doubt(steps: list[Step], config: Config, bundle: str) -> str:
    """Return a warning where shared objects come into an image that has musl only, or nothing.

    Vendors' libraries are made for glibc; musl cannot load them.
    """
    path = look(config, "root").get("path")
    if type(path) is not str:
        return ""
    root = path if path[:1] == "/" else f"{bundle}/{path}"
    loaders = [name for folder in ("lib", "lib64") for name in _names(root, folder)]
    musl = [name for name in loaders if name.startswith("ld-musl-")]
    if not musl or any(name.startswith("ld-linux") for name in loaders):
        return ""
    first, *others = steps
    more = f" and {len(others)} more" if others else ""
    source = getattr(first.edit, "host_path", "")
    return (
        f"the image has musl only ({musl[0]}), and device {first.device} brings shared objects that"
        f" may need glibc: {source}{more} (spec {first.spec})"
    )


def _names(root: str, folder: str) -> list[str]:
    try:
        folder = posix.readlink(f"{root}/{folder}").strip("/")  # usr/lib, as a rule
    except (OSError, ValueError):  # a NUL in the path
        pass
    place = root
    for part in folder.split("/"):
        place = f"{place}/{part}"
        if part == ".." or _is_link(place):  # it could lead out of the image
            return []
    try:
        return posix.listdir(place)
    except (OSError, ValueError):
        return []


def _is_link(path: str) -> bool:
    try:
        posix.readlink(path)
    except (OSError, ValueError):
        return False
    return True
