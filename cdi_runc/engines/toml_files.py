"""Podman's, CRI-O's and containerd's configuration: a drop-in of ours, or an entry among others.

Podman and CRI-O merge the files of a directory, so there is one of ours.  containerd 1.6 and 1.7
replace a plugin's whole table by that of an imported file (read in its source, not measured), so
our entry goes into its config.toml, all else in it kept as it is written.
"""

from __future__ import annotations

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError
from tomlkit.items import InlineTable

from cdi_runc.engines.config_file import BadConfigFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARK = "# Made by cdictl configure."
PLUGINS = {2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime"}
"""The CRI's plugin, by the version of config.toml; 3 came with containerd 2.0."""
STOCK = "runc"
"""The CRI's default runtime where the file names none."""
PLAIN = {"runtime_type": "io.containerd.runc.v2"}


def podman(name: str, path: str, *, default: bool) -> str:
    """Return the drop-in for Podman's containers.conf."""
    engine = {"runtime": name} if default else {}
    return _drop_in("podman", {"engine": {**engine, "runtimes": {name: [path]}}})


def crio(name: str, path: str, *, default: bool) -> str:
    """Return the drop-in for CRI-O's crio.conf."""
    runtime: dict[str, Any] = {"default_runtime": name} if default else {}
    runtime["runtimes"] = {name: {"runtime_path": path, "runtime_type": "oci"}}
    return _drop_in("crio", {"crio": {"runtime": runtime}})


def _drop_in(engine: str, content: dict[str, Any]) -> str:
    head = f"{MARK}  Take it back with: cdictl configure {engine} --remove\n"
    return head + tomlkit.dumps(content)


def added(text: str | None, name: str, path: str, *, default: bool) -> str:
    """Return containerd's config.toml *text* with the runtime *name*, whose program is *path*.

    What the file says of the default runtime, such as the cgroup driver, holds for ours too.  The
    default runtime is named where the file names none: containerd 1.6 has no runtime but those of
    the file as soon as there is one (measured).

    Raises:
        BadConfigFile: it cannot be read without a doubt.

    """
    document = _read(text or "version = 2\n")
    cri = _table(document, "plugins", _plugin(document), "containerd")
    runtimes = _table(cri, "runtimes")
    stock = cri.get("default_runtime_name") or STOCK
    if stock not in (*runtimes, name):
        runtimes[stock] = PLAIN
    model = runtimes.get(stock if stock != name else STOCK) or {}
    entry = {
        **PLAIN,
        "container_annotations": ["cdi.k8s.io/*"],
        "options": {**(model.get("options") or {}), "BinaryName": path},
    }
    if runtimes.get(name) != entry:
        runtimes[name] = entry
    if default:
        cri["default_runtime_name"] = name
    if text and _read(text).unwrap() == document.unwrap():
        return text  # the library may write the same in another way
    return tomlkit.dumps(document)


def removed(text: str, earlier: str | None, name: str) -> str | None:
    """Return *text* without what we added; None if there was no file *earlier*.

    Raises:
        BadConfigFile: it cannot be read without a doubt.

    """
    document = _read(text)
    before = _read(earlier or "version = 2\n")
    keys = ["plugins", _plugin(document), "containerd", "runtimes"]
    path, was = [document], [before]
    for key in keys:
        path.append(path[-1].get(key) or {})
        was.append(was[-1].get(key) or {})
    cri, runtimes = path[3:]
    runtimes.pop(name, None)
    stock = was[3].get("default_runtime_name") or STOCK
    if stock not in was[4] and runtimes.get(stock) == PLAIN:
        del runtimes[stock]
    if cri.get("default_runtime_name") == name:
        if was[3].get("default_runtime_name") not in (None, name):
            cri["default_runtime_name"] = was[3]["default_runtime_name"]
        else:
            del cri["default_runtime_name"]
    for parent, key, child in reversed(list(zip(path, keys, path[1:], strict=False))):
        if key in parent and not child:
            del parent[key]
    if earlier is None:
        return None if document.unwrap() == {"version": 2} else tomlkit.dumps(document)
    same = _pruned(before.unwrap()) == _pruned(document.unwrap())
    return earlier if same else tomlkit.dumps(document)


def has_cri(text: str) -> bool:
    """Tell whether containerd's config.toml *text* leaves the CRI on."""
    off = _read(text).get("disabled_plugins") or ()
    return not {"cri", *PLUGINS.values()} & {*off}


def program(text: str, name: str) -> str | None:
    """Return the program of the runtime *name* in containerd's config.toml *text*, if any."""
    document = _read(text)
    found = document
    for key in ("plugins", _plugin(document), "containerd", "runtimes", name, "options"):
        found = found.get(key) or {}
    value = found.get("BinaryName")
    return str(value) if value is not None else None


def _read(text: str) -> Any:
    try:
        return tomlkit.parse(text)
    except ParseError as error:
        raise BadConfigFile(f"line {error.line}: it is not TOML: {error}") from None
    except TOMLKitError as error:
        raise BadConfigFile(f"it is not TOML: {error}") from None


def _plugin(document: Any) -> str:
    version = document.get("version", 1)
    if version not in PLUGINS:
        raise BadConfigFile(
            f"its version is {version}, which has no place for runtimes that is known here",
            cure="make it one of version 2; containerd config default prints such a file",
        )
    return PLUGINS[version]


def _table(parent: Any, *keys: str) -> Any:
    for key in keys:
        if key not in parent:
            inline = isinstance(parent, InlineTable)
            parent[key] = tomlkit.inline_table() if inline else tomlkit.table(is_super_table=True)
        parent = parent[key]
        if not isinstance(parent, dict):
            raise BadConfigFile(f"{key!r} is not a table")
    return parent


def _pruned(value: Any) -> Any:
    """Return *value* without empty tables."""
    if not isinstance(value, dict):
        return value
    kept = {key: _pruned(child) for key, child in value.items()}
    return {key: child for key, child in kept.items() if child != {}}
