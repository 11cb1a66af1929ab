"""What a configuration that cannot be used may have meant: a guess that misses no request.

A container that asks for nothing must start; one that asks must not start without its devices.
So every word of the broken file counts as a variable or an annotation's prefix.  Devices that every
container gets are not guessed: no container asked for them.
"""

from __future__ import annotations

import re

from cdi_runc import files, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.settings import Settings

LIMIT = 16 << 20  # bytes: many more than a sound one may have


def guess(path: str, why: str) -> Settings:
    """Return settings whose requests cover all that the file at *path* can have asked for."""
    base = settings.defaults()
    try:
        text = files.read(path, LIMIT)[0].decode("utf-8", "replace")
    except (OSError, ValueError):
        text = ""
    text = re.sub(r"#.*", "", text)
    words = set(re.findall(r"[A-Za-z_][A-Za-z0-9_.-]*", text))
    paths = re.findall(r"[A-Za-z0-9._/-]+", text)  # one pattern for all would be quadratic
    prefixes = {f"{path.rpartition('/')[0]}/".lstrip("/") for path in paths} - {""}
    known = {variable for variable, _, _ in base.environment}
    mounts = re.search(r"mounts:\s*[\"']?(/[A-Za-z0-9._/-]+)", text)
    found: Settings = base.but(
        annotations=(*base.annotations, *sorted(prefixes)),
        environment=(
            *base.environment,
            *((word, "unknown.unknown/unknown", ("",)) for word in sorted(words - known)),
        ),
        mounts=mounts[1].rstrip("/") if mounts else "",
        restores=bool(re.search(r"restore.*edit", text)),
        broken=why,
    )
    return found
