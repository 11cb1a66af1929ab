"""Imports point upstream, and nothing that is hot loads what is cold."""

import ast

import pytest
from support.installations import ROOT

from cdi_runc import edits

PACKAGE = ROOT / "cdi_runc"
MODULES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))

# The flow: a module imports only what stands before it (cdi_runc/__init__.py).  The last line is
# cold, and imports within one of its packages are that package's own affair.
FLOW = (
    *("record", "errors", "digest", "trust", "files", "paths", "jsonio", "names"),
    *("invocation", "settings", "log", "bundle", "requests", "registry", "edits", "plan"),
    *("policy", "patience"),
    *("conflicts", "audit", "exec_process", "report", "capabilities", "rootfs", "runtime"),
    *("create", "shim"),
    *("specs", "config", "engines", "authoring", "cli", "doctor"),
)
COLD = ("specs", "config", "engines", "authoring", "cli", "doctor")
# What hot code asks of cold code when a file changed or a name is unknown, inside a function.
BRIDGES = {("registry", "specs"), ("create", "specs"), ("settings", "config"), ("shim", "config")}
# Modules of the interpreter that cost nothing: built in, or one small extension module.
FREE = {"_bisect", "_json", "_sha2", "_sha256", "_signal", "marshal", "posix", "sys", "time"}
FREE |= {"__future__"}


def layer(path):
    """Return the place in the flow of the file *path*: its package, or its module."""
    return path.removesuffix(".py").partition("/")[0]


HOT = [path for path in MODULES if layer(path) not in COLD]


def imported(tree, *, late=False):
    """Yield what is imported when a module is loaded; with *late*, inside its functions too."""
    for node in tree:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module == "cdi_runc":
                yield from (f"cdi_runc.{name.name}" for name in node.names)
            else:
                yield f"{node.module}"
        elif isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            yield from imported(node.orelse, late=late)
        elif late or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from imported(ast.iter_child_nodes(node), late=late)


def ours(path, *, late=False):
    """Return the layers that the file *path* imports, its own left out."""
    tree = ast.parse((PACKAGE / path).read_bytes()).body
    names = [name.split(".") for name in imported(tree, late=late)]
    found = {name[1] for name in names if name[0] == "cdi_runc" and len(name) > 1}
    return found - {"VERSION", layer(path)}


@pytest.mark.parametrize("path", [path for path in MODULES if path != "__init__.py"])
def test_imports_point_upstream(path):
    """A module loads only what comes before it in the flow; a package, none that is after it."""
    here = FLOW.index(layer(path))

    assert [] == [name for name in ours(path) if FLOW.index(name) >= here]


@pytest.mark.parametrize("path", HOT)
def test_hot_code_asks_cold_code_late_and_seldom(path):
    """No hot module imports a cold one, but for those that must, inside a function."""
    late = {(layer(path), name) for name in ours(path, late=True) if name in COLD}

    assert late <= BRIDGES


@pytest.mark.parametrize("path", HOT)
def test_hot_code_loads_nothing_dear(path):
    """What a hot module loads of the interpreter is built in, or as good as that."""
    tree = ast.parse((PACKAGE / path).read_bytes()).body
    found = {name.partition(".")[0] for name in imported(tree)} - {"cdi_runc"}

    assert found <= FREE


@pytest.mark.parametrize("key", edits.KEYS)
def test_kinds_know_nothing_of_each_other(key):
    """A kind of edit loads the base of all kinds, and no other kind."""
    tree = ast.parse((PACKAGE / f"edits/{edits.file_name(key)}.py").read_bytes()).body
    others = {f"cdi_runc.edits.{edits.file_name(other)}" for other in edits.KEYS}

    assert set() == others & {*imported(tree)}


def test_each_kind_is_a_module_and_a_schema():
    """The folder of edits holds a module and a schema for each key, and nothing else."""
    expected = {"__init__.py"}
    for key in edits.KEYS:
        expected |= {f"{edits.file_name(key)}.py", f"{edits.file_name(key)}.schema.json"}

    assert expected == {path.name for path in (PACKAGE / "edits").iterdir() if path.is_file()}
