"""A host to look at: this one, or a tree of files that looks like one."""

from __future__ import annotations

import os
import re
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DIGITS = re.compile(r"(\d+)")
_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_USB_INTERFACE = re.compile(r"\d+-[\d.]+:\d+\.\d+")


def natural(text: str) -> list[Any]:
    """Return a key that sorts ``video10`` after ``video9``."""
    parts = [(int(part), "") if part.isdigit() else (-1, part) for part in _DIGITS.split(text)]
    return [*parts, (-1, text)]  # 0 and 00 are the same number, and no tie


class Host:
    """The tree below *root*; paths are those that the host itself would use.

    With *plain*, specs name device nodes where they would name udev's links to them.
    """

    def __init__(self, root: str = "", *, plain: bool = False) -> None:
        from cdi_runc.doctor.rootfs import View  # it follows links inside a tree

        self.root = "" if root == "/" else root.rstrip("/")
        self.plain = plain
        self._view = View((self.root,), ())

    def real(self, path: str) -> str:
        """Return *path* with all links followed."""
        return self._view.real(path)

    def place(self, path: str) -> str:
        """Return where on this machine lies what *path* leads to; empty if that is nothing."""
        return self._view.find(path) or ""

    def names(self, directory: str) -> list[str]:
        """Return the names in *directory*, numbers in their order; none if there is no such."""
        return sorted(self._view.names(directory), key=natural)

    def text(self, path: str) -> str:
        """Return the text of a small file; empty if it cannot be read."""
        try:
            with open(self.place(path), encoding="utf-8", errors="replace") as file:
                return file.read().strip("\0\n ")
        except OSError:
            return ""

    def status(self, path: str) -> os.stat_result | None:
        """Return the status of what *path* leads to, or None."""
        try:
            return os.lstat(self.place(path))
        except OSError:
            return None

    def is_node(self, path: str) -> bool:
        """Tell whether *path* leads to a device node."""
        status = self.status(path)
        return status is not None and (stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode))

    def is_directory(self, path: str) -> bool:
        """Tell whether *path* leads to a directory."""
        status = self.status(path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def is_program(self, path: str) -> bool:
        """Tell whether *path* leads to an executable file."""
        status = self.status(path)
        return status is not None and stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o111)

    def nodes(self, directory: str, pattern: str) -> list[str]:
        """Return the device nodes in *directory* whose names are of the regular *pattern*."""
        found = [f"{directory}/{n}" for n in self.names(directory) if re.fullmatch(pattern, n)]
        return [path for path in found if self.is_node(path)]

    def links(self, *directories: str) -> dict[str, str]:
        """Return the link to each node that has one; an earlier directory's comes first."""
        found: dict[str, str] = {}
        for directory in directories:
            for name in self.names(directory):
                link = f"{directory}/{name}"
                found.setdefault(self.real(link), link)
        return found

    def bus(self, device: str) -> str:
        """Return the place on its bus of *device*, a directory of sysfs, or the empty text.

        That is what udev's by-path names begin with: it stays until hardware is moved.
        """
        if not self.is_directory(device):
            return ""
        parts = self.real(device).split("/")
        for part in reversed(parts):
            if _PCI.fullmatch(part):
                return f"pci-{part}"
            if _USB_INTERFACE.fullmatch(part):
                return f"usb-{part}"
        if "platform" in parts[:-1]:
            return f"platform-{parts[parts.index('platform') + 1]}"
        return ""
