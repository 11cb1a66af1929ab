"""Containerd as a Kubernetes node has it: its CRI, driven over its socket as a kubelet does.

Its config.toml is what ``cdictl configure containerd`` makes of a node's.
"""

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import grpc
import pytest
from support.configurations import Configuration
from support.cri import Cri
from support.devices import probe, seen
from support.engines import IMAGE, new_name, unmount_below
from support.programs import environment, need, run

DEVICE = "acme.com/widget=one"
PAUSE = "cdi-runc-pause"
"""The image of every container, a pod's own one included."""
CONFIG = """\
version = 2
root = "{top}/root"
state = "{top}/state"
[grpc]
  address = "{top}/c.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/{pause}:latest"
  restrict_oom_score_adj = true
  disable_tcp_service = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
[plugins."io.containerd.internal.v1.opt"]
  path = "{top}/opt"
"""


class Node:
    """A containerd with the CRI, and its image."""

    def __init__(self, installation, configuration, images):
        self.configuration = configuration
        self.top = Path(tempfile.mkdtemp(prefix="cdi-runc-cri-", dir="/tmp"))
        self.config = self.top / "config.toml"
        self.config.write_text(CONFIG.format(top=self.top, pause=PAUSE))
        self.env = environment(**configuration.env)
        words = ("--config-file", self.config, "--runtime-path", installation.shim)
        run(installation.cdictl, "configure", "containerd", *words, env=self.env)
        self.log = self.top / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [need("containerd"), "--config", self.config],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.cri = Cri(self.top / "c.sock")
        self._wait_until_ready()
        ctr = ("ctr", "--address", self.top / "c.sock", "--namespace", "k8s.io")
        run(*ctr, "images", "import", "--snapshotter", "native", images)

    def _wait_until_ready(self):
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.cri("Version", {})
            except grpc.RpcError:
                assert self.process.poll() is None, self.log.read_text()
                assert time.monotonic() < deadline, self.log.read_text()
                time.sleep(0.1)

    def stop(self):
        """Stop it by its pid, and remove what it left."""
        self.cri.close()
        os.kill(self.process.pid, signal.SIGTERM)
        self.process.wait(60)
        unmount_below(self.top)
        run("rm", "-rf", self.top)


@pytest.fixture(scope="module")
def node(installation, dockerd, tmp_path_factory):
    """Start a node; its image comes from the Docker daemon of the tests."""
    name = new_name()
    dockerd("create", "--name", name, IMAGE, "true")
    changes = ("--change", "ENV PATH=/bin", "--change", 'ENTRYPOINT ["sleep", "100000"]')
    dockerd("commit", *changes, name, PAUSE)
    dockerd("rm", name)
    images = tmp_path_factory.mktemp("images") / "images.tar"
    dockerd("save", "--output", images, PAUSE)
    configuration = Configuration(tmp_path_factory.mktemp("cri") / "cdi-runc")
    node = Node(installation, configuration, images)
    yield node
    node.stop()
    configuration.forget()


@pytest.fixture
def pod(node, tmp_path):
    """Start a pod whose runtime class is ours."""
    node.configuration.reset()
    pod = node.cri.run_pod(new_name(), "cdi", tmp_path)
    yield pod
    node.cri.remove_pod(pod)


IDLE = ("sleep", "1000")


@pytest.mark.parametrize(
    "asking",
    [
        pytest.param({"annotations": {"cdi.k8s.io/plugin_0": DEVICE}}, id="annotation"),
        pytest.param({"env": {"CDI_DEVICES": DEVICE}}, id="variable"),
    ],
)
def test_container_of_a_pod_gets_its_device(node, pod, make_node, asking):
    """What a device plugin asks for is there: node and access, variable, exec sees it too."""
    device = make_node()
    nodes = [{"path": "/dev/acme0", "hostPath": str(device.path), "permissions": "r"}]
    node.configuration.spec(("one", {"env": ["ACME=given"], "deviceNodes": nodes}))
    container = node.cri.run(pod, "job", PAUSE, IDLE, **asking)
    (record,) = node.configuration.records()

    assert seen(device, write="no") == node.cri.exec(container, *probe()).strip()
    assert "ACME=given" in node.cri.exec(container, "env").splitlines()
    assert (record["engine"], record["result"]) == ("containerd", "edited")


def test_pause_and_other_containers_are_left_alone(node, pod):
    """Neither the pod's own container nor one that asks for nothing is edited or recorded."""
    container = node.cri.run(pod, "job", PAUSE, IDLE)

    assert "ACME" not in node.cri.exec(container, "env")
    assert node.configuration.records() == []


def test_failure_reaches_the_kubelet(node, pod):
    """A device that is not there keeps the container from starting; the kubelet sees why."""
    node.configuration.spec(("other", {"env": ["ACME=given"]}))
    with pytest.raises(grpc.RpcError) as caught:
        node.cri.run(pod, "job", PAUSE, IDLE, annotations={"cdi.k8s.io/plugin_0": DEVICE})

    assert DEVICE in caught.value.details()
    assert "cdi-runc: " in caught.value.details()
    assert "cdictl devices" in caught.value.details()


def test_pods_of_other_runtime_classes_are_not_ours(node, tmp_path):
    """With the node's own runtime the annotation has no effect."""
    node.configuration.reset()
    node.configuration.spec(("one", {"env": ["ACME=given"]}))
    pod = node.cri.run_pod(new_name(), "", tmp_path)
    asking = {"annotations": {"cdi.k8s.io/plugin_0": DEVICE}}
    container = node.cri.run(pod, "job", PAUSE, IDLE, **asking)
    out = node.cri.exec(container, "env")
    node.cri.remove_pod(pod)

    assert "ACME" not in out
    assert node.configuration.records() == []
