"""config.yaml -> Settings; every fault with its line (C10)."""

from __future__ import annotations

from itertools import islice

from cdi_runc import files, jsonio, settings, trust
from cdi_runc.bundle import describe
from cdi_runc.config import words
from cdi_runc.errors import BadConfiguration, BadSpec
from cdi_runc.specs import document
from cdi_runc.specs.check import MOST, cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cdi_runc.policy import Rule

SIZE_LIMIT = 1 << 20


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the configuration."""
    with open(f"{__file__.rpartition('/')[0]}/config.schema.json", "rb") as file:
        found: dict[str, Any] = jsonio.loads(file.read())
    return found


def read(path: str) -> settings.Settings:
    """Return what the file at *path* says.

    Raises:
        BadConfiguration: it cannot be read, others could change it, or it says what nobody
            understands.

    """
    return parse(path, _data(path))


def _data(path: str) -> bytes:
    if why := trust.refusal(path):
        raise BadConfiguration(f"the configuration {path} is ignored: {why}")
    try:
        return files.read(path, SIZE_LIMIT)[0]
    except (OSError, ValueError) as error:
        raise BadConfiguration(
            f"cannot read the configuration {path}: {describe(error)}"
        ) from error


def _value(path: str, data: bytes) -> Any:
    try:
        return document.read(data)
    except BadSpec as error:
        place = f"line {error.line}: " if error.line else ""
        raise BadConfiguration(f"configuration {path}: {place}{error.message}") from error


def examine(path: str) -> list[str]:
    """Return every fault in the file at *path*, each with its line.

    Raises:
        BadConfiguration: it cannot be read, others could change it, or it is no YAML.

    """
    data = _data(path)
    value = _value(path, data)
    return findings(value, data) if value is not None else []


def parse(path: str, data: bytes) -> settings.Settings:
    """Return what *data*, the content of *path*, says.

    Raises:
        BadConfiguration: as :func:`read`.

    """
    value = _value(path, data)
    if value is None:
        return settings.defaults()
    faults = findings(value, data)
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise BadConfiguration(f"configuration {path}: {faults[0]}{more}")
    return _settings(value)


def findings(value: object, data: bytes) -> list[str]:
    """Return what the schema says against *value*, each with its line."""
    import jsonschema

    wanted = schema()
    validator = jsonschema.Draft202012Validator(wanted)
    told = [
        one
        for error in islice(validator.iter_errors(value), MOST)
        for one in words.told(error, wanted, MOST)
    ]
    locate = document.locator(data)
    placed = [(locate(pointer) or (0, 0), cut(text)) for pointer, text in told]
    return [f"line {line}: {text}" for (line, _), text in sorted(placed)]


def _settings(value: dict[str, Any]) -> settings.Settings:
    base = settings.defaults()
    requests = value.get("requests") or {}
    audit, log = value.get("audit") or {}, value.get("log") or {}
    runtime = value.get("runtime")
    changes: dict[str, Any] = {
        "runtime": (runtime,) if isinstance(runtime, str) else _tuple(runtime),
        "spec_dirs": _tuple(value.get("spec_dirs")),
        "state_dir": value.get("state_dir"),
        "annotations": _tuple(requests.get("annotations")),
        "environment": _environment(requests.get("environment")),
        "mounts": (requests.get("mounts") or "").rstrip("/") or None,
        "default": _tuple(requests.get("default")),
        "policy": _tuple([_rule(rule) for rule in value.get("policy") or ()]),
        "hook_loader_env": _patterns(value.get("hook_loader_env")),
        "restores": value.get("restore") == "edit",
        "wait": value.get("wait"),
        "conflicts": _conflicts(value.get("conflicts")),
        "exec": value.get("exec"),
        "broken_override": value.get("broken_override"),
        "unsupported": value.get("unsupported"),
        "audit_file": audit.get("file"),
        "audit_required": audit.get("required"),
        "audit_env": audit.get("env"),
        "log_file": log.get("file"),
        "log_level": log.get("level"),
    }
    found: settings.Settings = base.but(
        **{key: change for key, change in changes.items() if change is not None}
    )
    return found


def _tuple(value: list[Any] | None) -> tuple[Any, ...] | None:
    return None if value is None else tuple(value)


def _rule(rule: dict[str, Any]) -> Rule:
    return (
        _words(rule.get("source")),
        _patterns(rule.get("devices")),
        _words(rule.get("engine")),
        rule["do"],
    )


def _words(value: str | list[str] | None) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())


def _patterns(value: str | list[str] | None) -> tuple[str, ...]:
    """Return patterns of qualified names; one that names a kind alone means all its devices."""
    return tuple(
        word if "=" in word or word.endswith("*") else f"{word}=*" for word in _words(value)
    )


def _conflicts(value: str | dict[str, str] | None) -> tuple[tuple[str, str], ...] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return (("", value),)
    return (("", "cdi"), *value.items())


def _environment(value: dict[str, Any] | None) -> Any:
    if value is None:
        return None
    return tuple(
        (
            variable,
            (own or {}).get("kind", ""),
            ("", *(own or {}).get("none", ("void", "none"))),
        )
        for variable, own in value.items()
    )
