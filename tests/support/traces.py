"""The system calls of one process, and how to have one of them fail or be its last."""

import re
from collections import Counter

from support.programs import need, run

CALL = re.compile(r"^(\w+)\(")
QUIET = ("-qq", "-y", "-s", "200")


class Call:
    """One system call: its name, which one of that name it is, from 1, and strace's line on it."""

    def __init__(self, name, number, line):
        self.name = name
        self.number = number
        self.line = line

    def __repr__(self):
        return f"{self.name} {self.number}: {self.line[:160]}"

    @property
    def path(self):
        """The file that it is about, or the empty text."""
        found = re.search(r'"(/[^"]*)"', self.line) or re.search(r"\d<(/[^>]*)>", self.line)
        return found[1] if found else ""


def system_calls(words, out, env):
    """Return the system calls of *words*, without those of its child processes.

    The execve with which strace itself starts the program is not among them, nor counted.
    """
    run(need("strace"), *QUIET, "-o", out, *words, env=env)
    lines = out.read_text(errors="replace").splitlines()
    seen = Counter()
    calls = []
    for line in [line for line in lines if CALL.match(line)][1:]:
        name = CALL.match(line)[1]
        seen[name] += 1
        calls.append(Call(name, seen[name], line))
    return calls


def inject(what, call, words, env, out="/dev/null", onwards=False, anywhere=()):
    """Run *words* with *what*, as strace writes it, injected at *call*.

    With *onwards* at every later call of that name too.  *out* takes the calls of that name and
    the programs that were executed.  With *anywhere*, some files, it is the call of that number
    about one of these in each process, the children included.
    """
    tampering = f"inject={call.name}:{what}:when={call.number}{'+' * onwards}"
    tracer = (need("strace"), *QUIET, "-e", f"trace=execve,{call.name}", "-e", tampering)
    children = ("-f", *(word for path in anywhere for word in ("-P", path))) if anywhere else ()
    return run(*tracer, *children, "-o", out, *words, env=env, check=False)
