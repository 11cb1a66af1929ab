"""``env``: environment variables of the container's process (CDI SPEC, "containerEdits.env")."""

from __future__ import annotations

from cdi_runc import edits as base
from cdi_runc.edits import Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.edits import Config, Report

SINCE = "0.3.0"


class Edit(base.Edit):
    """Set one variable; a later setting wins, in the place of the first."""

    name: str
    value: str

    def entry(self) -> str:
        """Return the entry of process.env."""
        return f"{self.name}={self.value}"


def check(entries: list[str], report: Report) -> None:
    """Check that each is ``NAME=value``; *entries* may also be those of a hook."""
    for index, entry in enumerate(entries):
        if entry.find("=") <= 0:
            why = "has no '='" if "=" not in entry else "has no name before its '='"
            report(f"/{index}", f"variable {entry!r} {why}; write it as NAME=value")
        elif "\0" in entry:
            report(f"/{index}", f"variable {entry.split('=')[0]!r} holds a NUL character")


def needs(entries: list[str]) -> str:
    """Return the lowest CDI version that allows *entries*."""
    return SINCE


def parse(entries: list[str]) -> list[tuple[str, str]]:
    """Return the arguments of each edit."""
    return [(name, value) for name, _, value in (entry.partition("=") for entry in entries)]


def apply(edits: list[Edit], config: Config, keep: bool = False) -> list[list[Effect]]:
    """Set each variable, replaced where it stands or appended (as the reference after 1.1.0)."""
    effects: list[list[Effect]] = [[] for _ in edits]
    process = base.section(config, "process", {}, "/process", effects[0])
    env = base.section(process, "env", [], "/process/env", effects[0])
    # Of several entries of one name the last is the one in force.
    places = {
        entry.partition("=")[0]: index for index, entry in enumerate(env) if type(entry) is str
    }
    final = {edit.name: edit.value for edit in edits}
    settled = {
        name
        for name, value in final.items()
        if name in places and env[places[name]] == f"{name}={value}"
    }
    kept = set(places) if keep else ()
    for edit, own in zip(edits, effects, strict=True):
        entry = edit.entry()
        place = places.get(edit.name)
        if place is None:
            places[edit.name] = len(env)
            own.append(Effect("added", f"/process/env/{len(env)}", None, entry))
            env.append(entry)
            continue
        where = f"/process/env/{place}"
        before = env[place]
        if before == entry:
            own.append(Effect("already present", where, before, entry))
        elif edit.name in settled:
            own.append(Effect("superseded", where, before, before))
        elif edit.name in kept:
            own.append(Effect("kept", where, before, before))
        else:
            own.append(Effect("replaced", where, before, entry))
            env[place] = entry
    return effects
