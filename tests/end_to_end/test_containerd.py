"""containerd through its own client, ctr."""

from support.devices import probe, seen
from support.engines import new_name


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


def test_exec_sees_the_variables(ctr, installation):
    """``ctr task exec`` sees the device's variables and groups."""
    ctr.configuration.spec(
        ("one", {"env": ["ACME=1"], "additionalGids": [4242]}), cdiVersion="0.7.0"
    )
    name = new_name()
    options = ("--detach", "--annotation", "cdi.k8s.io/test=acme.com/widget=one")
    ctr.run(installation.shim, *options, command=["sleep", "1000"], name=name)
    try:
        words = ("sh", "-c", "echo $ACME $(id -G)")
        said = ctr("task", "exec", "--exec-id", "e1", name, *words).out.strip()
    finally:
        ctr("task", "kill", "--signal", "9", name)
        ctr("task", "delete", "--force", name, check=False)
        ctr("container", "delete", name, check=False)

    assert said == "1 0 4242"
