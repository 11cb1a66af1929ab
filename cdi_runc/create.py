"""The sentence: a bundle's requests become devices, steps, effects, a record and a new file."""

from __future__ import annotations

from cdi_runc import audit, errors, plan, registry, requests
from cdi_runc.bundle import Bundle, describe
from cdi_runc.edits import Doubt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.invocation import Invocation
    from cdi_runc.registry import Device
    from cdi_runc.settings import Settings

CHANGES = ("added", "replaced", "removed")
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
        wanted = _read_requests(bundle, settings)
        if not wanted:
            return
        record.requests(wanted)
        devices, specs = registry.resolve(requests.devices(wanted), settings)
        record.devices(devices)
        warnings = _check_overrides(devices, specs, settings)
        steps = plan.build(devices, bundle.config)
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
    for path, why, _, _ in specs.faults:
        record.warn(f"spec file ignored: {path}: {why}")
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


def _read_requests(bundle: Bundle, settings: Settings) -> list[requests.Request]:
    try:
        wanted = requests.read(bundle.config, settings)
    except errors.BadRequest:
        if settings.broken:
            raise errors.BadConfiguration(settings.broken) from None
        raise
    if wanted and settings.broken:
        raise errors.BadConfiguration(settings.broken)
    return wanted


def _check_overrides(
    devices: list[Device], specs: registry.Registry, settings: Settings
) -> list[str]:
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
