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

    Mention = tuple[str, str, str]
    """Device, key and value of a request."""

    from cdi_runc.settings import Settings

MOST = 1_000  # requests of one container; of those that are ignored, how many are kept
LONGEST = 16_384  # characters of one value
_CUT = 100  # characters that stand for a value which is too long
_SOURCES = {
    "annotation": "annotation",
    "environment": "environment variable",
    "mount": "the mount at",
    "default": "the name in",
}


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

    Those that every container gets come last.  *engine* is who calls, for the policy.  What it
    ignores keeps no container from starting, however much it is: of a value that is too long it
    decides as of one name, and no more than ``MOST`` are returned.

    Raises:
        BadRequest: one that is not ignored cannot be understood, or they are without measure.

    """
    found: list[Request] = []
    ignored = 0
    env = _section(config, "process").get("env")
    for source, mentions in (
        ("annotation", _from_annotations(_section(config, "annotations"), settings.annotations)),
        ("environment", _from_environment(env, settings.environment)),
        ("mount", _from_mounts(config.get("mounts"), settings.mounts) if settings.mounts else ()),
        ("default", [(name, "requests.default", name) for name in settings.default]),
    ):
        decisions: dict[str, str] = {}  # an image may repeat a name a million times
        for device, key, value in mentions:
            decision = "allow"
            if settings.policy:
                decision = decisions.get(device) or _decided(device, source, engine, settings)
                decisions[device] = decision
            if decision == "ignore":
                ignored += 1
                if ignored > MOST:
                    continue
            request = Request(device, source, key, value, decision)
            if decision != "ignore":
                _check(request, len(found) - min(ignored, MOST))
            found.append(request)
    return found


def _check(request: Request, before: int) -> None:
    """Check a request that is not ignored, and that there are not too many *before* it."""
    if before == MOST:
        raise errors.BadRequest(f"there are more than {MOST} requests for devices")
    if len(request.value) > LONGEST:
        raise errors.BadRequest(
            f"{_SOURCES[request.source]} {request.key} is longer than {LONGEST} characters"
        )
    if why := names.fault(request.device):
        raise _misunderstood(request, why)


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
            for name in _split(value):
                yield name, key, value


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
        for name in _split(value):
            qualified = f"{kind}={name}" if kind and "=" not in name else name
            yield qualified, variable, value


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
            yield f"{kind}={name}", destination, value


def _decided(device: str, source: str, engine: str, settings: Settings) -> str:
    from cdi_runc import policy

    return policy.decide(settings.policy, device, source, engine)


def _split(value: str) -> list[str]:
    return value.split(",") if len(value) <= LONGEST else [f"{value[:_CUT]}..."]


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
