"""The installation that is measured."""

import os
import subprocess
from pathlib import Path

from tests.bench.timing import Broken

ROOT = Path(__file__).parents[2]


def install(prefix):
    """Install this checkout below *prefix*; return the runtime."""
    words = [ROOT / "install.sh", "--prefix", prefix, "--no-docker"]
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, stderr=subprocess.STDOUT, **options) as process:
        try:
            said, _ = process.communicate()
        except BaseException:
            process.terminate()  # it cleans up, and Popen waits for that
            raise
    if process.returncode != 0:
        raise Broken(f"install.sh failed:\n{said}")
    return find(prefix)


def find(directory):
    """Return the runtime of the installation at *directory*: a prefix, or where the code is."""
    for name in ("bin/cdi-runc", "launcher"):
        if os.access(directory / name, os.X_OK):
            return (directory / name).absolute()
    raise Broken(f"{directory} has neither bin/cdi-runc nor launcher")
