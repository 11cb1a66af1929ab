"""What changes while creates run, and time stamps that no clock would give."""

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.programs import environment, need, run

SUITE = "faults"
AT_ONCE = 16


@pytest.fixture
def together(installation, configure, make_bundle, tmp_path):
    """Return a function that makes *number* creates while *disturb* runs over and over.

    It returns each bundle with what its create had to say.
    """
    configuration = configure(runtime="/bin/true")
    env = environment(**configuration.env)
    head = [installation.shim, "--root", tmp_path / "root", "create", "--bundle"]

    def together(number, disturb=None):
        bundles = [make_bundle(rootfs=False).request("acme.com/widget=one") for _ in range(number)]
        over = threading.Event()

        def disturb_them():
            while not over.is_set():
                disturb()

        disturber = threading.Thread(target=disturb_them)
        if disturb:
            disturber.start()
        try:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                calls = [
                    pool.submit(run, *head, bundle.path, bundle.id, env=env, check=False)
                    for bundle in bundles
                ]
                ended = [call.result() for call in calls]
        finally:
            over.set()
            if disturb:
                disturber.join()
        return list(zip(bundles, ended, strict=True))

    together.configuration = configuration
    return together


def given(bundle):
    """Return the values of the variables that CDI gave *bundle*."""
    env = bundle.load()["process"]["env"]
    return [entry.partition("=")[2] for entry in env if entry.startswith("ACME")]


def results(configuration):
    """Return what became of each container, as the record says; each has one line."""
    records = configuration.records()
    found = {record["container"]: record["result"] for record in records}
    assert len(found) == len(records)
    return found


def test_registry_rebuilt(start_tally, size, together):
    """While the registry is removed or stale all the time, every create gets its edits."""
    tally = start_tally(SUITE, "registry rebuilt during creates")
    configuration = together.configuration
    spec = configuration.spec(("one", {"env": ["ACME=1"]}))
    configuration.grow_old()
    ways = (
        lambda: (configuration.state_dir / "registry").unlink(missing_ok=True),
        spec.touch,
        lambda: shutil.rmtree(configuration.state_dir, ignore_errors=True),
    )
    counts = [0]

    def disturb():
        ways[counts[0] % len(ways)]()
        counts[0] += 1
        threading.Event().wait(0.002)

    calls = together(size(50, 1000), disturb)
    recorded_results = results(configuration)
    for bundle, ended in calls:
        whole = (ended.status, given(bundle)) == (0, ["1"])
        recorded = recorded_results.get(bundle.id) == "edited"
        tally.note(whole and recorded, f"{recorded} {ended}")
    tally.figure(f"{counts[0]} disturbances")
    tally.check()


def test_spec_rewritten_in_place(start_tally, size, together):
    """While a spec file is half-written all the time, a create gets one version or an error."""
    tally = start_tally(SUITE, "spec half-written during creates")
    configuration = together.configuration
    spec = configuration.spec()
    versions = []
    for number in (1, 22):
        edits = {"env": [f"ACME{entry}={number}" for entry in range(20)]}
        text = configuration.spec(("other", {"env": ["OTHER=1"]}), ("one", edits)).read_text()
        versions.append(text)
    counts = [0]

    def disturb():
        text = versions[counts[0] % 2]
        counts[0] += 1
        with spec.open("w") as file:
            for part, seconds in ((text[:600], 0.01), (text[600:], 0.02)):
                file.write(part)
                file.flush()
                threading.Event().wait(seconds)

    refused = 0
    number = size(200, 2000)
    calls = together(number, disturb)
    recorded = results(configuration)
    for bundle, ended in calls:
        got = given(bundle)
        result = recorded.get(bundle.id)
        if ended.status:
            refused += 1
            words = ended.err.startswith("cdi-runc: ") and str(spec) in ended.err
            tally.note(words and not got and result == "failed", f"{result} {got} {ended}")
        else:
            whole = got in (["1"] * 20, ["22"] * 20)
            tally.note(whole and result == "edited", f"{result} {got} {ended}")
    tally.figure(f"{refused} refused, {counts[0]} versions written")
    ((bundle, ended),) = together(1)

    assert 0 == ended.status
    assert given(bundle) in (["1"] * 20, ["22"] * 20)
    assert len(results(configuration)) == number + 1
    tally.check()


STAMPS = {
    "zero": 0,
    "before the epoch": -1_000_000_000,
    "tomorrow": 86400,
    "end of 32 bits": (1 << 31) - 1,
    "year 2400": 13_569_465_600,
    "year 30000": 884_541_427_200,
    "beyond any year": 1 << 60,
}


@pytest.mark.parametrize("where", ["tmpfs", "disk"])
def test_time_stamps(start_tally, configure, together, where, tmp_path):
    """With any time stamp on specs and configuration creates go on, and see an edit of a spec."""
    tally = start_tally(SUITE, f"clock jumps: time stamps on {where}")
    configuration = together.configuration
    spec_dir = configuration.spec_dir
    if where == "tmpfs":
        run(need("mount"), "-t", "tmpfs", "-o", "mode=755", "none", spec_dir)
    try:
        for name, stamp in STAMPS.items():
            for value in ("1", "2"):
                spec = configuration.spec(("one", {"env": [f"ACME={value}"]}))
                for path in (spec, spec_dir, configuration.path, configuration.path.parent):
                    try:
                        os.utime(path, (stamp, stamp))
                    except OverflowError:
                        os.utime(path, (1 << 55, 1 << 55))
                for _ in range(2):
                    ((bundle, ended),) = together(1)
                    whole = (ended.status, given(bundle)) == (0, [value])
                    tally.note(whole, f"{name}, {value}: {ended}")
        results(configuration)
    finally:
        if where == "tmpfs":
            run(need("umount"), spec_dir)
    tally.check()


def test_other_clocks(start_tally, together, installation, make_bundle):
    """Where the clock of the uptime jumped, the record is valid and nothing waits."""
    tally = start_tally(SUITE, "clock jumps: uptime")
    configuration = together.configuration
    configuration.spec(("one", {"env": ["ACME=1"]}))
    env = environment(**configuration.env)
    for offset in (0, 10**8, 10**9, 4 * 10**9):
        bundle = make_bundle(rootfs=False).request("acme.com/widget=one")
        clocks = (f"--monotonic={offset}", f"--boottime={offset}")
        call = (installation.shim, "create", "--bundle", bundle.path, bundle.id)
        ended = run(need("unshare"), "--time", *clocks, "--fork", *call, env=env, check=False)
        whole = (ended.status, given(bundle)) == (0, ["1"])
        tally.note(whole, f"{offset}: {ended}")
    assert all(0 <= record["duration_ms"] < 60_000 for record in configuration.records())
    tally.check()
