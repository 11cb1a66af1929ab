"""What the real runtime would silently drop: network devices and RDT (OCI runtime-spec 1.3).

runc 1.1.5 ignores linux.netDevices, and linux.intelRdt where resctrl is not mounted, without a
word.  Its own answer to ``features`` decides, and is kept until its program changes.
"""

from __future__ import annotations

import marshal
import posix

from cdi_runc import files, paths, trust
from cdi_runc.settings import STAMP, load, signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cdi_runc.settings import Settings

ASKED = ("netDevices", "intelRdt")
RESCTRL = "/sys/fs/resctrl/schemata"
SECONDS = 10


def missing(key: str, runtime: str, settings: Settings) -> str:
    """Return why the program *runtime* would drop edits of the kind *key*, or the empty text."""
    features = _features(runtime, settings.state_dir)
    if key == "netDevices":
        if (features.get("netDevices") or {}).get("enabled"):
            return ""
        return f"{runtime} does not move network devices; runc has that since 1.4"
    if not paths.exists(RESCTRL):
        return "resctrl is not mounted on this host, so linux.intelRdt has no effect"
    if (features.get("intelRdt") or {"enabled": True}).get("enabled"):
        return ""
    return f"{runtime} says that it does not support intelRdt"


def _features(runtime: str, state_dir: str | None) -> dict[str, Any]:
    """Return the ``linux`` section of what the runtime answers, asked once for each program."""
    try:
        identity = (STAMP, runtime, signature(posix.stat(runtime)))
    except OSError:
        return {}
    kept = f"{state_dir}/features"
    try:
        asked, answer = load(state_dir, kept, 1 << 20)
        if asked == identity:
            return dict(answer)
    except (OSError, ValueError, EOFError, TypeError):
        pass
    answer = _ask(runtime)
    if answer is None:
        return {}
    if state_dir is not None and trust.private(state_dir):
        try:
            files.replace(kept, marshal.dumps((identity, answer)))
        except OSError:
            pass  # it will be asked again
    return answer


def _ask(runtime: str) -> dict[str, Any] | None:
    """Return the answer, or None if there was none, which may be otherwise the next time."""
    import json  # noqa: TID251  # once for each runtime
    import subprocess  # noqa: TID251

    try:
        told = subprocess.run(  # noqa: S603  # the runtime that we are about to become
            [runtime, "features"], capture_output=True, timeout=SECONDS, check=True
        )
        linux = json.loads(told.stdout).get("linux") or {}
    except (OSError, subprocess.TimeoutExpired):
        return None
    except (ValueError, AttributeError, subprocess.CalledProcessError):
        return {}
    return {key: linux[key] for key in ASKED if isinstance(linux.get(key), dict)}
