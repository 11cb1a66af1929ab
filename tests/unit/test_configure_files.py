"""``cdictl configure podman|containerd|crio``: what it writes, and that it leaves no trace."""

import os

import pytest
import tomlkit

from cdi_runc.cli import main
from cdi_runc.engines.config_file import BACKUP

KUBERNETES = """\
# Made by kubeadm's admin
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "pause:3.9" # ours
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
"""
STOCK = """\
version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd/opt"
"""
"""As Debian 12 has it."""
TEXTS = [
    pytest.param(STOCK, id="debian"),
    pytest.param("version = 2\n", id="version"),
    pytest.param(KUBERNETES, id="kubernetes"),
    pytest.param(KUBERNETES.replace("\n", "\r\n"), id="crlf"),
    pytest.param("version = 3\n\n[debug]\nlevel = 'info'\n", id="version-3"),
    pytest.param('version = 2\nplugins."io.containerd.grpc.v1.cri" = {}\n', id="inline"),
]


@pytest.fixture
def run(tmp_path, capsys):
    """Return a function that runs the command on a file in tmp_path, with a program there."""
    program = tmp_path / "cdi-runc"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    def run(engine, *words, file="etc/engine.conf"):
        code = main.main(
            [
                *("configure", engine, "--config-file", str(tmp_path / file), *words),
                *(() if "--remove" in words else ("--runtime-path", str(program))),
            ]
        )
        return code, "".join(capsys.readouterr())

    run.file = tmp_path / "etc/engine.conf"
    run.program = str(program)
    return run


def entry(text, plugin="io.containerd.grpc.v1.cri"):
    """Return the table of runtimes in containerd's *text*."""
    return tomlkit.parse(text).unwrap()["plugins"][plugin]["containerd"]


@pytest.mark.parametrize("engine", ["podman", "crio"])
def test_a_drop_in_comes_and_goes(run, engine):
    """The drop-in is ours alone, says so, and is gone after --remove."""
    assert run(engine)[0] == 0
    text = run.file.read_text()
    again = run(engine)
    assert "nothing to change" in again[1]
    assert text == run.file.read_text()
    assert run.program in text
    assert f"configure {engine} --remove" in text
    assert run(engine, "--remove")[0] == 0
    assert not run.file.exists()
    assert run(engine, "--remove") == (0, f"{run.file}: nothing to change\n")


@pytest.mark.parametrize("engine", ["podman", "crio"])
def test_another_ones_file_is_not_replaced(run, engine):
    """A file at the drop-in's place that we did not make stays, and the command fails."""
    run.file.parent.mkdir()
    run.file.write_text("[engine]\n")
    for words in ((), ("--remove",)):
        code, told = run(engine, *words)
        assert code == 1
        assert "was left as it is: it was not made by cdictl configure" in told
    assert run.file.read_text() == "[engine]\n"


def test_crio_takes_a_default(run):
    """With --set-default the drop-in names the runtime as CRI-O's default."""
    run("crio", "--set-default", "--runtime-name", "mine")
    runtime = tomlkit.parse(run.file.read_text()).unwrap()["crio"]["runtime"]

    assert runtime["default_runtime"] == "mine"
    assert runtime["runtimes"]["mine"]["runtime_path"] == run.program


@pytest.mark.parametrize("text", TEXTS)
def test_containerd_is_as_before_after_remove(run, text):
    """The entry is added once, all else stays in its place, and --remove leaves no trace."""
    run.file.parent.mkdir()
    run.file.write_bytes(text.encode())
    assert run("containerd", "--set-default")[0] == 0
    new = run.file.read_bytes().decode()
    plugin = "io.containerd.cri.v1.runtime" if "= 3" in text else "io.containerd.grpc.v1.cri"
    cri = entry(new, plugin)
    assert cri["runtimes"]["cdi"]["options"]["BinaryName"] == run.program
    assert cri["runtimes"]["cdi"]["container_annotations"] == ["cdi.k8s.io/*"]
    assert cri["default_runtime_name"] == "cdi"
    for line in text.splitlines():
        assert line.removesuffix("}") in new
    assert "nothing to change" in run("containerd", "--set-default")[1]
    assert run("containerd", "--remove")[0] == 0
    assert run.file.read_bytes().decode() == text
    assert [run.file.name] == os.listdir(run.file.parent)


def test_containerd_without_a_file(run):
    """Where there is no config.toml one is made, and --remove removes it."""
    run("containerd")
    assert tomlkit.parse(run.file.read_text()).unwrap()["version"] == 2
    run("containerd", "--remove")
    assert not run.file.exists()


def test_containerd_keeps_what_holds_for_runc(run):
    """The cgroup driver of runc is that of ours."""
    run.file.parent.mkdir()
    run.file.write_text(KUBERNETES)
    run("containerd")

    assert entry(run.file.read_text())["runtimes"]["cdi"]["options"]["SystemdCgroup"] is True


@pytest.mark.parametrize(
    ("text", "stock"),
    [
        pytest.param("version = 2\n", "runc", id="none"),
        pytest.param(
            'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\n'
            'default_runtime_name = "nvidia"\n',
            "nvidia",
            id="default-named-only",
        ),
    ],
)
def test_containerd_keeps_its_default_runtime(run, text, stock):
    """Containerd 1.6 has only the runtimes of its file, so the default one is named there too."""
    run.file.parent.mkdir()
    run.file.write_text(text)
    run("containerd")

    assert entry(run.file.read_text())["runtimes"][stock] == {
        "runtime_type": "io.containerd.runc.v2"
    }


def test_containerd_takes_the_options_of_the_default_runtime(run):
    """The cgroup driver is that of the runtime which containers have without a class."""
    run.file.parent.mkdir()
    run.file.write_text(
        'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\n'
        'default_runtime_name = "nvidia"\n'
        '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]\n'
        'SystemdCgroup = true\nBinaryName = "/usr/bin/nvidia-container-runtime"\n'
    )
    run("containerd")
    options = entry(run.file.read_text())["runtimes"]["cdi"]["options"]

    assert {"SystemdCgroup": True, "BinaryName": run.program} == options


def test_containerd_without_the_cri_is_told(run):
    """Where the file turns the CRI off, that is said."""
    run.file.parent.mkdir()
    run.file.write_text('version = 2\ndisabled_plugins = ["cri"]\n')

    assert "The CRI is off" in run("containerd")[1]


def test_containerd_changed_since_loses_our_entry_alone(run):
    """What was changed after us stays; the backup is not put back over it."""
    run.file.parent.mkdir()
    run.file.write_text(KUBERNETES)
    run("containerd")
    run.file.write_text(run.file.read_text().replace("pause:3.9", "pause:3.10"))
    run("containerd", "--remove")
    text = run.file.read_text()

    assert "pause:3.10" in text
    assert "cdi" not in entry(text)["runtimes"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("disabled_plugins = []\n", "containerd config default", id="version-1"),
        pytest.param("version = [\n", "it is not TOML", id="broken"),
        pytest.param("version = 2\nplugins = 1\n", "'plugins' is not a table", id="type"),
        pytest.param("version = 2\nversion = 2\n", "it is not TOML", id="twice"),
    ],
)
def test_containerds_file_that_is_not_understood_is_left(run, text, words):
    """A file that we cannot read without a doubt is left as it is."""
    run.file.parent.mkdir()
    run.file.write_text(text)
    code, told = run("containerd")

    assert (code, text) == (1, run.file.read_text())
    assert words in told
    assert os.listdir(run.file.parent) == [run.file.name]


def test_dry_run_changes_nothing(run):
    """The change is shown and not made."""
    for engine in ("podman", "crio", "containerd"):
        code, told = run(engine, "--dry-run")
        assert code == 0
        assert f"+++ {run.file} (not written)" in told
        assert not run.file.parent.exists()


def test_backup_is_named_as_dockers(run):
    """The file as it was before us lies beside it."""
    run.file.parent.mkdir()
    run.file.write_text(KUBERNETES)
    run("containerd")

    assert run.file.with_name(run.file.name + BACKUP).read_text() == KUBERNETES
