"""Who may ask for a device: what an image can forge, and what it cannot (C3).

Each attack comes from an image's author: the person who runs the container asks for nothing.
"""

import pytest
from support.engines import IMAGE, new_name

DEVICE = "acme.com/widget=one"
PREFIX = "/var/run/cdi-runc/devices"
FORGED = "cdi-runc-forged"
MOUNTS_ONLY = {
    "requests": {"mounts": PREFIX},
    "policy": [{"source": "mount", "do": "allow"}, {"do": "ignore"}],
}


@pytest.fixture(scope="module")
def forged(dockerd_default):
    """Make an image whose ENV asks for a device."""
    docker = dockerd_default
    name = new_name()
    docker("create", "--name", name, IMAGE, "true")
    docker("commit", "--change", f"ENV CDI_DEVICES={DEVICE}", name, FORGED)
    docker("rm", name)
    return FORGED


@pytest.fixture
def run_forged(docker_default, forged):
    """Run a container of that image, with the configuration's *sections*."""

    def run(*options, check=True, image=forged, **sections):
        docker_default.configuration.write(**sections)
        docker_default.configuration.spec(("one", {"env": ["ACME=given"]}))
        words = ("run", "--rm", "--network", "none", *options, image, "sh", "-c", "echo $ACME.")
        return docker_default(*words, check=check)

    return run


def test_an_images_env_asks_by_default(run_forged):
    """Without a policy the forged request is granted: the attack is real."""
    assert "given." == run_forged().out.strip()


def test_an_images_env_is_ignored_where_the_policy_says_so(run_forged, docker_default, start_tally):
    """The container starts without the device, and the record says what was ignored."""
    tally = start_tally("attacks", "an image's ENV asks for a device")
    rules = [
        [{"source": "environment", "do": "ignore"}],
        [{"source": "environment", "engine": "docker", "do": "ignore"}],
        [{"devices": "acme.com/widget", "do": "ignore"}],
        [{"source": "mount", "do": "allow"}, {"do": "ignore"}],
    ]
    for policy in rules:
        out = run_forged(policy=policy).out.strip()
        record = docker_default.configuration.records()[-1]
        decisions = [request["decision"] for request in record["requests"]]
        told = any("the policy ignores" in text for text in record["warnings"])
        tally.note((out, decisions, told) == (".", ["ignore"], True), (policy, out, record))
    tally.check()


def test_an_images_env_is_refused_where_the_policy_says_so(run_forged):
    """The output of docker run names the device and the key that decides."""
    done = run_forged(policy=[{"source": "environment", "do": "refuse"}], check=False)

    assert done.status == 125
    assert f"the policy refuses device {DEVICE}" in done.err
    assert "(key: policy)" in done.err


def test_a_mount_is_the_users_own(run_forged, docker_default):
    """Where mounts alone may ask, a user's mount is granted, beside the image's forged ENV."""
    mount = ("-v", f"/dev/null:{PREFIX}/acme.com/widget/one")
    out = run_forged(*mount, image=IMAGE, **MOUNTS_ONLY).out.strip()
    out_forged = run_forged(*mount, **MOUNTS_ONLY).out.strip()

    assert ("given.", "given.") == (out, out_forged)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(f"VOLUME {PREFIX}/acme.com/widget/one", id="volume"),
        pytest.param(f'LABEL cdi.k8s.io/x="{DEVICE}"', id="label"),
        pytest.param(f"WORKDIR {PREFIX}/acme.com/widget/one", id="workdir"),
    ],
)
def test_an_image_cannot_forge_a_mount(docker_default, run_forged, start_tally, change):
    """No instruction of an image makes a mount of /dev/null, nor an annotation."""
    tally = start_tally("attacks", "an image's VOLUME, LABEL or WORKDIR asks for a device")
    name = new_name()
    docker_default("create", "--name", name, IMAGE, "true")
    docker_default("commit", "--change", change, name, "cdi-runc-forged-more")
    out = run_forged(image="cdi-runc-forged-more", **MOUNTS_ONLY).out.strip()

    tally.note(out == ".", (change, out))
    tally.check()


FORGERIES = (
    ("io.kubernetes.cri-o.Forged=1",),
    ("io.container.manager=me",),
    ("io.container.manager=cri-o", "io.kubernetes.cri-o.Forged=1"),
    ("io.container.manager=me", "io.kubernetes.cri-o.Forged=1"),
)


@pytest.fixture
def run_annotated(podman, tmp_path):
    """Run images whose manifests ask for a device and have *annotations*, too."""

    def run(annotations=(), options=(), **sections):
        podman.configuration.write(**sections)
        podman.configuration.spec(("one", {"env": ["ACME=given"]}))
        (tmp_path / "Containerfile").write_text(f"FROM {IMAGE}\nLABEL made=1\n")
        words = [f"--annotation={one}" for one in (f"cdi.k8s.io/forged={DEVICE}", *annotations)]
        podman("build", *words, "--tag", "forged", tmp_path)
        out = podman(
            *(*options, "run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024"),
            *("--ulimit", "nproc=4096:4096", "localhost/forged", "sh", "-c", "echo $ACME."),
        ).out.strip()
        record = podman.configuration.records()[-1]
        decisions = [request["decision"] for request in record["requests"]]
        return out, record["engine"], *decisions

    yield run
    podman("rmi", "--force", "forged", check=False)


def test_an_images_annotation_is_ignored_where_the_policy_says_so(run_annotated, start_tally):
    """Podman copies an image's annotations; a rule for annotations of Podman keeps them out.

    The image may also say that another engine made the container.
    """
    tally = start_tally("attacks", "an image's annotation asks for a device (Podman)")

    assert ("given.", "podman", "allow") == run_annotated()
    for forgery in ((), *FORGERIES):
        for engine in ({}, {"engine": "podman"}):
            seen = run_annotated(
                forgery, policy=[{"source": "annotation", **engine, "do": "ignore"}]
            )
            tally.note(seen == (".", "podman", "ignore"), (forgery, engine, seen))
        cri_o = {"engine": "cri-o", "source": "annotation", "do": "allow"}
        seen = run_annotated(forgery, policy=[cri_o, {"do": "ignore"}])
        tally.note(seen == (".", "podman", "ignore"), (forgery, cri_o, seen))
    tally.check()


def test_a_podman_that_gives_a_root_gets_its_own_rules(run_annotated, tmp_path):
    """It looks like CRI-O, so what is ignored for Podman is ignored there, too."""
    options = ("--runtime-flag", f"root={tmp_path / 'runtime-root'}")
    policy = [{"engine": "podman", "do": "ignore"}]

    assert (".", "cri-o", "ignore") == run_annotated(FORGERIES[-1], options, policy=policy)


@pytest.mark.parametrize(
    ("sections", "edited"),
    [
        pytest.param({}, False, id="default"),
        pytest.param({"restore": "pass"}, False, id="pass"),
        pytest.param({"restore": "edit"}, True, id="edit"),
        pytest.param({"restore": "edit", "policy": [{"do": "ignore"}]}, False, id="ignored"),
    ],
)
def test_a_checkpoints_annotations_ask_only_where_the_operator_says_so(
    configuration, make_bundle, make_runtime, installation, start_tally, sections, edited
):
    """A restore leaves config.json alone, unless the configuration wants it edited."""
    tally = start_tally("attacks", "a checkpoint's annotation asks for a device")
    configuration.write(runtime="/bin/true", **sections)
    configuration.spec(("one", {"env": ["ACME=given"]}))
    bundle = make_bundle(rootfs=False).request(DEVICE)
    before = bundle.config_path.read_bytes()
    runtime = make_runtime(installation.shim, configuration)
    runtime("restore", "--image-path", "/nowhere", "--bundle", bundle.path, bundle.id)

    tally.note(edited == ("ACME=given" in bundle.load()["process"]["env"]), sections)
    tally.note(edited == (before != bundle.config_path.read_bytes()), sections)
    tally.check()
