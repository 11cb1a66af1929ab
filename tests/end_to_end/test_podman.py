"""Podman, which reads the runtime's standard error and knows annotations."""

from support.devices import probe, seen

ONE = ("--annotation", "cdi.k8s.io/test=acme.com/widget=one")


def test_annotation_adds_the_device(podman, make_node, tmp_path):
    """A device that an annotation asks for is there, with its access, mount and variable."""
    node = make_node()
    (tmp_path / "version").write_text("525\n")
    edits = {
        "env": ["ACME=1"],
        "deviceNodes": [{"path": "/dev/acme0", "hostPath": str(node.path), "permissions": "r"}],
        "mounts": [
            {
                "hostPath": str(tmp_path / "version"),
                "containerPath": "/etc/acme",
                "options": ["ro", "bind"],
            }
        ],
    }
    podman.configuration.spec(("one", edits))
    words = ["sh", "-c", '"$@"; echo "$ACME $(cat /etc/acme)"', "sh", *probe()]
    lines = podman.run(*ONE, command=words).out.splitlines()
    (record,) = podman.configuration.records()

    assert [seen(node, write="no"), "1 525"] == lines
    assert (record["engine"], record["result"]) == ("podman", "edited")
    assert [request["source"] for request in record["requests"]] == ["annotation"]


def test_variable_asks_as_well(podman):
    """A device that an environment variable asks for is there."""
    podman.configuration.spec(("one", {"env": ["ACME=1"]}))
    words = ["sh", "-c", "echo $ACME"]

    options = ("--env", "CDI_DEVICES=acme.com/widget=one")
    assert podman.run(*options, command=words).out.strip() == "1"


def test_no_request_no_edit(podman):
    """A container that asks for nothing starts, and nothing is recorded."""
    assert podman.run(command=["echo", "fine"]).out.strip() == "fine"
    assert podman.configuration.records() == []


def test_failure_is_in_its_output(podman):
    """What keeps a container from starting stands in Podman's own output."""
    spec = podman.configuration.spec(("other", {"env": ["ACME=1"]}))
    finished = podman.run(*ONE, check=False)

    assert finished.status != 0
    for word in ("cdi-runc: ", "acme.com/widget=one", str(spec.parent), "cdictl devices"):
        assert word in finished.err
    assert "Traceback" not in finished.err
