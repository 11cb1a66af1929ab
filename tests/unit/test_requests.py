"""Who asks for which devices, in which order."""

import pytest

from cdi_runc import requests, settings
from cdi_runc.errors import BadRequest

DEFAULTS = settings.defaults()
A, B = "acme.example/widget=a", "acme.example/widget=b"


def asked(config, **changes):
    """Return device, source and key of each request in *config*."""
    return [
        (one.device, one.source, one.key) for one in requests.read(config, DEFAULTS.but(**changes))
    ]


def test_sources_stand_in_order():
    """Annotations come first, in the order of their keys, then variables, then mounts."""
    config = {
        "mounts": [
            {"destination": "/devices/acme.example/widget/m", "source": "/dev/null"},
            {"destination": "/devices/acme.example/widget/n", "source": "/etc"},
            {"destination": "/other", "source": "/dev/null"},
        ],
        "process": {"env": [f"CDI_DEVICES={B},{A}"]},
        "annotations": {"cdi.k8s.io/b": B, "cdi.k8s.io/a": f"{A},{B}", "note": "x"},
    }

    assert [
        (A, "annotation", "cdi.k8s.io/a"),
        (B, "annotation", "cdi.k8s.io/a"),
        (B, "annotation", "cdi.k8s.io/b"),
        (B, "environment", "CDI_DEVICES"),
        (A, "environment", "CDI_DEVICES"),
        ("acme.example/widget=m", "mount", "/devices/acme.example/widget/m"),
    ] == asked(config, mounts="/devices")
    assert [A, B] == requests.devices(requests.read(config, DEFAULTS))


@pytest.mark.parametrize("value", ["", "void", "none"])
def test_words_that_mean_none(value):
    """The empty value, void and none ask for nothing."""
    assert [] == asked({"process": {"env": [f"CDI_DEVICES={value}"]}})


def test_last_entry_of_a_variable_counts():
    """Of several entries of one variable the last is in force, as for the process itself."""
    config = {"process": {"env": [f"CDI_DEVICES={A}", "X=1", f"CDI_DEVICES={B}"]}}

    assert [B] == [device for device, _, _ in asked(config)]


def test_variable_with_a_kind():
    """A variable with a kind takes short names, and qualified ones as they are."""
    environment = (("NVIDIA_VISIBLE_DEVICES", "nvidia.com/gpu", ("", "void")),)
    config = {"process": {"env": [f"NVIDIA_VISIBLE_DEVICES=0,all,{A}"]}}

    assert ["nvidia.com/gpu=0", "nvidia.com/gpu=all", A] == [
        device for device, _, _ in asked(config, environment=environment)
    ]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        pytest.param(
            {"annotations": {"cdi.k8s.io/x": f"{A}, {B}"}}, "blanks around a name", id="blank"
        ),
        pytest.param({"annotations": {"cdi.k8s.io/x": ""}}, "cdi.k8s.io/x=''", id="empty"),
        pytest.param({"annotations": {"cdi.k8s.io/x": 1}}, "is not text", id="number"),
        pytest.param({"annotations": {"cdi.k8s.io/x": f"{A},"}}, "it is empty", id="comma"),
        pytest.param({"process": {"env": ["CDI_DEVICES=/dev/x"]}}, "like a path", id="path"),
        pytest.param({"process": {"env": ["CDI_DEVICES=gpu0"]}}, "a short name", id="short"),
    ],
)
def test_request_that_is_none_is_refused(config, words):
    """A request that cannot be understood is refused, with where it stands and what it is."""
    with pytest.raises(BadRequest, match=words):
        asked(config)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"annotations": None, "process": None, "mounts": None},
        {"annotations": [], "process": [], "mounts": {}},
        {"process": {"env": {}}},
        {"process": {"env": [None, 1, "CDI_DEVICES"]}},
        {"mounts": [None, 1, {}, {"source": "/dev/null", "destination": 1}]},
    ],
)
def test_odd_configurations_ask_for_nothing(config):
    """A configuration without requests asks for nothing, whatever its sections hold."""
    assert [] == asked(config, mounts="/devices")
