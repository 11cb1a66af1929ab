"""Run the bombs of one target under limits of this process: ``python3 -m tests.fuzz.bounded``.

The kernel measures: a bomb that needs more processor time ends the process, and one that needs
more memory gets a MemoryError, which is a finding as any other.
"""

import resource
import sys
import tempfile
import time
import warnings

from . import bombs, targets

MEMORY = 2 << 30
SECONDS = 60
"""Of processor time: far more than any needs, and nothing to what a square would."""


def main():
    """Run the bombs of the target that is named, or the one bomb that is."""
    name, *only = sys.argv[1:]
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory(prefix="cdi-runc-fuzz-") as top, targets.places(top):
        targets.TARGETS[name](b"")
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for bomb, make in bombs.of(name).items():
            if only and bomb not in only:
                continue
            sys.stdout.write(f"{bomb} ")
            sys.stdout.flush()
            data = make()
            begin = time.process_time()
            resource.setrlimit(resource.RLIMIT_CPU, (int(begin) + SECONDS, -1))
            targets.TARGETS[name](data)
            taken = time.process_time() - begin
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            sys.stdout.write(f"{taken:.1f} s, {peak} MiB so far\n")


if __name__ == "__main__":
    main()
