"""The system calls of one process, and how to kill it at one of them."""

import re
from collections import Counter

from support.programs import need, run

CALL = re.compile(r"^(\w+)\(")


def system_calls(words, out, env):
    """Return the names of the system calls of *words*, without those of its child processes.

    The execve with which strace itself starts the program is not among them.
    """
    run(need("strace"), "-qq", "-o", out, *words, env=env)
    lines = out.read_text(errors="replace").splitlines()
    return [found.group(1) for line in lines if (found := CALL.match(line))][1:]


def numbered(names):
    """Return each of *names* with the number of its occurrence, from 1."""
    seen = Counter()
    pairs = []
    for name in names:
        seen[name] += 1
        pairs.append((name, seen[name]))
    return pairs


def kill_at(name, number, words, env):
    """Run *words* and kill it with signal 9 as it enters its *number*-th call of *name*."""
    inject = f"inject={name}:signal=KILL:when={number}"
    tracer = (need("strace"), "-qq", "-e", f"trace={name}", "-e", inject, "-o", "/dev/null")
    return run(*tracer, *words, env=env, check=False)
