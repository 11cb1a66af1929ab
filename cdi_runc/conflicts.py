"""An edit that meets another value in its place: whose stays (C6).

``cdi``: CDI's, as in the reference library.  ``container``: what the container's own configuration
says.  ``refuse``: the container does not start.  Between two CDI devices the later one wins, or the
container does not start.
"""

from __future__ import annotations

from cdi_runc import errors
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdi_runc.plan import Done, Step


class Conflict(Record):
    """Two values for one place."""

    done: Done
    against: str
    """``container``, or the device that set the other value."""
    decision: str
    """``cdi``, ``container`` or ``refuse``."""


def find(done: Iterable[Done], policy: dict[str, str]) -> list[Conflict]:
    """Return the conflicts among the effects *done* under *policy*: kind, or nothing for all."""
    found = []
    for one in done:
        effect = one.effect
        if effect.before is None or effect.where == "/mounts":  # a section, or the mounts' order
            continue
        if effect.action == "kept":
            found.append(Conflict(one, "container", "container"))
        elif effect.action == "replaced" and not _is_meant(one.step, one.over):
            wanted = policy.get(one.step.key, policy[""])
            decision = "refuse" if wanted == "refuse" else "cdi"
            against = one.over.device if one.over is not None else "container"
            found.append(Conflict(one, against, decision))
    return found


def _is_meant(step: Step, over: Step | None) -> bool:
    """Tell whether *over* is of the same device, or of the same spec file's own edits."""
    return over is not None and (
        over.device == step.device
        or (over.spec == step.spec and over.pointer.startswith("/containerEdits/"))
    )


def refuse(conflicts: Iterable[Conflict]) -> None:
    """Stop at conflicts whose decision is to refuse.

    Raises:
        Conflicting: there is one; the message names device, spec file and both values' owners.

    """
    told = [
        f"device {one.done.step.device} sets {_named(one)} (spec {one.done.step.spec}),"
        f" which {'the container itself' if one.against == 'container' else one.against} sets too"
        for one in conflicts
        if one.decision == "refuse"
    ]
    if told:
        raise errors.Conflicting("; ".join(told))


def _named(conflict: Conflict) -> str:
    step = conflict.done.step
    edit = step.edit
    name = getattr(edit, "name", "") if step.key == "env" else ""
    place = getattr(edit, "container_path", "") or getattr(edit, "path", "")
    interface = getattr(edit, "host_interface", "")
    return f"{step.key} {name or place or interface}".rstrip()
