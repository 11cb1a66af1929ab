"""``cdictl show``: what one device puts into a container."""

import pytest
from support.commands import Cdictl

from cdi_runc.specs import check

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
    assert "  additionalGids  44\n" in cdictl("show", "acme.com/widget=one").out


EVERY_KEY = {
    "env": ["A=run", "EMPTY="],
    "deviceNodes": [
        {
            "path": "/dev/a",
            "hostPath": "/dev/null",
            "type": "c",
            "major": 1,
            "minor": 3,
            "fileMode": 0o660,
            "permissions": "rw",
            "uid": 0,
            "gid": 44,
        }
    ],
    "netDevices": [{"hostInterfaceName": "eth1", "name": "net0"}],
    "mounts": [
        {
            "hostPath": "/etc",
            "containerPath": "/opt/acme",
            "options": ["ro", "rbind"],
            "type": "bind",
        }
    ],
    "hooks": [
        {
            "hookName": "createRuntime",
            "path": "/bin/true",
            "args": ["true", "a b"],
            "env": ["A=1", "B=2"],
            "timeout": 5,
        }
    ],
    "intelRdt": {
        "closID": "gold",
        "l3CacheSchema": "L3:0=f",
        "memBwSchema": "MB:0=20",
        "schemata": ["L3:0=f", "MB:0=20"],
        "enableMonitoring": True,
    },
    "additionalGids": [44],
}
"""Every key of every kind of edit."""


def test_keys_are_those_of_cdi(cdictl, configuration):
    """What is shown for machines is what the spec file says, key by key."""
    configuration.spec(("one", EVERY_KEY), cdiVersion="1.1.0")
    kinds = check.schema()["properties"]["containerEdits"]["properties"]
    shown = {}
    for one in cdictl.json("show", "acme.com/widget=one")["edits"]:
        shown.setdefault(one["kind"], []).append(one["edit"])
    (shown["intelRdt"],) = shown["intelRdt"]

    assert EVERY_KEY == shown
    for kind, schema in kinds.items():
        members = schema.get("items", schema).get("properties", {})
        assert not members or {*members} == {key for one in listed(shown[kind]) for key in one}


def listed(edits):
    """Return *edits* as a list, which intelRdt is not."""
    return edits if isinstance(edits, list) else [edits]


def test_text_is_written_as_in_a_spec_file(cdictl, configuration):
    """Variables, options and arguments are shown as people write them."""
    configuration.spec(("one", EVERY_KEY), cdiVersion="1.1.0")
    out = cdictl("show", "acme.com/widget=one").out

    assert "  env             A=run\n" in out
    assert "  mounts          hostPath /etc, containerPath /opt/acme, options ro,rbind, type" in out
    assert (
        "hookName createRuntime, path /bin/true, args true 'a b', env A=1 B=2, timeout 5\n" in out
    )
    assert "  netDevices      hostInterfaceName eth1, name net0\n" in out
