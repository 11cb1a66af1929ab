"""What is broken on our side keeps no container down that asks for nothing (C1, C7, C10)."""

import pytest

ONE = ("--env", "CDI_DEVICES=acme.com/widget=one")
FINE = ("echo", "fine")


@pytest.fixture
def interpreter_away(spare_shim):
    """Take away the interpreter of the runtime ``cdi-spare``."""
    _, interpreter = spare_shim
    target = interpreter.readlink()
    interpreter.unlink()
    yield interpreter
    interpreter.symlink_to(target)


def break_configuration(configuration):
    """Leave a configuration that nobody understands."""
    configuration.path.write_text("runtime: [runc\nunknown: 1\n")


def add_unknown_key(configuration):
    """Leave a configuration with a key that does not exist."""
    configuration.write(unknown={"key": 1})


def misplace_logs(configuration):
    """Configure audit record and log below a regular file, where nobody can write."""
    configuration.write(
        audit={"file": "/etc/passwd/audit.jsonl"}, log={"file": "/etc/passwd/cdi-runc.log"}
    )


def misplace_state(configuration):
    """Configure the state below a regular file, where nobody can write."""
    configuration.write(state_dir="/etc/passwd/state")


def require_misplaced_audit(configuration):
    """Require an audit record that cannot be written."""
    configuration.write(audit={"file": "/etc/passwd/audit.jsonl", "required": True})


@pytest.mark.parametrize(
    "damage",
    [
        break_configuration,
        add_unknown_key,
        misplace_logs,
        misplace_state,
        require_misplaced_audit,
    ],
)
def test_without_a_request_it_starts(docker, damage):
    """A container that asks for nothing starts, whatever of ours is broken."""
    damage(docker.configuration)

    assert docker.run("--runtime=cdi", command=FINE).out.strip() == "fine"


def test_without_a_request_it_starts_without_interpreter(docker, interpreter_away):
    """A container that asks for nothing starts without any interpreter."""
    assert not interpreter_away.exists()
    assert docker.run("--runtime=cdi-spare", command=FINE).out.strip() == "fine"


def test_with_everything_broken_at_once(docker, interpreter_away):
    """A container that asks for nothing starts with configuration and interpreter both broken."""
    assert not interpreter_away.exists()
    break_configuration(docker.configuration)

    assert docker.run("--runtime=cdi-spare", command=FINE).out.strip() == "fine"


def test_request_without_interpreter_fails_and_says_so(docker, interpreter_away):
    """A container that asks for a device does not start without one, and is told why."""
    docker.configuration.spec(("one", {"env": ["ACME=1"]}))
    finished = docker.run("--runtime=cdi-spare", *ONE, command=FINE, check=False)

    assert finished.status in (125, 127)
    assert "fine" not in finished.out
    for word in ("cdi-runc: ", "CDI device", str(interpreter_away), "reinstall cdi-runc"):
        assert word in finished.err


@pytest.mark.parametrize("damage", [break_configuration, add_unknown_key])
def test_request_with_broken_configuration_fails_and_says_so(docker, damage):
    """With a broken configuration a request is refused, and its file, line and cure are named."""
    docker.configuration.spec(("one", {"env": ["ACME=1"]}))
    damage(docker.configuration)
    finished = docker.run("--runtime=cdi", *ONE, command=FINE, check=False)

    assert finished.status in (125, 127)
    assert "Traceback" not in finished.err
    for word in ("cdi-runc: ", str(docker.configuration.path), "line ", "cdictl config check"):
        assert word in finished.err


@pytest.mark.parametrize("damage", [misplace_logs, misplace_state])
def test_request_without_a_place_for_logs_or_state_is_served(docker, damage):
    """A device is there even if neither audit record, log nor state can be written."""
    docker.configuration.spec(("one", {"env": ["ACME=1"]}))
    damage(docker.configuration)
    words = ["sh", "-c", "echo $ACME"]

    assert docker.run("--runtime=cdi", *ONE, command=words).out.strip() == "1"


def test_required_audit_that_cannot_be_written_refuses(docker):
    """With ``audit.required`` a device without a record is refused, and the cure named."""
    docker.configuration.spec(("one", {"env": ["ACME=1"]}))
    require_misplaced_audit(docker.configuration)
    finished = docker.run("--runtime=cdi", *ONE, command=FINE, check=False)

    assert finished.status in (125, 127)
    for word in ("cdi-runc: ", "/etc/passwd/audit.jsonl", "audit.required"):
        assert word in finished.err


@pytest.mark.parametrize("damage", [break_configuration, misplace_logs, misplace_state])
@pytest.mark.parametrize(
    "words", [["--version"], ["--root", "/x", "--log-format", "json", "features"], ["--help"]]
)
def test_runtime_answers_whatever_is_broken(
    installation, configuration, make_runtime, damage, words
):
    """``--version``, ``features`` and ``--help`` say what runc says, whatever of ours is broken."""
    damage(configuration)
    said = []
    for program in ("runc", installation.shim):
        finished = make_runtime(program, configuration)(*words, check=False)
        said.append((finished.status, finished.out, finished.err))

    assert said[0] == said[1]


def test_warning_in_the_engines_log(runtime, make_bundle, tmp_path):
    """A record that could not be written leaves a warning in the ``--log`` file."""
    runtime.configuration.spec(("one", {"env": ["ACME=1"]}))
    misplace_logs(runtime.configuration)
    bundle = make_bundle("true").request("acme.com/widget=one")
    log = tmp_path / "log"
    runtime("--log", log, "run", "--bundle", bundle.path, bundle.id)

    assert "level=warning" in log.read_text()
    assert "audit record not written" in log.read_text()
