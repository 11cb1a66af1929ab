"""The shared conformance cases: from beside the checkout where they lie there, or our copy."""

import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COPY = HERE / "cases"
SHARED = HERE.parents[2] / "shared/conformance"
"""Where the cases come from; COPY is the same, for a checkout alone."""

COUNTS = {"inject": 130, "validate": 152, "names": 4}
"""How many files each folder holds; a case that is not run is noticed."""


def folder(name):
    """Return the files of one folder of cases, in order."""
    place = SHARED if SHARED.is_dir() else COPY
    return sorted((place / name).glob("*.json"))


def load(name):
    """Return a parameter for each case of the folder *name*."""
    return [
        pytest.param(json.loads(path.read_text(encoding="utf-8")), id=path.stem)
        for path in folder(name)
    ]


def entries(file):
    """Return a parameter for each entry of one file of the folder ``names``."""
    (path,) = [path for path in folder("names") if path.stem == file]
    return [
        pytest.param(entry, id=f"{number:03d}")
        for number, entry in enumerate(json.loads(path.read_text(encoding="utf-8"))["cases"])
    ]


def write_specs(case, top):
    """Lay out a case's spec directories below *top*; return them, the higher one last."""
    for name in ("etc", "run"):
        (top / name).mkdir()
        for path, text in case["specs"].get(name, {}).items():
            file = top / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
        for path, target in case.get("links", {}).get(name, {}).items():
            link = top / name / path
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
    return top / "etc", top / "run"
