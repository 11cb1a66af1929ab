"""``cdictl show``: what one device puts into a container."""

import pytest
from support.commands import Cdictl

EDITS = {
    "deviceNodes": [
        {"path": "/dev/a", "permissions": "r"},
        {"path": "/dev/b", "type": "b", "major": 7, "minor": 0},
    ],
    "additionalGids": [44],
}


@pytest.fixture
def cdictl(installation, configuration):
    """Return the command, where a device has these edits."""
    configuration.spec(("one", EDITS), cdiVersion="0.7.0")
    return Cdictl(installation.cdictl, configuration)


def test_numbers_that_the_spec_leaves_to_the_host_are_not_shown_as_zero(cdictl):
    """A node without numbers has none to show; one with a minor number of 0 has both."""
    first, second, _ = cdictl.json("show", "acme.com/widget=one")["edits"]

    assert {"path": "/dev/a", "permissions": "r"} == first["edit"]
    assert {"path": "/dev/b", "type": "b", "major": 7, "minor": 0} == second["edit"]


def test_every_kind_stands_apart_from_its_edit(cdictl):
    """The longest name of a kind has a blank behind it as well."""
    assert "  additionalGids  gid 44\n" in cdictl("show", "acme.com/widget=one").out
