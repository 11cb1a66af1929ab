"""Words for what cannot be resolved: the true cause, the files at fault, and the cure."""

import json
import os
import posix

import pytest
from support.samples import spec

from cdi_runc import invocation, report
from cdi_runc.errors import UnknownDevice

W0 = "acme.example/widget=w0"
ONE = spec(("w0", {"env": ["A=1"]}))


def told(host, *names):
    """Return what is said of names that cannot be resolved."""
    with pytest.raises(UnknownDevice) as caught:
        host.resolve(*(names or (W0,)))
    return str(caught.value)


def test_conflict_names_the_files_in_conflict_only(host):
    """A definition in a lower directory has no part in a conflict above it."""
    (host.etc / "low.json").write_text(ONE)
    for name in ("a", "b"):
        (host.run / f"{name}.json").write_text(ONE)
    text = told(host)

    assert f"{host.run}/a.json and {host.run}/b.json in the same directory both define" in text
    assert "low.json" not in text


def test_conflict_of_three_names_all(host):
    """Three files that define a device are all named, and are not two."""
    for name in ("a", "b", "c"):
        (host.etc / f"{name}.json").write_text(ONE)
    text = told(host)

    assert all(f"{host.etc}/{name}.json" in text for name in ("a", "b", "c"))
    assert "both" not in text
    assert "of the two files" not in text


def test_a_conflict_is_no_cause_for_another_name(host):
    """Where files are in conflict over one device, a misspelt name of another is only unknown."""
    two = spec(("dup", {"env": ["A=1"]}), ("fuse", {"env": ["A=1"]}))
    (host.etc / "a.json").write_text(two)
    (host.etc / "b.json").write_text(spec(("dup", {"env": ["A=2"]})))
    text = told(host, "acme.example/widget=fsue")

    assert text.startswith(f"unknown device acme.example/widget=fsue: {host.etc}/a.json has ")
    assert "(did you mean fuse?); see what this host offers" in text
    assert told(host, "acme.example/widget=dup") == (
        f"device acme.example/widget=dup cannot be used: {host.etc}/a.json and {host.etc}/b.json in"
        " the same directory both define it; leave the device in one of these files only"
    )


BROKEN = [
    pytest.param("kind: acme.example/widget\ndevices: [", id="plain"),
    pytest.param("cdiVersion: 0.6.0\nkind: 'acme.example/widget' # c\ndevices: [", id="quoted"),
    pytest.param('{"kind" : "acme.example/widget", "devices": [', id="json"),
    pytest.param('{"cdiVersion":"0.6.0","kind":"acme.example/widget",', id="compact-json"),
    pytest.param("Kind: acme.example/widget\ndevices: [", id="other-case"),
    pytest.param("# kind: other/kind\nkind: acme.example/widget\ndevices: [", id="comment"),
    pytest.param("mankind: other/kind\nkind: acme.example/widget\ndevices: [", id="longer-key"),
    pytest.param("a: 'kind: other/kind'\nkind: acme.example/widget\nb: [", id="in-text"),
]


@pytest.mark.parametrize("text", BROKEN)
def test_refused_file_is_known_by_its_kind(host, text):
    """The kind that a broken file speaks of makes it the first cause for that kind."""
    (host.etc / "broken.yaml").write_text(text)

    assert told(host).startswith(
        f"device {W0} is not available: {host.etc}/broken.yaml, which defines acme.example/widget,"
    )


def test_a_file_of_another_kind_is_no_cause(host):
    """A broken file that speaks of another kind is not blamed."""
    (host.etc / "broken.yaml").write_text("kind: other.example/kind\ndevices: [")

    assert "broken.yaml" not in told(host)


def test_what_cannot_be_read_is_the_cause(host, monkeypatch):
    """A closed directory or file is named, with a cure; that there is no file is not claimed."""
    closed, forbidden = str(host.run), PermissionError(13, os.strerror(13))

    def listdir(path):
        if path == closed:
            raise forbidden
        return os.listdir(path)

    monkeypatch.setattr(posix, "listdir", listdir)
    text = told(host)

    assert f"cannot read {closed}: Permission denied" in text
    assert text.endswith(f"if it is there, let the user read it; see: ls -ld {closed}")
    assert "there is no spec file" not in text


def test_cure_is_told_however_much_is_wrong(host, tmp_path, capfd):
    """A report is one line of about a kilobyte, and its end is the cure."""
    devices = [(f"a-device-with-a-long-name-{number}", {"env": ["A=1"]}) for number in range(99)]
    (host.etc / "a.json").write_text(spec(*devices))
    with pytest.raises(UnknownDevice) as caught:
        host.resolve(*(f"acme.example/widget=w{number}" for number in range(30)))
    log = tmp_path / "log"
    words = ["--log", str(log), "--log-format", "json", "create", "c1"]
    report.failure(caught.value.message, invocation.parse(words), caught.value.cure)
    line = json.loads(log.read_text())["msg"]

    assert f"{line}\n" == capfd.readouterr().err
    assert len(line.encode()) <= 1100
    assert line.startswith("cdi-runc: unknown device acme.example/widget=w0")
    assert line.endswith("cdictl devices")
