"""``cdictl validate``: every fault of a spec file at once."""

from __future__ import annotations

import sys

from cdi_runc import files
from cdi_runc.bundle import describe
from cdi_runc.cli import common, rendering
from cdi_runc.specs import check
from cdi_runc.specs.compile import SIZE_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

EPILOG = """\
A file is read as every other tool with the CDI reference library reads it: JSON as YAML, and keys
given twice are refused.  The exit code is 1 if any file is not valid.

examples:
  cdictl validate /etc/cdi/*.yaml
  cdictl validate --json vendor.json | jq '.[].errors'
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a CDI spec file")
    common.add_json(parser)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Print the devices of each valid file, and the faults of each other one."""
    results = [examined(path) for path in args.files]
    if args.json:
        rendering.print_json(results)
    else:
        for result in results:
            _print(result)
    return 0 if all(result["valid"] for result in results) else 1


def examined(path: str) -> dict[str, Any]:
    """Return what there is to say of the file at *path*."""
    try:
        data, _ = files.read(path, SIZE_LIMIT)
    except (OSError, ValueError) as error:
        spec, findings = None, [check.Finding("", f"cannot read it: {describe(error)}")]
    else:
        spec, findings = check.examine(data)
    return {
        "file": path,
        "valid": spec is not None,
        "devices": spec.names if spec is not None else [],
        "errors": [
            {
                "line": finding.line,
                "column": finding.column,
                "pointer": finding.pointer,
                "message": finding.message,
            }
            for finding in findings
        ],
    }


def _print(result: dict[str, Any]) -> None:
    path = result["file"]
    if result["valid"]:
        count = len(result["devices"])
        print(f"{path}: {rendering.paint('valid', 'green')}, {count} devices")
        return
    for error in result["errors"]:
        place = f":{error['line']}:{error['column']}" if error["line"] else ""
        field = f" {error['pointer']}:" if error["pointer"] else ""
        label = rendering.paint("error:", "red")
        print(f"{path}{place}: {label}{field} {error['message']}", file=sys.stderr)
