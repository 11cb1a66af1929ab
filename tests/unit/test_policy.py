"""The policy: which requests are granted."""

import pytest

from cdi_runc import policy, requests, settings
from cdi_runc.config import load
from cdi_runc.errors import BadRequest, Refused

GPU, CAMERA = "nvidia.com/gpu=0", "acme.example/camera=front"


def rules(text):
    """Return the rules that *text*, the list in a configuration, stands for."""
    return load.parse("config.yaml", f"policy: {text}".encode()).policy


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("[]", "allow", id="none-matches"),
        pytest.param("[{do: refuse}]", "refuse", id="everything"),
        pytest.param("[{source: mount, do: ignore}]", "allow", id="other-source"),
        pytest.param("[{source: environment, do: ignore}]", "ignore", id="source"),
        pytest.param("[{source: [mount, environment], do: ignore}]", "ignore", id="sources"),
        pytest.param("[{engine: docker, do: ignore}]", "ignore", id="engine"),
        pytest.param("[{engine: [podman, cri-o], do: ignore}]", "allow", id="other-engines"),
        pytest.param("[{devices: nvidia.com/gpu, do: ignore}]", "ignore", id="kind"),
        pytest.param("[{devices: nvidia.com/gpus, do: ignore}]", "allow", id="other-kind"),
        pytest.param("[{devices: nvidia.com/gpu=1, do: ignore}]", "allow", id="other-device"),
        pytest.param("[{devices: [a.b/c, nvidia.com/*], do: ignore}]", "ignore", id="vendor"),
        pytest.param("[{do: allow}, {do: refuse}]", "allow", id="first-wins"),
        pytest.param(
            "[{devices: nvidia.com/gpu=1, do: refuse}, {do: optional}]", "optional", id="second"
        ),
        pytest.param(
            "[{source: environment, engine: podman, do: refuse}]", "allow", id="all-must-match"
        ),
    ],
)
def test_first_rule_that_matches_decides(text, expected):
    """A rule matches if each of its members does; without one, the request is allowed."""
    assert expected == policy.decide(rules(text), GPU, "environment", "docker")


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("*", True),
        ("nvidia.com/gpu=0", True),
        ("nvidia.com/gpu=*", True),
        ("*=0", True),
        ("*/gpu=*", True),
        ("n*.com/*=0", True),
        ("nvidia.com/gpu=0*0", False),
        ("nvidia.com/gpu", False),
        ("*=00", False),
        ("*.org/*", False),
        ("gpu*", False),
    ],
)
def test_patterns(pattern, matches):
    """A star stands for any text, the empty one included, and all else for itself."""
    assert matches is policy.matches_any([pattern], GPU)


def read(config, text, engine="docker", **changes):
    """Return name and decision of each request in *config*."""
    found = requests.read(config, settings.defaults().but(policy=rules(text), **changes), engine)
    return [(one.device, one.decision) for one in found]


def test_each_mention_is_decided_by_itself():
    """A device that a variable may not ask for is granted to an annotation that may."""
    config = {
        "annotations": {"cdi.k8s.io/x": GPU},
        "process": {"env": [f"CDI_DEVICES={GPU},{CAMERA}"]},
    }
    text = "[{source: environment, do: ignore}]"
    found = requests.read(config, settings.defaults().but(policy=rules(text)))

    assert [GPU] == requests.devices(found)
    assert ["allow", "ignore", "ignore"] == [one.decision for one in found]
    (told,) = policy.check(found)
    assert f"the policy ignores device {CAMERA}" in told


@pytest.mark.parametrize(
    ("engine", "of", "expected"),
    [
        ("", "podman", ["allow", "ignore", "refuse"]),
        ("", "docker", ["allow", "ignore", "refuse"]),
        ("cri-o", "podman", ["allow", "ignore", "refuse"]),
        ("podman", "cri-o", ["allow", "allow", "allow"]),
        ("docker", "[podman, cri-o]", ["allow", "allow", "allow"]),
        ("podman", "podman", ["optional", "ignore", "refuse"]),
    ],
)
def test_engine_that_is_not_known(engine, of, expected):
    """It gets what no rule for an engine grants, and nothing that one of them takes."""
    decisions = ("optional", "ignore", "refuse")
    texts = [f"[{{engine: {of}, do: {decision}}}]" for decision in decisions]

    assert expected == [policy.decide(rules(text), GPU, "annotation", engine) for text in texts]


def test_what_is_ignored_need_not_be_understood():
    """A variable that nobody listens to cannot keep a container from starting."""
    config = {"process": {"env": ["CDI_DEVICES=/dev/video0,,"]}}

    assert {"ignore"} == {decision for _, decision in read(config, "[{do: ignore}]")}
    with pytest.raises(BadRequest):
        read(config, "[{devices: nvidia.com/*, do: ignore}]")


WITHOUT_MEASURE = [
    pytest.param(
        {"process": {"env": ["CDI_DEVICES=" + "x" * 16_385]}}, "longer than 16384", id="long"
    ),
    pytest.param(
        {"process": {"env": ["CDI_DEVICES=" + ",".join(["a.b/c=d"] * 1_001)]}},
        "more than 1000",
        id="names",
    ),
    pytest.param(
        {"annotations": {f"cdi.k8s.io/{n}": "a.b/c=d" for n in range(1_001)}},
        "more than 1000",
        id="keys",
    ),
]


@pytest.mark.parametrize(("config", "words"), WITHOUT_MEASURE)
def test_what_is_ignored_may_be_without_measure(config, words):
    """Limits hold for requests that count; another source's device is given all the same."""
    mount = {"destination": "/devices/nvidia.com/gpu/0", "source": "/dev/null"}
    found = requests.read(
        {**config, "mounts": [mount]},
        settings.defaults().but(
            policy=rules("[{source: mount, do: allow}, {do: ignore}]"), mounts="/devices"
        ),
    )
    told = policy.check(found)

    assert [GPU] == requests.devices(found)
    assert len(found) <= requests.MOST + 1
    assert 1 <= len(told) <= policy.TOLD + 1
    assert all(len(text) < 500 for text in told)


@pytest.mark.parametrize(("config", "words"), WITHOUT_MEASURE)
@pytest.mark.parametrize("decision", ["allow", "optional", "refuse"])
def test_what_is_not_ignored_has_limits(config, words, decision):
    """A policy that does not ignore a request changes nothing about the limits."""
    with pytest.raises(BadRequest, match=words):
        read(config, f"[{{do: {decision}}}]")


def test_limit_counts_what_is_not_ignored():
    """A thousand requests may be ignored beside a thousand others, and not one more."""
    names = ",".join(["a.b/c=d"] * 1_000)
    config = {"annotations": {"cdi.k8s.io/x": names}, "process": {"env": [f"CDI_DEVICES={names}"]}}
    text = "[{source: annotation, do: ignore}]"
    assert 2_000 == len(read(config, text))

    config["mounts"] = [{"destination": "/devices/nvidia.com/gpu/0", "source": "/dev/null"}]
    with pytest.raises(BadRequest, match="more than 1000"):
        read(config, text, mounts="/devices")


def test_each_ignored_request_is_told_once():
    """A name that one variable repeats is told once; of very many names some are told."""
    found = requests.read(
        {"process": {"env": [f"CDI_DEVICES={GPU},{GPU}"]}, "annotations": {"cdi.k8s.io/x": GPU}},
        settings.defaults().but(policy=rules("[{do: ignore}]")),
    )
    told = policy.check(found)
    assert ["annotation cdi.k8s.io/x", "environment CDI_DEVICES"] == [
        text.split("asked for by ")[1].split(":")[0] for text in told
    ]

    many = ",".join(f"a.b/c=n{number}" for number in range(30))
    found = requests.read(
        {"process": {"env": [f"CDI_DEVICES={many}"]}},
        settings.defaults().but(policy=rules("[{do: ignore}]")),
    )
    told = policy.check(found)
    assert (21, "the policy ignores 30 requests in all") == (len(told), told[-1])


def test_refusal_names_device_source_and_key():
    """What is refused says what asked for what."""
    found = requests.read(
        {"process": {"env": [f"CDI_DEVICES={GPU}"]}},
        settings.defaults().but(policy=rules("[{do: refuse}]")),
    )
    with pytest.raises(Refused, match=f"{GPU}, asked for by environment CDI_DEVICES"):
        policy.check(found)


def test_default_devices_come_last():
    """Every container gets them, after what it asked for itself, and a rule can say for whom."""
    config = {"process": {"env": [f"CDI_DEVICES={CAMERA}"]}}
    text = "[{source: default, engine: podman, do: ignore}]"

    assert [(CAMERA, "allow"), (GPU, "allow")] == read(config, text, default=(GPU,))
    assert [(GPU, "ignore")] == read({}, text, engine="podman", default=(GPU,))
