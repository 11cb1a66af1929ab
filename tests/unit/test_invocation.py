"""argv, by the table that the launcher and the runtimes are held to as well."""

import json
import os
import re
import subprocess

import argv_cases
import pytest
from support.programs import need

from cdi_runc import invocation

REFUSED = '{"ociVersion": 1}'
"""A configuration that no runtime decodes, so that it makes no container."""


@pytest.fixture
def bundles(tmp_path, monkeypatch):
    """Make the directories of the table, each with a configuration; return the one above."""
    for name in argv_cases.DIRECTORIES:
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "config.json").write_text(REFUSED)
    for name in argv_cases.FILES:
        (tmp_path / name).write_text(REFUSED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("words", "command", "id_", "reads", "by"), argv_cases.CASES)
def test_argv_is_read(words, command, id_, reads, by):
    """The command, the id, and the configuration that the runtime will read are found."""
    call = invocation.parse([word.replace("@", "/top") for word in words])

    assert (command, id_) == (call.command, call.id)
    if reads:
        assert reads.replace("@", "/top") == call.config_path
    else:
        assert command not in invocation.EDITED


@pytest.mark.parametrize(("words", "command", "id_", "reads", "by"), argv_cases.CASES)
@pytest.mark.parametrize("runtime", argv_cases.BOTH)
def test_runtimes_read_argv_so(bundles, runtime, words, command, id_, reads, by):
    """A real runtime opens the configuration that the table says, or none."""
    if reads and runtime not in by:
        reads = ""  # it refuses the call
    trace = bundles / "trace"
    words = [word.replace("@", str(bundles)) for word in words]
    subprocess.run(
        [
            *(need("strace"), "-f", "-qq", "-xx", "-s", "4096"),
            *("-e", "trace=chdir,open,openat", "-o", trace),
            *(need(runtime), *words),
        ],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    place, opened = os.fsencode(bundles), []
    for line in trace.read_bytes().splitlines():
        call = re.search(rb'(chdir|open|openat)\((?:AT_FDCWD, )?"([^"]*)".*= \d', line)
        if call:
            path = os.path.join(place, bytes.fromhex(call[2].decode().replace("\\x", "")))
            if call[1] == b"chdir":
                place = path
            elif path.endswith((b"config.json", b"f.json")):
                opened.append(os.path.realpath(path))
    expected = os.path.join(bundles, reads.replace("@", str(bundles)))

    assert [os.fsencode(os.path.realpath(expected))] * bool(reads) == opened


@pytest.mark.parametrize(
    ("words", "log", "log_format", "root"),
    [
        pytest.param(
            "--log /l --log-format json --root /r create c", "/l", "json", "/r", id="words"
        ),
        pytest.param("--log=/l --log-format=json --root=/r run c", "/l", "json", "/r", id="equals"),
        pytest.param("-log /l -log-format text -root /r kill c", "/l", "text", "/r", id="one-dash"),
        pytest.param("create --log /l --root /r c", "", "text", "", id="behind-the-command"),
        pytest.param("--log /k --log /l state c", "/l", "text", "", id="twice"),
        pytest.param("--log", "", "text", "", id="no-value"),
    ],
)
def test_where_to_report_is_read(words, log, log_format, root):
    """The engine's log, its format and the root stand before the command."""
    call = invocation.parse(words.split())

    assert (log, log_format, root) == (call.log, call.log_format, call.root)


@pytest.mark.parametrize(
    ("words", "process"),
    [
        pytest.param("exec --process f c1", "f", id="words"),
        pytest.param("exec -p f c1", "f", id="short"),
        pytest.param("exec --process=f c1 sh", "f", id="equals"),
        pytest.param("exec -d --pid-file --process -p f c1", "f", id="behind-a-value"),
        pytest.param("exec c1 --process f", "", id="behind-the-id"),
        pytest.param("exec -e -p --process f c1", "f", id="value-like-a-flag"),
        pytest.param("exec c1 -p f", "", id="the-programs-own"),
    ],
)
def test_process_of_an_exec_is_read(words, process):
    """The --process of exec stands before the id; what follows the id is the program's own."""
    call = invocation.parse(words.split())

    assert ("exec", "c1", process) == (call.command, call.id, call.process)


def test_every_command_of_the_runtimes_is_known():
    """Each command in the help of an installed runtime is one of ours."""
    listed = set()
    for runtime in argv_cases.BOTH:
        told = subprocess.run([need(runtime), "--help"], check=True, capture_output=True, text=True)
        section = re.search(r"COMMANDS:\n(.*?)\n\n", f"{told.stdout}\n\n", re.DOTALL)
        assert section
        listed |= set(re.findall(r"^\s+([a-z]+)[ ,]", section[1], re.MULTILINE))

    assert json.dumps(sorted(listed - invocation.COMMANDS)) == "[]"
