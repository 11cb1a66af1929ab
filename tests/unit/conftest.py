"""Fixtures of the unit tests: settings and configurations of their own, below ``tmp_path``."""

import os
import posix

import pytest
from support.configurations import forget
from support.samples import Host

from cdi_runc import paths, settings
from cdi_runc.config import compile as config_compile


@pytest.fixture(autouse=True)
def own_configuration(tmp_path, monkeypatch):
    """Keep this host's configuration, and the caller's, out of the tests."""
    monkeypatch.setattr(paths, "CONFIG", str(tmp_path / "no-configuration"))
    for name in (b"CDI_RUNC_CONFIG", b"XDG_CONFIG_HOME", b"XDG_RUNTIME_DIR", b"XDG_STATE_HOME"):
        monkeypatch.delitem(posix.environ, name, raising=False)
        monkeypatch.delenv(name.decode(), raising=False)


@pytest.fixture
def own_settings(tmp_path):
    """Return settings whose every place is below ``tmp_path``, with one directory for specs."""
    (tmp_path / "cdi").mkdir()
    return settings.defaults().but(
        spec_dirs=(str(tmp_path / "cdi"),),
        state_dir=str(tmp_path / "state"),
        audit_file=str(tmp_path / "log/audit.jsonl"),
        log_file=str(tmp_path / "log/cdi-runc.log"),
    )


@pytest.fixture
def configuration(tmp_path, monkeypatch):
    """Return the path of the configuration in force, which is not there yet."""
    path = tmp_path / "config.yaml"
    monkeypatch.setitem(posix.environ, b"CDI_RUNC_CONFIG", os.fsencode(path))
    yield path
    forget(tmp_path)


@pytest.fixture
def settled(monkeypatch):
    """Let files count as old as soon as they are written, so that no test has to wait."""
    monkeypatch.setattr(config_compile, "YOUNG_NS", 0)
    monkeypatch.setattr(config_compile, "RACY_NS", 0)


@pytest.fixture
def host(tmp_path):
    """Return two empty spec directories, and settings that name them."""
    return Host(tmp_path)
