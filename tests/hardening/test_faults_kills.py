"""A create that is killed at any instant leaves the old config.json or the new one (C2)."""

import itertools
import re

import pytest
from support import faults
from support.creates import Create
from support.traces import inject

SUITE = "faults"
SIGNALS = ("TERM", "INT", "HUP", "PIPE")
WRITING = {
    "chmod",
    "fchmod",
    "fchown",
    "fsync",
    "ftruncate",
    "link",
    "mkdir",
    "pwrite64",
    "rename",
    "symlink",
    "unlink",
    "utimensat",
    "write",
}


@pytest.fixture
def create(installation, configure, make_bundle):
    """Return a create in steady state, with /bin/true as the real runtime."""
    configuration = configure(runtime="/bin/true")
    configuration.spec(("one", {"env": ["ACME=1"], "mounts": []}))
    bundle = make_bundle(rootfs=False).request("acme.com/widget=one")
    create = Create(installation.shim, configuration, bundle).settle()
    assert create.old != create.new
    return create


@pytest.fixture
def forget(create):
    """Return a function that removes registry and audit record."""

    def forget():
        (create.configuration.state_dir / "registry").unlink(missing_ok=True)
        create.configuration.audit_file.unlink(missing_ok=True)

    return forget


def has_our_traceback(told):
    """Tell whether *told* has a traceback, but for one from before the first line of our code.

    The interpreter tries first whether the frozen program is a zip archive.
    """
    frames = re.findall(r'^  File "(.*?)"', told, re.MULTILINE)
    return "Traceback" in told and not all(
        frame.startswith(("<frozen ", "<hot>")) for frame in frames
    )


def check_signals(create, attempts, prepare, tally):
    """Send the signal of each of *attempts* at its call; return how often each file was found."""
    found = {create.old: 0, create.new: 0}
    for call, signal in attempts:
        create.set_back()
        prepare()
        ended = inject(f"signal={signal}", call, create.words, create.env)
        now = create.read()
        wrong = ""
        # How often memory is asked for differs from run to run, so a point may not be reached.
        if ended.status == 0:
            wrong = "" if now == create.new else "it went on without the edits"
        elif signal == "KILL" and ended.status not in (-9, 137):
            wrong = f"it was not killed: {ended}"
        if now in found:
            found[now] += 1
        else:
            wrong = "config.json is neither the old nor the new one"
        wrong = wrong or (has_our_traceback(ended.err) and ended.err) or faults.retried(create)
        tally.note(not wrong, f"{signal} {call}: {wrong}")
    tally.figure(f"{found[create.old]} old, {found[create.new]} new")
    tally.check()
    return list(found.values())


def test_killed_in_steady_state(start_tally, create, tmp_path):
    """Killed at any system call, config.json is whole, and a retry works and leaves no litter."""
    create.set_back()
    kills = [(call, "KILL") for call in create.calls(tmp_path / "trace")]
    tally = start_tally(SUITE, "kill -9: create")
    old, new = check_signals(create, kills, lambda: None, tally)

    assert tally.attempted > 50
    assert old > 0
    assert new > 0


def test_killed_while_compiling(start_tally, size, create, forget, tmp_path):
    """Killed at or after a call that writes, the same holds where registry and record are new.

    In full: at any system call.
    """
    create.set_back()
    forget()
    calls = create.calls(tmp_path / "trace")
    pairs = [pair for pair in itertools.pairwise(calls) if pair[0].name in WRITING]
    writes = [call for pair in pairs for call in pair]
    kills = [(call, "KILL") for call in size(writes, calls)]
    tally = start_tally(SUITE, "kill -9: create that compiles")
    old, new = check_signals(create, kills, forget, tally)

    assert tally.attempted > 8
    assert old > 0
    assert new > 0


def test_other_signals(start_tally, size, create, forget, tmp_path):
    """A signal that ends, interrupts or is ignored leaves config.json whole, and no traceback."""
    create.set_back()
    forget()
    calls = create.calls(tmp_path / "trace")
    if len(calls) > 1000:  # others' leavings in the state directory are looked through
        calls = [call for call in calls if "/run/cdi-runc/exec/" not in call.line]
    turns = itertools.cycle(SIGNALS)
    chosen = [(call, next(turns)) for call in calls[:: size(31, 3)]]
    check_signals(create, chosen, forget, start_tally(SUITE, "other signals: create that compiles"))
