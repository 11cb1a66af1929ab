"""An error at any file operation: a create gets all, or fails and says why; a retry succeeds."""

import itertools
import os
import shutil
import time
from pathlib import Path

import pytest
from support import faults
from support.creates import Create, Delete, Exec, Plain
from support.programs import need
from support.traces import Call, inject

SUITE = "faults"
EDITS = {"env": ["ACME=1"], "mounts": []}


@pytest.fixture
def create(installation, configure, make_bundle, tmp_path):
    """Return a create in steady state; its real runtime is one static program."""
    runtime = tmp_path / "runtime/true"
    runtime.parent.mkdir()
    runtime.symlink_to(need("busybox"))
    configuration = configure(runtime=str(runtime))
    configuration.spec(("one", EDITS))
    bundle = make_bundle(rootfs=False).request("acme.com/widget=one")
    return Create(installation.shim, configuration, bundle, runtime).settle()


@pytest.fixture
def by_variable(create, make_bundle):
    """Return a create that asks with a variable of which the configuration alone knows.

    Its real runtime reads the file's beginning too: if that cannot be read, it says so at the
    latest.
    """
    configuration = create.configuration
    bundle = make_bundle(rootfs=False)
    bundle.config["process"]["env"] += [f"LONG={'x' * 20_000}", "ASKED=one"]
    bundle.save()
    runtime = bundle.path / "runtime"
    runtime.write_text(f"#!/bin/sh\nhead -c 1 {bundle.config_path} >/dev/null || exit\n")
    runtime.chmod(0o755)
    variable = {"kind": "acme.com/widget"}
    configuration.write(runtime=str(runtime), requests={"environment": {"ASKED": variable}})
    made = Create(create.head[0], configuration, bundle, runtime).settle()
    made.compiled = Path(f"/run/cdi-runc/launcher{configuration.path}")
    return made


@pytest.fixture
def plain(create, make_bundle):
    """Return a create of a bundle that asks for nothing."""
    shim = create.head[0]
    return Plain(
        shim, create.configuration, make_bundle(rootfs=False), runtime=create.runtime
    ).settle()


@pytest.fixture
def check(start_tally, size, tmp_path, pytestconfig):
    """Return a function that injects errors into a call, *prepare* before each attempt."""

    def check(what, call, prepare=lambda: None, every=1):
        tally = start_tally(SUITE, what)
        call.set_back()
        prepare()
        trace = tmp_path / "trace"
        own = (str(tmp_path), "/run/cdi-runc")
        elsewhere = [f"/run/cdi-runc/{kept}/" for kept in ("exec", "launcher")]
        points = [
            point
            for point in faults.points(call.calls(trace))
            # What other containers left there is not counted.
            if str(tmp_path) in point[1].line or not any(at in point[1].line for at in elsewhere)
        ]
        whole = pytestconfig.getoption("full")
        chosen = points if whole else faults.one_of_each(points, own)[::every]
        chosen.sort(key=lambda point: point[0] == "start")  # what is ours comes first
        for attempt in faults.attempts(chosen, whole=whole):
            prepare()
            wrong = faults.attempt(call, *attempt, trace)
            tally.note(not wrong, wrong)
        tally.figure(f"{len(chosen)} system calls")
        tally.check()

    return check


def test_errors_in_steady_state(check, create):
    """A file operation fails while nothing is to be compiled."""
    check("errors: create", create, every=2)


def test_errors_at_first_use(check, create):
    """A file operation fails while configuration, registry and record are new."""

    def prepare():
        create.configuration.forget()
        for directory in (create.configuration.state_dir, create.configuration.audit_file.parent):
            shutil.rmtree(directory, ignore_errors=True)

    check("errors: create, first use", create, prepare, every=7)


def test_errors_without_a_request(check, plain):
    """A file operation of ours fails, and a container that asks for nothing starts."""
    check("errors: create without a request", plain, every=2)


@pytest.mark.parametrize(
    ("file", "age"),
    [
        *(("config.json", age) for age in ("old", "young")),
        *(("grep", age) for age in ("old", "young")),
        ("patterns", "old"),
        ("configuration", "young"),
    ],
)
def test_errors_in_children(start_tally, size, file, age, by_variable, tmp_path):
    """What grep and the others do for the launcher fails, and no device is left out silently."""
    create = by_variable
    path, names = {
        "config.json": (create.path, ("openat", "read")),
        "patterns": (create.compiled / "patterns", ("openat", "read")),
        "configuration": (create.configuration.path, ("openat", "read")),
        "grep": ("/bin/busybox", ("execve",)),
    }[file]
    tally = start_tally(SUITE, f"errors: children, {file}, {age} configuration")
    trace = tmp_path / "trace"
    points = [(name, number) for name in names for number in range(1, size(3, 6))]
    for (name, number), error in itertools.product(points, faults.ERRORS[: size(2, 5)]):
        create.set_back()
        if age == "young":
            os.utime(create.configuration.path)
        before = len(create.lines())
        call = Call(name, number, str(path))
        ended = inject(f"error={error}", call, create.words, create.env, trace, anywhere=[path])
        if faults.HIT not in trace.read_text(errors="replace"):
            continue
        if ended.status == 0:
            wrong = faults.check_start(create, create.results(before), mute=False)
        else:
            told = "cdi-runc: " in ended.err or "head: " in ended.err
            wrong = "" if told and "Traceback" not in ended.err else "it did not say why"
        tally.note(not wrong, wrong and f"{call} {error}: {wrong}\n{ended}")
    tally.check()


def test_errors_in_exec(check, create):
    """A file operation of ours fails, and an exec goes on, its file whole."""
    check("errors: exec", Exec(create).settle(), every=7)


def test_errors_in_delete(check, create):
    """A file operation of ours fails, and a delete goes on."""
    check("errors: delete", Delete(create).settle(), every=4)


def test_damaged_registry(start_tally, create):
    """A registry that is cut anywhere, or holds something else, is compiled anew."""
    tally = start_tally(SUITE, "registry damaged")
    registry = create.configuration.state_dir / "registry"
    sound = registry.read_bytes()
    for damaged in (*(sound[:cut] for cut in range(0, len(sound), 40)), sound[:400] + b"\0" * 200):
        registry.write_bytes(damaged)
        wrong = faults.retried(create)
        tally.note(not wrong, f"{len(damaged)} bytes: {wrong}")
    tally.check()


def test_no_locks(create):
    """On a file system without locks nothing waits for one."""
    (create.configuration.state_dir / "registry").unlink()
    trace = create.bundle.path / "trace"
    calls = [call for call in create.calls(trace) if call.name == "fcntl" and "/lock>" in call.line]
    trace.unlink()
    (create.configuration.state_dir / "registry").unlink()
    create.set_back()
    began = time.monotonic()
    ended = inject("error=ENOLCK", calls[0], create.words, create.env, onwards=True)

    assert (0, create.new) == (ended.status, create.read())
    assert time.monotonic() - began < 8
