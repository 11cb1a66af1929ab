"""cdictl's command line: words for whoever mistyped, and outputs that are closed or full."""

import subprocess

import pytest
from support.commands import Cdictl


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("audti list", "cdictl: unknown command 'audti' (did you mean audit?); there are devices,"),
        ("audit lst", "cdictl audit: unknown command 'lst' (did you mean list?); there are list,"),
        ("configure dokcer", "cdictl configure: unknown command 'dokcer' (did you mean docker?);"),
        ("devices --jsn", "cdictl devices: unknown option --jsn (did you mean --json?); see: cdi"),
        ("spec convert --jsn=1 f", "cdictl spec convert: unknown option --jsn (did you mean --j"),
        ("--colour", "cdictl: the following arguments are required: COMMAND; see: cdictl --help"),
        ("--colour devices", "cdictl: unknown option --colour; see: cdictl --help"),
        ("devices x", "cdictl devices: one argument too many: 'x'; see: cdictl devices --help"),
        ("audit list --result x", "cdictl audit list: argument --result: 'x' is unknown; there"),
        ("audit list --js", "cdictl audit list: unknown option --js (did you mean --json?); see:"),
        ("help nonsense", "cdictl: unknown command 'nonsense'; there are devices, show, validate"),
    ],
)
def test_mistyped(cdictl, words, told):
    """The command that got it says what it does not know, and what was meant; status 2."""
    finished = cdictl(*words.split(), check=False)

    assert finished.status == 2
    assert finished.out == ""
    usage, *_, last = finished.err.splitlines()
    assert usage.startswith(f"usage: {told.partition(':')[0]} ")
    assert last.startswith(told)


@pytest.mark.parametrize("words", ["", "audit", "spec", "configure", "config"])
def test_a_command_is_missing(cdictl, words):
    """What there is is shown, as an error."""
    finished = cdictl(*words.split(), check=False)

    assert finished.status == 2
    assert finished.out == ""
    assert finished.err == cdictl(*words.split(), "--help").out


@pytest.mark.parametrize(
    "words",
    [
        *("audit show", "audit export", "audit list --container", "audit tail --container"),
        *("audit list --device", "audit list --vendor", "config check", "devices --spec-dir"),
        *("doctor", "doctor --bundle", "plan --container", "plan --bundle", "plan --image"),
        *("explain x --container", "explain x --bundle", "configure podman --config-file"),
        *("configure docker --config-file", "configure docker --runtime-path"),
        *("spec generate --root", "spec generate --output", "spec generate --output-dir"),
        *("spec convert x --output", "spec from-docker --compose"),
        "spec from-docker --compose x --service",
    ],
)
def test_an_empty_name(cdictl, words):
    """An unset variable in a script means nothing, not everything."""
    finished = cdictl(*words.split(), "", check=False)

    assert finished.status == 2
    assert finished.out == ""
    assert "it is empty; see: cdictl" in finished.err


@pytest.mark.parametrize("words", ["", "audit", "audit list", "configure docker"])
def test_help_is_a_command_too(cdictl, words):
    """``cdictl help COMMAND`` is ``cdictl COMMAND --help``."""
    assert cdictl("help", *words.split()).out == cdictl(*words.split(), "--help").out


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        ("--version >&-", 0, ""),
        ("--help >&-", 0, ""),
        ("devices >&- 2>&-", 0, ""),
        ("explain <&-", 2, "cdictl: there is no text: paste the error, or pipe it in"),
        ("explain ''", 2, "cdictl: there is no text: paste the error, or pipe it in"),
        ("explain - </dev/null", 2, "cdictl: there is no text: paste the error, or pipe it in"),
        ("nonsense 2>&-", 2, ""),
        ("--version | true", 0, ""),
        ("--help >/dev/full", 1, "cdictl: cannot write the output: No space left on device\n"),
        ("--help >/dev/full 2>&1", 1, ""),
    ],
)
def test_closed_and_full_outputs(cdictl, words, status, told):
    """What is closed is written to nowhere; what is full is an error, told once and in words."""
    script = f"set -o pipefail; exec 0</dev/null; {cdictl.program} {words}"
    finished = subprocess.run(
        ["bash", "-c", script], env=cdictl.env, check=False, capture_output=True, text=True
    )

    assert finished.returncode == status
    assert finished.stderr.startswith(told)
    assert finished.stderr.count("\n") == bool(told)


@pytest.mark.parametrize(
    ("env", "on_terminal", "in_file"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
@pytest.mark.parametrize("sound", [True, False])
def test_each_stream_has_its_own_colours(
    cdictl, configuration, tmp_path, env, on_terminal, in_file, *, sound
):
    """What goes to a terminal is coloured, what goes to a file is not, whichever is which."""
    spec = configuration.spec(("one", {"env": ["A=1"] if sound else [5]}))
    file = tmp_path / "told"
    shell = Cdictl("bash", configuration)
    ours, other = (1, 2) if sound else (2, 1)
    for stream, is_file in ((ours, True), (other, False)):
        line = f"{cdictl.program} validate {spec} {stream}>{file}"
        shown = shell.on_terminal("-c", line, **env)

        assert ("\x1b[" in (file.read_text() if is_file else shown)) == (
            in_file if is_file else on_terminal
        )
