"""``cdictl configure docker``: what it does to a daemon.json, and how it finds the daemon."""

import json
import os
import stat

import pytest

from cdi_runc.cli import configure_docker, main
from cdi_runc.engines import dockerd
from cdi_runc.engines.config_file import BACKUP, ConfigFile
from cdi_runc.engines.daemon_json import BadDaemonJson, added, read, removed
from cdi_runc.errors import CdiRuncError

NESTED = '{\n  "runtimes": {\n    "x": {\n      "path": "/x"\n    }\n  },\n  "debug": true\n}\n'

TEXTS = [
    pytest.param("", id="empty"),
    pytest.param("\n", id="blank"),
    pytest.param("{}", id="empty-object"),
    pytest.param("{ }\n", id="blank-object"),
    pytest.param("{\n}\n", id="object-of-two-lines"),
    pytest.param('{"log-driver":"local","runtimes":{"other":{"path":"/o"}}}', id="compact"),
    pytest.param('{"a": 1, "b": [ {"c": 1} ]}', id="one-line"),
    pytest.param('{"runtimes":{}}', id="no-runtimes-yet"),
    pytest.param('{\n  "runtimes": {}\n}\n', id="no-runtimes-yet-in-lines"),
    pytest.param(NESTED, id="two-blanks"),
    pytest.param(NESTED.replace("  ", "\t"), id="tabs"),
    pytest.param(NESTED.replace("\n", "\r\n"), id="crlf"),
    pytest.param("\ufeff" + NESTED, id="bom"),
    pytest.param("\ufeff", id="only-a-bom"),
    pytest.param('{"a": 1.50e400,\n\n "b":"\\u00e9 é {\\"" }', id="strange-values"),
    pytest.param('{"default-runtime":"n","runtimes":{"n":{"path":"/n"}}}', id="other-default"),
    pytest.param('{\n  "runtimes": {"x": {"path": "/x"}}, "b":2}\n', id="mixed"),
]


@pytest.fixture
def daemon_json(tmp_path):
    """Return a function that makes a daemon.json and reads it."""
    path = tmp_path / "daemon.json"

    def make(text):
        path.write_bytes(text.encode())
        return ConfigFile.load(str(path))

    return make


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that runs the command on tmp_path's daemon.json, while no dockerd runs."""
    monkeypatch.setattr(dockerd, "running", list)
    program = tmp_path / "cdi-runc"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    def run(*words):
        words = [w.replace("PROGRAM", str(program)) for w in words]
        code = main.main(
            ["configure", "docker", "--config-file", str(tmp_path / "daemon.json"), *words]
        )
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def running(tmp_path, monkeypatch):
    """Return a function that lets a dockerd with some flags seem to run."""

    def start(*flags):
        path = os.path.realpath(tmp_path / "daemon.json")
        monkeypatch.setattr(
            dockerd, "running", lambda: [dockerd.Daemon(1, ("dockerd", *flags), path)]
        )

    return start


@pytest.mark.parametrize("text", TEXTS)
def test_adding_and_removing_leaves_no_trace(daemon_json, text):
    """What was added is read back, adding it again changes nothing, and removing restores all."""
    file = daemon_json(text)
    new = added(file.text, "cdi", "/p", set_default=True)
    file.back_up(has_entry=False)
    file.write(new)
    values = read(new)

    assert values["runtimes"]["cdi"] == {"path": "/p"}
    assert values["default-runtime"] == "cdi"
    assert new == added(new, "cdi", "/p", set_default=True)
    assert text == removed(ConfigFile.load(file.path), "cdi")


@pytest.mark.parametrize("text", TEXTS)
def test_adding_keeps_every_value_and_its_place(text):
    """All other keys stay, in their order, with their values."""
    before, after = read(text), read(added(text, "cdi", "/p", set_default=False))
    after["runtimes"].pop("cdi")

    assert [*before] == [*after][: len(before)]
    assert before == {key: after[key] for key in before}


def test_lines_have_the_indentation_of_the_file():
    """New lines look as the file's own ones."""
    text = added(NESTED, "cdi", "/p", set_default=False)

    assert (
        NESTED.replace("    }\n  },", '    },\n    "cdi": {\n      "path": "/p"\n    }\n  },')
        == text
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param('{ "a":1, }', "line 1: a comma before }", id="comma"),
        pytest.param('{\n "a":[1,]}', "line 2: a comma before ]", id="comma-in-array"),
        pytest.param("// note\n{}", "line 1: a comment", id="comment"),
        pytest.param("{\n  # note\n}", "line 2: a comment", id="hash"),
        pytest.param('{"runtimes":{}}{"dns":[]}', "something follows", id="two-objects"),
        pytest.param('{"a":1,\n"a":2}', "line 2: the key 'a' is there twice", id="key-twice"),
        pytest.param('{"x":[{"a":1,\n"a":2}]}', "line 2: the key 'a'", id="key-twice-inside"),
        pytest.param("[]", "not an object", id="array"),
        pytest.param("null", "not an object", id="null"),
        pytest.param('{"a":NaN}', "NaN", id="nan"),
        pytest.param("{'a':1}", "line 1: expecting property name", id="quotes"),
        pytest.param("[" * 100_000, "nested too deeply", id="deep"),
        pytest.param('{"runtimes":[]}', "'runtimes' is not an object", id="runtimes-array"),
        pytest.param('{"default-runtime":1}', "'default-runtime' is not", id="default-number"),
        pytest.param('{"runtimes":{"cdi":{"runtimeType":"x"}}}', "another make", id="not-a-path"),
    ],
)
def test_what_is_in_doubt_is_refused(text, words):
    """A file that is no strict JSON object is refused, with the line and the reason."""
    with pytest.raises(BadDaemonJson, match=words.replace("[", r"\[")):
        added(text, "cdi", "/p", set_default=False)


def test_refusal_changes_nothing_and_says_what_to_add(tmp_path, run):
    """A refused file stays, without a backup, and the fragment to add by hand is shown."""
    path = tmp_path / "daemon.json"
    path.write_text('{\n"a": 1,\n}')
    code, _, err = run("--runtime-path", "PROGRAM", "--set-default")

    assert code == 1
    assert f"{path} was left as it is: line 3: a comma before }}" in err
    assert f'"runtimes": {{"cdi": {{"path": "{tmp_path}/cdi-runc"}}}}' in err
    assert '"default-runtime": "cdi"' in err
    assert path.read_text() == '{\n"a": 1,\n}'
    assert sorted(os.listdir(tmp_path)) == ["cdi-runc", "daemon.json"]


def test_link_mode_and_owner_stay(tmp_path, run):
    """A link is written through to its target, which keeps mode and owner; one backup is made."""
    target = tmp_path / "elsewhere/docker.json"
    target.parent.mkdir()
    target.write_text(NESTED)
    target.chmod(0o604)
    if os.geteuid() == 0:
        os.chown(target, 7, 8)
    before = target.stat()
    (tmp_path / "daemon.json").symlink_to(target)
    code, out, _ = run("--runtime-path", "PROGRAM")
    after = target.stat()

    assert code == 0
    assert "No Docker daemon" in out
    assert (tmp_path / "daemon.json").is_symlink()
    assert "cdi" in json.loads(target.read_text())["runtimes"]
    assert (before.st_mode, before.st_uid, before.st_gid) == (
        after.st_mode,
        after.st_uid,
        after.st_gid,
    )
    assert sorted(os.listdir(target.parent)) == ["docker.json", "docker.json" + BACKUP]
    assert (target.parent / ("docker.json" + BACKUP)).read_text() == NESTED


def test_second_time_writes_nothing(tmp_path, run):
    """If nothing changes, nothing is written."""
    run("--runtime-path", "PROGRAM")
    before = (tmp_path / "daemon.json").stat()
    code, out, _ = run("--runtime-path", "PROGRAM")

    assert code == 0
    assert "nothing to change" in out
    assert before == (tmp_path / "daemon.json").stat()


def test_missing_file_is_made_and_taken_away_again(tmp_path, run):
    """Where there was no file, there is none after --remove."""
    run("--runtime-path", "PROGRAM", "--set-default")
    mode = stat.S_IMODE((tmp_path / "daemon.json").stat().st_mode)
    code, _, _ = run("--remove")

    assert (mode, code) == (0o644, 0)
    assert os.listdir(tmp_path) == ["cdi-runc"]


def test_dry_run_writes_nothing(tmp_path, run):
    """--dry-run shows the lines that would change, and only that."""
    (tmp_path / "daemon.json").write_text(NESTED)
    code, out, _ = run("--runtime-path", "PROGRAM", "--dry-run")

    assert code == 0
    assert '+    "cdi": {\n' in out
    assert (tmp_path / "daemon.json").read_text() == NESTED
    assert sorted(os.listdir(tmp_path)) == ["cdi-runc", "daemon.json"]


def test_old_path_is_brought_up_to_date(tmp_path, run):
    """An entry of our name gets the new path, and keeps what else it has."""
    text = '{"runtimes":{"cdi":{"runtimeArgs":["--debug"],"path":"/old"}}}'
    (tmp_path / "daemon.json").write_text(text)
    _, out, _ = run("--runtime-path", "PROGRAM")

    assert "(was /old)" in out
    assert text.replace("/old", f"{tmp_path}/cdi-runc") == (tmp_path / "daemon.json").read_text()


def test_removal_gives_back_the_default_that_we_replaced(tmp_path, run):
    """A default-runtime that was there before is the default again; ours only goes."""
    text = '{"default-runtime": "n", "runtimes": {"n": {"path": "/n"}}, "debug": false}'
    (tmp_path / "daemon.json").write_text(text)
    run("--runtime-path", "PROGRAM", "--set-default")
    changed = (tmp_path / "daemon.json").read_text().replace('"debug": false', '"debug": true')
    (tmp_path / "daemon.json").write_text(changed)
    run("--remove")

    assert text.replace("false", "true") == (tmp_path / "daemon.json").read_text()


@pytest.mark.parametrize(
    ("option", "changes"),
    [
        pytest.param((), True, id="any"),
        pytest.param(("--runtime-path", "PROGRAM"), True, id="this-one"),
        pytest.param(("--runtime-path", "/another/cdi-runc"), False, id="another"),
        pytest.param(("--runtime-name", "other"), False, id="another-name"),
    ],
)
def test_removal_can_be_of_one_installation_only(tmp_path, run, option, changes):
    """With --runtime-path, an entry that leads elsewhere stays."""
    run("--runtime-path", "PROGRAM")
    code, _, _ = run("--remove", *option)

    assert code == 0
    assert changes == (not (tmp_path / "daemon.json").exists())


def test_removal_waits_for_containers(tmp_path, run):
    """Containers of the runtime are listed and hold up --remove, unless --force."""
    container = tmp_path / "data/containers/0123456789abcdef"
    container.mkdir(parents=True)
    (container / "hostconfig.json").write_text('{"Runtime": "cdi"}')
    (tmp_path / "daemon.json").write_text(json.dumps({"data-root": str(tmp_path / "data")}))
    run("--runtime-path", "PROGRAM")
    code, _, err = run("--remove")
    forced, _, _ = run("--remove", "--force")

    assert (code, forced) == (1, 0)
    assert "1 of Docker's containers need the runtime 'cdi': 0123456789ab;" in err
    assert {"data-root": str(tmp_path / "data")} == json.loads(
        (tmp_path / "daemon.json").read_text()
    )


def test_removal_can_wait_for_another_default(run):
    """--unless-default refuses while ours is the default runtime."""
    run("--runtime-path", "PROGRAM", "--set-default")
    code, _, err = run("--remove", "--unless-default")

    assert code == 1
    assert "Docker's default runtime" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(("--runtime-name", "runc"), "cannot be named", id="reserved"),
        pytest.param(("--runtime-name", "io.containerd.x"), "cannot be named", id="containerd"),
        pytest.param(("--runtime-name", "a b"), "cannot be named", id="blank"),
        pytest.param(("--runtime-path", "cdi-runc"), "not an absolute path", id="relative"),
        pytest.param(("--runtime-path", "/nowhere"), "not a program", id="missing"),
    ],
)
def test_bad_names_are_refused(run, words, told):
    """A runtime that Docker could not use is refused."""
    code, _, err = run(*words)

    assert code == 1
    assert told in err


def test_remove_and_set_default_exclude_each_other(run):
    """Wrong usage is exit code 2."""
    with pytest.raises(SystemExit) as error:
        run("--remove", "--set-default")

    assert error.value.code == 2


@pytest.fixture
def proc(tmp_path):
    """Return a function that adds a process to a /proc of our own, and that /proc."""
    place = tmp_path / "proc"
    place.mkdir()

    def add(pid, *arguments, exe="/usr/sbin/dockerd", root="/"):
        here = place / str(pid)
        here.mkdir()
        (here / "cmdline").write_bytes(b"".join(os.fsencode(a) + b"\0" for a in arguments))
        for name, target in (("exe", exe), ("root", root), ("cwd", "/srv")):
            (here / name).symlink_to(target)

    return place, add


@pytest.mark.skipif(os.geteuid() != 0, reason="another user has other places")
@pytest.mark.parametrize(
    ("arguments", "config"),
    [
        pytest.param(("/usr/bin/dockerd", "-H", "fd://"), "/etc/docker/daemon.json", id="none"),
        pytest.param(("dockerd", "--config-file=/c.json"), "/c.json", id="equals"),
        pytest.param(("dockerd", "--config-file", "c.json", "-D"), "/srv/c.json", id="relative"),
    ],
)
def test_running_daemon_tells_its_file(proc, arguments, config):
    """The daemon.json of a running dockerd comes from its command line."""
    place, add = proc
    add(7, *arguments)

    assert [(7, config)] == [(d.pid, d.config) for d in dockerd.running(str(place))]


def test_only_daemons_of_this_host_count(proc, tmp_path):
    """Other programs, dead processes, and a dockerd inside a container are none of ours."""
    place, add = proc
    add(5, "/bin/sh", "-c", "dockerd")
    add(6)
    add(7, "dockerd", root=str(tmp_path))

    assert dockerd.running(str(place)) == []


@pytest.mark.parametrize(
    ("arguments", "hosts", "host"),
    [
        pytest.param((), None, dockerd.SOCKET, id="nothing"),
        pytest.param(("-H", "fd://"), None, dockerd.SOCKET, id="systemd"),
        pytest.param(("-Htcp://h:1", "-H=unix:///s"), None, "unix:///s", id="a-socket-first"),
        pytest.param(("--host=tcp://h:1",), ["unix:///s"], "tcp://h:1", id="flag"),
        pytest.param((), ["tcp://h:1", "unix:///s"], "unix:///s", id="file"),
    ],
)
@pytest.mark.skipif(os.geteuid() != 0, reason="another user has other places")
def test_daemon_is_asked_where_it_listens(arguments, hosts, host):
    """The docker command is pointed at the daemon's own host."""
    daemon = dockerd.Daemon(7, ("dockerd", *arguments), "/c.json")
    values = {"hosts": hosts} if hosts else {}

    assert host == dockerd.Client(daemon, values).host


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        pytest.param("--add-runtime=x=/x", (), id="runtimes"),
        pytest.param("--default-runtime=x", ("--set-default",), id="default"),
    ],
)
def test_flags_that_say_the_same_are_refused(run, running, flag, words):
    """Docker does not start with an option in both places, so we do not bring it there."""
    running(flag)
    code, _, err = run("--runtime-path", "PROGRAM", "--no-reload", *words)

    assert code == 1
    assert f"was started with {flag.partition('=')[0]}, and would not start" in err


def test_flags_that_say_something_else_are_no_matter(run, running):
    """A default runtime that a flag sets is no hindrance if we are not to be the default."""
    running("--default-runtime=x")
    code, out, _ = run("--runtime-path", "PROGRAM", "--no-reload")

    assert code == 0
    assert "kill -HUP 1" in out


def test_snap_is_explained(proc):
    """Docker from snap cannot start us; that is said, and nothing done."""
    place, add = proc
    add(7, "dockerd", "--config-file=/var/snap/docker/1/daemon.json", exe="/snap/docker/1/dockerd")
    with pytest.raises(CdiRuncError, match="is a snap"):
        configure_docker.choose(None, dockerd.running(str(place)))


def test_several_daemons_need_a_choice(proc):
    """With several daemons, none of them at the usual place, --config-file must say which."""
    place, add = proc
    add(7, "dockerd", "--config-file=/a/daemon.json")
    add(8, "dockerd", "--config-file=/b/daemon.json")
    daemons = dockerd.running(str(place))
    with pytest.raises(CdiRuncError, match=r"/a/daemon\.json, /b/daemon\.json"):
        configure_docker.choose(None, daemons)

    assert (daemons[1], "/b/daemon.json") == configure_docker.choose("/b/daemon.json", daemons)
