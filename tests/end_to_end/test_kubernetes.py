"""What packaging/kubernetes holds: valid manifests, and an installer that works on a node."""

import kubernetes_validate
import pytest
import yaml
from support.installations import ROOT
from support.programs import environment, need, run

MANIFESTS = sorted((ROOT / "packaging/kubernetes").glob("*.yaml"))
VERSIONS = ("1.25", "1.29", "1.33")
NODE = """
set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/host"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" none "$1/host"
printf '#!/bin/sh\\necho "systemctl $*" >>/var/called\\n' >"$1/host/usr/local/bin/systemctl"
chmod 755 "$1/host/usr/local/bin/systemctl"
"$2/packaging/kubernetes/install-on-node" "$1/host"
echo "called: $(cat "$1/host/var/called")"
chroot "$1/host" cdi-runc --version
grep -A6 'runtimes.cdi' "$1/host/etc/containerd/config.toml"
ls "$1/host/var/tmp"
"""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifest_is_valid(path, version):
    """Each manifest has no fault by the published schema, unknown fields included."""
    documents = list(yaml.safe_load_all(path.read_text()))
    for document in documents:
        kubernetes_validate.validate(document, version, strict=True)
    assert documents


def test_runtime_class_names_the_handler_that_configure_adds():
    """The handler is the runtime's name in containerd's configuration."""
    content = yaml.safe_load((ROOT / "packaging/kubernetes/runtimeclass.yaml").read_text())

    assert content["handler"] == "cdi"


def test_installer_installs_on_a_node(tmp_path):
    """On a node that looks like this machine, it installs, and tells containerd once."""
    words = (need("unshare"), "-m", "--propagation", "private", "sh", "-c", NODE, "sh")
    out = run(*words, tmp_path, ROOT, env=environment(), timeout=280).out

    assert "called: systemctl restart containerd\n" in out
    assert 'BinaryName = "/usr/local/bin/cdi-runc"' in out
    assert "cdi-runc." not in out.partition("BinaryName")[2]
