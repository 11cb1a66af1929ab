"""The sdist and the wheel, and that every package is of the same version."""

import re
import shutil
import sys
import tarfile
import zipfile

import pytest
from support.installations import ROOT
from support.programs import environment, run

from cdi_runc import VERSION


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build an sdist of a copy of this checkout, and a wheel from the sdist alone."""
    out = tmp_path_factory.mktemp("dist")
    copy = out / "checkout"
    skipped = shutil.ignore_patterns("__pycache__", ".?*_cache", ".git", "cases", "build", "dist")
    shutil.copytree(ROOT, copy, ignore=skipped)
    shutil.copy(ROOT / "packaging/build", copy / "packaging")
    run(sys.executable, "-m", "build", "--outdir", out, copy, env=environment(), timeout=280)
    return out


def test_the_wheel_has_the_code_and_its_schemas(built):
    """All of cdi_runc and nothing else; the launcher is install.sh's and the packages' matter."""
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = (ROOT / "cdi_runc").rglob("*.*")
    code = {str(p.relative_to(ROOT)) for p in sources if p.suffix in (".py", ".json")}

    assert {name for name in names if ".dist-info/" not in name} == code
    assert wheel.name == f"cdi_runc-{VERSION}-py3-none-any.whl"


def test_the_sdist_has_what_the_packages_are_built_from(built):
    """All of packaging is in it, and the installer and the licence."""
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    files = [path for path in (ROOT / "packaging").rglob("*") if path.is_file()]
    packaging = {str(path.relative_to(ROOT)) for path in files if path.suffix != ".pyc"}

    assert {*packaging, "install.sh", "LICENSE", "CHANGELOG.md", "tests/run"} <= names


def test_the_wheel_gives_cdictl(built, tmp_path):
    """In a clean environment the command works, with the newest of what it depends on."""
    (wheel,) = built.glob("*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    run(tmp_path / "venv/bin/pip", "install", "--quiet", "--no-input", wheel, timeout=280)
    config = tmp_path / "config.yaml"
    config.write_text("conflicts: nonsense\n")
    cdictl = tmp_path / "venv/bin/cdictl"
    env = environment(CDI_RUNC_CONFIG=str(config))
    checked = run(cdictl, "config", "check", env=env, check=False)

    assert run(cdictl, "--version").out == f"cdictl {VERSION}\n"
    assert "line 1" in checked.out + checked.err


def test_every_version_is_the_same():
    """The launcher, the changelog of the Debian package and the rpm's spec say our version."""
    said = {
        "launcher": r"(?m)^cdi_release=(.*)$",
        "debian/changelog": r"^cdi-runc \((.*)-[^-]*\)",
        "rpm/cdi-runc.spec": r"(?m)^Version: *(.*)$",
    }
    for name, pattern in said.items():
        assert re.search(pattern, (ROOT / "packaging" / name).read_text())[1] == VERSION
