"""Which spec files are valid: the checks, the JSON Schema and ``cdictl validate``."""

import json
import subprocess
import sys

import cases
import jsonschema
import pytest

from cdi_runc.cli import main
from cdi_runc.specs import check, document

CASES = cases.load("validate")
EMPTY = ("empty-file", "only-comments")
"""A file that holds nothing has no place to point at."""

# What no JSON Schema sees, or ours leaves to the checks: for each rule, the cases that show it.
ONLY_CODE = {
    "not a document": {
        "empty-file",
        "only-comments",
        "duplicate-key",
        "duplicate-key-nested",
        "merge-key-overridden",
        "tab-indentation",
        "broken-yaml",
        "unknown-alias",
        "json-duplicate-key",
        "json-escaped-slash",
    },
    "a device has edits of its own": {"device-edits-empty", "device-edits-empty-lists"},
    "each device is defined once": {"device-twice", "names-equal-after-conversion"},
    "each interface is named once": {"netdevices-same-host-interface", "netdevices-same-name"},
    "known versions": {
        "version-unknown-newer",
        "version-unknown-between",
        "version-short",
        "version-two-vs",
        "version-with-blank",
        "version-as-number",
    },
    "what is used needs a version": {
        "version-0.2.0",
        "version-mount-type-0.3.0",
        "version-host-path-0.4.0",
        "version-digit-name-0.4.0",
        "version-annotations-0.5.0",
        "version-class-dot-0.5.0",
        "version-rdt-0.6.0",
        "version-netdevices-1.0.0",
        "version-monitoring-1.0.0",
        "version-schemata-empty-1.0.0",
        "version-rdt-empty-0.6.0",
    },
    "grammar of names": {
        "kind-without-slash",
        "kind-two-slashes",
        "kind-vendor-digit",
        "kind-class-dash-at-end",
        "kind-empty-class",
        "kind-class-digit",
        "name-slash",
        "name-dash-at-end",
        "name-colon-at-start",
        "name-equals-sign",
        "name-beyond-ascii",
    },
    "length in bytes": {"rdt-clos-too-long"},
}


def is_valid(case):
    """Tell what a case expects of us."""
    return {**case["expect"], **case.get("later_reference", {})}["valid"]


def schema_accepts(value):
    """Tell whether the published JSON Schema has nothing to say against *value*."""
    return jsonschema.Draft202012Validator(check.schema()).is_valid(value)


@pytest.mark.parametrize("case", CASES)
def test_checks_answer_as_the_reference(case):
    """A file is valid where it is for the reference, and defines the same devices."""
    spec, findings = check.examine(case["file"]["text"].encode())

    assert is_valid(case) == (spec is not None) == (findings == [])
    if spec is not None and case["expect"]["valid"]:
        assert case["expect"]["devices"] == spec.names


@pytest.mark.parametrize("case", CASES)
def test_command_answers_as_the_reference(case, tmp_path, capsys):
    """``cdictl validate`` tells by its exit code, and with --json by its output."""
    path = tmp_path / case["file"]["name"]
    path.write_bytes(case["file"]["text"].encode())
    code = main.main(["validate", str(path)])
    spoken = capsys.readouterr()
    main.main(["validate", "--json", str(path)])
    (told,) = json.loads(capsys.readouterr().out)

    assert (0 if is_valid(case) else 1) == code
    assert is_valid(case) == told["valid"] == (told["errors"] == []) == (spoken.err == "")
    assert all(line.startswith(f"{path}:") for line in (spoken.out + spoken.err).splitlines())
    if is_valid(case) and case["expect"]["valid"]:
        assert case["expect"]["devices"] == told["devices"]


@pytest.mark.parametrize("case", [case for case in CASES if not is_valid(case.values[0])])
def test_findings_have_a_place(case):
    """Each finding carries line and column, and the field where the file could be read."""
    data = case["file"]["text"].encode()
    _, findings = check.examine(data)
    lines = data.decode().splitlines()
    for finding in findings:
        if case["name"] in EMPTY:
            assert (0, 0, "") == (finding.line, finding.column, finding.pointer)
            continue

        assert 1 <= finding.line <= len(lines)
        assert 1 <= finding.column
        if case["name"] not in ONLY_CODE["not a document"] | {"top-level-list"}:
            assert finding.pointer.startswith("/")


@pytest.mark.parametrize("case", CASES)
def test_schema_and_checks_agree(case):
    """What the JSON Schema rejects, the checks reject; and the other way round but for rules."""
    _, decoded, findings = check.decoded_spec(case["file"]["text"].encode())
    accepted = schema_accepts(decoded)
    if accepted and findings and case["name"] not in ONLY_CODE["not a document"]:
        # A member of a wrong type or name is left out when decoding, and the schema sees it raw.
        accepted = schema_accepts(document.read(case["file"]["text"].encode()))
    by_code_alone = {name for names in ONLY_CODE.values() for name in names}
    if not accepted:
        assert findings
    elif findings:
        assert case["name"] in by_code_alone


@pytest.mark.parametrize("name", ["minimal", "node-mode-as-text", "json-duplicate-key"])
def test_program_answers_as_the_function(name, tmp_path):
    """The program itself tells by its exit code, and names the file in what it says."""
    (case,) = [parameter.values[0] for parameter in CASES if parameter.values[0]["name"] == name]
    path = tmp_path / case["file"]["name"]
    path.write_bytes(case["file"]["text"].encode())
    done = subprocess.run(
        [sys.executable, "-m", "cdi_runc.cli.main", "validate", str(path)],
        check=False,
        capture_output=True,
        text=True,
    )

    assert (0 if is_valid(case) else 1) == done.returncode
    assert (done.stdout or done.stderr).startswith(f"{path}:")


def test_all_cases_are_here():
    """Not one case is missing, no name is there twice, and each one named here exists."""
    found = [parameter.values[0]["name"] for parameter in CASES]

    assert cases.COUNTS["validate"] == len(found) == len({*found})
    assert {name for names in ONLY_CODE.values() for name in names} <= {*found}
