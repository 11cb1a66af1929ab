"""Which programs a call executes, in how many processes, and what its Python imports."""

import re
import shutil
import subprocess

from tests.bench.places import PATH
from tests.support.strace import whole

EXECUTED = re.compile(r'execve\("([^"]*)".* = 0$')
OPENED = re.compile(r'open(?:at)?\(.*?"([^"]*)".* = \d+$')
DEAR = re.compile(r"/(json|re|yaml|jsonschema|structlog|typing|dataclasses)(?=[/.])")


class Trace:
    """What a call did, as strace saw it."""

    def __init__(self, call, out):
        call.prepare()
        strace = ["strace", "-f", "-qq", "-s", "4096", "-e", "trace=%process,open,openat"]
        subprocess.run(
            [*strace, "-o", out, *call.words],
            check=False,
            env=call.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        call.check()
        lines = whole(out.read_text(errors="replace").splitlines())
        self.processes = len({line.split()[0] for line in lines})
        self.programs = [found[1] for line in lines if (found := EXECUTED.search(line))]
        files = [found[1] for line in lines if (found := OPENED.search(line))]
        self.dear = sorted({found[1] for path in files if (found := DEAR.search(path))})

    @property
    def interpreters(self):
        """How often Python was started."""
        return sum("python" in program.rpartition("/")[2] for program in self.programs)


def is_possible():
    """Tell whether strace is here."""
    return shutil.which("strace", path=PATH) is not None
