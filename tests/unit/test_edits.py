"""What edits do to a configuration, and what is recorded of it."""

import copy
import json
import os

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from support.samples import EDITS, config, replay, spec, undo

from cdi_runc import conflicts, paths, plan
from cdi_runc.edits import Doubt, additional_gids, device_nodes, hooks, mounts
from cdi_runc.errors import Conflicting, Unusable

W0, W1 = "acme.example/widget=w0", "acme.example/widget=w1"


def actions(done):
    """Return what was done where."""
    return [(one.effect.action, one.effect.where) for one in done]


def test_second_pass_changes_nothing(host):
    """A second pass over the edited configuration leaves it alone, and says so."""
    (host.etc / "a.json").write_text(
        spec(
            ("w0", {**EDITS, "env": ["ACME=1", "BOTH=0"]}),
            ("w1", {"env": ["BOTH=1"], "deviceNodes": [{**EDITS["deviceNodes"][0], "minor": 2}]}),
        )
    )
    edited = config()
    host.done(edited, W0, W1)
    again = copy.deepcopy(edited)
    done = host.done(again, W0, W1)

    assert edited == again
    assert {"already present", "superseded"} == {action for action, _ in actions(done)}


def test_engine_that_injected_the_device_itself(host):
    """Edits that the engine made before us are not made again."""
    (host.etc / "a.json").write_text(spec(("w0", {"env": ["ACME=1"]})))
    given_ = config()
    given_["process"]["env"].append("ACME=1")
    before = copy.deepcopy(given_)
    done = host.done(given_, W0)

    assert before == given_
    assert [("already present", "/process/env/3")] == actions(done)


def test_rule_stands_behind_a_deny(host):
    """A cgroup rule goes to the end: before the engine's deny-all it would be void."""
    (host.etc / "a.json").write_text(spec(("w0", {"deviceNodes": EDITS["deviceNodes"]})))
    edited = config()
    host.done(edited, W0)
    rule = {"allow": True, "type": "c", "major": 240, "minor": 1, "access": "rwm"}
    rules = edited["linux"]["resources"]["devices"]

    assert [{"allow": False, "access": "rwm"}, rule] == rules
    rules.append({"allow": False, "access": "rwm"})
    host.done(edited, W0)

    assert rule == rules[-1]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param({"hostPath": "/dev/null"}, ("c", 1, 3, 0o666), id="from-host"),
        pytest.param({"type": "c", "major": 240, "minor": 5}, ("c", 240, 5, None), id="given"),
        pytest.param(
            {"hostPath": "/dev/null", "fileMode": 0o600}, ("c", 1, 3, 0o600), id="own-mode"
        ),
        pytest.param(
            {"hostPath": "/dev/null", "type": "c", "major": 9, "minor": 9},
            ("c", 9, 9, 0o666),
            id="given-with-host-mode",
        ),
    ],
)
def test_node_is_filled_in_from_the_host(node, expected):
    """What the spec leaves out of a node comes from the host's node."""
    entry = {"path": "/dev/acme0", **node}
    settled, _ = device_nodes.Edit(*device_nodes.parse([entry])[0]).settle({})

    assert expected == (settled.type, settled.major, settled.minor, settled.file_mode)


def test_node_by_another_name(tmp_path):
    """A host path that is a symbolic link, as udev makes them, is followed."""
    (tmp_path / "by-id").symlink_to("/dev/zero")
    settled, _ = device_nodes.Edit("/dev/acme0", str(tmp_path / "by-id")).settle({})

    assert ("c", 1, 5) == (settled.type, settled.major, settled.minor)


@pytest.mark.parametrize(
    ("node", "words"),
    [
        pytest.param({"path": "/dev/acme9"}, "/dev/acme9 is not on this host", id="missing"),
        pytest.param({"path": "/dev/null", "type": "b"}, "of type c on this host", id="type"),
        pytest.param({"path": "/etc"}, "/etc is no device node", id="directory"),
    ],
)
def test_unusable_node_is_refused(node, words):
    """A node that needs the host's, which is not there or of another type, is refused."""
    with pytest.raises(Unusable, match=words):
        device_nodes.Edit(*device_nodes.parse([node])[0]).settle({})


def test_doubtful_nodes_are_told():
    """Numbers that differ from the host's, and a replaced standard node, deserve a warning."""
    stale = device_nodes.Edit("/dev/null", "", "c", 235, 0).settle({})[1]
    replaced = device_nodes.Edit("/dev/zero", "/dev/null").settle({})[1]
    fine = device_nodes.Edit("/dev/acme0", "/dev/null").settle({})[1]

    assert (Doubt, Doubt, "") == (type(stale), type(replaced), fine)


def in_user_namespace(**linux):
    """Return a configuration whose container has a user namespace of its own."""
    return {"linux": {"namespaces": [{"type": "user"}], **linux}}


@pytest.mark.parametrize(
    "node",
    [
        pytest.param({"path": "/dev/acme0", "hostPath": "/dev/null"}, id="another-path"),
        pytest.param({"path": "/dev/null", "type": "c", "major": 9, "minor": 9}, id="numbers"),
        pytest.param({"path": "/dev/acme9", "type": "c", "major": 9, "minor": 9}, id="missing"),
    ],
)
def test_node_that_a_user_namespace_cannot_have(host, node):
    """Where the runtime mounts the host's node of that path, it must be the one that is meant."""
    (host.etc / "a.json").write_text(spec(("w0", {"deviceNodes": [node]})))
    devices = host.resolve(W0)
    with pytest.raises(Unusable, match=f"device node {node['path']} .* in a user namespace"):
        plan.build(devices, in_user_namespace())
    plan.build(devices, in_user_namespace(), preflight=False)  # what the reference does
    plan.build(devices, {})


@pytest.mark.parametrize("host_path", [{}, {"hostPath": "/dev/null"}, {"hostPath": "/dev//null"}])
def test_node_that_a_user_namespace_can_have(host, host_path):
    """The host's node of the same path is one in any namespace."""
    node = {"path": "/dev/null", **host_path}
    (host.etc / "a.json").write_text(spec(("w0", {"deviceNodes": [node]})))
    (step,) = plan.build(host.resolve(W0), in_user_namespace())

    assert ("deviceNodes", "c", 1, 3) == (
        step.key,
        step.edit.type,
        step.edit.major,
        step.edit.minor,
    )


def test_node_of_a_caller_who_is_not_root(host, monkeypatch):
    """A node of another path is mounted, as nobody but root can make one."""
    monkeypatch.setattr(paths, "is_system", lambda: False)
    nodes = [{"path": "/dev/acme0", "hostPath": "/dev/null"}, {"path": "/dev/zero"}]
    (host.etc / "a.json").write_text(spec(("w0", {"deviceNodes": nodes})))
    steps = plan.build(host.resolve(W0), {})
    mount = {
        "destination": "/dev/acme0",
        "type": "bind",
        "source": "/dev/null",
        "options": ["bind"],
    }

    assert [("mounts", mount), ("deviceNodes", steps[1].edit.entry())] == [
        (step.key, step.edit.entry()) for step in steps
    ]
    assert [
        "/devices/0/containerEdits/deviceNodes/0",
        "/devices/0/containerEdits/deviceNodes/1",
    ] == [step.pointer for step in steps]


MAPPED = [
    {"containerID": 0, "hostID": 1000, "size": 10},
    {"containerID": 44, "hostID": 44, "size": 1},
]


@pytest.mark.parametrize(
    ("gid", "config", "note", "problem"),
    [
        pytest.param(5, {}, "", "", id="host"),
        pytest.param(5, in_user_namespace(), "", "", id="unknown-map"),
        pytest.param(5, in_user_namespace(gidMappings=[{"size": 1}]), "", "", id="strange-map"),
        pytest.param(0, in_user_namespace(gidMappings=MAPPED), "", "", id="left-out"),
        pytest.param(44, in_user_namespace(gidMappings=MAPPED), "", "", id="same"),
        pytest.param(9, in_user_namespace(gidMappings=MAPPED), "the host's 1009 ", "", id="moved"),
        pytest.param(
            10, in_user_namespace(gidMappings=MAPPED), "", "groups 0 to 9, 44 to 44", id="unmapped"
        ),
    ],
)
def test_group_of_a_user_namespace(gid, config, note, problem):
    """A group without a place is a problem, one that is another on the host is doubtful."""
    edit, told = additional_gids.Edit(gid).settle(config)

    assert note in told
    assert bool(note) == isinstance(told, Doubt)
    assert problem in edit.preflight(config)
    assert bool(problem) == bool(edit.preflight(config))


def test_no_access_makes_a_node_without_a_rule():
    """With permissions none there is a node and no rule: runc refuses an empty one."""
    edit = device_nodes.Edit("/dev/acme0", "", "c", 240, 1, None, "none")

    assert edit.rule() is None
    assert "/dev/acme0" == edit.entry()["path"]


def test_owner_is_the_process(host):
    """A node without owner is given to the user of the process, group and user one by one."""
    (host.etc / "a.json").write_text(spec(("w0", {"deviceNodes": EDITS["deviceNodes"]})))
    edited = config()
    edited["process"]["user"].update(uid=1000, gid=0)
    host.done(edited, W0)
    node = edited["linux"]["devices"][-1]

    assert (1000, False) == (node["uid"], "gid" in node)


@pytest.mark.parametrize(
    ("mount", "options", "kind"),
    [
        pytest.param({}, ["rbind"], "bind", id="nothing"),
        pytest.param({"options": ["ro"]}, ["ro", "rbind"], "bind", id="ro"),
        pytest.param({"type": "none", "options": ["bind"]}, ["bind"], "none", id="bind"),
        pytest.param({"type": "tmpfs", "options": ["size=1m"]}, ["size=1m"], "tmpfs", id="tmpfs"),
    ],
)
def test_bind_option_is_added_where_it_was_forgotten(mount, options, kind):
    """A mount that says neither bind nor rbind gets rbind, unless it is of another type."""
    entry = {"hostPath": "/opt/acme", "containerPath": "/opt/acme", **mount}
    settled, _ = mounts.Edit(*mounts.parse([entry])[0]).settle({})

    assert (options, kind) == (settled.entry()["options"], settled.entry().get("type"))


def test_mounts_keep_the_users_order(host):
    """Mounts are sorted by depth alone, stably: a parent never hides its child."""
    wanted = [
        {"hostPath": "/etc", "containerPath": path, "options": ["rbind"]}
        for path in ("/a/x/y", "/c", "/a/x/")
    ]
    (host.etc / "a.json").write_text(spec(("w0", {"mounts": wanted})))
    edited = config(mounts=[{"destination": path} for path in ("/a", "/b", "/a/x")])
    host.done(edited, W0)

    assert ["/a", "/b", "/c", "/a/x/", "/a/x/y"] == [m["destination"] for m in edited["mounts"]]


def test_hook_without_env_gets_path_alone():
    """A hook without env gets PATH and nothing else, so never an image's LD_PRELOAD."""
    for arguments in (("createContainer", "/bin/true"), ("prestart", "/bin/true", (), ())):
        settled, note = hooks.Edit(*arguments).settle({})

        assert [f"PATH={os.defpath}"][0][:5] == settled.entry()["env"][0][:5]
        assert 1 == len(settled.entry()["env"])
        assert "PATH alone" in note


def test_preflight_tells_all_at_once(host, tmp_path):
    """Everything that is missing is told in one message, with device and spec file."""
    plain = tmp_path / "plain"
    plain.write_text("")
    missing = {
        "deviceNodes": [{"path": "/dev/acme9"}],
        "mounts": [{"hostPath": "/no/such", "containerPath": "/x", "options": ["rbind"]}],
        "hooks": [
            {"hookName": "createRuntime", "path": str(plain)},
            {"hookName": "poststop", "path": "/no/hook"},
            {"hookName": "prestart", "path": "relative"},
            {"hookName": "startContainer", "path": "/only/in/the/container"},
        ],
        "netDevices": [{"hostInterfaceName": "acme9", "name": "eth1"}],
    }
    (host.etc / "a.json").write_text(spec(("w0", missing)))
    with pytest.raises(Unusable) as caught:
        plan.build(host.resolve(W0), config())
    told = str(caught.value)

    assert told.startswith(f"device {W0}: ")
    assert f"(spec {host.etc}/a.json, written " in told
    for words in ("/dev/acme9", "/no/such", f"{plain} is no executable", "and 1 more"):
        assert words in told
    assert "/only/in/the/container" not in told


def test_spec_level_edits_are_made_once(host):
    """A spec file's own edits come before its first device's, and once."""
    (host.etc / "a.json").write_text(
        spec(("w0", {"env": ["A=0"]}), ("w1", {"env": ["A=1"]}), containerEdits={"env": ["S=1"]})
    )
    edited = config()
    host.done(edited, W1, W0)

    assert ["S=1", "A=0"] == edited["process"]["env"][3:]


@pytest.mark.parametrize(
    ("key", "entries", "find"),
    [
        pytest.param("env", ["TERM=acme"], lambda c: c["process"]["env"][1], id="env"),
        pytest.param(
            "deviceNodes",
            [{"path": "/dev/own", "type": "c", "major": 240, "minor": 1}],
            lambda c: c["linux"]["devices"][0]["major"],
            id="deviceNodes",
        ),
        pytest.param(
            "mounts",
            [{"hostPath": "/opt", "containerPath": "/data", "options": ["rbind"]}],
            lambda c: c["mounts"][2]["source"],
            id="mounts",
        ),
        pytest.param(
            "netDevices",
            [{"hostInterfaceName": "acme0", "name": "eth1"}],
            lambda c: c["linux"]["netDevices"]["acme0"],
            id="netDevices",
        ),
        pytest.param(
            "intelRdt", {"closID": "gold"}, lambda c: c["linux"]["intelRdt"], id="intelRdt"
        ),
    ],
)
@pytest.mark.parametrize("policy", ["cdi", "container", "refuse"])
def test_conflict_is_decided_by_policy(host, key, entries, find, policy):
    """A value of the container's own gives way, stays, or stops the create, as configured."""
    (host.etc / "a.json").write_text(spec(("w0", {key: entries})))
    before = config()
    before["linux"].update(netDevices={"acme0": {"name": "own"}}, intelRdt={"closID": "own"})
    edited = copy.deepcopy(before)
    wanted = {"": "cdi", key: policy}
    done = host.done(edited, W0, policy=wanted)
    (found,) = conflicts.find(done, wanted)

    assert ("container", policy) == (found.against, found.decision)
    assert (find(before) == find(edited)) == (policy == "container")
    if policy == "refuse":
        with pytest.raises(Conflicting, match=f"device {W0} sets {key} "):
            conflicts.refuse([found])
    if key == "deviceNodes" and policy == "container":
        assert before == edited


def test_device_over_device_is_a_conflict(host):
    """What a later device takes from an earlier one is a conflict between these two."""
    (host.etc / "a.json").write_text(
        spec(
            ("w0", {"env": ["A=0", "S=0"]}),
            ("w1", {"env": ["A=1"]}),
            containerEdits={"env": ["S=1"]},
        )
    )
    done = host.done(config(), W0, W1)

    assert [(W1, W0)] == [
        (found.done.step.device, found.against) for found in conflicts.find(done, {"": "cdi"})
    ]


NAMES = st.sampled_from(["A", "B", "PATH", "TERM"])
PATHS = st.sampled_from(["/dev/own", "/dev/a", "/dev//a", "/dev/b"])
TARGETS = st.sampled_from(["/data", "/data/", "/data/x", "/", "/a/b/c", "/dev"])
ANY_EDITS = st.fixed_dictionaries(
    {"env": st.lists(st.builds("{}={}".format, NAMES, st.integers(0, 2)), min_size=1, max_size=4)},
    optional={
        "deviceNodes": st.lists(
            st.fixed_dictionaries(
                {
                    "path": PATHS,
                    "type": st.sampled_from("cbp"),
                    "major": st.integers(300, 302),
                    "permissions": st.sampled_from(["", "rw", "none"]),
                }
            ),
            max_size=4,
        ),
        "mounts": st.lists(
            st.fixed_dictionaries(
                {
                    "hostPath": st.sampled_from(["/etc", "/opt"]),
                    "containerPath": TARGETS,
                    "options": st.sampled_from([[], ["rbind"], ["ro", "bind"]]),
                }
            ),
            max_size=4,
        ),
        "hooks": st.lists(
            st.fixed_dictionaries(
                {"hookName": st.sampled_from(hooks.NAMES), "path": st.just("/bin/true")}
            ),
            max_size=3,
        ),
        "additionalGids": st.lists(st.integers(0, 12), max_size=3),
        "intelRdt": st.fixed_dictionaries({"closID": st.sampled_from(["", "gold", "tin"])}),
        "netDevices": st.lists(
            st.fixed_dictionaries({"hostInterfaceName": st.just("x0"), "name": st.just("e0")}),
            max_size=1,
        ),
    },
)
UNKNOWN = st.dictionaries(st.sampled_from(["x-acme", "vendor"]), st.integers() | st.text())
ANY_CONFIG = st.builds(
    lambda top, linux, process, dropped, order: {
        key: value
        for key, value in {
            **config(mounts=order, **top),
            "linux": {**config()["linux"], **linux},
            "process": {**config()["process"], **process},
        }.items()
        if key not in dropped
    },
    UNKNOWN,
    UNKNOWN,
    UNKNOWN,
    st.sets(st.sampled_from(["linux", "process", "mounts"])),
    st.permutations([*config()["mounts"], {"destination": "/a/b", "x-unknown": 1}]),
)


@examples(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    before=ANY_CONFIG, one=ANY_EDITS, two=ANY_EDITS, policy=st.sampled_from(["cdi", "container"])
)
def test_effects_are_the_whole_truth(host, before, one, two, policy):
    """The effects replay to the same file; undone, they give the file before; twice is once."""
    (host.etc / "a.json").write_text(spec(("w0", one), ("w1", two)))
    edited = copy.deepcopy(before)
    done = host.done(edited, W0, W1, policy={"": policy})
    replayed, undone, again = (copy.deepcopy(config_) for config_ in (before, edited, edited))
    replay(done, replayed)
    undo(done, undone)
    host.done(again, W0, W1, policy={"": policy})

    assert edited == replayed
    assert before == undone
    assert json.dumps(edited) == json.dumps(again)
    for key in ("x-acme", "vendor"):
        assert before.get(key) == edited.get(key)
        for section in ("linux", "process"):
            if key in before.get(section, {}):
                assert before[section][key] == edited[section][key]


@examples(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(before=ANY_CONFIG, edits=ANY_EDITS, data=st.data())
def test_kinds_commute(host, before, edits, data):
    """Kinds of edit own different places: in any order they give the same configuration."""
    (host.etc / "a.json").write_text(spec(("w0", edits)))
    one, other = copy.deepcopy(before), copy.deepcopy(before)
    steps = plan.build(host.resolve(W0), before, preflight=False)
    plan.carry_out(steps, one)
    keys = data.draw(st.permutations(sorted({step.key for step in steps})))
    for key in keys:
        plan.carry_out([step for step in steps if step.key == key], other)

    assert one == other
