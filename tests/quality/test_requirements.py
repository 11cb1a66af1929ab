"""packaging/requirements.txt: what install.sh installs is pinned, whole, and what we declare."""

import importlib.metadata
import re

import pytest
import tomlkit
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.installations import ROOT

PINNED = ROOT / "packaging/requirements.txt"
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def entries():
    """Return each requirement of the file, and the options behind it."""
    text = re.sub(r"(?m)^ *#.*\n", "", PINNED.read_text()).replace("\\\n", " ")
    for line in text.splitlines():
        requirement, *options = re.split(r"\s+(?=--)", line.strip())
        yield Requirement(requirement), options


def pinned(python):
    """Return the version of each package that is installed for a version of Python."""
    found = {}
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    for requirement, _ in entries():
        if requirement.marker is None or requirement.marker.evaluate(environment):
            name = canonicalize_name(requirement.name)
            assert name not in found
            found[name] = str(requirement.specifier).removeprefix("==")
    return found


def declared():
    """Return the dependencies that pyproject.toml declares."""
    return tomlkit.parse((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]


def test_every_package_has_one_version_and_hashes():
    """Each entry is one exact version with the SHA-256 of its files, and no other option."""
    listed = list(entries())
    assert listed
    for requirement, options in listed:
        assert re.fullmatch(r"==[0-9][0-9a-z.]*", str(requirement.specifier)), requirement
        assert options, requirement
        for option in options:
            assert HASH.fullmatch(option), (requirement, option)


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_the_pinned_versions_are_whole_and_in_range(installation, python):
    """What we declare, and what that needs in turn, is pinned within the range; nothing else is."""
    versions = pinned(python)
    environment = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    installed = {
        canonicalize_name(one.name): one
        for one in importlib.metadata.distributions(path=[str(installation.home / "lib")])
    }
    reached, waiting = set(), [Requirement(text) for text in declared()]
    while waiting:
        requirement = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate(environment):
            continue
        name = canonicalize_name(requirement.name)
        assert requirement.specifier.contains(versions[name]), requirement
        if name not in reached and name in installed:
            waiting += [Requirement(text) for text in installed[name].requires or ()]
        reached.add(name)

    assert reached == set(versions)


def test_the_installation_has_exactly_these(installation):
    """An installation has the pinned versions for its Python, and no package besides."""
    python = next((installation.home / "venv/lib").glob("python3.*")).name.removeprefix("python")
    installed = {
        canonicalize_name(one.name): one.version
        for one in importlib.metadata.distributions(path=[str(installation.home / "lib")])
    }

    assert installed == pinned(python)
