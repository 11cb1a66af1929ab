"""What is valid in a spec file, and yet likely a mistake."""

import json

import pytest

from cdi_runc.cli import main
from cdi_runc.specs import check, lint

HEAD = "cdiVersion: 1.1.0\nkind: acme.example/widget\ndevices:\n- name: w0\n  containerEdits:\n"


def warned(text):
    """Return the warnings about a spec file, each with its place."""
    raw, decoded, findings = check.decoded_spec(text.encode())
    assert [] == findings
    return list(lint.warnings(decoded, raw))


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("432", ""),
        ("0660", ""),
        ("0o660", ""),
        ("0x1b0", ""),
        ("438", ""),
        ("0", ""),
        ("0777", ""),
        ("660", "mode 660 is decimal (octal 1224); 0660 or 432 was likely meant"),
        ("666", "0666 or 438 was likely meant"),
        ("777", "0777 or 511 was likely meant"),
        ("4096", "bits above 07777"),
        ("0100660", "bits above 07777"),
    ],
)
def test_mode_that_was_typed_otherwise_is_told(mode, words):
    """A decimal mode that looks like an octal one, and bits that no mode has, are told."""
    found = warned(f"{HEAD}    deviceNodes: [{{path: /dev/a, fileMode: {mode}}}]\n")
    if not words:
        assert [] == found
    else:
        ((pointer, text),) = found

        assert pointer == "/devices/0/containerEdits/deviceNodes/0/fileMode"
        assert words in text


@pytest.mark.parametrize(
    ("name", "read"),
    [("0", "0"), ("007", "7"), ("on", "true"), ("y", "true"), ("1.10", "1.1"), ("1e3", "1000")],
)
def test_name_that_is_no_text_is_told(name, read):
    """A name that YAML reads as something else is told, with what it is read as."""
    text = HEAD.replace("name: w0", f"name: {name}") + "    env: [A=1]\n"

    ((pointer, told),) = warned(text)
    assert pointer == "/devices/0/name"
    assert f"is read as {read!r}" in told
    assert [] == warned(text.replace(f"name: {name}", f'name: "{read}"'))


EDITS = [
    pytest.param("env: [PATH=/x]", "PATH takes the place", id="path"),
    pytest.param("env: [LD_PRELOAD=/x]", "LD_PRELOAD takes the place", id="preload"),
    pytest.param("mounts: [{hostPath: /o, containerPath: /o}]", "neither bind nor", id="no-bind"),
    pytest.param(
        "mounts: [{hostPath: /o, containerPath: o, options: [bind]}]", "no absolute", id="relative"
    ),
    pytest.param(
        "mounts: [{hostPath: /o, containerPath: /a/../b, options: [bind]}]", "'..'", id="dots"
    ),
    pytest.param(
        "mounts: [{hostPath: /o, containerPath: /proc/x, options: [bind]}]", "/proc", id="proc"
    ),
    pytest.param(
        "mounts: [{hostPath: /lib/libc.so.6, containerPath: /l/libc.so.6, options: [bind]}]",
        "C library",
        id="libc",
    ),
    pytest.param(
        "mounts: [{hostPath: /l, containerPath: /usr/lib, options: [bind]}]", "hidden", id="libs"
    ),
    pytest.param(
        "hooks: [{hookName: prestart, path: /bin/h}]", "LD_PRELOAD included", id="hook-without-env"
    ),
    pytest.param(
        "hooks: [{hookName: prestart, path: /bin/h, env: [LD_X=1]}]", "LD_X", id="hook-preload"
    ),
    pytest.param(
        "hooks: [{hookName: prestart, path: bin/h, env: [A=1]}]", "no absolute", id="hook-relative"
    ),
    pytest.param(
        "hooks: [{hookName: prestart, path: /h, env: [A=1], timeout: 0}]", "timeout", id="timeout"
    ),
]


@pytest.mark.parametrize(("edits", "words"), EDITS)
@pytest.mark.parametrize("level", ["spec", "device"])
def test_likely_mistake_is_told(edits, words, level):
    """One mistake gives one warning, in a device's edits and in the file's own."""
    if level == "device":
        text, place = f"{HEAD}    {edits}\n", "/devices/0/containerEdits/"
    else:
        text, place = f"{HEAD}    env: [A=1]\ncontainerEdits: {{{edits}}}\n", "/containerEdits/"
    ((pointer, told),) = warned(text)

    assert pointer.startswith(place)
    assert words in told


SOUND = (
    "    env: [ACME=1]\n"
    "    deviceNodes: [{path: /dev/a, fileMode: 0660, permissions: rw}]\n"
    "    mounts:\n"
    "    - {hostPath: /o, containerPath: /usr/lib/acme, options: [ro, rbind]}\n"
    "    - {hostPath: tmpfs, containerPath: /t, type: tmpfs}\n"
    "    hooks: [{hookName: createContainer, path: /h, env: [PATH=/bin], timeout: 5}]\n"
)


def test_sound_file_has_no_warnings():
    """A file without mistakes is not nagged about."""
    assert [] == warned(HEAD + SOUND)


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict",), 1)], ids=["lax", "strict"])
def test_warnings_decide_only_if_strict(tmp_path, capsys, strict, code):
    """Warnings go to standard output with line and column; with --strict they are faults."""
    path = tmp_path / "a.yaml"
    path.write_text(f"{HEAD}    env:\n    - A=1\n    - PATH=/x\n")

    assert code == main.main(["validate", *strict, str(path)])
    assert f"{path}:8:7: warning: /devices/0/containerEdits/env/1: PATH" in capsys.readouterr().out
    main.main(["validate", "--json", str(path)])
    ((warning,),) = [told["warnings"] for told in json.loads(capsys.readouterr().out)]
    assert (8, 7) == (warning["line"], warning["column"])
