"""What the real runtime gets is what it would have got without us (C1)."""

import os
import re

import pytest
from support.programs import run
from support.witness import Witness, call

ODD_ARGUMENTS = [b"", b"a b", b"--x=\n", b"$(id)", b"'\"\\", b"\xff\xfe", "\u00e4".encode(), b"*"]

ENVIRONMENT = {
    b"PATH": b"/usr/sbin:/usr/bin:/sbin:/bin",
    b"LC_ALL": b"C",  # lets CPython set LC_CTYPE
    b"HOME": b"/root",
    b"EMPTY": b"",
    b"BYTES": b"\xff\n=",
    b"PYTHONPATH": b"/nonexistent",
    b"PYTHONHOME": b"/nonexistent",
    b"PYTHONSAFEPATH": b"1",
    b"NOTIFY_SOCKET": b"/run/notify",
    b"_LIBCONTAINER_X": b"1",
    b"lower": b"case",
}
NOT_IDENTIFIERS = {b"a.b": b"1", b"a-b": b"2", b"1a": b"3"}


def is_identifier(entry):
    """Tell whether the name of an environment's *entry* is one that a shell knows."""
    return re.fullmatch(rb"[A-Za-z_][A-Za-z0-9_]*", entry.partition(b"=")[0]) is not None


@pytest.fixture
def root(tmp_path):
    """Return a root directory for runtimes whose name is not UTF-8."""
    return os.fsencode(tmp_path / "root") + b"\xff"


@pytest.fixture
def witness(tmp_path):
    """Return the real runtime."""
    return Witness(tmp_path / "witness")


@pytest.fixture
def configuration(configure, witness):
    """Return a configuration that names the witness as the real runtime."""
    return configure(runtime=str(witness.path))


@pytest.fixture
def compare(installation, witness, tmp_path):
    """Call the witness with *arguments*, first directly and then through cdi-runc.

    dash drops variables whose names are no identifiers, and sets PWD; once it has waited for a
    process, such as the grep of a create, no signal is blocked any longer.  All else is the same.
    """

    def compare(arguments, env, directory=tmp_path, *, waits):
        env = {**ENVIRONMENT, **NOT_IDENTIFIERS, **env}
        status = call(witness.path, arguments, env, directory)
        direct = witness.arguments(), witness.environment(), witness.rest()
        assert status == 42
        assert arguments == direct[0]

        status = call(installation.shim, arguments, env, directory)
        expected = [entry for entry in direct[1] if is_identifier(entry)]
        unblocked = {"SigBlk": f"{0:016x}"} if waits else {}
        assert status == 42
        assert arguments == witness.arguments()
        assert sorted([*expected, b"PWD=" + os.fsencode(directory)]) == witness.environment()
        assert {**direct[2], **unblocked} == witness.rest()

    return compare


@pytest.mark.parametrize("command", [b"state", b"kill", b"exec", b"update", b"features"])
def test_passed_through(compare, installation, configuration, root, command):
    """A passed-through call's arguments, signals, descriptors and all else reach the runtime."""
    run(installation.shim, "state", check=False, env=configuration.env)  # compiles it
    compare([b"--root", root, command, *ODD_ARGUMENTS], configuration.env, waits=False)


def test_passed_through_without_configuration(compare, witness):
    """Without a configuration, a runtime that is found by its name gets the same."""
    witness.path = witness.path.rename(witness.path.with_name("runc"))
    path = os.fsencode(witness.path.parent) + b":" + ENVIRONMENT[b"PATH"]
    compare([b"state", *ODD_ARGUMENTS], {b"PATH": path}, waits=False)


@pytest.mark.parametrize("young", [True, False], ids=["young-configuration", "old-configuration"])
def test_without_a_request(compare, configuration, make_bundle, root, young):
    """A create that asks for nothing reaches the runtime as it was made."""
    if not young:
        configuration.grow_old()
    bundle = make_bundle(rootfs=False)
    arguments = [b"--root", root, b"create", b"--bundle", os.fsencode(bundle.path), b"a\xff"]
    compare(arguments, configuration.env, waits=True)


@pytest.mark.parametrize("command", [b"create", b"run"])
def test_edited(compare, configuration, make_bundle, root, command):
    """A create that was edited reaches the runtime as it was made, CPython's traces removed."""
    configuration.spec(("one", {"env": ["ACME=1"]}))
    bundle = make_bundle(rootfs=False).request("acme.com/widget=one")
    arguments = [b"--root", root, command, b"--preserve-fds=5", b"-b"]
    arguments += [os.fsencode(bundle.path), b"a\xff"]
    compare(arguments, configuration.env, waits=True)

    assert "ACME=1" in bundle.load()["process"]["env"]


def test_edited_without_bundle_option(compare, configuration, make_bundle, root):
    """Without ``--bundle`` the working directory is the bundle, and stays the directory."""
    configuration.spec(("one", {"env": ["ACME=1"]}))
    bundle = make_bundle(rootfs=False).request("acme.com/widget=one")
    arguments = [b"--root", root, b"create", b"x"]
    compare(arguments, configuration.env, bundle.path, waits=True)

    assert "ACME=1" in bundle.load()["process"]["env"]


def test_runtime_sees_the_edited_file(runtime, configuration, witness, make_bundle):
    """When the real runtime starts, config.json is already the edited one."""
    configuration.spec(("one", {"env": ["ACME=1"]}))
    bundle = make_bundle(rootfs=False).request("acme.com/widget=one")
    runtime.env["LOOK_AT"] = str(bundle.config_path)
    runtime("create", "--bundle", bundle.path, "x", check=False)

    assert b"ACME=1" in witness.file()
    assert bundle.config_path.read_bytes() == witness.file()


def test_standard_input_is_the_runtimes(runtime, configuration, make_bundle, tmp_path):
    """What a caller writes to standard input is read by the real runtime, in every kind of call."""
    reader = tmp_path / "reader"
    reader.write_text("#!/bin/sh\nexec cat\n")
    reader.chmod(0o755)
    configuration.write(runtime=str(reader))
    configuration.spec(("one", {"env": ["ACME=1"]}))
    plain = make_bundle(rootfs=False)
    asking = make_bundle(rootfs=False).request("acme.com/widget=one")
    text = tmp_path / "text"
    text.write_text('{"cpu": {"shares": 512}}\n')
    said = []
    for words in [
        ["update", "--resources", "-", "x"],
        ["create", "--bundle", plain.path, "x"],
        ["create", "--bundle", asking.path, "x"],
    ]:
        with text.open("rb") as stdin:
            said.append(runtime(*words, stdin=stdin).out)

    assert [text.read_text()] * 3 == said
