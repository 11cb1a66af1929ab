"""Linters are tests: each has nothing to say."""

import importlib.util
import os
import subprocess
import sys

import pytest
from support.installations import ROOT
from support.programs import need


def scripts():
    """Return every shell script of this tree, found by its first line."""
    listed = subprocess.run(
        [
            *(need("git"), "-c", f"safe.directory={ROOT}", "-C", ROOT),
            *("ls-files", "-z", "--cached", "--others", "--exclude-standard"),
        ],
        check=True,
        capture_output=True,
    )
    for name in listed.stdout.split(b"\0")[:-1]:
        path = ROOT / os.fsdecode(name)
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                first = file.readline(30)
            if first.rstrip() in (b"#!/bin/sh", b"#!/bin/bash", b"#!/usr/bin/env bash"):
                yield path


@pytest.mark.parametrize("command", ["ruff check .", "ruff format --check .", "mypy"])
def test_linter_is_content(command):
    """The linter named has nothing to say."""
    tool, *words = command.split()
    if importlib.util.find_spec(tool) is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{tool} is missing")
    done = subprocess.run(
        [sys.executable, "-m", tool, *words], check=False, cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("script", [str(path.relative_to(ROOT)) for path in scripts()])
def test_shell_script_is_sound(script):
    """Shellcheck has nothing to say, and the shells that may be /bin/sh can read it."""
    done = subprocess.run(
        [need("shellcheck"), script], check=False, cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout
    first = (ROOT / script).read_text().splitlines()[0]
    shells = [["bash"]] if "bash" in first else [["dash"], ["bash", "--posix"], ["busybox", "sh"]]
    for shell in shells:
        subprocess.run([need(shell[0]), *shell[1:], "-n", script], check=True, cwd=ROOT)


def test_there_are_scripts():
    """The scripts that the tests above are about were found."""
    found = {str(path.relative_to(ROOT)) for path in scripts()}

    assert {"install.sh", "packaging/launcher", "tests/run"} <= found
