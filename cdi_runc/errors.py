"""What can go wrong, as a small tree: each error says what happened, and its cure."""

from __future__ import annotations


class CdiRuncError(Exception):
    """Base of all errors that are meant for a person.

    ``str()`` of it is one line: the cause, then the file, then the cure.
    """

    cure = ""

    def __init__(self, message: str, *, cure: str | None = None) -> None:
        super().__init__(message)
        if cure is not None:
            self.cure = cure

    @property
    def message(self) -> str:
        """The cause, without the cure."""
        return str(self.args[0])

    def __str__(self) -> str:
        return f"{self.message}; {self.cure}" if self.cure else self.message


class BadConfiguration(CdiRuncError):
    """Our own configuration file cannot be used."""

    cure = "correct it, then check it with: cdictl config check"

    def __init__(self, message: str) -> None:
        """Take the cause; who may not read the file cannot correct it either."""
        is_closed = message.endswith(": Permission denied")
        super().__init__(message, cure="become root, or whoever may read it" if is_closed else None)


class BadBundle(CdiRuncError):
    """The bundle's config.json cannot be read, edited or written."""


class BadRequest(CdiRuncError):
    """A request for a device that cannot be understood."""

    cure = "write a device as vendor.com/class=name; cdictl devices lists what this host has"

    def __init__(self, message: str, *, cure: str | None = None, name: str = "") -> None:
        """Take the name that is not understood, if it is that."""
        super().__init__(message, cure=cure)
        self.name = name


class Refused(CdiRuncError):
    """The policy refuses a request."""

    cure = "ask for another device, or change the configuration (key: policy)"


class UnknownDevice(CdiRuncError):
    """A request for a device that no usable spec file defines."""

    cure = "see what this host offers with: cdictl devices"


class BadSpec(CdiRuncError):
    """A spec file, or something in it, is not valid CDI."""

    cure = "see every fault with: cdictl validate FILE"

    def __init__(self, message: str, *, line: int = 0, column: int = 0) -> None:
        """Take the place in the file, counted from 1, where it is known."""
        super().__init__(message)
        self.line, self.column = line, column


class Unusable(CdiRuncError):
    """The host lacks something that a device's edits need."""

    cure = "regenerate the spec file, or bring back what it names"


class Conflicting(CdiRuncError):
    """An edit meets another value, and the configuration refuses that."""

    cure = "remove one of the two, or change the configuration (key: conflicts)"


class NoRuntime(CdiRuncError):
    """No real runtime was found."""

    cure = "install runc, or name the runtime in the configuration (key: runtime)"


class AuditRefused(CdiRuncError):
    """The audit record could not be written, and the configuration requires it."""

    cure = "make the audit file writable, or set audit.required to false"
