"""Qualified names: what is wrong with one is said in words."""

import pytest

from cdi_runc import names
from cdi_runc.errors import BadRequest


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("/dev/video0", "looks like a path", id="path"),
        pytest.param("gpu0", "looks like a short name", id="short"),
        pytest.param("", "it is empty", id="empty"),
        pytest.param("acme.example/widget", "vendor.com/class=name", id="kind-alone"),
        pytest.param("acme.example/widget=", "vendor.com/class=name", id="no-name"),
        pytest.param("acme.example/widget=mig/1/0", "device name 'mig/1/0' holds '/'", id="slash"),
        pytest.param("acme.example/widget=-x", "must begin with a letter or a digit", id="dash"),
        pytest.param("acme.example/widget=x-", "must end with a letter or a digit", id="dash-end"),
        pytest.param("acme.example/widget=a=b", "holds '='", id="equals"),
        pytest.param("3com.example/nic=a", "vendor '3com.example' must begin", id="digit-vendor"),
        pytest.param("acme.example/3d=a", "class '3d' must begin with a letter", id="digit-class"),
    ],
)
def test_fault_is_named(name, words):
    """A name that is none is refused, with what it looks like or what is wrong in it."""
    with pytest.raises(BadRequest) as caught:
        names.parse(name)

    assert words in str(caught.value)
    assert "cdictl devices" in str(caught.value)


@pytest.mark.parametrize("device", ["0", "GPU-6c4e-12", "0:1", "all", "a.b_c-d:e"])
def test_legal_names_are_parsed(device):
    """Index names, UUIDs and MIG-style names with a colon are legal."""
    assert ("acme.example", "widget", device) == names.parse(f"acme.example/widget={device}")
