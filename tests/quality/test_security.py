"""SECURITY.md: each row of the threat model names tests, and these are there."""

import ast
import re

import pytest
from support.installations import ROOT

TEXT = (ROOT / "SECURITY.md").read_text()
SHORT = {
    "A": "tests/hardening/test_attacks.py",
    "F": "tests/hardening/test_attacks_files.py",
    "R": "tests/hardening/test_attacks_requests.py",
    "L": "tests/hardening/test_load.py",
}
NAMED = re.findall(r"`([\w/.]+)::(\w+)`", TEXT)
ROWS = [
    line
    for line in TEXT.partition("## What each")[2].partition("## Without root")[0].splitlines()
    if line.startswith("| ") and "---" not in line and "| test |" not in line
]


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_named_test_is_there(file, name):
    """A test that the threat model names is a function of that file."""
    tree = ast.parse((ROOT / SHORT.get(file, file)).read_bytes())

    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_names_a_test():
    """No row of the threat model is a mere word."""
    assert len(ROWS) > 20
    assert [] == [row for row in ROWS if not re.search(r"`[\w/.]+::\w+`", row)]
