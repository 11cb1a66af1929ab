"""The registry: which files count, which definition wins, and what is told of the others."""

import os
import time

import pytest
from support.samples import EDITS, spec

from cdi_runc import registry
from cdi_runc.errors import UnknownDevice

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

    assert f"{host.etc}/a.json and {host.etc}/b.json both define it" in str(caught.value)
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
