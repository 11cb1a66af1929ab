"""The bundle's config.json: read whole, edited in memory, written by rename (C2)."""

from __future__ import annotations

import posix

from cdi_runc import errors, files, jsonio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LIMIT = 16 << 20  # bytes; runc itself sets none, engines write some 10 KB; a GiB in memory


class Bundle:
    """One config.json: its path, its bytes, and the dict that was read from them."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self.data, self._status = files.read(path, LIMIT)
        except (OSError, ValueError) as error:
            raise errors.BadBundle(f"cannot read {path}: {describe(error)}") from error
        try:
            self.config: dict[str, Any] = jsonio.loads(self.data)
        except ValueError as error:
            raise errors.BadBundle(f"{path} is not JSON: {error}") from error
        if type(self.config) is not dict:
            raise errors.BadBundle(
                f"{path} is not a runtime configuration: it holds no JSON object"
            )

    def encoded(self) -> bytes:
        """Return the configuration as JSON.

        Raises:
            BadBundle: it is nested more deeply than can be written, though it could be read.

        """
        try:
            return jsonio.dumps(self.config)
        except RecursionError:
            raise errors.BadBundle(f"{self.path} is nested too deeply") from None

    def write(self, data: bytes, before_rename: Callable[[], None]) -> None:
        """Put *data* in place of the file, owner and mode kept.

        *before_rename* runs when nothing but the rename is left to do.

        Raises:
            BadBundle: the file was not replaced, and is as it was.

        """
        path = self.path
        try:
            if not files.is_regular(posix.lstat(path)):  # a link is followed, not replaced
                path = _target(path)
            files.replace(path, data, like=self._status, before_rename=before_rename)
        except OSError as error:
            raise errors.BadBundle(
                f"cannot write {path}: {describe(error)}",
                cure="the bundle must be writable for its devices to be added",
            ) from error


def _target(path: str) -> str:
    for _ in range(40):  # the kernel's own limit
        try:
            link = posix.readlink(path)
        except OSError:
            return path
        path = link if link[:1] == "/" else f"{path.rpartition('/')[0] or '.'}/{link}"
    return path


def describe(error: Exception) -> str:
    """Return what *error* says, without Python's decoration."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
