"""The checks of a host, from cause to effect, and the facts beside them."""

from __future__ import annotations

import os
from functools import partial

from cdi_runc import paths, runtime
from cdi_runc.doctor import (
    Report,
    auditing,
    carry_out,
    counted,
    engines,
    installation,
    ordered,
    ownership,
    specs,
    system,
)
from cdi_runc.errors import NoRuntime
from cdi_runc.specs import compile  # noqa: A004

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdi_runc.doctor import Check, Finding
    from cdi_runc.doctor.engines import Docker
    from cdi_runc.registry import Registry
    from cdi_runc.settings import Settings


def examine(settings: Settings, dockers: Sequence[Docker] | None = None) -> Report:
    """Look over this host."""
    dockers = engines.dockers() if dockers is None else dockers
    known = engines.registrations(dockers)
    launchers = installation.launchers([one.program for one in known])
    real = _real(settings, launchers)
    checks: dict[str, Check] = {
        "installed": installation.installed,
        "interpreter": partial(installation.interpreter, launchers),
        "launcher": partial(installation.works, launchers),
        "configuration": partial(installation.configuration, settings),
        "runtime": partial(installation.real_runtime, settings, launchers),
        "engine-file": partial(engines.unreadable, dockers),
        "engine-program": partial(engines.missing_programs, known),
        "engine-reload": partial(engines.not_reloaded, dockers),
        "engine-doubled": partial(engines.doubled, dockers),
        "docker-snap": partial(engines.snap, dockers),
    }
    found: list[specs.Use] = []
    registry: Registry | None = None

    def spec_files() -> Sequence[Finding]:
        """Read the spec files, which the checks after this one need."""
        nonlocal registry
        registry = compile.in_memory(settings.spec_dirs)
        found.extend(specs.uses(registry))
        return ()

    findings = carry_out({**checks, "spec-files": spec_files})
    if registry is not None:
        nodes, sources = system.paths_of(found)
        findings += carry_out(
            {
                "spec-refused": partial(specs.refused, registry),
                "spec-numbers": partial(specs.other_numbers, found),
                "spec-nodes": partial(specs.missing_nodes, found),
                "spec-mounts": partial(specs.missing_sources, found),
                "spec-hooks": partial(specs.missing_hooks, found),
                "spec-interfaces": partial(specs.missing_interfaces, found),
                "spec-name": partial(specs.passed_over, settings.spec_dirs),
                "spec-older": partial(specs.older_than_nodes, found),
                "writable": partial(ownership.writable, settings, registry, launchers),
                "systemd-links": partial(
                    system.links_for_systemd,
                    found,
                    system.uses_systemd(dockers),
                    installation.runtime_version(real) if real else "",
                    system.systemd_version(),
                ),
                "selinux": partial(system.selinux, nodes, sources, system.enforces()),
                "spec-none": partial(specs.none, registry),
                "spec-doubtful": partial(specs.doubtful, registry),
            }
        )
    findings += carry_out(
        {
            "audit-writable": partial(auditing.writable, settings),
            "state": partial(ownership.state, settings),
            "readable": partial(ownership.readable, settings),
            "unregistered": partial(engines.unregistered, dockers, known),
            "default-runtime": partial(engines.default_runtime, dockers, settings),
            "audit-rotated": partial(auditing.rotated, settings),
        }
    )
    facts = [("cdi-runc", one.path) for one in launchers]
    facts.append(("runtime", f"{real} ({installation.runtime_version(real)})" if real else "none"))
    facts += [(one.engine, f"runtime {one.name!r} in {one.place}") for one in known]
    if registry is not None:
        places = ", ".join(registry.spec_dirs)
        sound = [path for path, made_from in registry.files if made_from]
        facts.append(
            (
                "spec files",
                f"{len(sound)} in {places}: {counted(len(registry.names()), 'device')}",
            )
        )
    facts.append(("config", _config(settings)))
    facts.append(("audit", settings.audit_file))
    return Report(tuple(facts), ordered(findings))


def _real(settings: Settings, launchers: Sequence[installation.Launcher]) -> str:
    try:
        return runtime.find(settings.runtime, launchers[0].path if launchers else "")
    except NoRuntime:
        return ""


def _config(settings: Settings) -> str:
    path, _ = paths.config()
    return path if settings.broken or os.path.exists(path) else f"{path} (none: the defaults hold)"
