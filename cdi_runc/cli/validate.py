"""``cdictl validate``: every fault of a spec file at once."""

from __future__ import annotations

import sys

import jsonschema

from cdi_runc import files
from cdi_runc.bundle import describe
from cdi_runc.cli import common, rendering
from cdi_runc.specs import check, lint
from cdi_runc.specs.check import Finding
from cdi_runc.specs.compile import SIZE_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator
    from typing import IO, Any

EPILOG = """\
A file is read as every other tool with the CDI reference library reads it: JSON as YAML, and keys
given twice are refused.  Errors make a file useless; warnings are likely mistakes.  The exit code
is 1 if any file has an error (with --strict: or a warning).

examples:
  cdictl validate /etc/cdi/*.yaml
  cdictl validate --strict --json vendor.json | jq '.[].warnings'
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a CDI spec file")
    parser.add_argument("--strict", action="store_true", help="exit with 1 on warnings too")
    common.add_json(parser)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Print what there is to say of each file."""
    results = [examined(path) for path in args.files]
    if args.json:
        rendering.print_json(results)
    else:
        for result in results:
            stream = sys.stderr if result["errors"] else sys.stdout
            print("\n".join(_lines(result, stream)), file=stream)
    faulty = [r for r in results if r["errors"] or (args.strict and r["warnings"])]
    return 1 if faulty else 0


def examined(path: str) -> dict[str, Any]:
    """Return what there is to say of the file at *path*."""
    names: list[str] = []
    warnings: list[Finding] = []
    try:
        data, _ = files.read(path, SIZE_LIMIT)
    except (OSError, ValueError) as error:
        errors = [Finding("", f"cannot read it: {describe(error)}")]
    else:
        raw, decoded, errors = check.decoded_spec(data)
        errors = errors or check.placed(list(_against_schema(decoded)), data)
        if not errors:
            names = [f"{decoded['kind']}={device['name']}" for device in decoded["devices"]]
            found = [Finding(pointer, text) for pointer, text in lint.warnings(decoded, raw)]
            warnings = check.placed(found, data)
    return {
        "file": path,
        "valid": not errors,
        "devices": names,
        "errors": [_told(finding) for finding in errors],
        "warnings": [_told(finding) for finding in warnings],
    }


def _against_schema(decoded: dict[str, Any]) -> Iterator[Finding]:
    """Yield what the published JSON Schema says beyond the checks: nothing, or one has a fault."""
    for error in jsonschema.Draft202012Validator(check.schema()).iter_errors(decoded):
        yield Finding("".join(f"/{part}" for part in error.absolute_path), error.message)


def _told(finding: Finding) -> dict[str, Any]:
    return {
        "line": finding.line,
        "column": finding.column,
        "pointer": finding.pointer,
        "message": finding.message,
    }


def _lines(result: dict[str, Any], stream: IO[str]) -> Iterator[str]:
    path = result["file"]
    for level, colour in (("error", "red"), ("warning", "yellow")):
        for finding in result[f"{level}s"]:
            place = f":{finding['line']}:{finding['column']}" if finding["line"] else ""
            field = f" {finding['pointer']}:" if finding["pointer"] else ""
            label = rendering.paint(f"{level}:", colour, stream)
            yield f"{path}{place}: {label}{field} {finding['message']}"
    if result["valid"]:
        count = len(result["devices"])
        devices = f"{count} device{'s' if count != 1 else ''}"
        yield f"{path}: {rendering.paint('valid', 'green', stream)}, {devices}"
