"""A configuration file of an engine: read, replaced whole, and kept once as it was before us."""

from __future__ import annotations

import os

from cdi_runc import files
from cdi_runc.errors import CdiRuncError
from cdi_runc.record import Record

LIMIT = 1 << 20
BACKUP = ".before-cdi-runc"


class BadConfigFile(CdiRuncError):
    """A file that is not ours to change: we cannot read it without a doubt."""


class ConfigFile(Record):
    """A configuration file of an engine, as it lies on disk."""

    named: str
    path: str
    """*named* with links followed: what is replaced."""
    text: str | None
    """None where there is no file."""
    status: os.stat_result | None

    @classmethod
    def load(cls, named: str) -> ConfigFile:
        """Read the file."""
        path = os.path.realpath(named)
        try:
            data, status = files.read(path, LIMIT)
            return cls(named, path, data.decode(), status)
        except FileNotFoundError:
            return cls(named, path, None, None)
        except UnicodeDecodeError:
            reason = "it is not UTF-8"
        except ValueError as error:
            reason = str(error)
        except OSError as error:
            reason = str(error.strerror)
        raise BadConfigFile(reason)

    @property
    def backup(self) -> str:
        """The one backup: the file as it was before we came."""
        return self.path + BACKUP

    def write(self, text: str | None) -> None:
        """Put *text* in the file's place by rename; None removes it."""
        if text is not None:
            if not os.path.islink(self.named):
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
            files.replace(self.path, text.encode(), self.status)
            if self.status is None:
                os.chmod(self.path, 0o644)
        elif os.path.exists(self.path):
            os.unlink(self.path)

    def back_up(self, *, has_entry: bool) -> bool:
        """Make the backup, unless the file *has_entry* of ours and an older backup has not."""
        if self.text is None or (has_entry and os.path.exists(self.backup)):
            return False
        files.replace(self.backup, self.text.encode(), self.status)
        return True

    def drop_backup(self, text: str | None) -> bool:
        """Remove the backup if *text* is what it says, and tell whether."""
        try:
            with open(self.backup, "rb") as backup:
                if text is None or backup.read() != text.encode():
                    return False
        except FileNotFoundError:
            return False
        os.unlink(self.backup)
        return True
