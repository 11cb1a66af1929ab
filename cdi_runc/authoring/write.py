"""Specs in words: stable text, checked before anybody can read it, replaced in one step."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import yaml

from cdi_runc import files
from cdi_runc.bundle import describe
from cdi_runc.errors import CdiRuncError
from cdi_runc.specs import check, yaml_nodes
from cdi_runc.specs.compile import SIZE_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdi_runc.authoring.found import Spec

MODE = 0o644
FORMS = {".json": "json", ".yaml": "yaml"}
"""By the ends of names that a spec file can have; other files are not read (CDI SPEC)."""


# JSON allows them as they are; a reader of YAML, as all tools are, refuses or changes them.
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class _Dumper(yaml.SafeDumper):
    """Writes no aliases, and quotes what go-yaml would not read as text (``1:30``, ``y``)."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = None if yaml_nodes.scalar(value) == value else "'"
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", value, style if value.isprintable() else '"'
    )


_Dumper.add_representer(str, _text)


def rendered(spec: Spec, form: str, comment: str = "") -> bytes:
    """Return *spec* as the text of a file, in YAML below *comment* or in JSON.

    Raises:
        CdiRuncError: it is not valid; the message tells the first fault.

    """
    if form == "json":
        text = json.dumps(spec, indent=2, ensure_ascii=False) + "\n"
        text = _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    else:
        lines = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
        text = lines + yaml.dump(
            spec, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf")
        )
    data = text.encode(errors="surrogatepass")
    _, decoded, faults = check.decoded_spec(data)
    if faults:
        raise CdiRuncError(f"nothing is written, as it would be no valid spec: {faults[0]}")
    if decoded != spec:
        raise CdiRuncError("nothing is written, as it would not be read as it is meant")
    return data


def form_of(path: str) -> str:
    """Return the form of the file *path*, or the empty text where its name is no spec file's."""
    return FORMS.get(os.path.splitext(path)[1], "")


def replace(path: str, data: bytes) -> bool:
    """Put *data* in place of the file *path* in one step; return whether anything changed.

    A link is followed, and the owner and mode of a file that is there stay.

    Raises:
        OSError: the file is as it was.

    """
    path = os.path.realpath(path)
    try:
        before, like = files.read(path, SIZE_LIMIT)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        like = os.stat_result((MODE, 0, 0, 1, os.geteuid(), os.getegid(), 0, 0, 0, 0))
    except ValueError as error:
        raise OSError(22, str(error), path) from error
    else:
        if before == data:
            return False
    files.replace(path, data, like)
    return True


def refuse_conflicts(path: str, spec: Spec, spec_dirs: Iterable[str]) -> None:
    """Refuse to write *spec* where another file in the same spec directory has its devices.

    Neither could be used then.

    Raises:
        CdiRuncError: it is so; the message names both files.

    """
    path = os.path.realpath(path)
    directory = os.path.dirname(path)
    if directory not in map(os.path.realpath, spec_dirs):
        return
    ours = {f"{spec['kind']}={device['name']}" for device in spec["devices"]}
    for other, names in _neighbours(directory):
        both = sorted(ours & names)
        if both and other != path:
            raise CdiRuncError(
                f"{path} is not written: {other} in the same directory defines {both[0]} too, and"
                " neither could be used",
                cure="remove that file, or choose another --name, --kind or --output",
            )


def _neighbours(directory: str) -> Iterator[tuple[str, set[str]]]:
    for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else ():
        path = f"{directory}/{name}"
        if form_of(name):
            try:
                found, _ = check.examine(files.read(path, SIZE_LIMIT)[0])
            except (OSError, ValueError):
                continue
            if found is not None:
                yield os.path.realpath(path), {*found.names}


def read(path: str) -> Spec:
    """Return the valid spec in the file *path*, decoded.

    Raises:
        CdiRuncError: it cannot be read, or is not valid.

    """
    decoded, faults = examined(path)
    if faults:
        raise CdiRuncError(f"{path}: {faults[0]}", cure=f"see every fault: cdictl validate {path}")
    return decoded


def examined(path: str, *, any_version: bool = False) -> tuple[Spec, list[check.Finding]]:
    """Return what is in the file *path*, decoded, and every fault of it.

    With *any_version*, its own version is none.

    Raises:
        CdiRuncError: it cannot be read.

    """
    try:
        data, _ = files.read(path, SIZE_LIMIT)
    except (OSError, ValueError) as error:
        raise CdiRuncError(f"cannot read {path}: {describe(error)}") from error
    _, decoded, faults = check.decoded_spec(data, any_version=any_version)
    return decoded, faults
