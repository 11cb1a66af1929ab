"""Fuzz what reads what others wrote, and say what was found."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import targets

CORPUS = Path(__file__).with_name("corpus")
MEMORY, TIMEOUT, LENGTH = 1024, 20, 16384
"""MiB and seconds that one input may take, and bytes of the longest one that is made up."""
GRACE = 60
"""Seconds beyond those asked for until a fuzzer counts as hanging."""
HEAD = ("target", "runs", "runs/s", "seconds", "coverage", "corpus", "findings")
EPILOG = """\
What is found lies in a directory that is named at the end: each input, and the traceback beside it.

examples:
  python3 -m tests.fuzz --seconds 600
  python3 -m tests.fuzz spec audit --seconds 60
  python3 -m tests.fuzz --seconds 600 --keep      # and take new inputs into the corpus
"""


class Result:
    """What became of fuzzing one target."""

    def __init__(self, target, said, seconds, findings):
        self.target = target
        self.runs = int(_last(r"^Done (\d+) runs|^#(\d+)\s", said) or 0)
        self.coverage = int(_last(r"cov: (\d+)", said) or 0)
        self.corpus = int(_last(r"corp: (\d+)", said) or 0)
        self.seconds = seconds
        self.findings = findings

    def row(self):
        """Return the cells of the table."""
        numbers = (
            self.runs,
            round(self.runs / max(self.seconds, 1)),
            round(self.seconds),
            self.coverage,
            self.corpus,
            len(self.findings),
        )
        return (self.target, *map(str, numbers))


def _last(pattern, text):
    found = re.findall(pattern, text, re.MULTILINE)
    return "".join(found[-1]) if found else None


def fuzz(target, seconds, work, seed=0):
    """Fuzz *target*; new inputs and findings go to directories below *work*."""
    found, new = work / target / "findings", work / target / "corpus"
    for directory in (found, new, work / target / "tmp"):
        directory.mkdir(parents=True, exist_ok=True)
    flags = [
        f"-max_total_time={seconds}",
        f"-artifact_prefix={found}/",
        f"-rss_limit_mb={MEMORY}",
        f"-timeout={TIMEOUT}",
        f"-max_len={LENGTH}",
        f"-seed={seed}",
        "-print_final_stats=1",
        str(new),
        *([str(CORPUS / target)] if (CORPUS / target).is_dir() else []),
    ]
    return _result(target, ["-m", "tests.fuzz.worker", target, str(found), *flags], seconds, found)


def _result(target, words, seconds, found):
    log = found.with_name("log")
    begin = time.monotonic()
    with log.open("wb") as file:
        done = subprocess.run(
            [sys.executable, *words],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            timeout=seconds + GRACE,
            cwd=CORPUS.parents[2],
            env={**os.environ, "TMPDIR": str(found.with_name("tmp"))},
        )
    said = log.read_text(encoding="utf-8", errors="replace")
    findings = sorted(path for path in found.iterdir() if path.suffix != ".txt")
    if done.returncode and not findings:
        findings = [log]  # it could not begin, or died without a word
    return Result(target, said, time.monotonic() - begin, findings)


def merge(target, work):
    """Put the smallest set of inputs with the same coverage in the place of the corpus."""
    small = work / target / "merged"
    small.mkdir()
    sources = [work / target / "corpus", CORPUS / target]
    words = [
        *("-m", "tests.fuzz.worker", target, str(work / target / "findings")),
        *("-set_cover_merge=1", f"-max_len={LENGTH}", str(small)),
        *(str(path) for path in sources if path.is_dir()),
    ]
    _result(target, words, 600, work / target / "findings")
    if any(small.iterdir()):
        shutil.rmtree(CORPUS / target, ignore_errors=True)
        shutil.copytree(small, CORPUS / target)


def main():
    """Fuzz, and print a table; exit status 1 if anything was found."""
    options = _options()
    if options.list:
        for name, target in targets.TARGETS.items():
            print(f"{name:<14} {' '.join((target.__doc__ or '').split())}")
        return 0
    work = Path(tempfile.mkdtemp(prefix="cdi-runc-fuzz-"))
    results = []
    for target in options.targets or targets.TARGETS:
        _tell(f"{target}: {options.seconds} s")
        results.append(fuzz(target, options.seconds, work, options.seed))
        if options.keep:
            merge(target, work)
    _tell("")
    rows = [HEAD, *(result.row() for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    for row in rows:
        first, *numbers = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join([first, *(cell.strip().rjust(len(cell)) for cell in numbers)]))
    findings = [path for result in results for path in result.findings]
    for path in findings:
        print(f"found: {path}")
    if not findings:
        shutil.rmtree(work)
    return 1 if findings else 0


def _options():
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.fuzz",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    parser.add_argument("--seconds", type=int, default=60, metavar="N", help="for each (60)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="0: another each time")
    parser.add_argument("--keep", action="store_true", help="take new inputs into the corpus")
    parser.add_argument("--list", action="store_true", help="list the targets")
    options = parser.parse_args()
    unknown = [name for name in options.targets if name not in targets.TARGETS]
    if unknown:
        parser.error(f"no such target: {', '.join(unknown)}; see --list")
    return options


def _tell(text):
    """Show on a terminal how far it is."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
