"""A host that is a tree of files: its /dev, /sys, /proc and /etc."""

import os
import stat


class Tree:
    """The tree below *root*; paths are those that the host itself would use."""

    def __init__(self, root):
        self.root = root
        root.mkdir()

    def _place(self, path):
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def node(self, path, numbers=(81, 0), mode=0o600, gid=0):
        """Make a character device."""
        place = self._place(path)
        os.mknod(place, stat.S_IFCHR | mode, os.makedev(*numbers))
        place.chmod(mode)
        os.chown(place, 0, gid)

    def link(self, path, target):
        """Make a symbolic link to *target*, an absolute path of the host or a relative one."""
        self._place(path).symlink_to(target)

    def file(self, path, text="", mode=0o644):
        """Make a regular file."""
        place = self._place(path)
        place.write_text(text)
        place.chmod(mode)

    def device(self, path, class_, name, **attributes):
        """Make the device *name* of a class in sysfs, a child of the hardware at *path*."""
        own = f"{path}/{class_}/{name}"
        for key, value in attributes.items():
            self.file(f"{own}/{key}", f"{value}\n")
        self.link(f"{own}/device", path)
        self.link(f"/sys/class/{class_}/{name}", own)
