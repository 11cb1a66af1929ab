"""An installation of cdi-runc under a prefix of its own."""

import os
import re
from pathlib import Path

from support.programs import environment, run

ROOT = Path(__file__).parents[2]


class Installation:
    """What ``install.sh --prefix`` made below *prefix*."""

    def __init__(self, prefix):
        self.prefix = prefix
        self.shim = prefix / "bin/cdi-runc"
        self.cdictl = prefix / "bin/cdictl"
        self.home = prefix / "lib/cdi-runc"

    def launcher_with(self, interpreter, path):
        """Write to *path* a launcher of this installation that starts another *interpreter*."""
        changed, count = re.subn(
            r"(?m)^cdi_python=.*$", f"cdi_python='{interpreter}'", self.shim.read_text()
        )
        assert count == 1
        path.write_text(changed)
        path.chmod(0o755)


def shared(tmp_path_factory):
    """Return the directory that all workers of a test run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def install(prefix):
    """Install this checkout under *prefix*."""
    run(ROOT / "install.sh", "--prefix", prefix, "--no-docker", env=environment(), timeout=280)
    return Installation(prefix)
