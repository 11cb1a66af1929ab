"""A user who may ask root's Docker daemon and is not root, and so reads records of their own."""

import os

import pytest
from support.devices import DEVICE
from support.engines import new_name
from support.programs import need, run
from support.users import ID

ONE = "acme.com/widget=one"
SYSTEM_LOGS = "mount -t tmpfs none /var/log; mkdir -m 750 /var/log/cdi-runc"
ELSEWHERE = "those of root's engines are in /var/log/cdi-runc: call it with sudo"


@pytest.fixture
def cdictl(installation, docker, user):
    """Call cdictl as that user, on a host with the system's log directory."""
    in_namespace = (need("nsenter"), f"--mount=/proc/{user.namespace.pid}/ns/mnt", "sh", "-ec")
    run(*in_namespace, SYSTEM_LOGS)
    docker.directory.chmod(0o711)
    was = docker.socket.stat()
    os.chown(docker.socket, 0, ID)
    docker.configuration.spec(("one", {"env": ["ACME=1"]}))
    env = {**user.env, "DOCKER_HOST": f"unix://{docker.socket}"}

    yield lambda *words: user(installation.cdictl, *words, env=env, check=False)

    os.chown(docker.socket, was.st_uid, was.st_gid)
    docker.directory.chmod(0o700)
    run(*in_namespace, "umount /var/log")


@pytest.fixture
def start(docker):
    """Start a container of root's daemon that asks for a device; return its name."""

    def start(runtime="cdi"):
        name = new_name()
        words = ("--detach", "--network", "none", "--env", f"CDI_DEVICES={ONE}", "--name", name)
        docker("run", *words, f"--runtime={runtime}", "cdi-runc-test", "sleep", "1000")
        return name

    return start


def test_nothing_is_cleared_that_was_not_read(cdictl, start):
    """Lists without root's records say so, and drift is no all-clear."""
    start()
    listed, tail, drift = cdictl("audit", "list"), cdictl("audit", "tail"), cdictl("drift")
    explained = cdictl("explain", f"{DEVICE}: no such device")

    for done in (listed, tail, drift, explained):
        assert ELSEWHERE in done.err
    assert [0, 0, 1, 1] == [done.status for done in (listed, tail, drift, explained)]
    assert "No drift" not in drift.out


def test_nobody_is_accused_by_a_record_that_was_not_read(cdictl, start):
    """Root's container without a record of the user's own is no fault of its runtime."""
    name = start()
    shown, examined = cdictl("audit", "show", name), cdictl("doctor", name)
    unknown = cdictl("audit", "show", "no-such"), cdictl("doctor", "no-such")

    for done in (shown, *unknown):
        assert done.status == 1
        assert ELSEWHERE in done.err
    assert "was not made through cdi-runc" not in shown.err
    assert ELSEWHERE in " ".join(examined.out.split())
    assert "error" not in examined.out


def test_another_runtime_is_told_by_the_daemon_that_has_it(cdictl, start):
    """Root's daemon answers whether the container's runtime is cdi-runc."""
    examined = cdictl("doctor", start("runc"))

    assert examined.status == 1
    assert "was made with the runtime 'runc', not cdi-runc" in " ".join(examined.out.split())


def test_engines_of_others_are_not_judged(cdictl):
    """Nothing is said of a daemon that was not looked at."""
    examined = " ".join(cdictl("doctor").out.split())

    assert "does not know cdi-runc" not in examined
    assert "only your own engines are looked at here" in examined


def test_own_records_are_enough_for_ones_own_containers(cdictl, user):
    """With records of one's own drift tells of them, and says that there are others."""
    line = (
        '{"format":1,"id":"1","time":"2026-01-01T00:00:00Z","container":"c","bundle":"/b",'
        '"engine":"","root":"","requests":[],"specs":[],"edits":[],"conflicts":[],"warnings":[],'
        '"result":"edited"}\n'
    )
    user.write(user.audit_file, line)
    drift = cdictl("drift")

    assert drift.status == 0
    assert "No drift: 0 running containers" in drift.out
    assert ELSEWHERE in drift.err
