"""``cdictl spec minimum-version``: the lowest CDI version for what is in spec files."""

from __future__ import annotations

import sys

from cdi_runc.authoring import combine, write
from cdi_runc.cli import common, rendering
from cdi_runc.errors import CdiRuncError
from cdi_runc.specs import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator
    from typing import Any

EPILOG = """\
A file whose own cdiVersion is missing, unknown or too low is answered for, too.  The exit code is 1
if any file has another fault.

examples:
  cdictl spec minimum-version /etc/cdi/*.yaml
  cdictl spec minimum-version --explain vendor.yaml
  cdictl spec minimum-version --json vendor.yaml | jq -r '.[].minimum'
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a CDI spec file")
    parser.add_argument("--explain", action="store_true", help="say what needs which version")
    common.add_json(parser)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Print the version for each file."""
    results = [_examined(path) for path in args.files]
    if args.json:
        rendering.print_json(results)
    else:
        for result in results:
            stream = sys.stderr if result["error"] else sys.stdout
            print("\n".join(_lines(result, args.explain)), file=stream)
    return 1 if any(result["error"] for result in results) else 0


def _examined(path: str) -> dict[str, Any]:
    result: dict[str, Any] = {"file": path, "minimum": "", "declared": "", "needs": [], "error": ""}
    try:
        spec, faults = write.examined(path, any_version=True)
    except CdiRuncError as error:
        return {**result, "error": str(error)}
    if faults:
        return {**result, "error": f"{path}: {faults[0]}"}
    found = [
        {"version": need.version, "what": need.what, "pointers": list(need.pointers)}
        for need in combine.needs(spec)
    ]
    declared = spec.get("cdiVersion", "")
    minimum = check.minimum_version(spec)
    return {**result, "minimum": minimum, "declared": declared, "needs": found}


def _lines(result: dict[str, Any], explain: bool) -> Iterator[str]:
    if result["error"]:
        yield f"cdictl: {result['error']}"
        return
    yield f"{result['file']}: {result['minimum']}"
    if explain:
        for need in result["needs"]:
            told = combine.places(combine.Need(*need.values()))
            yield f"  {need['version']}  {need['what']}: {told}"
        if not result["needs"]:
            yield f"  {result['minimum']}  nothing in it needs a newer one"
