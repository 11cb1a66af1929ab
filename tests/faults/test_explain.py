"""Containers that fail in many ways: ``cdictl explain`` names the edit, device and spec file first.

The errors are those of the real runc, for a configuration that cdi-runc edited.
"""

import pytest
from support.commands import Cdictl
from support.programs import need, run

from cdi_runc.cli import matching

ONE = "acme.com/widget=one"
FAULTS = {}
"""What to do to a device's edits, by name, with what the first answer says."""


def fault(kind, *words, command=("true",)):
    """Register a function that breaks the edits of a device, or what they need."""

    def register(stage):
        FAULTS[stage.__name__] = (stage, kind, words, command)
        return stage

    return register


def script(path, text):
    """Make a program of the shell."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def mount(source, place, *options):
    """Return a mount of a device's."""
    return {"hostPath": str(source), "containerPath": place, "options": ["bind", *options]}


def failing_hook(name):
    """Return a stage of a hook that fails, behind one that does not."""

    def stage(edits, place):
        bad = script(place / "bad", "echo no driver here >&2; exit 3")
        edits["hooks"] = [
            {"hookName": name, "path": "/bin/true"},
            {"hookName": name, "path": bad, "args": ["bad", "ldcache"]},
        ]

    stage.__name__ = f"{name}_hook_fails"
    return stage


for one in ("prestart", "createRuntime", "createContainer", "poststart", "poststop"):
    fault("hooks", f"{one} #1: ", "/bad ldcache")(failing_hook(one))


@fault("hooks", "startContainer #0: /opt/acme/hook")
def hook_is_not_in_the_image(edits, place):
    """A startContainer hook is looked for in the container's own files."""
    edits["hooks"] = [{"hookName": "startContainer", "path": "/opt/acme/hook"}]


@fault("mounts", "libacme.so.550", "is not on this host")
def source_gone(edits, place):
    """A driver's file is gone since the configuration was edited."""
    library = place / "libacme.so.550"
    library.write_text("550")
    edits["mounts"] = [mount("/etc/passwd", "/opt/p"), mount(library, "/usr/lib/libacme.so.1")]
    return library.unlink


@fault("mounts", "/etc from ")
def file_over_directory(edits, place):
    """A file is mounted over a directory."""
    (place / "file").write_text("")
    edits["mounts"] = [mount("/etc", "/opt/etc"), mount(place / "file", "/etc")]


@fault("mounts", "/proc/acme")
def below_proc(edits, place):
    """A mount below /proc is refused by runc."""
    (place / "file").write_text("")
    edits["mounts"] = [mount(place / "file", "/proc/acme")]


@fault("mounts", "/opt/fs from nofs", "nofs")
def file_system_unknown(edits, place):
    """A mount has a type that the kernel does not know."""
    edits["mounts"] = [{"hostPath": "nofs", "containerPath": "/opt/fs", "type": "nofs"}]


@fault("mounts", "/opt/ro/new")
def target_in_a_read_only_mount(edits, place):
    """A mount's target cannot be made below a read-only mount."""
    (place / "empty").mkdir()
    (place / "file").write_text("")
    edits["mounts"] = [
        mount(place / "empty", "/opt/ro", "ro"),
        mount(place / "file", "/opt/ro/new"),
    ]


@fault("deviceNodes", "/dev/acme0: b 7:63", "allows nothing", command=("cat", "/dev/acme0"))
def node_without_access(edits, place):
    """A node's cgroup rule does not allow what the program wants."""
    node = {"path": "/dev/acme0", "type": "b", "major": 7, "minor": 63, "permissions": "none"}
    edits["deviceNodes"] = [node]


@fault("deviceNodes", "/dev/acme0", "mode 0600", "1000:1000", command=("cat", "/dev/acme0"))
def node_of_another_user(edits, place):
    """A node's mode keeps the process's user out."""
    node = {"path": "/dev/acme0", "hostPath": "/dev/zero", "fileMode": 0o600, "uid": 0}
    edits["deviceNodes"] = [node]
    return {"uid": 1000, "gid": 1000}


@fault("env", "PATH=/opt/acme/bin")
def path_replaced(edits, place):
    """A device's PATH hides the image's programs."""
    edits["env"] = ["OTHER=1", "PATH=/opt/acme/bin"]


@fault("additionalGids", "group 4294967295")
def group_out_of_range(edits, place):
    """A group's id is more than runc takes."""
    edits["additionalGids"] = [4294967295]


@fault("env", "ACME_MODE=turbo", command=("sh", "-c", "echo bad ACME_MODE >&2; exit 1"))
def variable_not_understood(edits, place):
    """The program does not like a variable's value."""
    edits["env"] = ["ACME_LEVEL=1", "ACME_MODE=turbo"]


@pytest.fixture
def cdictl(installation, configuration):
    """Return the command."""
    return Cdictl(installation.cdictl, configuration)


@pytest.mark.parametrize("by", ["container", "bundle", "nothing"])
@pytest.mark.parametrize("name", FAULTS)
def test_first_answer(runtime, cdictl, configuration, make_bundle, tmp_path, name, by):
    """The first answer to runc's own words is the edit behind them, with device and spec file."""
    stage, kind, words, command = FAULTS[name]
    edits = {"env": ["ACME_DEBUG=1"]}
    after = stage(edits, tmp_path)
    spec = configuration.spec(("one", edits), cdiVersion="0.7.0")
    bundle = make_bundle(*command)
    if isinstance(after, dict):
        bundle.config["process"]["user"] = after
        bundle.config["process"]["capabilities"] = {}
    bundle.request(ONE)
    if callable(after):  # what makes the real runc fail, and would be told by us before
        configuration.write(runtime="/bin/true")
        runtime("create", "--bundle", bundle.path, bundle.id)
        after()
        failed = run(need("runc"), "run", "--bundle", bundle.path, bundle.id, check=False)
    else:
        failed = runtime.run(bundle, check=False)
    assert failed.err.strip(), failed
    subject = {"container": ("--container", bundle.id), "bundle": ("--bundle", bundle.path)}
    first = cdictl.json("explain", *subject.get(by, ()), failed.err)[0]

    assert (first["device"], first["spec"], first["kind"]) == (ONE, str(spec), kind)
    for word in words:
        assert word in f"{first['what']} {first['facts']}"
    assert first["line"] > 1


OWN = {
    "unknown device acme.com/widget=two": {"device": "acme.com/widget=two"},
    "acme.json": {"spec": "{"},
    "mount source /gone is not on this host": {"edits": {"mounts": [mount("/gone", "/opt")]}},
    "env is set by both": {"env": "ACME=own", "conflicts": "refuse"},
    "it looks like a short name": {"device": "one"},
}
"""Words of the first answer, and what brings them about."""


@pytest.mark.parametrize("word", OWN)
def test_own_errors(runtime, cdictl, configuration, make_bundle, word):
    """Our own errors, as an engine passes them on, are explained as well."""
    stage = OWN[word]
    configuration.write(conflicts=stage.get("conflicts", "cdi"))
    spec = configuration.spec(("one", stage.get("edits", {"env": ["ACME=1"]})))
    if "spec" in stage:
        spec.write_text(stage["spec"])
    bundle = make_bundle()
    bundle.config["process"]["env"] += [stage[key] for key in ("env",) if key in stage]
    failed = runtime.run(bundle.request(stage.get("device", ONE)), check=False)
    text = f"docker: Error response from daemon: create failed: {failed.err}: unknown."
    first = cdictl.json("explain", text)[0]

    assert word in f"{first['what']} {first['facts']}"


ASK = f"docker run --runtime=cdi -e CDI_DEVICES={ONE} ..."
REGISTER = "sudo cdictl configure docker"
NODE = "error gathering device information while adding custom device"
DOCKERS = [
    pytest.param(f"docker: {ONE} is not an absolute path.\nSee 'docker run --help'.", ASK, ONE),
    pytest.param(
        f'docker: Error response from daemon: {NODE} "/{ONE}": no such file or directory.', ASK, ONE
    ),
    pytest.param(f'msg="{NODE} \\"/{ONE}\\": no such file or directory"', ASK, ONE),
    pytest.param(
        'docker: Error response from daemon: could not select device driver "cdi" with\n'
        "capabilities: [].",
        "docker run --runtime=cdi -e CDI_DEVICES=NAME ...",
        "",
    ),
    pytest.param("docker: Error response: Unknown runtime specified cdi.", REGISTER, ""),
    pytest.param("docker: Error response: unknown or invalid runtime name: cdi.", REGISTER, ""),
]
"""What Docker says by itself, the cure, and the device that it names."""


@pytest.mark.parametrize(("text", "cure", "device"), DOCKERS)
def test_what_docker_refuses_itself(cdictl, configuration, text, cure, device):
    """Where Docker did not ask cdi-runc, that is said, and how to have it asked."""
    configuration.spec(("one", {"env": ["ACME=1"]}))
    (first,) = cdictl.json("explain", text)

    assert first["what"].startswith("Docker refused this itself, and cdi-runc was not asked: ")
    assert (first["facts"], first["device"]) == ({"cure": cure}, device)


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        pytest.param(("--device", ONE), "docker run --runtime=cdi", id="name"),
        pytest.param(("--device", f"/{ONE}"), ASK, id="path"),
        pytest.param(("--runtime", "no-such"), None, id="another-runtime"),
    ],
)
def test_what_this_docker_refuses_itself(docker, cdictl, configuration, options, cure):
    """The words of the Docker of this host are known; a runtime that is not ours is no cause."""
    configuration.spec(("one", {"env": ["ACME=1"]}))
    failed = docker.run(*options, check=False)
    assert failed.status, failed
    causes = cdictl.json("explain", failed.err, status=0 if cure else 1)

    assert [cause["facts"]["cure"][: len(cure)] for cause in causes] == ([cure] if cure else [])


def test_a_pipe(runtime, cdictl, configuration, make_bundle, tmp_path):
    """The error comes in a pipe as well; the answer names container, file and line."""
    edits = {"hooks": [{"hookName": "createContainer", "path": script(tmp_path / "bad", "exit 1")}]}
    spec = configuration.spec(("one", edits))
    bundle = make_bundle().request(ONE)
    error = tmp_path / "error"
    error.write_text(runtime.run(bundle, check=False).err)
    for words in (("-",), ()):
        with error.open() as text:
            shown = cdictl("explain", *words, stdin=text).out

        assert f"In {bundle.id}, made " in shown
        assert f"hooks: createContainer #0: {tmp_path}/bad" in shown
        assert f"spec file  {spec}:" in shown
        assert "runc counts the hooks of one kind from 0" in shown


def test_foreign_hook(runtime, cdictl, configuration, make_bundle, tmp_path):
    """A hook of the container's own is told as such: nothing of CDI's is behind it."""
    configuration.spec(("one", {"hooks": [{"hookName": "createRuntime", "path": "/bin/true"}]}))
    bundle = make_bundle()
    bundle.config["hooks"] = {"createRuntime": [{"path": script(tmp_path / "own", "exit 1")}]}
    bundle.request(ONE)
    error = runtime.run(bundle, check=False).err
    done = cdictl("explain", "--container", bundle.id, error, check=False)

    assert (done.status, done.out) == (1, "")
    assert f"createRuntime #0 is {tmp_path}/own, which is not CDI's" in done.err


@pytest.mark.parametrize("text", ["hello", "no such container", "exit status 1"])
def test_nothing_fits(runtime, cdictl, configuration, make_bundle, text):
    """A text that speaks of no edit gets no answer, and exit code 1."""
    configuration.spec(("one", {"env": ["ACME=1"]}))
    runtime.run(make_bundle().request(ONE))
    done = cdictl("explain", text, check=False)

    assert (done.status, done.out) == (1, "")
    assert cdictl.json("explain", text, status=1) == []


def test_the_newest_that_fits(runtime, cdictl, configuration, make_bundle):
    """Without a container the newest one on record that fits is told."""
    configuration.write(runtime="/bin/true")
    names = []
    for name in ("one", "two", "three"):
        mounts = [mount("/etc", f"/opt/{name}")] * (name != "three")
        configuration.spec(("one", {"env": ["A=1"], "mounts": mounts}))
        bundle = make_bundle(rootfs=False).request(ONE)
        runtime("create", "--bundle", bundle.path, bundle.id)
        names.append(bundle.id)

    for number, name in enumerate(("one", "two")):
        first = cdictl.json("explain", f"stat /rootfs/opt/{name}: no such file")[0]
        assert first["container"].startswith(f"{names[number]},")


def test_spec_file_changed(runtime, cdictl, configuration, make_bundle):
    """Where the spec file is another by now, no line of it is told."""
    configuration.write(runtime="/bin/true")
    spec = configuration.spec(("one", {"env": ["ACME=1"]}))
    bundle = make_bundle(rootfs=False).request(ONE)
    runtime("create", "--bundle", bundle.path, bundle.id)
    spec.write_text("\n\n" + spec.read_text())
    (first,) = cdictl.json("explain", "ACME is wrong")

    assert first["line"] == 0
    assert first["facts"]["but"] == "the spec file is another now"


@pytest.mark.parametrize(
    ("text", "hooks"),
    [
        pytest.param("error running hook #3: exit status 1", [("", "3")], id="runc"),
        pytest.param(
            "error running createContainer hook #12: x", [("createContainer", "12")], id="newer"
        ),
        pytest.param("error running poststop hook 3", [], id="no-number-sign"),
        pytest.param("hook #0, hook #1", [("", "0"), ("", "1")], id="two"),
    ],
)
def test_numbers_of_hooks(text, hooks):
    """Hooks are numbered as runc of several ages words it."""
    assert matching.Text(text).hooks == hooks


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        pytest.param("stat /a/b: no such file", ["/a/b"], id="stat"),
        pytest.param(
            'msg="error mounting \\"/a b\\" to rootfs at \\"/c\\""',
            ["/a b", "/c"],
            id="escaped",
        ),
        pytest.param(
            "mount /a:/b (via /proc/self/fd/6)", ["/a", "/b", "/proc/self/fd/6"], id="mount"
        ),
        pytest.param('mounting "/a b" to rootfs at "/c"', ["/a b", "/c"], id="quoted"),
        pytest.param("crun: open `/a//b/`: Permission denied.", ["/a/b"], id="crun"),
        pytest.param("at 02:43:40, 7:5", [], id="none"),
    ],
)
def test_paths(text, paths):
    """Paths are found quoted and bare, and compared cleaned."""
    assert matching.Text(text).paths == paths


def test_numbers_of_devices():
    """A device's numbers are told from times."""
    assert matching.Text("c 195:0 rwm at 02:43:40 or 2026-12-01T02:43:40Z").numbers == {"195:0"}
