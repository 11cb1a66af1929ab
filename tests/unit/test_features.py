"""What the real runtime would drop in silence is refused, or told."""

import json
import os

import pytest

from cdi_runc import capabilities


@pytest.fixture
def runtime(tmp_path):
    """Return a function that makes a runtime with these features, and counts its calls."""

    def make(**linux):
        path = tmp_path / "runtime"
        answer = json.dumps({"linux": linux})
        path.write_text(f"#!/bin/sh\necho called >>'{path}.calls'\ncat <<'END'\n{answer}\nEND\n")
        path.chmod(0o755)
        return path

    return make


def calls(path):
    """Return how often the runtime was asked."""
    return (path.parent / f"{path.name}.calls").read_text().count("called")


def test_real_runc_of_debian_moves_no_network_devices(host):
    """Runc 1.1.5 does not know netDevices, and the message says which version does."""
    why = capabilities.missing("netDevices", "/usr/sbin/runc", host.settings)

    assert "/usr/sbin/runc does not move network devices; runc has that since 1.4" == why


def test_runtime_is_asked_once(host, runtime):
    """The answer is kept until the program changes."""
    host.settings.but()
    os.mkdir(host.settings.state_dir, 0o700)
    path = runtime(netDevices={"enabled": True})
    for _ in range(3):
        assert "" == capabilities.missing("netDevices", str(path), host.settings)

    assert 1 == calls(path)
    runtime(netDevices={"enabled": False})

    assert "does not move" in capabilities.missing("netDevices", str(path), host.settings)
    assert 2 == calls(path)


def test_rdt_needs_resctrl(host, runtime):
    """Without resctrl, linux.intelRdt would have no effect."""
    if os.path.exists(capabilities.RESCTRL):
        pytest.skip("resctrl is mounted here")
    why = capabilities.missing("intelRdt", str(runtime(intelRdt={"enabled": True})), host.settings)

    assert "resctrl is not mounted" in why


def test_runtime_without_an_answer_has_nothing(host, tmp_path):
    """A runtime that does not answer is taken to have none of it."""
    for program in ("/bin/false", "/bin/true", str(tmp_path / "none")):
        assert "does not move" in capabilities.missing("netDevices", program, host.settings)


def test_trouble_with_asking_is_not_kept(host, runtime, tmp_path):
    """A runtime that could not be started once is asked again."""
    os.mkdir(host.settings.state_dir, 0o700)
    path, shell = runtime(netDevices={"enabled": True}), tmp_path / "sh"
    path.write_text(path.read_text().replace("/bin/sh", str(shell)))

    assert "does not move" in capabilities.missing("netDevices", str(path), host.settings)
    shell.symlink_to("/bin/sh")
    assert "" == capabilities.missing("netDevices", str(path), host.settings)
