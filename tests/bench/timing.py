"""How long calls take, each in turn, so that noise hits all of them alike."""

import os
import random
import statistics
import subprocess
import time
from dataclasses import dataclass, field

WARM_UP = 2  # rounds that are not counted


class Broken(Exception):
    """A call did not do what it is measured for."""


@dataclass(kw_only=True)
class Call:
    """One line of the table: a program, and what is to be done around it."""

    name: str
    label: str
    words: list
    env: dict
    status: int = 0
    plain: str = ""
    """The name of the call without cdi-runc: what that takes is not ours."""
    every: int = 1
    """It is measured in each round of that many."""
    wall: list = field(default_factory=list, init=False)
    cpu: list = field(default_factory=list, init=False)

    def prepare(self):
        """Put everything in place; not timed."""

    def check(self):
        """Raise Broken if the call did not do what it should; not timed."""

    def once(self):
        """Make the call; return wall and CPU time of it and its children, in milliseconds."""
        self.prepare()
        words = [os.fspath(word) for word in self.words]
        null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
        begin = time.perf_counter_ns()
        pid = os.posix_spawn(words[0], words, self.env, file_actions=null)
        try:
            _, status, usage = os.wait4(pid, 0)
        except BaseException:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            raise
        end = time.perf_counter_ns()
        found = os.waitstatus_to_exitcode(status)
        if found != self.status:
            raise Broken(f"{self.label}: exit status {found}: {self._words_of_failure()}")
        self.check()
        return (end - begin) / 1e6, (usage.ru_utime + usage.ru_stime) * 1e3

    def _words_of_failure(self):
        self.prepare()
        again = subprocess.run(self.words, check=False, env=self.env, capture_output=True)
        said = again.stderr.decode(errors="replace").strip()
        return said.rpartition("\n")[2] or "it says nothing"

    def measure(self):
        """Make the call and keep what it took."""
        wall, cpu = self.once()
        self.wall.append(wall)
        self.cpu.append(cpu)


def measure(calls, rounds, tell):
    """Measure *calls* in *rounds* rounds, in each of them in another order."""
    order = random.Random(0)
    for call in calls:
        for _ in range(WARM_UP if call.every == 1 else 1):
            call.once()
    for number in range(rounds):
        tell(f"round {number + 1} of {rounds}")
        for call in order.sample(calls, len(calls)):
            if number % call.every == 0:
                call.measure()
    tell("")


def results(calls):
    """Return a line for each call: plain data, as ``--json`` prints it."""
    medians = {call.name: statistics.median(call.wall) for call in calls}
    return [
        {
            "name": call.name,
            "label": call.label,
            "rounds": len(call.wall),
            "ms": medians[call.name],
            "added_ms": medians[call.name] - medians[call.plain] if call.plain else None,
            "min_ms": min(call.wall),
            "p90_ms": sorted(call.wall)[int(0.9 * (len(call.wall) - 1))],
            "cpu_ms": statistics.median(call.cpu),
        }
        for call in calls
    ]
