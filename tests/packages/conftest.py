"""Fixtures of the packages' tests: builds, and a clean root to install them in."""

import fcntl
import re
import shutil

import pytest
from support.installations import ROOT, shared
from support.programs import environment, need, run
from support.roots import Root

from cdi_runc import VERSION

SYSTEM = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
"""The distribution's own Python, which has what a build needs."""


@pytest.fixture(scope="session")
def build_deb(tmp_path_factory):
    """Build the Debian package of this checkout, as the version given."""
    need("dpkg-buildpackage")
    need("dh")

    def build(version):
        work = tmp_path_factory.mktemp("deb")
        tree = work / "tree"
        tree.mkdir()
        for name in ("cdi_runc", "docs", "packaging"):
            skipped = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, tree / name, ignore=skipped)
        for path in (*ROOT.glob("*.md"), *(ROOT / n for n in ("LICENSE", "pyproject.toml"))):
            shutil.copy(path, tree)
        shutil.copy(ROOT / "install.sh", tree)
        changelog = tree / "packaging/debian/changelog"
        changelog.write_text(re.sub(r"\(\S+\)", f"({version})", changelog.read_text(), count=1))
        run(tree / "packaging/build", "deb", work, env=environment(**SYSTEM))
        (package,) = work.glob("*.deb")
        return package

    return build


@pytest.fixture(scope="session")
def debs(build_deb):
    """Return two versions of the package, the older one first."""
    return build_deb(f"{VERSION}-1"), build_deb(f"{VERSION}-2~test")


@pytest.fixture(scope="session")
def root(debs, tmp_path_factory):
    """Return a clean root with runc and what the package depends on, but without the package.

    It is made once for all workers, and each has a copy.
    """
    top = shared(tmp_path_factory)
    base = top / "clean-root"
    with (top / "making-a-root").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not base.exists():
            made = Root(top / "clean-root.new")
            made.make()
            control = run("dpkg-deb", "-f", debs[0], "Depends").out
            made.apt("satisfy", control.strip(), "runc")
            made.path.rename(base)
    root = Root(tmp_path_factory.mktemp("clean") / "root")
    run("cp", "-a", base, root.path)
    for number, deb in enumerate(debs, 1):
        shutil.copy(deb, root.path / f"var/cache/{number}.deb")
    yield root
    run("rm", "-rf", "--one-file-system", root.path)  # some hundred megabytes
