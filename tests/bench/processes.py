"""Which programs a call executes, in how many processes, and what its Python imports."""

import re
import shutil
import subprocess

from tests.bench.places import PATH

EXECUTED = re.compile(r'execve\("([^"]*)".* = 0$')
OPENED = re.compile(r'open(?:at)?\(.*?"([^"]*)".* = \d+$')
CUT = " <unfinished ...>"
RESUMED = re.compile(r"<\.\.\. \w+ resumed>")
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
        lines = _whole(out.read_text(errors="replace").splitlines())
        self.processes = len({line.split()[0] for line in lines})
        self.programs = [found[1] for line in lines if (found := EXECUTED.search(line))]
        files = [found[1] for line in lines if (found := OPENED.search(line))]
        self.dear = sorted({found[1] for path in files if (found := DEAR.search(path))})

    @property
    def interpreters(self):
        """How often Python was started."""
        return sum("python" in program.rpartition("/")[2] for program in self.programs)


def _whole(lines):
    """Return *lines* with each call in one of them: strace cuts one that another comes into."""
    begun, whole = {}, []
    for line in lines:
        process = line.split()[0]
        if line.endswith(CUT):
            begun[process] = line.removesuffix(CUT)
        elif found := RESUMED.search(line):
            whole.append(begun.pop(process) + line[found.end() :])
        else:
            whole.append(line)
    return whole


def is_possible():
    """Tell whether strace is here."""
    return shutil.which("strace", path=PATH) is not None
