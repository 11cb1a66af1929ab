"""What the hardening suites attempted, what survived and what was lost, as one table at the end.

A test takes a tally, notes each attempt on it, and ends with ``tally.check()``.  In CI each suite
is short; ``sudo ./tests/run tests/hardening --full`` runs them whole.
"""

import pytest

HEADS = ("suite", "what", "attempted", "survived", "lost", "figures")
TALLIES = pytest.StashKey()
ROWS = pytest.StashKey()


class Tally:
    """Attempts of one kind, and what became of them."""

    def __init__(self, suite, what):
        self.suite = suite
        self.what = what
        self.attempted = 0
        self.losses = []
        self.figures = []

    def note(self, survived, why):
        """Count one attempt; *why* says what was lost if it did not survive."""
        self.attempted += 1
        if not survived:
            self.losses.append(why)

    def figure(self, text):
        """Add something measured, such as ``p99 12 ms``."""
        self.figures.append(text)

    def check(self):
        """Fail if anything was lost, or nothing was attempted."""
        assert self.losses == []
        assert self.attempted > 0

    def row(self):
        """Return the cells of the table."""
        lost = len(self.losses)
        counts = (self.attempted, self.attempted - lost, lost)
        return (self.suite, self.what, *map(str, counts), ", ".join(self.figures))


def pytest_configure(config):
    """Begin with no attempt at all."""
    config.stash[TALLIES] = {}
    config.stash[ROWS] = []


def pytest_collection_modifyitems(config, items):
    """Let whole suites take as long as they need."""
    if config.getoption("full"):
        for item in items:
            item.add_marker(pytest.mark.timeout(0))


@pytest.fixture
def start_tally(request):
    """Return a function that gives the tally of a suite and a few words on what is attempted."""

    def start(suite, what):
        tallies = request.config.stash[TALLIES]
        return tallies.setdefault((suite, what), Tally(suite, what))

    return start


@pytest.fixture
def size(request):
    """Return a function that chooses between the number for CI and the one for ``--full``."""
    return lambda short, full: full if request.config.getoption("full") else short


def pytest_sessionfinish(session):
    """Give a worker's rows to the process that prints them."""
    if hasattr(session.config, "workeroutput"):
        tallies = session.config.stash[TALLIES].values()
        session.config.workeroutput["hardening"] = [tally.row() for tally in tallies]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take a worker's rows."""
    rows = getattr(node, "workeroutput", {}).get("hardening", [])
    node.config.stash[ROWS].extend(tuple(row) for row in rows)


def pytest_terminal_summary(terminalreporter, config):
    """Print the table."""
    found = config.stash[ROWS] + [tally.row() for tally in config.stash[TALLIES].values()]
    if not found:
        return
    rows = [HEADS, *sorted(found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADS) - 1)]
    terminalreporter.section("hardening: attempted, survived, lost")
    for row in rows:
        cells = [
            cell.rjust(width) if cell.isdigit() else cell.ljust(width)
            for cell, width in zip(row, widths, strict=False)
        ]
        terminalreporter.line("  ".join([*cells, row[-1]]).rstrip())
