"""containerd through its own client, ctr."""

from support.devices import probe, seen


def test_annotation_adds_the_device(ctr, installation, make_node):
    """A device that an annotation asks for is there, with the access of its spec."""
    node = make_node()
    edit = {"path": "/dev/acme0", "hostPath": str(node.path), "permissions": "r"}
    ctr.configuration.spec(("one", {"deviceNodes": [edit]}))
    options = ("--annotation", "cdi.k8s.io/test=acme.com/widget=one")
    finished = ctr.run(installation.shim, *options, command=probe())
    (record,) = ctr.configuration.records()

    assert seen(node, write="no") == finished.out.strip()
    assert (record["engine"], record["result"]) == ("containerd", "edited")


def test_no_request_no_edit(ctr, installation):
    """A container that asks for nothing starts, and nothing is recorded."""
    assert ctr.run(installation.shim, command=["echo", "fine"]).out.strip() == "fine"
    assert ctr.configuration.records() == []


def test_failure_is_in_its_output(ctr, installation):
    """What keeps a container from starting stands in ctr's own output."""
    options = ("--annotation", "cdi.k8s.io/test=acme.com/widget=one")
    finished = ctr.run(installation.shim, *options, check=False)

    assert finished.status != 0
    assert "cdi-runc: " in finished.err
    assert "acme.com/widget=one" in finished.err
