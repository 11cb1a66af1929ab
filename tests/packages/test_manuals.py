"""Man pages and completions, as install.sh puts them beside the commands."""

import json
import os
import pty
import re
import select
import subprocess
import time

import pytest
from support.commands import Cdictl
from support.installations import ROOT
from support.programs import environment, need, run

from cdi_runc.cli.main import COMMANDS

PAGES = ("man1/cdictl.1", "man5/cdi-runc.yaml.5", "man8/cdi-runc.8")
BASH = """
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
_cdictl
printf '%s\\n' "${COMPREPLY[@]}"
"""
DEVICES = ("acme.com/widget=w0", "acme.com/widget=w1", "other.org/card=c0")


@pytest.fixture
def host(installation, configuration, tmp_path):
    """Return an environment with devices, a container on record, and the commands on PATH."""
    configuration.spec(("w0", {"env": ["A=1"]}), ("w1", {"env": ["A=2"]}))
    configuration.spec(("c0", {"env": ["B=1"]}), kind="other.org/card", file="other.json")
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    content = {
        "ociVersion": "1.0.2",
        "root": {"path": "."},
        "annotations": {"cdi.k8s.io/x": "acme.com/widget=w0"},
    }
    (bundle / "config.json").write_text(json.dumps(content))
    path = f"{installation.prefix / 'bin'}:{os.environ['PATH']}"
    env = environment(**configuration.env, PATH=path, HOME=str(tmp_path), TERM="dumb")
    configuration.write(runtime="/bin/true")
    run("cdi-runc", "create", "--bundle", bundle, "web-1", env=env)
    return env


@pytest.fixture
def share(installation):
    """Return where man pages and completions are."""
    return installation.prefix / "share"


@pytest.fixture
def bash(share, host):
    """Return what bash offers after a line."""

    def offered(line):
        script = share / "bash-completion/completions/cdictl"
        words = ("bash", "--norc", "-c", BASH, "bash", script, line)
        return run(*words, env=host).out.split()

    return offered


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_sound(share, page):
    """Neither mandoc nor groff has anything to say against it."""
    path = share / "man" / page
    lint = run(need("mandoc"), "-T", "lint", "-W", "warning", path, check=False)
    rendered = run(need("groff"), "-man", "-Tutf8", "-ww", path)

    assert (lint.status, lint.out) == (0, "")
    assert rendered.err == ""


def test_the_page_tells_of_every_key(share):
    """Each key of the schema has an entry."""
    page = (share / "man" / PAGES[1]).read_text()
    schema = json.loads((ROOT / "cdi_runc/config/config.schema.json").read_bytes())
    for key, value in schema["properties"].items():
        assert f"\\fB{key}\\fR" in page
        for below in value.get("properties", {}):
            assert f"\\fB{key}.{below}\\fR" in page


def test_the_page_tells_of_every_command(share, installation, configuration):
    """Each command has a section with every option that its help names."""
    page = (share / "man" / PAGES[0]).read_text()
    cdictl = Cdictl(installation.cdictl, configuration)
    for name in COMMANDS:
        section = page.partition(f".SS cdictl {name}\n")[2].partition("\n.SS ")[0]
        options = set(re.findall(r"--[a-z][a-z-]*", cdictl(name, "--help").out.split("\n\n")[0]))
        for option in options:
            assert f"\\fB{option.replace('-', chr(92) + '-')}\\fR" in section


def test_no_placeholder_is_left(share):
    """The words of an option are those that --help shows."""
    completions = ("bash-completion/completions/cdictl", "zsh/site-functions/_cdictl")
    completions += ("fish/vendor_completions.d/cdictl.fish",)
    for path in (*(f"man/{page}" for page in PAGES), *completions):
        text = (share / path).read_text()
        assert "%(default)" not in text
    assert "(default: environment, as with docker run" in text


def test_bash_offers_commands_and_options(bash):
    """Bash knows every command, those below, their options, and the words of a choice."""
    assert set(bash("cdictl ")) == set(COMMANDS)
    assert set(bash("cdictl audit ")) == {"list", "show", "tail", "export"}
    assert "--spec-dir" in bash("cdictl plan --s")
    assert bash("cdictl audit list --result fa") == ["failed"]
    assert bash("cdictl audit list --result=fa") == ["failed"]
    assert bash("cdictl configure ") == ["docker", "podman", "containerd", "crio"]


def test_bash_offers_what_the_host_has(bash, tmp_path):
    """Devices come from the spec files, containers from the audit records, both as a whole."""
    assert bash("cdictl show ") == list(DEVICES)
    assert bash("cdictl plan --device acme") == list(DEVICES[:2])
    # readline takes what follows "=" for a word of its own
    assert bash("cdictl plan --device acme.com/widget=") == ["w0", "w1"]
    assert bash("cdictl plan --device=other.org/card=") == ["c0"]
    assert bash("cdictl audit show w") == ["web-1"]
    assert bash("cdictl doctor ") == ["web-1"]
    assert bash(f"cdictl plan --bundle {tmp_path}/bun") == [f"{tmp_path}/bundle"]


def test_a_record_runs_no_command(bash, host, configuration, tmp_path):
    """An id on record that a shell could misunderstand is offered by no shell."""
    record = json.loads(configuration.audit_file.read_text())
    record["container"] = f"$(touch${{IFS}}{tmp_path}/ran)"
    configuration.audit_file.write_text(json.dumps(record, separators=(",", ":")) + "\n")

    assert bash("cdictl audit show ") == []
    assert not (tmp_path / "ran").exists()


def test_fish_offers_the_same(share, host):
    """Fish knows commands, options, devices and containers."""
    script = share / "fish/vendor_completions.d/cdictl.fish"

    def offered(line):
        words = (need("fish"), "-N", "-c", "source $argv[1]; complete -C $argv[2]", script, line)
        return [one.partition("\t")[0] for one in run(*words, env=host).out.splitlines()]

    assert set(offered("cdictl ")) == set(COMMANDS)
    assert set(offered("cdictl audit ")) == {"list", "show", "tail", "export"}
    assert set(DEVICES) <= set(offered("cdictl show "))
    assert {"acme.com/widget=w0", "acme.com/widget=w1"} == set(offered("cdictl plan --device acme"))
    assert offered("cdictl audit show ") == ["web-1"]
    assert "--spec-dir" in offered("cdictl plan --sp")


ZSHRC = """
PS1='> ' RPS1= PROMPT_EOL_MARK=
fpath=({0} $fpath)
autoload -Uz compinit && compinit -u -d {1}/dump
"""


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("cdictl exp\t", "cdictl explain"),
        ("cdictl audit exp\t", "cdictl audit export"),
        ("cdictl plan --spec\t", "cdictl plan --spec-dir"),
        ("cdictl show other\t", "cdictl show other.org/card=c0"),
        ("cdictl plan --device other\t", "cdictl plan --device other.org/card=c0"),
        ("cdictl audit show we\t", "cdictl audit show web-1"),
    ],
)
def test_zsh_completes(share, host, tmp_path, typed, completed):
    """Zsh, at a terminal, completes commands, options, devices and containers."""
    (tmp_path / ".zshrc").write_text(ZSHRC.format(share / "zsh/site-functions", tmp_path))
    ours, its = pty.openpty()
    env = {**host, "ZDOTDIR": str(tmp_path)}
    shell = subprocess.Popen(
        [need("zsh"), "-d", "-i"],
        stdin=its,
        stdout=its,
        stderr=its,
        env=env,
        start_new_session=True,
    )
    os.close(its)
    try:
        read_until(ours, "> ")
        # What has become of the line is printed, instead of run.
        os.write(ours, f"{typed}\x05'\x01print -r 'is: \r".encode())
        assert read_until(ours, "\nis: ", "\n").replace("\r", "").rstrip() == completed
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)


def read_until(file, begin, end=""):
    """Read from *file* until *end* follows *begin*, and return what lies between them."""
    said, until = "", time.monotonic() + 60
    while time.monotonic() < until:
        _, found, rest = said.partition(begin)
        between, ended, _ = rest.partition(end) if end else (rest, True, "")
        if found and ended:
            return between
        if select.select([file], [], [], 1)[0]:
            said += os.read(file, 4096).decode(errors="replace").replace("\r\n", "\n")
    raise AssertionError(said)
