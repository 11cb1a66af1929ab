"""What packaging/kubernetes holds: valid manifests, and an installer that works on a node.

Needs Python 3.11, for tomllib.
"""

import kubernetes_validate
import pytest
import tomllib
import yaml
from support.installations import ROOT
from support.programs import need, run

MANIFESTS = sorted((ROOT / "packaging/kubernetes").glob("*.yaml"))
VERSIONS = ("1.25", "1.29", "1.33")
# A node that looks like this machine.  In the place of its systemctl is a program that tells its
# words, found by a real nsenter, whose target is not process 1 but this shell.  A function does
# that, since Debian's busybox sh prefers its applets to what PATH has.
NODE = r"""
set -e
top=$1
installer=$2/packaging/kubernetes/install-on-node
mount -t tmpfs none "$top"
mkdir "$top/upper" "$top/work" "$top/host" "$top/bin"
mount -t overlay -o "lowerdir=/,upperdir=$top/upper,workdir=$top/work" none "$top/host"
host=$top/host
cat >"$top/bin/systemctl" <<END
#!/bin/sh
echo "called: systemctl \$*"
exit \$(cat "$top/status")
END
chmod 755 "$top/bin/systemctl"
PATH=$top/bin:$PATH
export PATH
install_with() {
    status=0
    "$@" -c 'nsenter() {
        [ "$1 $2" = "-t 1" ]
        shift 2
        command nsenter -t $$ "$@"
    }
    . "$0"' "$installer" "$host" || status=$?
    echo "status: $status"
}
"""
INSTALL = """
echo 1 >"$top/status"
install_with busybox sh
echo 0 >"$top/status"
install_with sh
install_with busybox sh
chroot "$host" cdi-runc --version
ls "$host/var/tmp" "$host/run"
containerd --config "$host/etc/containerd/config.toml" config dump >"$3"
"""
NO_CONTAINERD = """
rm -rf "$host/etc/containerd" "$host$(command -v containerd)"
install_with busybox sh
ls -d "$host/opt/cdi-runc" "$host/etc/containerd" 2>/dev/null || echo nothing
"""


def on_a_node(script, tmp_path, *words):
    """Run *script* where $host is a node's root; return what it and the installer say."""
    for program in ("busybox", "nsenter", "containerd"):
        need(program)
    command = ("--propagation", "private", "sh", "-c", f"exec 2>&1\n{NODE}{script}", "sh")
    top = tmp_path / "node"
    top.mkdir()
    return run(need("unshare"), "-m", *command, top, ROOT, *words, timeout=280).out


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
    """A restart that fails is made by the next try, and none by the one after; any sh will do.

    containerd then has its default runtime, and ours.
    """
    dump = tmp_path / "config.toml"
    out = on_a_node(INSTALL, tmp_path, dump)
    told = [line for line in out.splitlines() if line.startswith(("called:", "status:"))]
    content = tomllib.loads(dump.read_text())
    runtimes = content["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"]

    restart = "called: systemctl restart containerd"
    assert told == [restart, "status: 1", restart, "status: 0", "status: 0"], out
    assert "runc version" in out
    left = out.partition("runc version")[2]
    assert "cdi-runc." not in left
    assert runtimes["cdi"]["options"]["BinaryName"] == "/usr/local/bin/cdi-runc"
    assert {"runc", "cdi"} <= {*runtimes}


def test_installer_wants_a_containerd(tmp_path):
    """On a node without a containerd it installs nothing, makes no configuration, and says so."""
    out = on_a_node(NO_CONTAINERD, tmp_path)

    assert "this node has no containerd" in out
    assert "docs/engines.md" in out
    assert out.endswith("status: 1\nnothing\n"), out


def test_installer_may_do_what_it_does():
    """The pod has the node's processes and network, and may enter the node's namespaces."""
    content = yaml.safe_load((ROOT / "packaging/kubernetes/installer.yaml").read_text())
    pod = content["spec"]["template"]["spec"]

    assert (pod["hostPID"], pod["hostNetwork"], pod["dnsPolicy"]) == (True, True, "Default")
    assert pod["initContainers"][0]["securityContext"]["privileged"]
