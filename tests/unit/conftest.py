"""Fixtures of the unit tests."""

import posix

import pytest
from support.commands import Cdictl
from support.samples import Host

from cdi_runc import paths


@pytest.fixture(autouse=True)
def no_configuration(tmp_path, monkeypatch):
    """Keep this host's configuration, and the caller's, out of the tests."""
    monkeypatch.setattr(paths, "CONFIG", str(tmp_path / "no-configuration"))
    for name in (b"CDI_RUNC_CONFIG", b"XDG_CONFIG_HOME", b"XDG_RUNTIME_DIR", b"XDG_STATE_HOME"):
        monkeypatch.delitem(posix.environ, name, raising=False)
        monkeypatch.delenv(name.decode(), raising=False)


@pytest.fixture
def host(tmp_path):
    """Return two empty spec directories, and settings that name them."""
    return Host(tmp_path)


@pytest.fixture
def cdictl(installation, configuration):
    """Return the command."""
    return Cdictl(installation.cdictl, configuration)
