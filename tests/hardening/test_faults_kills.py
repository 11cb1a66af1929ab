"""A create that is killed at any instant leaves the old config.json or the new one (C2)."""

import itertools
import json
import os

import pytest
from support.programs import environment, run
from support.traces import kill_at, numbered, system_calls

WRITING = {
    "chmod",
    "fchmod",
    "fchown",
    "fsync",
    "ftruncate",
    "link",
    "mkdir",
    "pwrite64",
    "rename",
    "symlink",
    "unlink",
    "utimensat",
    "write",
}


class Create:
    """One create of a bundle that asks for a device, over and over."""

    def __init__(self, shim, configuration, bundle):
        self.bundle = bundle
        self.configuration = configuration
        self.old = bundle.config_path.read_bytes()
        self.env = environment(**configuration.env)
        root = configuration.directory.with_name("root")
        self.words = [shim, "--root", root, "create", "--bundle", bundle.path, bundle.id]

    def finish(self):
        """Let it run to its end."""
        run(*self.words, env=self.env)

    def set_back(self):
        """Put the old config.json in place, as the engine would."""
        self.bundle.config_path.write_bytes(self.old)

    def read(self):
        """Return what config.json says now."""
        return self.bundle.config_path.read_bytes()

    def files(self):
        """Return the names of all files in the bundle and in our own directories."""
        return {
            os.path.join(place, name)
            for directory in (self.bundle.path, self.configuration.directory)
            for place, _, names in os.walk(directory)
            for name in names
        }


def points(create, trace):
    """Return each system call that *create* makes until it becomes the real runtime."""
    names = system_calls(create.words, trace, create.env)
    last = len(names) - 1 - names[::-1].index("execve")
    return numbered(names[: last + 1])


@pytest.fixture
def create(installation, configure, make_bundle):
    """Return a create in steady state, with /bin/true as the real runtime."""
    configuration = configure(runtime="/bin/true")
    configuration.spec(("one", {"env": ["ACME=1"], "mounts": []}))
    bundle = make_bundle(rootfs=False).request("acme.com/widget=one")
    create = Create(installation.shim, configuration, bundle)
    configuration.grow_old()
    create.finish()
    create.new = create.read()
    create.all_files = create.files()
    assert create.old != create.new
    return create


def check_kills(create, chosen, prepare):
    """Kill the create at each point of *chosen*; return how often each file was found."""
    found = {create.old: 0, create.new: 0}
    for name, number in chosen:
        create.set_back()
        prepare()
        killed = kill_at(name, number, create.words, create.env)
        now = create.read()
        # How often memory is asked for differs from run to run, so a point may not be reached.
        assert killed.status in (-9, 137) or (killed.status, now) == (0, create.new), killed
        assert now in found, (name, number)
        found[now] += 1
        create.finish()
        assert create.new == create.read(), (name, number)
        assert create.all_files == create.files(), (name, number)
    for line in create.configuration.audit_file.read_bytes().splitlines(keepends=True):
        json.loads(line)
        assert line.endswith(b"\n")
    return list(found.values())


def test_killed_in_steady_state(create, tmp_path):
    """Killed at any system call, config.json is whole, and a retry works and leaves no litter."""
    create.set_back()
    chosen = points(create, tmp_path / "trace")
    old, new = check_kills(create, chosen, prepare=lambda: None)

    assert len(chosen) > 50
    assert old > 0
    assert new > 0


def test_killed_while_compiling(create, tmp_path):
    """Killed at or after a call that writes, the same holds where registry and record are new."""
    registry = create.configuration.state_dir / "registry"
    audit_file = create.configuration.audit_file

    def prepare():
        registry.unlink(missing_ok=True)
        audit_file.unlink(missing_ok=True)

    create.set_back()
    prepare()
    pairs = points(create, tmp_path / "trace")
    writes = [pair for pair in itertools.pairwise(pairs) if pair[0][0] in WRITING]
    chosen = [point for pair in writes for point in pair]
    old, new = check_kills(create, chosen, prepare)

    assert len(chosen) > 8
    assert old > 0
    assert new > 0
