"""What a create loads: nothing dear, and specs are compiled only when they changed (C12)."""

import json
import re

import pytest
from support.programs import need, run
from support.strace import whole

HOT = """
_bisect _imp _json _sha256 _sha2 _signal cdi_runc cdi_runc.audit cdi_runc.bundle cdi_runc.create
cdi_runc.digest cdi_runc.edits cdi_runc.edits.device_nodes cdi_runc.edits.env cdi_runc.edits.hooks
cdi_runc.edits.mounts cdi_runc.errors cdi_runc.exec_process cdi_runc.files cdi_runc.invocation
cdi_runc.jsonio cdi_runc.names cdi_runc.paths cdi_runc.plan cdi_runc.record cdi_runc.registry
cdi_runc.requests cdi_runc.runtime cdi_runc.settings cdi_runc.shim cdi_runc.trust gc __future__
""".split()  # noqa: SIM905  # noqa: SIM905

EDITS = {
    "env": ["ACME=1"],
    "deviceNodes": [{"path": "/dev/acme0", "hostPath": "/dev/null"}],
    "mounts": [{"hostPath": "/etc", "containerPath": "/opt/acme", "options": ["ro", "rbind"]}],
    "hooks": [{"hookName": "createContainer", "path": "/bin/true"}],
}

# Runs the shim's main in this interpreter, and tells what is loaded when it becomes the runtime.
WATCH = """
import sys
before = set(sys.modules)
sys.path.insert(0, {library!r})
import cdi_runc.runtime
def tell(path, arguments):
    names = " ".join(sorted(set(sys.modules) - before))
    import posix
    posix.write(1, names.encode())
    posix._exit(0)
cdi_runc.runtime.become = tell
from cdi_runc import shim
shim.main({argv!r})
"""


@pytest.fixture
def loaded(installation, configuration, make_bundle):
    """Return a function that makes a create, and returns the modules that it loaded."""
    configuration.write(runtime="/bin/true")

    def create(device="acme.com/widget=one"):
        bundle = make_bundle(rootfs=False).request(device)
        argv = ["shim", str(installation.shim), "create", "--bundle", str(bundle.path), bundle.id]
        source = WATCH.format(library=str(installation.home / "lib"), argv=argv)
        ended = run("/usr/bin/python3", "-I", "-S", "-c", source, env=configuration.env)
        return ended.out.split()

    return create


def opened(installation, configuration, bundle, out):
    """Return the Python files that a create through the launcher opens."""
    words = [need("strace"), "-f", "-qq", "-s", "4096", "-e", "trace=openat", "-o", out]
    arguments = ("create", "--bundle", bundle.path, bundle.id)
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **configuration.env}
    run(*words, installation.shim, *arguments, env=env)
    calls = whole(out.read_text().splitlines())
    paths = [found[1] for call in calls if (found := re.search(r'"([^"]*)".* = \d+$', call))]
    return [path for path in paths if path.endswith((".py", ".pyc", ".so"))]


def test_create_loads_what_is_listed(loaded, configuration):
    """A create with a fresh registry loads our hot modules and a few that are built in."""
    configuration.spec(("one", EDITS))
    loaded()
    configuration.grow_old()
    loaded()

    assert set(loaded()) <= set(HOT)


def test_create_reads_one_file_of_code(installation, configuration, make_bundle, tmp_path):
    """A create with a fresh registry reads its code from one file, and one extension module."""
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", EDITS))
    configuration.grow_old()
    for _ in range(3):
        bundle = make_bundle(rootfs=False).request("acme.com/widget=one")
        files = opened(installation, configuration, bundle, tmp_path / "trace")
    own = {path for path in files if "/encodings/" not in path and "/lib/x86" not in path}

    assert {"hot.pyc", "_json"} == {
        path.rpartition("/")[2].partition(".cpython")[0] for path in own
    }


def test_a_rebuild_reads_each_file_of_code_once(installation, configuration, make_bundle, tmp_path):
    """Functions that a create seldom needs lie in our modules' files: none is opened twice."""
    configuration.write(runtime="/bin/true")
    for number in range(3):
        configuration.spec(("one", {**EDITS, "env": [f"ACME={number}"]}))
        if number == 1:
            configuration.grow_old()  # the first two creates compile it, the third only the spec
        bundle = make_bundle(rootfs=False).request("acme.com/widget=one")
        files = opened(installation, configuration, bundle, tmp_path / "trace")
    own = [path for path in files if "/cdi_runc/" in path]

    assert any(path.rpartition("/")[2].startswith("device_nodes.") for path in own)
    assert sorted(own) == sorted(set(own))


def test_registry_is_reused(loaded, configuration):
    """While no spec file changes, none is read again: neither checks nor YAML are loaded."""
    configuration.spec(("one", EDITS), file="acme.json")
    (configuration.spec_dir / "other.yaml").write_text(
        "cdiVersion: 0.6.0\nkind: acme.com/other\ndevices:\n"
        "- {name: two, containerEdits: {env: [A=1]}}\n"
    )
    configuration.grow_old()
    first, second = loaded(), loaded()

    assert {"yaml", "cdi_runc.specs.check"} <= set(first)
    assert [name for name in second if name.startswith(("yaml", "cdi_runc.specs"))] == []


def test_registry_is_rebuilt_after_an_edit_in_place(loaded, configuration):
    """An edit in place that keeps a spec file's size counts from the next create on."""
    path = configuration.spec(("one", {"env": ["ACME=1"]}))
    configuration.grow_old()
    loaded()
    size = path.stat().st_size
    with path.open("r+") as file:
        content = file.read()
        file.seek(0)
        file.write(content.replace("ACME=1", "ACME=2"))
    again = loaded()

    assert size == path.stat().st_size
    assert "cdi_runc.specs.check" in again
    assert [edit["after"] for edit in configuration.records()[-1]["edits"]] == ["ACME=2"]


def test_only_the_changed_file_is_read_again(installation, configuration, make_bundle, tmp_path):
    """After one of many spec files changed, only that one is opened."""
    for number in range(20):
        configuration.spec((f"d{number}", {"env": ["A=1"]}), file=f"s{number}.json")
    configuration.write(runtime="/bin/true")
    configuration.grow_old()
    runs = []
    for change in ("", "A=2"):
        if change:
            configuration.spec(("d7", {"env": [change]}), file="s7.json")
        bundle = make_bundle(rootfs=False).request("acme.com/widget=d7")
        out = tmp_path / "trace"
        words = [need("strace"), "-f", "-qq", "-s", "4096", "-e", "trace=openat", "-o", out]
        run(
            *words,
            installation.shim,
            *("create", "--bundle", bundle.path, bundle.id),
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **configuration.env},
        )
        runs.append(re.findall(rf'"{configuration.spec_dir}/(\w+\.json)"', out.read_text()))

    assert 20 == len(runs[0])
    assert ["s7.json"] == runs[1]
    assert (
        json.loads((configuration.spec_dir / "s7.json").read_text())["devices"][0]["name"] == "d7"
    )
