"""Measure an installation of cdi-runc, and say whether it keeps its budget (C12)."""

import argparse
import os
import shutil
import signal
import sys
from pathlib import Path

from tests.bench import budget, calls, installation, lifecycles, report, timing
from tests.bench.places import PATH, Places

EPILOG = """\
Each number is the median of calls made in turn, in another order in each round, so that noise
hits all alike. "Of that ours" is what the same call of the real runtime does not take. Creates
have /bin/true as their real runtime. In the Docker lines, CPU time is that of the client alone,
and with a device "ours" includes what runc itself does for it: mounts, nodes, hooks.

examples:
  sudo python3 -m tests.bench
  sudo python3 -m tests.bench --installation /opt/cdi-runc --rounds 100 --markdown
"""


def main():
    """Measure, and print what was found; exit status 1 if something could not be measured."""
    options = _options()
    if os.geteuid() != 0:
        sys.exit("tests.bench: runc and Docker need root: sudo python3 -m tests.bench")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        found = measure(options)
    except timing.Broken as error:
        sys.exit(f"tests.bench: {error}")
    render = {"json": report.as_json, "markdown": report.as_markdown, "text": report.as_text}
    sys.stdout.write(render[options.form](*found))


def measure(options):
    """Return the circumstances, a line for each call, and the verdicts."""
    runc = shutil.which("runc", path=PATH)
    if runc is None:
        raise timing.Broken("runc is missing")
    about = report.circumstances(runc)
    with Places() as places:
        if options.installation:
            shim = installation.find(options.installation)
        else:
            _tell("installing this checkout")
            shim = installation.install(places.disk / "prefix")
        _tell("making spec files")
        measured = [
            *calls.baselines(runc, places.memory),
            *calls.passed_through(shim, places.memory, places.configuration("plain", runc)),
            *calls.creates(shim, places, options.rounds),
        ]
        timing.measure(measured, options.rounds, _tell)
        rows = timing.results(measured)
        verdicts = [
            *budget.of_processes(measured, places.disk / "trace"),
            *budget.of_times(rows),
        ]
        if options.docker:
            _tell("starting Docker")
            with lifecycles.Docker(places, shim, runc) as docker:
                measured = lifecycles.lifecycles(docker)
                timing.measure(measured, options.docker_rounds, _tell)
                rows += timing.results(measured)
    return about, rows, verdicts


def _options():
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.bench",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--installation",
        type=Path,
        metavar="DIR",
        help="a prefix, or where the code is (without it: this checkout, installed for this)",
    )
    parser.add_argument("--rounds", type=_rounds, default=40, metavar="N", help="default: 40")
    parser.add_argument(
        "--docker",
        action=argparse.BooleanOptionalAction,
        help="docker run on a daemon of our own (without either: if dockerd is here)",
    )
    parser.add_argument(
        "--docker-rounds", type=_rounds, default=10, metavar="N", help="default: 10"
    )
    forms = parser.add_mutually_exclusive_group()
    for form in ("json", "markdown"):
        forms.add_argument(f"--{form}", action="store_const", const=form, dest="form")
    parser.set_defaults(form="text")
    options = parser.parse_args()
    missing = lifecycles.missing()
    if options.docker and missing:
        parser.error(f"--docker needs {', '.join(missing)}")
    if options.docker is None:
        options.docker = not missing
    return options


def _rounds(text):
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _tell(text):
    """Show on a terminal how far it is."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


if __name__ == "__main__":
    main()
