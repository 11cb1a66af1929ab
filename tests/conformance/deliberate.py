"""Where we differ from the reference library on purpose, by name (DESIGN, C5).

Each difference names the cases that show it, and says how it changes their expectation.  Nothing
else may differ.
"""

import copy
import os
import stat

from cdi_runc import paths
from cdi_runc.edits.hooks import SAFE_ENV


def _added(edited, own):
    """Return the entries of *edited* that are not of the configuration's *own*."""
    left = list(own or ())
    for entry in edited or ():
        if entry in left:
            left.remove(entry)
        else:
            yield entry


def hook_env(config, case):
    """A hook without env gets a PATH and nothing else."""
    own = case["config"].get("hooks") or {}
    for name, hooks in config["hooks"].items():
        for hook in _added(hooks, own.get(name)):
            if not hook.get("env"):
                hook["env"] = list(SAFE_ENV)


def no_access(config, _case):
    """``permissions: none`` makes the node and no cgroup rule."""
    rules = config["linux"]["resources"]["devices"]
    rules[:] = [rule for rule in rules if rule.get("access")]


def bind_option(config, case):
    """A mount with neither ``bind`` nor ``rbind``, and of no other type, is a bind mount."""
    for mount in _added(config["mounts"], case["config"].get("mounts")):
        options = mount.get("options") or []
        is_bind = mount.get("type", "") in ("", "none", "bind")
        if is_bind and not {"bind", "rbind"} & {*options}:
            mount.update(type="bind", options=[*options, "rbind"])


def clean_paths(config, case):
    """Devices and mounts are compared by cleaned path."""
    for section, key, own in (
        (config.get("linux") or {}, "path", (case["config"].get("linux") or {}).get("devices")),
        (config, "destination", case["config"].get("mounts")),
    ):
        name = "devices" if key == "path" else "mounts"
        taken = {paths.clean(entry[key]) for entry in _added(section.get(name), own)}
        section[name] = [
            entry
            for entry in section.get(name) or ()
            if entry not in (own or ()) or paths.clean(entry[key]) not in taken
        ]


def no_repeats(config, _case):
    """What is there already is not added again."""
    linux = config.get("linux") or {}
    lists = [(linux.get("resources") or {}).get("devices"), *(config.get("hooks") or {}).values()]
    for entries in lists:
        if entries:
            entries[:] = [one for i, one in enumerate(entries) if one not in entries[:i]]


def links(config, _case):
    """A host path that is a symbolic link is followed."""
    found = os.stat("/dev/stdin")
    type_ = {stat.S_IFCHR: "c", stat.S_IFBLK: "b", stat.S_IFIFO: "p"}[stat.S_IFMT(found.st_mode)]
    node = {"path": "/dev/acme0", "type": type_, "fileMode": stat.S_IMODE(found.st_mode)}
    if type_ != "p":
        numbers = {"major": os.major(found.st_rdev), "minor": os.minor(found.st_rdev)}
        node.update(numbers)
        rule = {"allow": True, "type": type_, **numbers, "access": "rwm"}
        config["linux"]["resources"] = {"devices": [rule]}
    config["linux"]["devices"] = [node]


def override_wins(config, _case):
    """Two files in conflict in a lower directory do not hide a sound one in a higher one."""
    config["process"]["env"].append("FROM=three")


# In the order in which they apply.  The last two accept what the reference refuses.
DIFFERENCES = {
    no_access: {"node-permissions-none"},
    bind_option: {"mount-minimal", "mount-bind-in-user-namespace", "yaml-plain-words-as-strings"},
    clean_paths: {"node-path-is-compared-literally", "mount-trailing-slash"},
    hook_env: {
        "hook-every-kind",
        "hook-after-existing",
        "hook-timeout-zero",
        "hook-relative-path",
        "hook-repeated",
        "spec-level-edits-once",
        "spec-level-edits-first",
        "same-device-twice",
        "everything-at-once",
        "config-null-sections",
        "config-minimal",
        "unknown-members-in-edited-sections",
        "hook-negative-timeout",
        "yaml-plain-words-as-strings",
    },
    no_repeats: {"node-rule-repeated", "hook-repeated", "same-device-twice"},
    links: {"node-host-path-is-a-symlink"},
    override_wins: {"conflict-below-an-override"},
}
ACCEPTED = (links, override_wins)


def expectation(case):
    """Return what a case of ``inject`` expects of us."""
    expect = copy.deepcopy(case.get("later_reference") or case["expect"])
    for difference, names in DIFFERENCES.items():
        if case["name"] in names:
            if difference in ACCEPTED:
                expect = {"config": copy.deepcopy(case["config"])}
            difference(expect["config"], case)
    return expect
