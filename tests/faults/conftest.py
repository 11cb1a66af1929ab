"""Fixtures of the staged faults: a host that is sound, and the doctor's word on what is broken."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from support.installations import ROOT
from support.programs import environment, run

from cdi_runc import settings
from cdi_runc.doctor import engines, host

PYTHON = getattr(sys, "_base_executable", sys.executable)


class Parts:
    """What an installer puts together: launcher, shim, frozen program, packages."""

    def __init__(self, home):
        self.home = home
        self.launcher = home / "cdi-runc"
        self.lib = home / "lib"
        self.lib.mkdir(parents=True)
        packages = Path(sysconfig.get_paths()["purelib"])
        for one in (ROOT / "cdi_runc", *packages.iterdir()):
            if not (self.lib / one.name).is_symlink():
                (self.lib / one.name).symlink_to(one)
        self.write(PYTHON)
        shim = (ROOT / "packaging/shim").read_text()
        (home / "shim").write_text(shim.replace("/usr/lib/cdi-runc/lib", str(self.lib)))
        freeze = [PYTHON, ROOT / "packaging/freeze", self.lib, home / "hot.pyc"]
        subprocess.run(freeze, check=True)

    def write(self, python, home=None):
        """Write the launcher anew."""
        text = (ROOT / "packaging/launcher").read_text()
        text = text.replace("cdi_python=/usr/bin/python3", f"cdi_python='{python}'")
        text = text.replace("cdi_home=/usr/lib/cdi-runc", f"cdi_home='{home or self.home}'")
        self.launcher.write_text(text)
        self.launcher.chmod(0o755)


@pytest.fixture
def parts(tmp_path):
    """Return the parts of an installation."""
    return Parts(tmp_path / "home")


class Host:
    """A host with cdi-runc, and with a Docker that knows it and does not run."""

    def __init__(self, configuration, parts):
        self.configuration = configuration
        self.parts = parts
        self.daemon_json = configuration.directory / "daemon.json"
        self.register({"cdi": {"path": str(parts.launcher)}})
        configuration.spec(("w0", {"env": ["ACME=1"]}))
        configuration.audit_file.parent.mkdir(mode=0o750)

    def register(self, runtimes, **members):
        """Write daemon.json."""
        self.daemon_json.write_text(json.dumps({"runtimes": runtimes, **members}))

    def findings(self):
        """Return what the doctor finds, without what is the test machine's own business."""
        dockers = engines.dockers([], str(self.daemon_json))
        report = host.examine(settings.current(), dockers)
        return [
            one for one in report.findings if one.check not in ("audit-rotated", "unregistered")
        ]

    def settings(self, **changes):
        """Return the settings in force, with *changes*."""
        return settings.current().but(**changes)


@pytest.fixture
def sound(configuration, parts, monkeypatch):
    """Return a host on which nothing is wrong."""
    monkeypatch.setenv("CDI_RUNC_CONFIG", str(configuration.path))
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        monkeypatch.delenv(name)
    return Host(configuration, parts)


@pytest.fixture
def doctor(installation, configuration):
    """Return a function that calls ``cdictl doctor``, and returns its findings and exit status."""

    def call(*words, configuration=configuration):
        env = environment(**configuration.env)
        done = run(installation.cdictl, "doctor", "--json", *words, env=env, check=False)
        assert done.status in (0, 1), done
        assert done.out, done
        return json.loads(done.out)["findings"], done.status

    return call


@pytest.fixture
def glibc():
    """Return real ELF files of this host, linked with glibc, by a name for each."""
    found = {"program": shutil.which("ls"), "library": None}
    for directory in ("/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64"):
        for key, name in (("library", "libm.so.6"), ("libc", "libc.so.6")):
            if not found.get(key) and os.path.exists(f"{directory}/{name}"):
                found[key] = os.path.realpath(f"{directory}/{name}")
    if not found["library"]:
        pytest.skip("this host has no glibc")
    return found
