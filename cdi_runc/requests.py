"""config.json -> the devices asked for, and by what (C3).

Not trusted: an image's ENV looks like a user's, and Podman copies an image's annotations into
config.json.  Only a mount's source and the configured prefix cannot be forged by an image.
"""

from __future__ import annotations

from cdi_runc import errors, names, paths
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from cdi_runc.settings import Settings


MOST = 1_000  # requests of one container
LONGEST = 16_384  # characters of one value; the audit record repeats it for each of its names


class Request(Record):
    """One mention of one device."""

    device: str
    """The qualified name."""
    source: str
    """``annotation``, ``environment``, ``mount`` or ``command`` (cdictl's --device)."""
    key: str
    """The annotation's key, the variable's name or the mount's destination."""
    value: str
    """The value as it was written there."""


def read(config: dict[str, Any], settings: Settings) -> list[Request]:
    """Return every mention of a device in *config*: annotations, environment, mounts, in order.

    Raises:
        BadRequest: one of them cannot be understood, or they are without measure.

    """
    found: list[Request] = []
    for source in (
        _from_annotations(_section(config, "annotations"), settings.annotations),
        _from_environment(_section(config, "process").get("env"), settings.environment),
        _from_mounts(config.get("mounts"), settings.mounts) if settings.mounts else (),
    ):
        for request in source:
            if len(found) == MOST:
                raise errors.BadRequest(f"there are more than {MOST} requests for devices")
            found.append(request)
    return found


def devices(requests: list[Request]) -> list[str]:
    """Return the devices asked for, each once, the first mention's place kept."""
    return list(dict.fromkeys(request.device for request in requests))


def _section(config: dict[str, Any], key: str) -> dict[str, Any]:
    section = config.get(key)
    return section if type(section) is dict else {}


def _from_annotations(annotations: dict[str, Any], prefixes: tuple[str, ...]) -> Iterator[Request]:
    for key in sorted(annotations):
        if key.startswith(prefixes):
            value = annotations[key]
            if type(value) is not str:
                raise errors.BadRequest(f"annotation {key!r} is not text")
            for name in _split(value, "annotation", key):
                _check(name, "annotation", key, value)
                yield Request(name, "annotation", key, value)


def _from_environment(
    env: object, variables: tuple[tuple[str, str, tuple[str, ...]], ...]
) -> Iterator[Request]:
    if type(env) is not list:
        return
    for variable, kind, none in variables:
        value = ""
        for entry in env:  # of several entries of one name the last counts, as for runc
            if type(entry) is str and entry.startswith(f"{variable}="):
                value = entry[len(variable) + 1 :]
        if value in none:
            continue
        for name in _split(value, "environment variable", variable):
            qualified = f"{kind}={name}" if kind and "=" not in name else name
            _check(qualified, "environment variable", variable, value)
            yield Request(qualified, "environment", variable, value)


def _from_mounts(mounts: object, prefix: str) -> Iterator[Request]:
    if type(mounts) is not list:
        return
    for mount in mounts:
        if type(mount) is not dict or mount.get("source") != "/dev/null":
            continue
        destination = mount.get("destination")
        if type(destination) is str and paths.clean(destination).startswith(f"{prefix}/"):
            value = paths.clean(destination)[len(prefix) + 1 :]
            kind, _, name = value.rpartition("/")
            _check(f"{kind}={name}", "mount at", destination)
            yield Request(f"{kind}={name}", "mount", destination, value)


def _split(value: str, source: str, key: str) -> list[str]:
    if len(value) > LONGEST:
        raise errors.BadRequest(f"{source} {key} is longer than {LONGEST} characters")
    return value.split(",")


def _check(name: str, source: str, key: str, value: str | None = None) -> None:
    wrong = names.fault(name)
    if wrong is not None:
        raise _bad(name, wrong, source, key, value)


def _bad(name: str, wrong: str, source: str, key: str, value: str | None) -> errors.BadRequest:
    if name != name.strip() and names.fault(name.strip()) is None:
        wrong = "blanks around a name are not stripped"
    place = f"{source} {key!r}" if value is None else f"{source} {key}={value!r}"
    return errors.BadRequest(f"{place} asks for {name!r}, which names no CDI device: {wrong}")
