"""Programs that the tests run, and what these had to say."""

import os
import shutil
import subprocess
import tempfile

import pytest


class Finished:
    """What a program that has ended left behind."""

    def __init__(self, words, status, out, err):
        self.words = words
        self.status = status
        self.out = out
        self.err = err

    def __repr__(self):
        return f"{' '.join(self.words)}\nstatus {self.status}\nout: {self.out}\nerr: {self.err}"


def run(*words, check=True, timeout=120, text=True, **options):
    """Run a program to its end; with *check*, fail unless its exit status is 0.

    Its output goes to files: a pipe would keep us waiting for a container that outlives its
    runtime.
    """
    words = [os.fspath(word) for word in words]
    options.setdefault("stdin", subprocess.DEVNULL)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        status = subprocess.run(
            words, check=False, stdout=out, stderr=err, timeout=timeout, **options
        ).returncode
        said = []
        for file in (out, err):
            file.seek(0)
            data = file.read()
            said.append(data.decode(errors="replace") if text else data)
    finished = Finished([str(word) for word in words], status, *said)
    if check:
        assert status == 0, finished
    return finished


def need(program):
    """Return the path of *program*; a test that lacks it fails in CI and is skipped elsewhere."""
    found = shutil.which(program)
    if found is None:
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up(f"{program} is missing")
    return found


def environment(**changes):
    """Return our own environment with *changes*, and without what would lead a program astray."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CDI_", "XDG_", "PYTHON", "DOCKER_", "CONTAINER"))
    }
    return {**kept, **changes}
