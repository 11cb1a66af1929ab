"""Many containers at once: nothing is lost, nothing leaks, nothing grows (C2, C4, C7, C8)."""

import itertools
import json
import math
import os
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.bundles import Bundle, config, make_rootfs
from support.configurations import STATE, audit_validator
from support.devices import DEVICE, probe, seen
from support.engines import IMAGE, new_name
from support.programs import environment, need, run
from support.witness import Witness

from cdi_runc.exec_process import YOUNG

ONE = "acme.com/widget=one"
LIBRARY = "/opt/acme"
LOOK = '"$@"; echo "$ACME $(cat /opt/acme/version)"'
# What a container sees goes to its own bundle, whole or not at all.
TELL = f"({LOOK}) >/out/new 2>&1; mv /out/new /out/seen"
HOOK = r"""#!/bin/sh
read -r state
bundle=${state#*\"bundle\":\"}
: >"${bundle%%\"*}/hooked"
"""
# Between pytest and the program, since a fork counts as large as what it was forked from.
MEASURE = """
import posix, resource, sys
pid = posix.posix_spawn(sys.argv[1], sys.argv[1:], posix.environ)
_, status, used = posix.wait4(pid, 0)
print(used.ru_maxrss)
sys.exit(status != 0)
"""


def at_once(number, action, items):
    """Return what *action* says of each of *items*, *number* of them at a time."""
    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(action, items))


def attempt(action, *arguments):
    """Return what *action* returns and None, or None and why it failed."""
    try:
        return action(*arguments), None
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return None, str(error)


def timed(action, *arguments):
    """Return the seconds that *action* takes."""
    started = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - started


def distribution(name, seconds):
    """Return the latencies of *name* in words, in whole milliseconds."""
    ordered = sorted(seconds)
    values = [ordered[max(0, math.ceil(part * len(ordered)) - 1)] for part in (0.5, 0.95, 0.99, 1)]
    return f"{name} p50/p95/p99/max " + "/".join(f"{value * 1000:.0f}" for value in values) + " ms"


def load():
    """Return this machine's load average in words."""
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"


def wait_for(condition, seconds=60):
    """Wait until *condition* holds; return whether it does."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def kept(root):
    """Return the names of the containers below *root* of which something is kept for exec."""
    place = STATE / "exec" / str(root).lstrip("/")
    return {file.name for file in place.iterdir()} if place.is_dir() else set()


def state(configuration, root):
    """Return each file that we keep, with its size in bytes."""
    places = [
        configuration.state_dir,
        STATE / "launcher" / str(configuration.directory).lstrip("/"),
        STATE / "exec" / str(root).lstrip("/"),
    ]
    return {
        str(file): file.stat().st_size
        for place in places
        for file in place.rglob("*")
        if file.is_file()
    }


def offer(configuration, node, **more):
    """Offer acme.com/widget=one: a node, a variable, a mount and a hook."""
    library = configuration.directory / "library"
    library.mkdir()
    (library / "version").write_text("525\n")
    hook = configuration.directory / "hook"
    hook.write_text(HOOK)
    hook.chmod(0o755)
    edits = {
        "env": ["ACME=1"],
        "deviceNodes": [{"path": DEVICE, "hostPath": str(node.path)}],
        "mounts": [{"hostPath": str(library), "containerPath": LIBRARY, "options": ["ro"]}],
        "hooks": [{"hookName": "createRuntime", "path": str(hook)}],
        **more,
    }
    configuration.spec(("one", edits), cdiVersion="0.7.0")


def has_edits(content):
    """Tell whether the config.json *content* has every edit of the device, once."""
    return (
        content["process"]["env"].count("ACME=1") == 1
        and [node["path"] for node in content["linux"]["devices"]] == [DEVICE]
        and [mount["destination"] for mount in content["mounts"]].count(LIBRARY) == 1
        and len(content["hooks"]["createRuntime"]) == 1
    )


@pytest.fixture
def make_plain(tmp_path):
    """Make bundles that share one root file system, which is read-only."""
    rootfs = make_rootfs(tmp_path / "shared")
    for place in ("out", LIBRARY.lstrip("/")):
        (rootfs / place).mkdir(parents=True)
    numbers = itertools.count(1)

    def make(*devices):
        path = tmp_path / f"plain{next(numbers)}"
        path.mkdir()
        content = config("sh", "-c", TELL, "sh", *probe())
        content["root"] = {"path": str(rootfs), "readonly": True}
        content["mounts"] += [
            {"destination": "/out", "type": "bind", "source": str(path), "options": ["rbind"]}
        ]
        bundle = Bundle(path, content)
        if devices:
            bundle.request(*devices)
        bundle.before = bundle.config_path.read_bytes()
        return bundle

    return make


def live(runtime, bundle, force):
    """Let the container of *bundle* live and go; return the seconds that its create took."""
    took = timed(runtime, "create", "--bundle", bundle.path, bundle.id)
    runtime("start", bundle.id)
    assert wait_for((bundle.path / "seen").exists), f"{bundle.id} has not run"
    if force:
        runtime("delete", "--force", bundle.id)
    else:
        gone = wait_for(lambda: runtime("delete", bundle.id, check=False).status == 0)
        assert gone, f"{bundle.id} cannot be deleted"
    return took


def fault(bundle, asked, results, node):
    """Return what is wrong with the *bundle* of a container that has lived, or None."""
    content = bundle.config_path.read_bytes()
    lines = (bundle.path / "seen").read_text().splitlines()
    files = sorted(file.name for file in bundle.path.iterdir())
    if asked:
        found = (has_edits(json.loads(content)), lines, files, results)
        right = (True, [seen(node), "1 525"], ["config.json", "hooked", "seen"], ["edited"])
    else:
        found = (content == bundle.before, seen(node) in lines, files, results)
        right = (True, False, ["config.json", "seen"], [])
    return None if found == right else f"{found} instead of {right}"


def test_creates(start_tally, size, runtime, make_runtime, configuration, make_plain, make_node):
    """Of many containers at once, each has what it asked for, and none leaves anything."""
    tally = start_tally("load", "container on a plain bundle: create, start, delete")
    number, many = size(60, 1000), size(16, 64)
    node = make_node()
    offer(configuration, node)
    configuration.grow_old()
    live(runtime, make_plain(ONE), force=True)
    before = state(configuration, runtime.root)
    plain = make_runtime(need("runc"), configuration)

    bundles = [make_plain(*((ONE,) if place % 2 == 0 else ())) for place in range(number)]
    beside = [make_plain() for _ in range(number // 2)]
    # Every third container is runc's alone, all through the load.
    jobs = []
    for place, bundle in enumerate(bundles):
        jobs.append((runtime, bundle, place % 4 < 2))
        if place % 2:
            jobs.append((plain, beside[place // 2], True))
    outcomes = at_once(many, lambda job: attempt(live, *job), jobs)

    by_container = {}
    for record in configuration.records():
        by_container.setdefault(record["container"], []).append(record["result"])
    took = {"asking": [], "not asking": [], "runc": []}
    for (program, bundle, _), (seconds, why) in zip(jobs, outcomes, strict=True):
        asked = "annotations" in bundle.config
        if program is runtime:
            lost = why or fault(bundle, asked, by_container.get(bundle.id, []), node)
            tally.note(not lost, f"{bundle.id}: {lost}")
        assert seconds is not None, why
        took["runc" if program is plain else "asking" if asked else "not asking"].append(seconds)
    tally.figure(f"{many} at once, and {len(beside)} of runc's among them")
    for name, seconds in took.items():
        tally.figure(distribution(f"create {name}", seconds))
    tally.figure(load())
    tally.check()
    assert len(configuration.records()) == number // 2 + 1
    assert not configuration.log_file.exists()
    assert [] == [*runtime.root.iterdir(), *plain.root.iterdir()]

    # Nobody tells us whether a delete without --force was granted: what it leaves goes later.
    left = kept(runtime.root)
    assert left <= {bundle.id for _, bundle, forced in jobs if not forced}
    old = time.time() - 2 * YOUNG
    place = STATE / "exec" / str(runtime.root).lstrip("/")
    for path in [*(place / name for name in left), STATE / "exec"]:
        os.utime(path, (old, old))
    live(runtime, make_plain(ONE), force=True)
    assert before == state(configuration, runtime.root)


@pytest.fixture
def create_many(installation, configuration, make_bundle, tmp_path):
    """Call the create of *number* bundles that ask, *many* at once; return what each gives."""

    def create(number, many, call):
        bundles = [make_bundle(rootfs=False).request(ONE) for _ in range(number)]

        def one(bundle):
            words = ["--root", tmp_path / "root", "create", "--bundle", bundle.path, bundle.id]
            return call(bundle, [installation.shim, *words])

        outcomes = at_once(many, lambda bundle: attempt(one, bundle), bundles)
        return list(zip(bundles, outcomes, strict=True))

    return create


def test_descriptors(start_tally, size, configuration, create_many, tmp_path):
    """The real runtime has the descriptors that the engine gave, and no other, in all the load."""
    tally = start_tally("load", "descriptors at the real runtime's start")
    number, many = size(16, 400), size(16, 64)
    witness = Witness(tmp_path / "witness")
    configuration.write(runtime=str(witness.path))
    configuration.spec(("one", {"env": ["ACME=1"]}))
    given = [os.open(configuration.path, os.O_RDONLY) for _ in range(3)]
    env = environment(**configuration.env)

    def descriptors(told, words):
        done = run(*words, check=False, env={**env, "TELL_AT": str(told)}, pass_fds=given)
        assert done.status == 42, done
        lines = told.with_name(f"{told.name}.descriptors").read_text().splitlines()
        # Each call has its own files for what it says.
        return [line for line in lines if not line.startswith(("1 ", "2 "))]

    direct = descriptors(tmp_path / "direct", [witness.path])
    assert {0, *given} == {int(line.split()[0]) for line in direct}
    found = create_many(
        number, many, lambda bundle, words: descriptors(bundle.path / "told", words)
    )
    for bundle, (said, why) in found:
        edited = "ACME=1" in bundle.load()["process"]["env"]
        same = said == direct
        tally.note(edited and same, f"{why or said} instead of {direct}, edited: {edited}")
    for fd in given:
        os.close(fd)
    numbers = [0, 1, 2, *given]
    tally.figure(f"{many} at once, {len(numbers)} of them: {numbers}")
    tally.check()
    assert len(configuration.records()) == number


def test_memory(start_tally, size, configuration, create_many):
    """A create with a device never takes more than a small interpreter's memory."""
    tally = start_tally("load", "memory of a create, biggest resident set")
    number, many = size(16, 400), size(16, 64)
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", {"env": ["ACME=1"]}))
    env = environment(**configuration.env)

    def measured(*words):
        return int(run("/usr/bin/python3", "-I", "-S", "-c", MEASURE, *words, env=env).out) / 1024

    floor = measured("/bin/true")
    ((_, (cold, why)),) = create_many(1, 1, lambda _, words: measured(*words))
    assert why is None
    configuration.grow_old()
    create_many(1, 1, lambda _, words: measured(*words))
    warm = []
    for bundle, (used, why) in create_many(number, many, lambda _, words: measured(*words)):
        edited = "ACME=1" in bundle.load()["process"]["env"]
        fits = why is None and floor < used < 24
        tally.note(edited and fits, f"{bundle.id}: {why or used}, edited: {edited}")
        warm.append(used or 0)
    tally.figure(f"{many} at once, {max(warm):.1f} MiB; one that compiles {cold:.1f} MiB")
    tally.check()
    assert floor < cold < 96


def test_rotation(start_tally, size, configuration, create_many):
    """A record's file that is renamed while creates append to it loses no line."""
    tally = start_tally("load", "record while its file is renamed")
    number, many = size(60, 1000), size(16, 64)
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", {"env": ["ACME=1"]}))
    configuration.grow_old()
    env = environment(**configuration.env)
    file = configuration.audit_file
    rotated = []

    def rotate(done):
        """As logrotate does, with and without its ``create``."""
        while not done.done():
            time.sleep(0.1)
            if file.exists():
                rotated.append(file.rename(file.with_name(f"audit.jsonl.{len(rotated) + 1}")))
                if len(rotated) % 2:
                    os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o640))

    with ThreadPoolExecutor(1) as pool:
        creates = pool.submit(create_many, number, many, lambda _, words: run(*words, env=env))
        rotate(creates)
    files = [one for one in [*rotated, file] if one.exists()]
    records = [json.loads(line) for one in files for line in one.read_bytes().splitlines()]
    for record in records:
        audit_validator().validate(record)
    times = Counter(record["container"] for record in records)
    for bundle, (_, why) in creates.result():
        whole = times[bundle.id] == 1
        tally.note(whole and not why, f"{bundle.id}: {times[bundle.id]} records, {why}")
    tally.figure(f"{many} at once, {len(rotated)} renames")
    tally.check()
    assert number == len(records)
    assert len(rotated) > 1
    assert {0o640} == {one.stat().st_mode & 0o777 for one in files}


def test_churn(start_tally, size, runtime, configuration, make_plain, make_node):
    """Neither containers that come and go nor spec files that change make our state grow."""
    tally = start_tally("load", "round after which the state directory is as before")
    rounds = size(10, 20)
    offer(configuration, make_node())
    configuration.grow_old()
    live(runtime, make_plain(ONE), force=True)
    first = state(configuration, runtime.root)
    tally.figure(f"{len(first)} files of {sum(first.values())} bytes")
    for number in range(rounds):
        live(runtime, make_plain(ONE), force=True)
        found = state(configuration, runtime.root)
        tally.note(found == first, f"create {number}: {found} instead of {first}")

    def change(number):
        """Write a spec file of the same length, as old as one that is believed."""
        configuration.spec(("one", {"env": [f"ACME={number:03}"]}))
        time.sleep(0.1)
        bundle = make_plain(ONE)
        runtime("create", "--bundle", bundle.path, bundle.id)
        runtime("delete", "--force", bundle.id)
        assert f"ACME={number:03}" in bundle.load()["process"]["env"]
        return state(configuration, runtime.root)

    changed = change(0)
    assert changed.keys() == first.keys()
    for number in range(1, rounds + 1):
        found = change(number)
        tally.note(found == changed, f"spec {number}: {found} instead of {changed}")
    tally.check()
    assert not configuration.log_file.exists()


def moby(docker):
    """Return the root directory that *docker* gives to its runtimes."""
    return docker.exec_root / "runtime-runc/moby"


def test_docker(start_tally, size, docker, make_node):
    """Of many ``docker run`` at once, each has its device and record, and none leaves anything."""
    tally = start_tally("load", "docker run --rm --runtime=cdi")
    number, many = size(16, 200), size(8, 200)
    node = make_node()
    offer(docker.configuration, node)
    docker.configuration.grow_old()
    options = ("--runtime=cdi", "--env", f"CDI_DEVICES={ONE}")
    words = ("run", "--rm", "--network", "none", *options, IMAGE, "sh", "-c", LOOK, "sh", *probe())
    docker(*words)
    before = state(docker.configuration, moby(docker))

    def go(_):
        started = time.perf_counter()
        lines = docker(*words, timeout=900).out.splitlines()
        assert lines == [seen(node), "1 525"]
        return time.perf_counter() - started

    started, most = time.monotonic(), 0
    with ThreadPoolExecutor(1) as pool:
        runs = pool.submit(at_once, many, lambda place: attempt(go, place), range(number))
        while not runs.done():
            most = max(most, len(os.listdir(moby(docker))))
            time.sleep(0.01)
    whole, outcomes = time.monotonic() - started, runs.result()
    for _, why in outcomes:
        tally.note(not why, why)
    tally.figure(f"{many} at once in {whole:.0f} s, of which runc had {most} at once")
    tally.figure(distribution("run", [took for took, why in outcomes if not why] or [0]))
    tally.figure(load())
    tally.check()
    assert wait_for(lambda: not docker("ps", "--all", "--quiet").out)
    assert wait_for(lambda: before == state(docker.configuration, moby(docker)))
    records = docker.configuration.records()
    assert {"edited"} == {record["result"] for record in records}
    assert number + 1 == len(records) == len({record["container"] for record in records})
    assert not docker.configuration.log_file.exists()


def test_exec(start_tally, size, docker, make_node):
    """Of many ``docker exec`` at once, each sees the device, its variable and its group."""
    tally = start_tally("load", "docker exec in one container with a device")
    number = size(8, 50)
    node = make_node()
    offer(docker.configuration, node, additionalGids=[4242])
    name = new_name()
    options = ("--detach", "--runtime=cdi", "--network=none", "--env", f"CDI_DEVICES={ONE}")
    docker("run", *options, "--name", name, IMAGE, "sleep", "1000")
    look = ("sh", "-c", f"{LOOK}; id -G", "sh", *probe())

    def go(_):
        started = time.perf_counter()
        lines = docker("exec", name, *look, timeout=600).out.splitlines()
        assert lines == [seen(node), "1 525", "0 4242"]
        return time.perf_counter() - started

    outcomes = at_once(number, lambda place: attempt(go, place), range(number))
    for _, why in outcomes:
        tally.note(not why, why)
    tally.figure(f"{number} at once")
    tally.figure(distribution("exec", [took for took, why in outcomes if not why] or [0]))
    tally.figure(load())
    tally.check()
    assert kept(moby(docker)) == set(docker("ps", "--quiet", "--no-trunc").out.split())
    docker("rm", "--force", name)
    assert kept(moby(docker)) == set()
    assert not docker.configuration.log_file.exists()
