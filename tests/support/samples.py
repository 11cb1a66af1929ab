"""A container's configuration and spec files for tests that need no engine."""

import copy
import json

from cdi_runc import plan, registry, settings

CONFIG = {
    "ociVersion": "1.0.2",
    "process": {
        "user": {"uid": 0, "gid": 0, "additionalGids": [10]},
        "args": ["sh"],
        "env": ["PATH=/usr/bin:/bin", "TERM=xterm", "SECRET=hunter2"],
        "cwd": "/",
    },
    "root": {"path": "rootfs"},
    "mounts": [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
        {"destination": "/data", "type": "bind", "source": "/etc", "options": ["rbind"]},
    ],
    "linux": {
        "namespaces": [{"type": "mount"}],
        "devices": [{"path": "/dev/own", "type": "c", "major": 10, "minor": 1}],
        "resources": {"devices": [{"allow": False, "access": "rwm"}]},
    },
}

# One edit of each kind that needs nothing of the host.
EDITS = {
    "env": ["ACME=1"],
    "deviceNodes": [{"path": "/dev/acme0", "type": "c", "major": 240, "minor": 1}],
    "netDevices": [{"hostInterfaceName": "acme0", "name": "eth1"}],
    "mounts": [{"hostPath": "/etc", "containerPath": "/opt/acme", "options": ["rbind", "ro"]}],
    "hooks": [{"hookName": "createRuntime", "path": "/bin/true", "env": ["A=1"]}],
    "intelRdt": {"closID": "gold"},
    "additionalGids": [44],
}


def config(**changes):
    """Return a fresh copy of the configuration, with top-level *changes*."""
    return {**copy.deepcopy(CONFIG), **changes}


def spec(*devices, kind="acme.example/widget", version="1.1.0", **members):
    """Return the text of a spec file; *devices* are pairs of a name and its edits."""
    listed = [{"name": name, "containerEdits": edits} for name, edits in devices]
    return json.dumps({"cdiVersion": version, "kind": kind, **members, "devices": listed})


class Host:
    """Two spec directories, and the settings that name them."""

    def __init__(self, directory):
        self.etc, self.run = directory / "etc", directory / "run"
        self.settings = settings.defaults().but(
            spec_dirs=(str(self.etc), str(self.run)),
            state_dir=str(directory / "state"),
            audit_file=str(directory / "audit.jsonl"),
            log_file=str(directory / "log"),
        )
        for path in (self.etc, self.run):
            path.mkdir()

    def registry(self):
        """Return the registry of the spec files as they are now."""
        return registry.current(self.settings)

    def resolve(self, *names):
        """Return the devices of these names."""
        return registry.resolve(names, self.settings)[0]

    def done(self, config, *names, policy=None):
        """Carry out what the devices of these names say, and return what was done."""
        steps = plan.build(self.resolve(*names), config, preflight=False)
        return plan.carry_out(steps, config, policy)


def replay(done, config):
    """Do to *config* what the effects say, by nothing but what they say."""
    for effect in (one.effect for one in done):
        if effect.action == "added":
            parent, key = _parent(config, effect.where)
            if isinstance(parent, list):
                parent.insert(key, copy.deepcopy(effect.after))
            else:
                parent[key] = copy.deepcopy(effect.after)
        elif effect.action == "removed":
            parent, key = _parent(config, effect.where)
            del parent[key]
        elif effect.action == "replaced":
            _move(config, effect.was or effect.where, effect.where, effect.after)


def undo(done, config):
    """Take back what the effects say, the last one first."""
    for effect in reversed([one.effect for one in done]):
        if effect.action == "added":
            parent, key = _parent(config, effect.where)
            del parent[key]
        elif effect.action == "removed":
            parent, key = _parent(config, effect.where)
            parent.insert(key, copy.deepcopy(effect.before))
        elif effect.action == "replaced":
            _move(config, effect.where, effect.was or effect.where, effect.before)


def _move(config, source, target, value):
    parent, key = _parent(config, source)
    if isinstance(parent, list):
        del parent[key]
        parent, key = _parent(config, target)
        parent.insert(key, copy.deepcopy(value))
    else:
        parent[key] = copy.deepcopy(value)


def _parent(config, pointer):
    *path, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    parent = config
    for part in path:
        parent = parent[int(part)] if isinstance(parent, list) else parent[part]
    return parent, (int(last) if isinstance(parent, list) else last)
