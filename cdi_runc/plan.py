"""Devices -> steps with origin, settled and preflighted; steps -> effects (C5)."""

from __future__ import annotations

from cdi_runc import edits, errors, paths, registry
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cdi_runc.edits import Config, Edit, Effect
    from cdi_runc.registry import Device, Registry
    from cdi_runc.settings import Settings

    Problem = tuple[Device, str, str]
    """A device, the pointer of an edit, and what keeps it from working."""

SHOWN = 5


class Step(Record):
    """One edit, where it comes from, and what the host made of it."""

    key: str
    """The key of containerEdits."""
    edit: Edit
    device: str
    """The qualified name of the device that it was asked for with."""
    spec: str
    """The spec file."""
    pointer: str
    """Where in the spec file the edit stands."""
    note: str = ""
    """What settling changed, for the audit record."""


def find(
    names: Sequence[str], config: Config, settings: Settings
) -> tuple[list[Device], Registry, list[Step]]:
    """Return the devices of the qualified *names*, the registry, and the devices' steps.

    Raises:
        UnknownDevice: one or more cannot be resolved.
        Unusable: the host lacks what edits need.

    """
    devices, specs = registry.resolve(names, settings)
    return devices, specs, build(devices, config)


def build(devices: Sequence[Device], config: Config, *, preflight: bool = True) -> list[Step]:
    """Return the steps for *devices*: each spec file's own edits once, then each device's.

    Raises:
        Unusable: the host lacks what edits need; all of it is told at once.

    """
    steps, problems = examine(devices, config, preflight=preflight)
    if problems:
        raise _unusable(problems)
    return steps


def examine(
    devices: Sequence[Device], config: Config, *, preflight: bool = True
) -> tuple[list[Step], list[Problem]]:
    """Return the steps for *devices*, but for edits that cannot be settled, and every problem."""
    no_nodes = preflight and (edits.has_namespace(config, "user") or not paths.is_system())
    steps: list[Step] = []
    problems: list[Problem] = []
    seen: set[str] = set()
    for device in devices:
        wanted = [(device.place, device.edits)]
        if device.path not in seen:
            seen.add(device.path)
            wanted.insert(0, ("/containerEdits", device.spec_edits))
        name, path = device.name, device.path
        for place, groups in wanted:
            for key, entries in groups:
                kind = edits.kind(key).Edit
                for index, arguments in enumerate(entries):
                    pointer = edits.pointer(place, key, index)
                    try:
                        edit, note = kind(*arguments).settle(config)
                        if no_nodes:
                            edit, note = edit.pass_on(note)
                    except errors.Unusable as error:
                        problems.append((device, pointer, error.message))
                        continue
                    # A node that cannot be made becomes a mount.
                    own = key if type(edit) is kind else "mounts"
                    steps.append(Step(own, edit, name, path, pointer, note))
                    problem = edit.preflight(config) if preflight else ""
                    if problem:
                        problems.append((device, pointer, problem))
    return steps, problems


def _unusable(problems: list[Problem]) -> errors.Unusable:
    told = []
    for device in dict.fromkeys(device for device, _, _ in problems):
        own = list(dict.fromkeys(problem for other, _, problem in problems if other == device))
        more = f" and {len(own) - SHOWN} more" if len(own) > SHOWN else ""
        told.append(
            f"device {device.name}: {', '.join(own[:SHOWN])}{more} (spec {device.path},"
            f" written {_date(device.mtime_ns)})"
        )
    return errors.Unusable("; ".join(told))


def _date(ns: int) -> str:
    import time

    from cdi_runc import files

    return time.strftime("%Y-%m-%d", time.gmtime(files.seconds(ns)))


class Done(Record):
    """One effect of one step."""

    step: Step
    effect: Effect
    over: Step | None
    """Whose the value was that stood there before; None where it was the container's own."""
    note: str = ""


def carry_out(
    steps: Iterable[Step], config: Config, conflicts: dict[str, str] | None = None
) -> list[Done]:
    """Apply *steps* to *config* kind by kind; return what was done, in that order.

    *conflicts* says for each kind of edit whose value stays, see :mod:`cdi_runc.conflicts`.

    Raises:
        BadBundle: a section of *config* is not of the type that the runtime-spec gives it.

    """
    policy = conflicts or {}
    by_key: dict[str, list[Step]] = {}
    for step in steps:
        by_key.setdefault(step.key, []).append(step)
    done: list[Done] = []
    setters: dict[int, Step] = {}  # what an earlier step put there is the same object
    for key in edits.KEYS:
        if key not in by_key:
            continue
        own = by_key[key]
        keep = policy.get(key, policy.get("", "")) == "container"
        all_effects = edits.kind(key).apply([step.edit for step in own], config, keep)
        for step, effects in zip(own, all_effects, strict=True):
            for effect in effects:
                note = step.note if effect is effects[-1] else ""
                done.append(Done(step, effect, setters.get(id(effect.before)), note))
                setters[id(effect.after)] = step
    return done
