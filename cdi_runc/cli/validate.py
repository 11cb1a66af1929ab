"""``cdictl validate``: every fault of a spec file at once."""

from __future__ import annotations

import os
import sys

import jsonschema

from cdi_runc import files, settings
from cdi_runc.bundle import describe
from cdi_runc.cli import common, rendering
from cdi_runc.specs import check, compile, lint  # noqa: A004
from cdi_runc.specs.check import Finding
from cdi_runc.specs.compile import ENDINGS, SIZE_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Collection, Iterator
    from typing import IO, Any

EPILOG = """\
A file is read as every other tool with the CDI reference library reads it: JSON as YAML, and keys
given twice are refused.  Errors make a file useless; warnings are likely mistakes; notes say why a
file may have no effect here.  The exit code is 1 if any file has an error (with --strict: or a
warning).

examples:
  cdictl validate /etc/cdi/*.yaml
  cdictl validate --strict --json vendor.json | jq '.[].warnings'
"""
UNREAD = "no tool reads a file of this name: it has to end in .json or .yaml"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a CDI spec file")
    parser.add_argument("--strict", action="store_true", help="exit with 1 on warnings too")
    common.add_json(parser)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Print what there is to say of each file."""
    results = [examined(path) for path in args.files]
    _note([result for result in results if result["valid"]])
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
        why = f"cannot read it: {describe(error)}"
        if os.path.isdir(path):
            why = f"it is a directory; name its files: {path.rstrip('/')}/*.yaml"
        errors = [Finding("", why)]
    else:
        raw, decoded, errors = check.decoded_spec(data)
        errors = errors or check.placed(list(_against_schema(decoded)), data)
        if not errors:
            names = [f"{decoded['kind']}={device['name']}" for device in decoded["devices"]]
            found = [Finding(pointer, text) for pointer, text in lint.warnings(decoded, raw)]
            warnings = check.placed(found, data)
        if not path.endswith(ENDINGS):
            warnings.insert(0, Finding("", UNREAD))
    return {
        "file": path,
        "valid": not errors,
        "devices": names,
        "errors": [_told(finding) for finding in errors],
        "warnings": [_told(finding) for finding in warnings],
        "notes": [],
    }


def _note(results: list[dict[str, Any]]) -> None:
    """Add to the *results* of valid files what keeps their devices from containers here."""
    spec_dirs = settings.current().spec_dirs
    installed = {os.path.realpath(path) for path in spec_dirs}
    conflicts = _conflicts(results, installed)
    if any(_directory(result["file"]) in installed for result in results):
        for name, (paths, why) in compile.in_memory(spec_dirs).conflicts.items():
            conflicts[_directory(paths[0]), name] = why
    for result in results:
        directory = _directory(result["file"])
        if directory not in installed:
            dirs = " and ".join(spec_dirs)
            why = f"{directory} is no spec directory of this host; it reads {dirs}"
            result["notes"].append(_told(Finding("", why)))
        result["notes"] += [
            _told(Finding("", conflicts[directory, name]))
            for name in result["devices"]
            if (directory, name) in conflicts
        ]


def _conflicts(
    results: list[dict[str, Any]], installed: Collection[str]
) -> dict[tuple[str, str], str]:
    """Return the conflicts of directories that are not *installed*, by directory and device."""
    definitions: dict[tuple[str, str], set[str]] = {}
    for result in results:
        directory, own = _directory(result["file"]), os.path.basename(result["file"])
        if directory not in installed and own.endswith(ENDINGS):
            for name in result["devices"]:
                definitions.setdefault((directory, name), set()).add(f"{directory}/{own}")
    return {
        key: compile.in_conflict(key[1], sorted(paths))
        for key, paths in definitions.items()
        if len(paths) > 1
    }


def _directory(path: str) -> str:
    return os.path.realpath(os.path.dirname(path) or ".")


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
    for level, colour in (("error", "red"), ("warning", "yellow"), ("note", "cyan")):
        for finding in result[f"{level}s"]:
            place = f":{finding['line']}:{finding['column']}" if finding["line"] else ""
            field = f" {finding['pointer']}:" if finding["pointer"] else ""
            label = rendering.paint(f"{level}:", colour, stream)
            yield f"{path}{place}: {label}{field} {finding['message']}"
    if result["valid"]:
        count = len(result["devices"])
        devices = f"{count} device{'s' if count != 1 else ''}"
        yield f"{path}: {rendering.paint('valid', 'green', stream)}, {devices}"
