"""config.json -> the devices asked for, and by what (C3).

Not trusted: an image's ENV looks like a user's, and Podman copies an image's annotations into
config.json.  Only a mount's source and the configured prefix cannot be forged by an image.  What
is asked for is granted, or not, by :mod:`cdi_runc.policy`.
"""

from __future__ import annotations

from cdi_runc import errors, names, paths
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Mention = tuple[str, str, str, str]
    """The fields of a request that stand in config.json."""

    from cdi_runc.settings import Settings

MOST = 1_000  # requests of one container
LONGEST = 16_384  # characters of one value


class Request(Record):
    """One mention of one device."""

    device: str
    """The qualified name."""
    source: str
    """``annotation``, ``environment``, ``mount`` or ``default`` (what every container gets)."""
    key: str
    """The annotation's key, the variable's name, the mount's destination, the configuration's."""
    value: str
    """The value as it was written there."""
    decision: str = "allow"
    """``allow``, ``optional``, ``ignore`` or ``refuse``, see :mod:`cdi_runc.policy`."""


def read(config: dict[str, Any], settings: Settings, engine: str = "") -> list[Request]:
    """Return every mention of a device in *config*: annotations, environment, mounts, in order.

    Those that every container gets come last.  *engine* is who calls, for the policy.

    Raises:
        BadRequest: one that is not ignored cannot be understood, or they are without measure.

    """
    found: list[Request] = []
    for mentions in (
        _from_annotations(_section(config, "annotations"), settings.annotations),
        _from_environment(_section(config, "process").get("env"), settings.environment),
        _from_mounts(config.get("mounts"), settings.mounts) if settings.mounts else (),
        [(name, "default", "requests.default", name) for name in settings.default],
    ):
        for device, source, key, value in mentions:
            decision = _decided(device, source, engine, settings) if settings.policy else "allow"
            request = Request(device, source, key, value, decision)
            if len(found) == MOST:
                raise errors.BadRequest(f"there are more than {MOST} requests for devices")
            if decision != "ignore" and (why := names.fault(device)):
                raise _misunderstood(request, why)
            found.append(request)
    return found


def devices(requests: list[Request]) -> list[str]:
    """Return the devices asked for and granted, each once, the first mention's place kept."""
    return list(
        dict.fromkeys(
            request.device for request in requests if request.decision in ("allow", "optional")
        )
    )


def _section(config: dict[str, Any], key: str) -> dict[str, Any]:
    section = config.get(key)
    return section if type(section) is dict else {}


def _from_annotations(annotations: dict[str, Any], prefixes: tuple[str, ...]) -> Iterator[Mention]:
    for key in sorted(annotations):
        if key.startswith(prefixes):
            value = annotations[key]
            if type(value) is not str:
                raise errors.BadRequest(f"annotation {key!r} is not text")
            for name in _split(value, "annotation", key):
                yield name, "annotation", key, value


def _from_environment(
    env: object, variables: tuple[tuple[str, str, tuple[str, ...]], ...]
) -> Iterator[Mention]:
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
            yield qualified, "environment", variable, value


def _from_mounts(mounts: object, prefix: str) -> Iterator[Mention]:
    if type(mounts) is not list:
        return
    for mount in mounts:
        if type(mount) is not dict or mount.get("source") != "/dev/null":
            continue
        destination = mount.get("destination")
        if type(destination) is str and paths.clean(destination).startswith(f"{prefix}/"):
            value = paths.clean(destination)[len(prefix) + 1 :]
            kind, _, name = value.rpartition("/")
            yield f"{kind}={name}", "mount", destination, value


def _decided(device: str, source: str, engine: str, settings: Settings) -> str:
    from cdi_runc import policy

    return policy.decide(settings.policy, device, source, engine)


def _split(value: str, source: str, key: str) -> list[str]:
    if len(value) > LONGEST:
        raise errors.BadRequest(f"{source} {key} is longer than {LONGEST} characters")
    return value.split(",")


def _misunderstood(request: Request, why: str) -> errors.BadRequest:
    if request.source == "mount":
        return errors.BadRequest(
            f"the mount of /dev/null at {request.key!r} names no CDI device: {why}",
            cure="below the prefix a device is written as vendor.com/class/name",
        )
    place = {
        "annotation": f"annotation {request.key}={request.value!r}",
        "environment": f"environment variable {request.key}={request.value!r}",
    }.get(request.source, request.key)
    name = request.device
    if name != name.strip() and names.fault(name.strip()) is None:
        why = "blanks around a name are not stripped"
    told = f"{place} asks for {name!r}, which names no CDI device: {why}"
    return errors.BadRequest(told, name=name)
