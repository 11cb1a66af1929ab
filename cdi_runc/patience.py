"""Devices that cannot be had: wait for them, and leave out the optional ones.

Loaded only when a create would fail, and the configuration says ``wait`` or the policy
``optional``.
"""

from __future__ import annotations

import time

from cdi_runc import errors, plan, requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.edits import Config
    from cdi_runc.registry import Device, Registry
    from cdi_runc.requests import Request
    from cdi_runc.settings import Settings

INTERVAL = 0.2  # seconds between two looks


def find(
    wanted: list[Request], config: Config, settings: Settings, warnings: list[str]
) -> tuple[list[Device], Registry, list[plan.Step]]:
    """Return what :func:`cdi_runc.plan.find` does, and add each device left out to *warnings*.

    Raises:
        CdiRuncError: a device that is not optional cannot be had.

    """
    names = requests.devices(wanted)
    deadline = time.monotonic() + settings.wait
    while time.monotonic() < deadline:
        time.sleep(INTERVAL)
        try:
            return plan.find(names, config, settings)
        except errors.CdiRuncError:
            pass
    needed = {one.device for one in wanted if one.decision == "allow"}
    kept = []
    for name in names:
        why = "" if name in needed else _fault(name, config, settings)
        if why:
            warnings.append(f"{name} is optional, and left out: {why}")
        else:
            kept.append(name)
    return plan.find(kept, config, settings)


def _fault(name: str, config: Config, settings: Settings) -> str:
    """Return why the device of that name alone cannot be had, or nothing."""
    try:
        plan.find([name], config, settings)
    except errors.CdiRuncError as error:
        return str(error)
    return ""
