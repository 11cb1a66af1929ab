"""A further process of a container sees the devices as the first one does (C8)."""

import json

import pytest
from support.configurations import STATE
from support.engines import IMAGE, new_name

ONE = ("--env", "CDI_DEVICES=acme.com/widget=one")
LOOK = ("sh", "-c", "echo $ACME $OWN $(id -G)")


@pytest.fixture
def container(docker):
    """Start a container with a device; return its name."""
    docker.configuration.spec(
        ("one", {"env": ["ACME=1", "OWN=cdi"], "additionalGids": [4242]}), cdiVersion="0.7.0"
    )
    name = new_name()
    options = ("--detach", "--runtime=cdi", "--network=none", "--env", "OWN=container", *ONE)
    docker("run", *options, "--name", name, IMAGE, "sleep", "1000")
    return name


def test_variables_and_groups_are_there(docker, container):
    """``docker exec`` sees the device's variables and groups."""
    assert docker("exec", container, *LOOK).out.strip() == "1 cdi 0 4242"


def test_what_the_call_sets_stays(docker, container):
    """A variable that the call itself sets is not overwritten."""
    said = docker("exec", "--env", "OWN=mine", container, *LOOK).out.strip()

    assert said == "1 mine 0 4242"


def test_another_user_gets_the_groups(docker, container):
    """With ``--user`` the device's groups are added to that user's own."""
    said = docker("exec", "--user", "1000:1001", container, *LOOK).out.strip()

    assert said == "1 cdi 1001 4242"


def test_after_a_restart(docker, container):
    """After ``docker restart`` a further process still sees the device."""
    docker("restart", "--time", "0", container)

    assert docker("exec", container, *LOOK).out.strip() == "1 cdi 0 4242"


def test_after_an_update(docker, container):
    """After ``docker update`` a further process still sees the device."""
    docker("update", "--cpus", "0.5", container)

    assert docker("exec", container, *LOOK).out.strip() == "1 cdi 0 4242"


def test_pass_leaves_it_alone(docker, container):
    """With ``exec: pass`` nothing is added to a container made from then on."""
    docker.configuration.write(exec="pass")
    docker("restart", "--time", "0", container)

    assert docker("exec", container, *LOOK).out.strip() == "container 0"


def test_trouble_keeps_no_process_down(docker, container):
    """With a broken configuration a further process still runs."""
    docker.configuration.path.write_text("runtime: [runc\n")

    assert docker("exec", container, "echo", "fine").out.strip() == "fine"


def test_without_a_request_nothing_is_added(docker):
    """A container that asked for nothing has processes as Docker alone makes them."""
    name = new_name()
    options = ("--detach", "--runtime=cdi", "--network=none", "--name", name, IMAGE)
    docker("run", *options, "sleep", "1000")

    assert docker("exec", name, *LOOK).out.strip() == "0"


@pytest.mark.parametrize("again", [False, True], ids=["first-create", "same-bundle-again"])
def test_process_file_is_edited(runtime, configuration, make_bundle, tmp_path, again):
    """``exec --process FILE`` gets the device's variables and groups, and else is as it was."""
    configuration.spec(("one", {"env": ["ACME=1"], "additionalGids": [4242]}), cdiVersion="0.7.0")
    bundle = make_bundle("sleep", "1000").request("acme.com/widget=one")
    runtime.start(bundle)
    if again:
        runtime("delete", "--force", bundle.id)
        runtime.start(bundle)
    process = bundle.config["process"] | {"args": ["sh", "-c", "echo $ACME $(id -G)"]}
    file = tmp_path / "process.json"
    file.write_text(json.dumps(process))
    file.chmod(0o604)

    assert runtime("exec", "--process", file, bundle.id).out.strip() == "1 0 4242"
    assert file.stat().st_mode & 0o777 == 0o604
    assert json.loads(file.read_text()) == process | {
        "env": [*process["env"], "ACME=1"],
        "user": process["user"] | {"additionalGids": [4242]},
    }


def test_failed_delete_forgets_nothing(runtime, configuration, make_bundle, tmp_path):
    """A delete that runc refuses leaves the container's further processes as they were."""
    configuration.spec(("one", {"env": ["ACME=1"]}))
    bundle = make_bundle("sleep", "1000").request("acme.com/widget=one")
    runtime.start(bundle)
    assert runtime("delete", bundle.id, check=False).status != 0
    file = tmp_path / "process.json"
    file.write_text(json.dumps(bundle.config["process"] | {"args": ["sh", "-c", "echo $ACME"]}))

    assert runtime("exec", "--process", file, bundle.id).out.strip() == "1"


def test_nothing_is_left_after_a_delete(runtime, configuration, make_bundle):
    """What is kept for further processes goes with the container."""
    configuration.spec(("one", {"env": ["ACME=1"]}))
    bundle = make_bundle("sleep", "1000").request("acme.com/widget=one")
    runtime.start(bundle)
    kept = STATE / "exec" / str(runtime.root).lstrip("/") / bundle.id
    assert kept.exists()
    runtime("delete", "--force", bundle.id)

    assert not kept.exists()


def test_podman(podman):
    """``podman exec`` sees the device's variables."""
    podman.configuration.spec(("one", {"env": ["ACME=1"]}))
    name = new_name()
    podman.start("--name", name, *ONE, command=["sleep", "1000"])
    said = podman("exec", name, "sh", "-c", "echo $ACME").out.strip()
    podman("rm", "--force", "--time", "0", name)

    assert said == "1"
