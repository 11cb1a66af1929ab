"""``cdictl plan``: what a create would do, and that it then does it."""

import pytest
from support.commands import Cdictl
from support.engines import IMAGE

from cdi_runc.cli import bases, plan
from cdi_runc.config import load

ONE = "acme.com/widget=one"


@pytest.fixture
def edits(tmp_path):
    """Return the edits of a device that this host can carry out."""
    library = tmp_path / "libacme.so.1.0"
    library.write_text("1.0")
    mount = {"hostPath": str(library), "containerPath": "/usr/lib/libacme.so.1"}
    return {
        "env": ["ACME=1"],
        "deviceNodes": [{"path": "/dev/acme0", "hostPath": "/dev/zero"}],
        "mounts": [{**mount, "options": ["ro", "bind"]}],
        "hooks": [{"hookName": "poststop", "path": "/bin/true"}],
        "additionalGids": [4242],
    }


@pytest.fixture
def bundle(configuration, make_bundle, edits):
    """Return a bundle that asks for the device."""
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", edits), cdiVersion="0.7.0")
    return make_bundle(rootfs=False).request(ONE)


def test_the_create_then_does_it(runtime, cdictl, configuration, bundle):
    """The plan's configuration and edits are those of the create that follows."""
    settings = load.read(str(configuration.path))
    outcome = plan.tried(bases.of_bundle(str(bundle.path)), [], settings)
    told = cdictl.json("plan", "--bundle", bundle.path)
    runtime("create", "--bundle", bundle.path, bundle.id)
    (record,) = configuration.records()

    assert outcome.after == bundle.load()
    for key in ("edits", "conflicts", "warnings", "requests", "specs"):
        assert told[key] == record[key]
    assert told["ok"]


def test_engine_is_known_by_the_bundle(cdictl, configuration, bundle):
    """The rules for Podman's containers hold for the plan of one."""
    configuration.write(policy=[{"engine": "podman", "do": "allow"}, {"do": "refuse"}])
    place = bundle.path / "vfs-containers/1/userdata"
    place.mkdir(parents=True)
    bundle.config_path.rename(place / "config.json")

    assert cdictl.json("plan", "--bundle", place)["ok"]


def test_changes_nothing(cdictl, configuration, bundle):
    """Neither the bundle nor the record is touched."""
    before = bundle.config_path.read_bytes()
    cdictl("plan", "--bundle", bundle.path)

    assert bundle.config_path.read_bytes() == before
    assert [path.name for path in bundle.path.iterdir()] == ["config.json"]
    assert configuration.records() == []


def test_without_a_base(cdictl, bundle):
    """A device alone is planned into a minimal configuration; its diff adds, and takes nothing."""
    lines = cdictl("plan", "--device", ONE).out.splitlines()

    assert lines[:2] == ["--- config.json", "+++ config.json after the create"]
    assert [line for line in lines if "cdictl-plan" in line] == []
    assert '+      "ACME=1"' in lines
    assert '+      {"path":"/dev/acme0","type":"c","major":1,"minor":5,"fileMode":438}' in lines
    assert any(line.startswith("@@ ") and line.endswith(" /process/user") for line in lines)
    assert any(line.startswith("@@ ") and line.endswith(" /mounts") for line in lines)
    assert lines[-1] == "A create would succeed."


def test_more_devices(cdictl, configuration, bundle):
    """Devices of the command line come besides the bundle's own."""
    configuration.spec(("ace", {"env": ["TOY=1"]}), kind="other.org/toy", file="other.json")
    told = cdictl.json("plan", "--bundle", bundle.path, "--device", "other.org/toy=ace")

    assert [(one["device"], one["source"]) for one in told["requests"]] == [
        (ONE, "annotation"),
        ("other.org/toy=ace", "command"),
    ]


def test_every_finding(cdictl, configuration, bundle, edits, tmp_path):
    """All that the host lacks is told, not some of it, each with its place; the exit code is 1."""
    missing = [str(tmp_path / f"gone{number}") for number in range(12)]
    edits["mounts"] += [{"hostPath": path, "containerPath": path} for path in missing]
    edits["hooks"] += [{"hookName": "poststop", "path": "/nonexistent/hook"}]
    edits["deviceNodes"] += [{"path": "/dev/acme9"}]
    configuration.spec(("one", edits), cdiVersion="0.7.0")
    told = cdictl.json("plan", "--bundle", bundle.path, status=1)
    found = {one["pointer"]: one["message"] for one in told["findings"]}
    done = cdictl("plan", "--bundle", bundle.path, check=False)

    place = "/devices/0/containerEdits"
    assert len(found) == 14
    assert "/dev/acme9" in found[f"{place}/deviceNodes/1"]
    assert "/nonexistent/hook" in found[f"{place}/hooks/1"]
    for number, path in enumerate(missing, 1):
        assert path in found[f"{place}/mounts/{number}"]
        assert f"mount source {path} is not on this host" in done.out
    assert "12 of 13 mount sources are missing" in done.out
    assert '+      "ACME=1"' in done.out
    assert done.out.splitlines()[-1] == ("A create would fail, because of the 14 findings above.")


def test_refused_conflict(cdictl, configuration, bundle):
    """A conflict that the configuration refuses is told with both sides; the exit code is 1."""
    configuration.write(conflicts={"env": "refuse"})
    bundle.config["process"]["env"].append("ACME=own")
    bundle.save()
    (conflict,) = cdictl.json("plan", "--bundle", bundle.path, status=1)["conflicts"]
    done = cdictl("plan", "--bundle", bundle.path, check=False)

    assert (conflict["before"], conflict["after"]) == ("ACME=own", "ACME=1")
    assert conflict["decision"] == "refuse"
    assert "the container itself  ACME=own" in done.out
    assert "A create would fail: device acme.com/widget=one sets env ACME" in done.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(("--device", "acme.com/widget=x"), "acme.com/widget=one", id="unknown"),
        pytest.param(("--device", "/dev/zero"), "it looks like a path", id="path"),
        pytest.param((), "asks for no device", id="no-device"),
        pytest.param(("--image", "nonesuch", "--device", ONE), "nonesuch", id="no-image"),
        pytest.param(("--container", "nonesuch"), "nonesuch", id="no-container"),
        pytest.param(("--bundle", "/nonexistent"), "/nonexistent/config.json", id="no-bundle"),
    ],
)
def test_what_cannot_be_planned(cdictl, bundle, words, told):
    """What is no device, or no base, is a fault in one line."""
    done = cdictl("plan", *words, check=False)

    assert done.status == 1
    assert told in done.out + done.err
    assert "Traceback" not in done.err


def test_sections_of_another_type(cdictl, bundle):
    """A configuration that is none fails as a create would."""
    bundle.config["linux"] = []
    bundle.config["mounts"] = {}
    bundle.save()
    done = cdictl("plan", "--bundle", bundle.path, check=False)

    assert done.status == 1
    assert "is not a" in done.out


def test_unchanged(runtime, cdictl, bundle):
    """Where all is there already, nothing would change."""
    runtime("create", "--bundle", bundle.path, bundle.id)

    assert "change nothing" in cdictl("plan", "--bundle", bundle.path).out


def test_of_a_container(runtime, cdictl, configuration, bundle):
    """A container is planned as if it were made again: without the edits that it got."""
    runtime("create", "--bundle", bundle.path, bundle.id)
    again = cdictl.json("plan", "--container", bundle.id)
    (record,) = configuration.records()

    assert again["edits"] == record["edits"]


def test_with_another_directory(cdictl, bundle, tmp_path):
    """``--spec-dir`` plans with spec files that are not in force yet."""
    (tmp_path / "new").mkdir()
    content = (bundle.path.parent / "cdi-runc/cdi/acme.json").read_text()
    (tmp_path / "new/acme.json").write_text(content.replace("ACME=1", "ACME=next"))
    shown = cdictl("plan", "--spec-dir", tmp_path / "new", "--device", ONE).out

    assert "ACME=next" in shown


def test_docker(docker, installation, edits):
    """An image's and a container's own variables and mounts are met, running or not."""
    docker.configuration.spec(
        ("one", {**edits, "env": ["PATH=/bin:/acme", "OWN=cdi"]}), cdiVersion="0.7.0"
    )
    host = {"DOCKER_HOST": f"unix://{docker.socket}"}
    cdictl = Cdictl(installation.cdictl, docker.configuration, **host)
    docker(
        "create", "--name=web", "--network=none", "--env=OWN=mine", "-v/etc:/usr/lib", IMAGE, "true"
    )
    told = cdictl.json("plan", "--container", "web", "--device", ONE)
    by_kind = {one["kind"]: one for one in told["conflicts"]}

    assert by_kind["env"]["before"] == "OWN=mine"
    assert any('"destination": "/usr/lib"' in line for line in told["diff"])
    assert cdictl.json("plan", "--image", IMAGE, "--device", ONE)["ok"]

    options = ("--detach", "--runtime=cdi", "--network=none", "--name=asks")
    docker("run", *options, "--env", f"CDI_DEVICES={ONE}", IMAGE, "sleep", "1000")
    (record,) = docker.configuration.records()
    running = cdictl.json("plan", "--container", "asks")
    assert [one["where"] for one in running["edits"]] == [one["where"] for one in record["edits"]]
    docker("kill", "asks")
    assert cdictl.json("plan", "--container", "asks")["ok"]


def test_podman(podman, installation, tmp_path):
    """An image of Podman's is found when Docker has none of that name."""
    podman.configuration.spec(("one", {"env": ["PATH=/acme"]}))
    wrapper = tmp_path / "bin/podman"
    wrapper.parent.mkdir()
    place = podman.directory
    wrapper.write_text(
        f'#!/bin/sh\nexec /usr/bin/podman --root "{place}/root" --runroot "{place}/run"'
        f' --tmpdir "{place}/tmp" --storage-driver vfs "$@"\n'
    )
    wrapper.chmod(0o755)
    env = {
        "PATH": f"{wrapper.parent}:/usr/sbin:/usr/bin:/sbin:/bin",
        "DOCKER_HOST": "unix:///nowhere",
    }
    cdictl = Cdictl(installation.cdictl, podman.configuration, **env)

    assert cdictl.json("plan", "--image", IMAGE, "--device", ONE)["ok"]


RULES = [{"source": "environment", "do": "refuse"}]


@pytest.mark.parametrize(
    ("source", "rules", "code", "words"),
    [
        pytest.param((), [], 0, "A create would succeed.", id="none"),
        pytest.param(
            (), RULES, 1, "the policy refuses device {0}, asked for by --device", id="env"
        ),
        pytest.param(("--source", "annotation"), RULES, 0, "would succeed.", id="annotation"),
        pytest.param(
            (),
            [{"do": "ignore"}],
            0,
            "and give no device: the policy ignores every request",
            id="ignored",
        ),
    ],
)
def test_policy_decides_as_for_a_create(cdictl, configuration, source, rules, code, words):
    """The devices are asked for as docker run -e does, or as said, and the policy holds."""
    configuration.write(policy=rules)
    configuration.spec(("one", {"env": ["ACME=1"]}))
    done = cdictl("plan", "--device", ONE, *source, check=False)
    told = " ".join((done.out + done.err).split())

    assert code == done.status
    assert words.format(ONE) in told
    assert "cdictl-plan" not in told.lower()
    assert "CDICTL_PLAN" not in told
