"""The sentence: a bundle's requests become devices, steps, effects, a record and a new file."""

from __future__ import annotations

from cdi_runc import audit, jsonio, plan, registry, requests
from cdi_runc.bundle import Bundle, describe
from cdi_runc.errors import BadBundle, BadConfiguration, CdiRuncError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.invocation import Invocation
    from cdi_runc.settings import Settings


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
        wanted = requests.read(bundle.config, settings)
        if not wanted:
            return
        record.requests(wanted)
        if settings.broken:
            raise BadConfiguration(settings.broken)
        devices, specs = registry.resolve(requests.devices(wanted), settings)
        record.devices(devices)
        for path, why in specs.faults:
            record.warn(f"spec file ignored: {path}: {why}")
        steps = plan.build(devices, bundle.config)
        done = plan.carry_out(steps, bundle.config)
        record.edits(done)
    except CdiRuncError as error:
        _append(record, call, "failed", str(error))
        raise
    changed = any(e.before != e.after for _, effects in done for e in effects)
    data = jsonio.dumps(bundle.config) if changed else bundle.data
    record.digests(bundle.data, data)
    if not changed:
        _append(record, call, "unchanged")
        return
    # The record first: a file that was edited and not recorded would be worse than the reverse,
    # and nothing but a rename comes after it.
    try:
        bundle.write(data, before_rename=lambda: _append(record, call, "edited"))
    except BadBundle as error:
        _append(record, call, "failed", str(error))
        raise


def _append(record: audit.Record, call: Invocation, result: str, error: str = "") -> None:
    try:
        record.append(result, error)
    except OSError as problem:
        from cdi_runc import report

        report.warning(f"audit record not written: {describe(problem)}", call)
