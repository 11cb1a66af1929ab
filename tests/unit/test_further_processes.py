"""What an exec gets of what CDI gave the container (C8)."""

import contextlib
import json
import marshal
import os
import time
import types
from pathlib import Path

import pytest
from support.configurations import STATE, forget
from support.samples import config, spec

from cdi_runc import create, exec_process, invocation, paths, settings

W0 = "acme.example/widget=w0"


class Container:
    """A container below a root of its own, and further processes of it."""

    def __init__(self, host, top):
        self.host, self.top = host, top
        self.process = top / "process.json"
        self.bundle = top / "bundle"
        self.bundle.mkdir()
        self.words = ["--root", str(top / "root")]
        self.kept = Path(exec_process.place(self.call("exec", "c1")))

    def call(self, *words):
        """Return a call of the runtime."""
        return invocation.parse([*self.words, *words])

    def create(self, edits, **changes):
        """Create the container with a device that brings *edits*."""
        (self.host.etc / "a.json").write_text(spec(("w0", edits)))
        path = self.bundle / "config.json"
        if not path.exists():
            path.write_text(json.dumps({**config(annotations={"cdi.k8s.io/x": W0}), **changes}))
        self.create_again()

    def create_again(self):
        """Create the container with the same device."""
        create.prepare(
            self.call("create", "-b", str(self.bundle), "c1"), self.host.settings, "/bin/true"
        )

    def exec(self, **process):
        """Return the process that an exec starts, and whether its file was written."""
        self.process.write_text(json.dumps(process))
        before = settings.signature(self.process.stat())
        exec_process.merge(self.call("exec", "--process", str(self.process), "c1"))
        return json.loads(self.process.read_bytes()), before != settings.signature(
            self.process.stat()
        )


@pytest.fixture
def container(host, tmp_path):
    """Return a container to create."""
    yield Container(host, tmp_path)
    forget(tmp_path)


MERGED = [
    pytest.param(["A=1"], ["X=0"], ["X=0", "A=1"], id="absent"),
    pytest.param(["A=1"], None, ["A=1"], id="no-env"),
    pytest.param(["TERM=cdi"], ["TERM=xterm"], ["TERM=cdi"], id="the-containers-own"),
    pytest.param(["TERM=cdi"], ["TERM=vt100"], ["TERM=vt100"], id="set-by-the-call"),
    pytest.param(["A=1"], ["A=2"], ["A=2"], id="new-and-set-by-the-call"),
    pytest.param(["A=1"], ["A=1"], ["A=1"], id="there-already"),
    pytest.param(["A=1", "A=2"], [], ["A=2"], id="later-edit"),
    pytest.param(["TERM=a", "TERM=b"], ["TERM=xterm"], ["TERM=b"], id="later-edit-of-own"),
    pytest.param(["A="], [], ["A="], id="empty-value"),
    pytest.param(["A=b=c"], ["A"], ["A"], id="name-without-value"),
]


@pytest.mark.parametrize(("edits", "env", "expected"), MERGED)
def test_variables_are_merged(container, edits, env, expected):
    """A variable that is absent or the container's own takes CDI's value, and no other."""
    container.create({"env": edits})
    process, written = container.exec(args=["sh"], **({} if env is None else {"env": env}))

    assert {"args": ["sh"], "env": expected} == process
    assert written == (env != expected)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param(None, {"additionalGids": [44, 10]}, id="no-user"),
        pytest.param({"uid": 7}, {"uid": 7, "additionalGids": [44, 10]}, id="no-groups"),
        pytest.param({"additionalGids": [10]}, {"additionalGids": [10, 44]}, id="one-is-there"),
        pytest.param({"additionalGids": None}, {"additionalGids": [44, 10]}, id="null"),
    ],
)
def test_groups_are_merged(container, user, expected):
    """The process gets the groups that it lacks, behind its own."""
    container.create({"additionalGids": [44, 10]})
    process, _ = container.exec(env=[], **({} if user is None else {"user": user}))

    assert expected == process["user"]


def test_unknown_members_and_numbers_survive(container):
    """What we do not know in the file stays as it was written."""
    container.create({"env": ["A=1"]})
    container.process.write_text('{"x-n": 1.50, "env": ["B=\\u00e9"], "y": {"z": [1e3]}}')
    exec_process.merge(container.call("exec", "-p", str(container.process), "c1"))

    assert '{"x-n":1.50,"env":["B=é","A=1"],"y":{"z":[1e3]}}' == container.process.read_text()


def test_kept_value_of_the_container_is_no_cdi_value(container):
    """Where policy kept the container's own value, an exec is not given CDI's."""
    container.host.settings = container.host.settings.but(conflicts=(("", "container"),))
    container.create({"env": ["TERM=cdi", "A=1"]})

    assert ["TERM=xterm", "A=1"] == container.exec(env=["TERM=xterm"])[0]["env"]


def test_a_container_made_again_from_the_same_bundle_gives_them_too(container):
    """The bundle is edited already, and yet what exec needs is kept for the new container."""
    container.create({"env": ["A=1"]})
    container.kept.unlink()
    container.create({"env": ["A=1"]})

    assert ["A=1"] == container.exec(env=[])[0]["env"]


def test_nothing_is_kept_of_what_has_no_use(container):
    """A device without variables and groups leaves nothing behind, an older one's goes."""
    container.create({"env": ["A=1"]})
    (container.bundle / "config.json").unlink()
    container.create({"mounts": [{"hostPath": "/etc", "containerPath": "/x"}]})

    assert not container.kept.exists()


@pytest.mark.parametrize("damage", ["garbage", "empty", "version", "owner", "mode", "link"])
def test_what_is_not_ours_or_damaged_changes_nothing(container, damage):
    """A kept file that cannot be believed gives an error, and the process file stays."""
    container.create({"env": ["A=1"]})
    kept = container.kept
    if damage == "garbage":
        kept.write_bytes(os.urandom(50))
    elif damage == "empty":
        kept.write_bytes(b"")
    elif damage == "version":
        kept.write_bytes(marshal.dumps(("exec 0", (), ())))
    elif damage == "owner":
        os.chown(kept, 65534, 65534)
    elif damage == "mode":
        kept.chmod(0o666)
    else:
        kept.rename(kept.with_name("other"))
        kept.symlink_to("other")
    container.process.write_text('{"env": []}')
    before = settings.signature(container.process.stat())
    with pytest.raises((OSError, ValueError, TypeError, EOFError)):
        exec_process.merge(container.call("exec", "-p", str(container.process), "c1"))

    assert before == settings.signature(container.process.stat())


@pytest.mark.parametrize("id_", ["", "a/b", "../c1"])
def test_an_id_that_is_no_name_has_no_place(container, id_):
    """Nothing is read or written outside the place of the runtime's root."""
    assert exec_process.place(container.call("exec", id_)) is None


def test_containers_that_are_gone_are_forgotten(container, tmp_path):
    """What is kept goes when the runtime no longer knows the container, if it is not young."""
    container.create({"env": ["A=1"]})
    known = container.kept.with_name("known")
    young = container.kept.with_name("young")
    for path in (known, young):
        path.write_bytes(container.kept.read_bytes())
    (tmp_path / "root/known").mkdir(parents=True)
    old = time.time() - 2 * exec_process.YOUNG
    for path in (known, container.kept):
        os.utime(path, (old, old))
    exec_process.prune()

    assert ["known", "young"] == sorted(os.listdir(container.kept.parent))


def test_containers_below_the_default_root_are_forgotten(tmp_path, monkeypatch):
    """Without a root, a container is known while runc or crun have it in theirs."""
    roots = [str(tmp_path / name) for name in ("runc", "crun")]
    monkeypatch.setattr(paths, "runtime_roots", lambda: roots)
    monkeypatch.setattr(paths, "state", lambda: str(tmp_path / "state"))
    old = time.time() - 2 * exec_process.YOUNG
    places = [
        Path(exec_process.place(invocation.parse(["exec", id_]))) for id_ in ("a", "b", "gone")
    ]
    places[0].parent.mkdir(parents=True)
    for place in places:
        place.write_bytes(b"")
        os.utime(place, (old, old))
    (tmp_path / "runc/a").mkdir(parents=True)
    (tmp_path / "crun/b").mkdir(parents=True)
    exec_process.prune()

    assert ["a", "b"] == sorted(os.listdir(places[0].parent))


def test_a_delete_may_be_faster(container, monkeypatch):
    """What a delete removes while we look for containers that are gone is no trouble."""
    container.create({"env": ["A=1"]})
    old = time.time() - 2 * exec_process.YOUNG
    os.utime(container.kept, (old, old))

    def exists(path):
        if path == str(container.top / "root/c1"):
            container.kept.unlink()
        return os.path.exists(path)

    monkeypatch.setattr(exec_process.paths, "exists", exists)
    exec_process.prune()

    assert not container.kept.exists()


def test_a_create_forgets_containers_that_are_gone(container):
    """Without any change of a spec file, a create looks for such containers now and then."""
    container.create({"env": ["A=1"]})
    time.sleep(0.1)  # a spec file that young is compiled again
    container.create_again()
    gone = container.kept.with_name("gone")
    gone.write_bytes(container.kept.read_bytes())
    old = time.time() - 2 * exec_process.YOUNG
    os.utime(gone, (old, old))
    container.create_again()
    assert gone.exists()
    os.utime(STATE / "exec", (old, old))
    container.create_again()

    assert not gone.exists()
    assert container.kept.exists()


def _go(directory):
    # A create of another test, in another process, may remove it first.
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(directory)


def test_a_directory_that_goes_meanwhile_is_made_again(container, monkeypatch):
    """A directory that another call removes as empty keeps nothing from being kept."""
    container.create({"env": ["A=1"]})
    container.kept.unlink()
    _go(container.kept.parent)
    make, made = exec_process.files.make_private, []

    def make_private(directory):
        make(directory)
        made.append(directory)
        if len(made) == 1:
            _go(directory)

    monkeypatch.setattr(exec_process.files, "make_private", make_private)
    done = types.SimpleNamespace
    variable = done(key="env", edit=done(entry=lambda: "A=1"))
    effect = done(after="A=1", before=None)
    exec_process.remember([done(step=variable, effect=effect)], container.call("exec", "c1"))

    assert container.kept.exists()
