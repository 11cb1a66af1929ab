"""The registry: which files count, which definition wins, and what is told of the others."""

import os
import socket
import threading
import time
from types import SimpleNamespace

import pytest
from support.samples import EDITS, spec

from cdi_runc import registry
from cdi_runc.errors import UnknownDevice
from cdi_runc.specs import compile as spec_compile

W0 = "acme.example/widget=w0"


def one(value, name="w0", **members):
    """Return a spec file with one device that sets one variable."""
    return spec((name, {"env": [f"V={value}"]}), **members)


def variable(device):
    """Return the value that *device* gives the variable."""
    return dict(device.edits)["env"][0][1]


@pytest.mark.parametrize("directory", ["etc", "run"])
def test_missing_directory_is_normal(host, directory):
    """One directory is enough, and one that appears later counts from then on."""
    host.etc.rmdir()
    host.run.rmdir()
    with pytest.raises(UnknownDevice) as caught:
        host.resolve(W0)
    path = getattr(host, directory)
    path.mkdir()
    (path / "w.json").write_text(one(1))

    assert f"{host.etc} (which does not exist) or {host.run}" in str(caught.value)
    assert ["1"] == [variable(device) for device in host.resolve(W0)]


def test_higher_directory_wins(host):
    """The same device in both directories is the one of the higher, device by device."""
    (host.etc / "a.json").write_text(spec(("w0", {"env": ["V=low"]}), ("w1", {"env": ["V=low"]})))
    (host.run / "b.json").write_text(one("high"))

    assert ["high", "low"] == list(map(variable, host.resolve(W0, "acme.example/widget=w1")))


def test_conflict_names_both_files(host):
    """Two files of one directory that define a device make that device unresolvable."""
    (host.etc / "a.json").write_text(spec(("w0", {"env": ["V=a"]}), ("w1", {"env": ["V=1"]})))
    (host.etc / "b.json").write_text(one("b"))
    with pytest.raises(UnknownDevice) as caught:
        host.resolve(W0)

    words = f"{host.etc}/a.json and {host.etc}/b.json in the same directory both define it"
    assert words in str(caught.value)
    assert ["1"] == list(map(variable, host.resolve("acme.example/widget=w1")))


def test_override_wins_over_a_conflict_below(host):
    """A sound definition in a higher directory wins over two in conflict in a lower one."""
    for name in ("a", "b"):
        (host.etc / f"{name}.json").write_text(one(name))
    (host.run / "c.json").write_text(one("c"))

    assert ["c"] == list(map(variable, host.resolve(W0)))


def test_broken_override_is_told(host):
    """A broken file of a higher directory hides nothing, and is told of as an override."""
    (host.etc / "a.json").write_text(one("a"))
    (host.run / "c.yaml").write_text("cdiVersion: 0.6.0\nkind: acme.example/widget\ndevices: [\n")
    (host.run / "d.yaml").write_text("cdiVersion: 0.6.0\nkind: acme.example/other\ndevices: [\n")
    (device,) = host.resolve(W0)

    assert "a" == variable(device)
    assert [f"{host.run}/c.yaml"] == [path for path, _ in host.registry().broken_overrides(device)]


def test_link_to_a_directory_is_no_second_one(host):
    """A spec directory that is a link to another one brings nothing twice."""
    (host.etc / "a.json").write_text(one("a"))
    host.run.rmdir()
    host.run.symlink_to(host.etc)

    assert ["a"] == list(map(variable, host.resolve(W0)))


@pytest.mark.parametrize("kind", ["fifo", "directory", "dangling", "loop", "large", "garbage"])
def test_odd_file_affects_no_other(host, kind):
    """A file that cannot be used is named where it might have served, and hinders nothing."""
    (host.etc / "good.json").write_text(one("good"))
    odd = host.etc / "odd.yaml"
    if kind == "fifo":
        os.mkfifo(odd)
    elif kind == "directory":
        odd.mkdir()
    elif kind == "dangling":
        odd.symlink_to("nowhere")
    elif kind == "loop":
        odd.symlink_to("odd.yaml")
    elif kind == "large":
        with odd.open("wb") as file:
            file.truncate((16 << 20) + 1)
    else:
        odd.write_bytes(os.urandom(1000))
    with pytest.raises(UnknownDevice) as caught:
        host.resolve("acme.example/gadget=g0")

    assert ["good"] == list(map(variable, host.resolve(W0)))
    assert str(odd) in str(caught.value)


OTHER = 54321


def give_away(path, how):
    """Let somebody else change *path*; return how to take that back, and the words of the cure."""
    if how == "owner":
        os.chown(path, OTHER, OTHER)
        return lambda: os.chown(path, 0, 0), f"belongs to user {OTHER}; chown root {path}"
    mode = path.stat().st_mode & 0o777
    path.chmod(mode | 0o022)
    return lambda: path.chmod(mode), f"(mode {mode | 0o022:04o}); chmod go-w {path}"


@pytest.mark.parametrize("how", ["owner", "mode"])
@pytest.mark.parametrize("place", [".", "etc", "etc/a.json"])
def test_what_others_could_change_is_not_believed(host, place, how):
    """A file is refused, and its cure told, while others could change a step of the way to it.

    Both are noticed though no spec file changes, and with a compiled registry at hand.
    """
    (host.etc / "a.json").write_text(one("a"))
    settle()
    host.registry()
    settle()
    first = host.registry()
    path = host.etc.parent / place
    take_back, cure = give_away(path, how)
    settle()

    assert not first.is_current(host.settings.spec_dirs)
    for _ in range(2):
        with pytest.raises(UnknownDevice) as caught:
            host.resolve(W0)
        words = f"{host.etc}/a.json, which defines acme.example/widget, is refused: others could"
        assert words in str(caught.value)
        assert cure in str(caught.value)
    take_back()
    assert ["a"] == list(map(variable, host.resolve(W0)))


def test_link_out_of_the_directory_is_followed_in_good_faith_only(host, tmp_path):
    """A spec file that is a link counts while the way to its target is fine, and no longer."""
    vendor = tmp_path / "vendor"
    vendor.mkdir()
    (vendor / "a.json").write_text(one("a"))
    (host.etc / "a.json").symlink_to(vendor / "a.json")
    settle()

    assert ["a"] == list(map(variable, host.resolve(W0)))
    vendor.chmod(0o777)
    with pytest.raises(UnknownDevice, match=f"{vendor} is writable by everybody"):
        host.resolve(W0)
    vendor.chmod(0o755)
    assert ["a"] == list(map(variable, host.resolve(W0)))


def test_too_many_files_are_told_of(host, monkeypatch):
    """A directory of more files than are read at most is named where one may be missed."""
    monkeypatch.setattr(spec_compile, "FILES_LIMIT", 3)
    for number in range(5):
        (host.etc / f"{number}.json").write_text(one("a", name=f"w{number}"))
    with pytest.raises(UnknownDevice) as caught:
        host.resolve("acme.example/widget=w4")

    assert ["a"] == list(map(variable, host.resolve("acme.example/widget=w2")))
    assert f"{host.etc} (of its 5 spec files only 3 are read, by name)" in str(caught.value)


@pytest.mark.parametrize("kind", ["socket", "zero", "full", "kmsg", "sparse", "chain", "growing"])
def test_odd_target_fails_fast(host, tmp_path, kind):
    """Sockets, devices, endless and growing files end at once, and hinder no other."""
    (host.etc / "good.json").write_text(one("good"))
    odd = host.etc / "odd.yaml"
    if kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(odd))
    elif kind == "chain":
        for number in range(60):
            (tmp_path / f"l{number}").symlink_to(tmp_path / f"l{number + 1}")
        odd.symlink_to(tmp_path / "l0")
    elif kind == "sparse":
        with odd.open("wb") as file:
            file.truncate(1 << 40)
    elif kind == "growing":
        odd.write_bytes(b"#" * (15 << 20))
    else:
        odd.symlink_to({"zero": "/dev/zero", "full": "/dev/full", "kmsg": "/proc/kmsg"}[kind])
    stop = threading.Event()
    writer = threading.Thread(target=grow, args=(odd, stop)) if kind == "growing" else None
    if writer:
        writer.start()
    start = time.monotonic()
    try:
        with pytest.raises(UnknownDevice) as caught:
            host.resolve("acme.example/gadget=g0")
        took = time.monotonic() - start
    finally:
        stop.set()
        if writer:
            writer.join()

    assert took < 5
    assert ["good"] == list(map(variable, host.resolve(W0)))
    assert str(odd) in str(caught.value)


def grow(path, stop):
    """Append to *path* until told to stop."""
    with path.open("ab") as file:
        while not stop.is_set():
            file.write(b"#" * (1 << 20))
            time.sleep(0.01)


def test_only_json_and_yaml_count(host):
    """Files of other names, and those in subdirectories, are not read."""
    (host.etc / "a.yml").write_text(one("a"))
    (host.etc / "a.json~").write_text(one("a"))
    (host.etc / "sub").mkdir()
    (host.etc / "sub/a.json").write_text(one("a"))

    assert [] == host.registry().names()


def settle():
    """Wait until what was just written counts as settled."""
    time.sleep(0.08)


@pytest.mark.parametrize("change", ["in-place", "rename", "added", "removed", "touched"])
def test_every_change_is_seen(host, change):
    """A change in place of the same size, a rename, a new and a removed file all count."""
    path = host.etc / "a.json"
    path.write_text(one("a"))
    (host.etc / "b.json").write_text(one("b", name="w1"))
    settle()
    first = host.registry()
    settle()
    if change == "in-place":
        path.write_text(one("x"))
    elif change == "rename":
        (host.etc / "new").write_text(one("x"))
        (host.etc / "new").rename(path)
    elif change == "added":
        (host.run / "c.json").write_text(one("x"))
    elif change == "removed":
        path.unlink()
    else:
        os.utime(path, (1, 1))

    assert first.is_current(host.settings.spec_dirs) is False
    if change == "removed":
        with pytest.raises(UnknownDevice):
            host.resolve(W0)
    else:
        assert ["a" if change == "touched" else "x"] == list(map(variable, host.resolve(W0)))


def test_change_within_a_tick_is_seen(host):
    """A file that is written again at once, with the same size, is read again."""
    path = host.etc / "a.json"
    for value in "abcdefghij":
        path.write_text(one(value))

        assert [value] == list(map(variable, host.resolve(W0)))


@pytest.mark.parametrize("what", ["file", "directory"])
@pytest.mark.parametrize(("later", "is_settled"), [(49_000_000, False), (51_000_000, True)])
def test_what_may_change_within_a_tick_is_not_settled(host, monkeypatch, what, later, is_settled):
    """For 50 ms after its last stamp a change could leave size and stamps as they are."""
    path = host.etc / "a.json"
    path.write_text(one("a"))
    for place in (host.run, host.etc, path):
        os.utime(place, (0, 0))  # the time of the change itself counts as well
    newest = (path if what == "file" else host.etc).stat().st_ctime_ns
    clock = SimpleNamespace(time_ns=lambda: newest + later, monotonic=time.monotonic)
    monkeypatch.setattr(spec_compile, "time", clock)
    compiled = host.registry()
    made_from = compiled.files[0][1] if what == "file" else compiled.dirs[0]

    assert is_settled == (made_from != spec_compile.NEVER)


@pytest.mark.parametrize("damage", ["owner", "mode", "garbage", "truncated", "empty", "link"])
def test_state_that_is_not_ours_or_damaged_is_made_anew(host, damage):
    """A registry that another could have written, or that is damaged, is not believed."""
    (host.etc / "a.json").write_text(one("a"))
    settle()
    host.registry()
    kept = host.etc.parent / "state/registry"
    data = kept.read_bytes()
    if damage == "owner":
        os.chown(kept, 1000, 1000)
    elif damage == "mode":
        kept.chmod(0o666)
    elif damage == "link":
        kept.rename(kept.with_name("other"))
        kept.symlink_to("other")
    else:
        kept.write_bytes({"garbage": os.urandom(99), "truncated": data[:40], "empty": b""}[damage])

    assert ["a"] == list(map(variable, host.resolve(W0)))


def test_without_a_place_for_state(host):
    """Where no state can be kept, every call compiles for itself."""
    (host.etc / "a.json").write_text(one("a"))
    blocked = host.etc.parent / "file"
    blocked.write_text("")
    for place in (None, str(blocked / "state")):
        changed = host.settings.but(state_dir=place)

        assert ["a"] == list(map(variable, registry.resolve([W0], changed)[0]))


def test_every_unresolved_name_is_told(host):
    """A name is never invented: what exists is listed, and the nearest spelling suggested."""
    (host.etc / "a.json").write_text(spec(("w0", {"env": ["A=1"]}), ("w1", {"env": ["A=1"]})))
    wanted = ("acme.example/widget=all", "acme.example/widgets=w0", "acme.exmaple/widget=w0")
    with pytest.raises(UnknownDevice) as caught:
        host.resolve(*wanted)
    told = str(caught.value)

    assert all(name in told for name in wanted)
    assert "a.json has acme.example/widget=w0, w1" in told
    assert "vendor acme.example has no class widgets" in told
    assert "unknown vendor acme.exmaple" in told
    assert 2 == told.count("did you mean acme.example/widget?")


def test_refused_file_is_the_first_cause(host):
    """When the file that defines a kind is refused, the message begins with that."""
    (host.etc / "a.yaml").write_text(
        "cdiVersion: 0.6.0\nkind: acme.example/widget\n"
        'containerEdits: {env: ["MODE=test"]}\ndevices: [{name: w0}]\n'
    )
    with pytest.raises(UnknownDevice) as caught:
        host.resolve(W0)

    assert (
        f"device {W0} is not available: {host.etc}/a.yaml, which defines acme.example/widget, is"
        " refused: line 4, column 11: /devices/0: device 'w0' has no containerEdits of its own"
    ) in str(caught.value)


def test_everything_survives_the_registry(host):
    """The edits of every kind come back from the registry as they were put in."""
    (host.etc / "a.json").write_text(spec(("w0", EDITS), containerEdits={"env": ["S=1"]}))
    first = host.resolve(W0)
    settle()
    host.registry()

    assert first == host.resolve(W0)
    assert [*EDITS] == [key for key, _ in first[0].edits]
