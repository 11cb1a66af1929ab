"""The sentence: a bundle's requests become devices, steps, effects, a record and a new file."""

from __future__ import annotations

from cdi_runc import audit, errors, plan, requests
from cdi_runc.bundle import Bundle, describe
from cdi_runc.edits import Doubt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.edits import Config
    from cdi_runc.invocation import Invocation
    from cdi_runc.registry import Device, Registry
    from cdi_runc.settings import Settings

CHANGES = ("added", "replaced", "removed")
FAULTS = 20  # of spec files, and so many conflicts, in one record
UNCERTAIN = ("netDevices", "intelRdt")  # what some runtimes drop, see capabilities


def prepare(call: Invocation, settings: Settings, runtime: str) -> None:
    """Edit the bundle of *call* as its container asks; leave it alone if it asks for nothing.

    Raises:
        CdiRuncError: it asks for a device that it cannot have; config.json is as it was.

    """
    bundle = Bundle(call.config_path)
    record = audit.Record(call, settings)
    record.content["runtime"] = runtime
    record.engine(bundle.config, call)
    try:
        wanted = _read_requests(bundle, settings, audit.engine(call))
        if not wanted:
            return
        record.requests(wanted)
        warnings = _check_policy(wanted, settings)
        devices, specs, steps = _find(wanted, bundle.config, settings, warnings)
        record.devices(devices)
        warnings += _check_overrides(devices, specs, settings)
        _check_hooks(steps, settings)
        warnings += _check_runtime(steps, runtime, settings)
        warnings += _check_libraries(steps, bundle, call)
        done = plan.carry_out(steps, bundle.config, dict(settings.conflicts))
        _check_conflicts(done, record, settings)
        record.edits(done)
        changed = any(one.effect.action in CHANGES for one in done)
        data = bundle.encoded() if changed else bundle.data
    except errors.CdiRuncError as error:
        _append(record, call, "failed", str(error))
        raise
    warnings += [step.note for step in steps if type(step.note) is Doubt]
    for text in warnings:
        record.warn(text)
        _warn(text, call)
    _warn_of_specs(specs, record)
    record.digests(bundle.data, data)
    if settings.exec == "merge":
        _remember(done, call)
    if not changed:
        _append(record, call, "unchanged")
        return

    # The record first: a file that was edited and not recorded would be worse than the reverse,
    # and nothing but a rename comes after it.
    try:
        bundle.write(data, before_rename=lambda: _append(record, call, "edited"))
    except errors.BadBundle as error:
        _append(record, call, "failed", str(error))
        raise


def _read_requests(bundle: Bundle, settings: Settings, engine: str) -> list[requests.Request]:
    try:
        wanted = requests.read(bundle.config, settings, engine)
    except errors.BadRequest as error:
        if settings.broken:
            raise errors.BadConfiguration(settings.broken) from None
        from cdi_runc.specs import explain

        raise explain.misunderstood(error, settings) from error
    if wanted and settings.broken:
        raise errors.BadConfiguration(settings.broken)
    return wanted


def _check_policy(wanted: list[requests.Request], settings: Settings) -> list[str]:
    """Return a warning for each request that the policy ignores."""
    if not settings.policy:
        return []
    from cdi_runc import policy

    return policy.check(wanted)


def _find(
    wanted: list[requests.Request], config: Config, settings: Settings, warnings: list[str]
) -> tuple[list[Device], Registry, list[plan.Step]]:
    """Return the devices that are granted, and their steps; add what was left out to *warnings*."""
    try:
        return plan.find(requests.devices(wanted), config, settings)
    except errors.CdiRuncError:
        if not (settings.wait or settings.policy):
            raise
    from cdi_runc import patience

    return patience.find(wanted, config, settings, warnings)


def _check_hooks(steps: list[plan.Step], settings: Settings) -> None:
    """Refuse hooks that set the dynamic loader's variables, unless the configuration lets them."""
    for step in steps:
        if step.key == "hooks":
            for entry in step.edit.entry()["env"]:
                if entry[:3] == "LD_":
                    from cdi_runc import policy

                    policy.check_hook(step, settings.hook_loader_env)


def _check_overrides(devices: list[Device], specs: Registry, settings: Settings) -> list[str]:
    """Return a warning for each device that a broken file may have been meant to override."""
    told = [
        f"{path}, which would override {device.name} of {device.path}, is refused: {why}"
        for device in devices
        for path, why in (specs.broken_overrides(device) if specs.faults else ())
    ]
    if told and settings.broken_override == "refuse":
        raise errors.BadSpec(told[0])
    return told


def _check_runtime(steps: list[plan.Step], runtime: str, settings: Settings) -> list[str]:
    """Return a warning for each kind of edit that the real runtime would drop."""
    told = []
    for step in {step.key: step for step in steps if step.key in UNCERTAIN}.values():
        from cdi_runc import capabilities

        why = capabilities.missing(step.key, runtime, settings)
        if why:
            told.append(f"device {step.device} brings {step.key} (spec {step.spec}): {why}")
    if told and settings.unsupported == "refuse":
        raise errors.Unusable(
            "; ".join(told),
            cure="use a runtime that has it, or set unsupported to warn in the configuration",
        )
    return told


def _check_libraries(steps: list[plan.Step], bundle: Bundle, call: Invocation) -> list[str]:
    """Return a warning where shared objects come into an image that cannot load them."""
    if not any(".so" in getattr(step.edit, "host_path", "") for step in steps):
        return []
    from cdi_runc import rootfs

    brought = [step for step in steps if rootfs.is_shared_object(step)]
    told = rootfs.doubt(brought, bundle.config, call.bundle) if brought else ""
    return [told] if told else []


def _check_conflicts(done: list[plan.Done], record: audit.Record, settings: Settings) -> None:
    if any(one.effect.action in ("replaced", "kept") for one in done):
        from cdi_runc import conflicts

        found = conflicts.find(done, dict(settings.conflicts))
        record.conflicts(found)
        conflicts.refuse(found)


def _warn_of_specs(specs: Registry, record: audit.Record) -> None:
    for path, why, _, _ in specs.faults[:FAULTS]:
        record.warn(f"spec file ignored: {path}: {why}")
    if len(specs.faults) > FAULTS:
        record.warn(f"spec files ignored: {len(specs.faults) - FAULTS} more")
    for _, why in [*specs.conflicts.values()][:FAULTS]:
        record.warn(why)
    if len(specs.conflicts) > FAULTS:
        record.warn(f"devices in conflict: {len(specs.conflicts) - FAULTS} more")


def _append(record: audit.Record, call: Invocation, result: str, error: str = "") -> None:
    try:
        record.append(result, error)
    except errors.AuditRefused:
        if result != "failed":  # a create that fails has its own cause to tell
            raise
    except OSError as problem:
        _warn(f"audit record not written: {describe(problem)}", call)


def _remember(done: list[plan.Done], call: Invocation) -> None:
    """Keep what exec has to give to further processes of the container (C8)."""
    from cdi_runc import exec_process

    try:
        exec_process.remember(done, call)
    except OSError as problem:
        _warn(f"exec will not see the devices' variables: {describe(problem)}", call)


def _warn(text: str, call: Invocation) -> None:
    from cdi_runc import report

    report.warning(text, call)
