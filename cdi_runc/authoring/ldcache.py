"""The linker's cache: which shared objects this host has (ldconfig)."""

from __future__ import annotations

import re
import shutil
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cdi_runc.authoring.host import Host

_LINE = re.compile(r"^\t(\S+) \(.*\) => (/.+)$", re.MULTILINE)


def libraries(host: Host) -> list[tuple[str, str]]:
    """Return the name and the path of each library in the cache; none where there is no cache."""
    cache = host.place("/etc/ld.so.cache")
    program = shutil.which("ldconfig") or shutil.which("ldconfig", path="/usr/sbin:/sbin")
    if not cache or not program:
        return []
    told = subprocess.run(  # noqa: S603  # a fixed question to the host's own program, and no shell
        [program, "-C", cache, "-p"], capture_output=True, check=False, timeout=60
    ).stdout.decode(errors="replace")
    return [(found[1], found[2]) for found in _LINE.finditer(told)]
