"""Fuzz one target in this process: ``python3 -m tests.fuzz.worker TARGET FINDINGS FLAG...``.

A finding is kept once for each place that raises it, and the fuzzing goes on; a hang or too much
memory ends it, as libFuzzer itself says so.
"""

import hashlib
import os
import shlex
import sys
import tempfile
import traceback
import warnings

import atheris

warnings.simplefilter("error")
with atheris.instrument_imports(include=["cdi_runc"], enable_loader_override=False):
    from . import targets

from . import mutation  # noqa: E402  # what it imports is instrumented first

JSON = ("spec", "configuration", "config_json", "daemon_json", "audit", "process_json")


def main():
    """Fuzz until the flags say that it is enough."""
    name, findings, *flags = sys.argv[1:]
    target = targets.TARGETS[name]
    seen = set()

    def run(data):
        try:
            target(data)
        except Exception as error:  # whatever it is, it is a finding
            frames = traceback.extract_tb(error.__traceback__)
            place = (type(error).__name__, *((one.filename, one.lineno) for one in frames[-2:]))
            if place not in seen:
                seen.add(place)
                keep(findings, data)

    with tempfile.TemporaryDirectory(prefix="cdi-runc-fuzz-") as top, targets.places(top):
        run(b"")
        words = os.path.join(top, "words")
        with open(words, "w", encoding="utf-8") as file:
            file.writelines(f'"{escaped(word)}"\n' for word in targets.words())
        # To merge, libFuzzer calls the program again, by its first argument.
        again = os.path.join(top, "again")
        with open(again, "w", encoding="utf-8") as file:
            python = [sys.executable, "-m", "tests.fuzz.worker", name, findings]
            file.write(f'#!/bin/sh\nexec {shlex.join(python)} "$@"\n')
        os.chmod(again, 0o755)
        mutator = {"custom_mutator": mutated} if name in JSON else {}
        atheris.Setup([again, f"-dict={words}", *flags], run, **mutator)
        atheris.Fuzz()


WORDS = targets.words()


def mutated(data, longest, seed):
    """Change a value as often as bytes."""
    made = mutation.mutate(data, longest, seed, WORDS) if seed % 2 else None
    return atheris.Mutate(data, longest) if made is None else made


def keep(findings, data):
    """Keep an input, and the traceback that it led to."""
    path = os.path.join(findings, "fault-" + hashlib.sha256(data).hexdigest()[:16])
    with open(path, "wb") as file:
        file.write(data)
    with open(f"{path}.txt", "w", encoding="utf-8", errors="backslashreplace") as file:
        traceback.print_exc(file=file)


def escaped(word):
    """Return *word* as a dictionary of libFuzzer has it."""
    return word.replace("\\", "\\\\").replace('"', '\\"')


if __name__ == "__main__":
    main()
