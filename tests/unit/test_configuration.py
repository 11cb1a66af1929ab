"""Our own configuration: every key, every fault with its line, and no request missed."""

import json
import os
import posix
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.configurations import forget
from support.installations import ROOT
from support.programs import run

from cdi_runc import paths, requests, settings
from cdi_runc.cli import main
from cdi_runc.config import compile as config_compile
from cdi_runc.config import load, salvage
from cdi_runc.errors import BadConfiguration

DOCUMENT = ROOT / "docs/configuration.md"


def test_document_shows_every_key_with_its_default(tmp_path):
    """The configuration in the document is valid, has every key, and says what holds without it."""
    text = DOCUMENT.read_text()
    (shown,) = re.findall(r"```yaml\n(runtime: .*?)```", text, re.DOTALL)
    path = tmp_path / "config.yaml"
    path.write_text(shown)

    assert settings.defaults() == load.read(str(path))
    assert set(load.schema()["properties"]) == set(re.findall(r"^(\w+):", shown, re.MULTILINE))


def test_reference_is_the_schemas():
    """The document's reference is what its generator makes of the schema now."""
    made = run(ROOT / "packaging/configuration-reference").out

    assert DOCUMENT.read_text().endswith(f"configuration-reference. -->\n\n{made}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            "runtimes: runc",
            "line 1: unknown key 'runtimes' (did you mean runtime?); known: runtime,",
            id="key",
        ),
        pytest.param("\naudit:\n  fil: /x", "line 3: audit: unknown key 'fil'", id="nested-key"),
        pytest.param(
            "spec_dirs: [cdi]",
            "line 1: spec_dirs[1]: 'cdi' is not written as it must be: Directories",
            id="relative",
        ),
        pytest.param(
            "audit: {required: 1}", "line 1: audit.required: 1 is not true or false", id="type"
        ),
        pytest.param("conflicts: {hooks: cdi}", "conflicts: unknown key 'hooks'", id="no-conflict"),
        pytest.param("runtime: a\nruntime: b", "line 2: key 'runtime' is given twice", id="twice"),
        pytest.param("runtime: [", "line 1: not YAML", id="yaml"),
        pytest.param("[]", "line 1: [] is not a map of keys", id="list"),
        pytest.param(
            "requests: {annotations: [cdi]}", "each with its final slash", id="prefix-without-slash"
        ),
        pytest.param(
            "requests: {environment: {A=B: {}}}",
            "'A=B' is not written as it must be",
            id="variable",
        ),
        pytest.param(
            "policy: [{source: env, do: ignore}]",
            "policy[1].source: 'env' is not annotation, environment, mount or default",
            id="source",
        ),
        pytest.param("policy: [{source: mount}]", "policy[1]: 'do' is missing", id="no-decision"),
        pytest.param(
            "policy: [{devices: 'a b', do: ignore}]", "Patterns of qualified", id="pattern"
        ),
        pytest.param(
            "policy: {do: refuse}", "policy: {'do': 'refuse'} is not a list", id="no-list"
        ),
        pytest.param("polcy: []", "unknown key 'polcy' (did you mean policy?)", id="near"),
        pytest.param("audit: yes", "audit: True is not a map of keys", id="no-map"),
        pytest.param("conflicts: cdj", "'cdj' is not cdi, container or refuse", id="word"),
        pytest.param(
            "requests: {default: [gpu]}", "requests.default[1]: 'gpu' is not written", id="default"
        ),
        pytest.param("wait: forever", "wait: 'forever' is not a whole number", id="wait"),
    ],
)
def test_fault_is_named_with_its_line(tmp_path, text, words):
    """What cannot be used is refused, with the file, the line and what is wrong."""
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(BadConfiguration) as caught:
        load.read(str(path))

    assert f"configuration {path}: " in str(caught.value)
    assert words in str(caught.value)


def test_check_names_every_fault(tmp_path, capsys):
    """``cdictl config check`` tells each fault with its line, and the rules that never count."""
    path = tmp_path / "config.yaml"
    path.write_text("wait: 1h\npolcy: []\naudit: {env: raw}\n")
    status = main.main(["config", "check", str(path)])
    err = capsys.readouterr().err
    path.write_text("policy: [{do: refuse}, {source: mount, do: allow}]")

    assert 1 == status
    assert ["line 1", "line 2", "line 3"] == re.findall(r"config\.yaml: (line \d)", err)
    assert "config check" not in err
    assert 0 == main.main(["config", "check", str(path)])
    assert "rule 1 of the policy decides everything" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "requests:\n", "audit:\nlog:\n"])
def test_empty_configuration_is_the_defaults(tmp_path, text):
    """A file that says nothing changes nothing."""
    path = tmp_path / "config.yaml"
    path.write_text(text)

    assert settings.defaults() == load.read(str(path))


BROKEN = """\
requests:
  annotations: [acme.example/cdi/]
  environment: {ACME_DEVICES: {kind: acme.example/widget}}  # not COMMENTED
  mounts: /var/run/acme
  bogus: 1
"""


@pytest.mark.parametrize(
    ("config", "asks"),
    [
        pytest.param({"annotations": {"acme.example/cdi/x": "a.b/c=d"}}, True, id="annotation"),
        pytest.param({"process": {"env": ["ACME_DEVICES=0"]}}, True, id="variable"),
        pytest.param(
            {"mounts": [{"source": "/dev/null", "destination": "/var/run/acme/a.b/c/d"}]},
            True,
            id="mount",
        ),
        pytest.param({"annotations": {"cdi.k8s.io/x": "a.b/c=d"}}, True, id="default"),
        pytest.param({"process": {"env": ["COMMENTED=1", "PATH=/bin"]}}, False, id="nothing"),
        pytest.param({"process": {"env": ["ACME_DEVICES="]}}, False, id="empty"),
    ],
)
def test_broken_configuration_misses_no_request(tmp_path, config, asks):
    """From a configuration that cannot be used, every word may name a request."""
    path = tmp_path / "config.yaml"
    path.write_text(BROKEN)
    guess = salvage.guess(str(path), "why")

    assert asks == bool(requests.read(config, guess))
    assert "why" == guess.broken


@pytest.mark.parametrize("how", ["owner", "mode", "directory"])
def test_configuration_that_others_could_change_is_ignored(tmp_path, monkeypatch, how):
    """It is as a broken one, whose error names the cure; and what is compiled notices that."""
    path = tmp_path / "etc/config.yaml"
    path.parent.mkdir()
    path.write_text(json.dumps({"runtime": "/tmp/evil"}))
    monkeypatch.setenv("CDI_RUNC_CONFIG", str(path))
    try:
        time.sleep(0.08)  # what is younger is not believed
        config_compile.refresh(str(path))
        before = settings.compiled(str(path))
        if how == "owner":
            os.chown(path, 54321, 0)
        elif how == "mode":
            path.chmod(0o664)
        else:
            path.parent.chmod(0o777)
        after = settings.compiled(str(path))
        time.sleep(0.08)
        found = config_compile.refresh(str(path))

        assert ("/tmp/evil",) == before.runtime
        assert after is None
        assert found.broken.startswith(f"the configuration {path} is ignored: others could change")
        assert any(
            word in found.broken for word in ("; chown root ", "; chmod g-w ", "; chmod go-w ")
        )
        assert settings.defaults().runtime == found.runtime
        assert found == settings.compiled(str(path))
    finally:
        forget(tmp_path)


@pytest.mark.parametrize("kind", ["fifo", "zero", "sparse", "directory", "dangling", "loop"])
def test_odd_configuration_is_broken_at_once(tmp_path, kind):
    """What is no file of a sane size is refused without a wait, and nothing is guessed from it."""
    path = tmp_path / "config.yaml"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(1 << 40)
    else:
        path.symlink_to({"zero": "/dev/zero", "dangling": "nowhere", "loop": path.name}[kind])
    found = config_compile.refresh(str(path))

    assert f"cannot read the configuration {path}: " in found.broken
    assert settings.defaults() == found.but(broken="")


def test_what_is_compiled_is_what_was_said(tmp_path, monkeypatch):
    """The compiled settings are the file's, until the file changes."""
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps({"runtime": "/bin/true", "conflicts": {"env": "refuse"}}))
    monkeypatch.setenv("CDI_RUNC_CONFIG", str(path))
    found = load.read(str(path))
    try:
        config_compile.refresh(str(path))

        assert settings.compiled(str(path)) in (None, found)  # None: too young to be believed
        path.write_text("runtime: [")

        assert settings.compiled(str(path)) is None
        assert config_compile.refresh(str(path)).broken.startswith(f"configuration {path}: line 1")
    finally:
        forget(tmp_path)


def test_configuration_that_may_change_within_a_tick_is_not_settled(tmp_path, monkeypatch):
    """For 50 ms after its last stamp we do not believe what is compiled, nor busybox for 2 s."""
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps({"runtime": "/bin/true"}))
    os.utime(path, (0, 0))
    monkeypatch.setenv("CDI_RUNC_CONFIG", str(path))
    kept = Path(settings.directory(str(path)))
    believed = []
    try:
        for later in (49_000_000, 51_000_000, 1_900_000_000, 2_100_000_000):
            newest = max(path.stat().st_ctime_ns, tmp_path.stat().st_ctime_ns)
            clock = SimpleNamespace(time_ns=lambda now=newest + later: now)
            monkeypatch.setattr(config_compile, "time", clock)
            config_compile.refresh(str(path))
            by_launcher = [
                (kept / name).stat().st_mtime_ns == of.stat().st_mtime_ns
                for name, of in (("patterns", path), ("directory", tmp_path))
            ]
            believed.append((settings.compiled(str(path)) is not None, *by_launcher))
    finally:
        forget(tmp_path)

    no, yes = False, True
    assert [(no, no, no), (yes, no, no), (yes, no, no), (yes, yes, yes)] == believed


def test_a_users_configuration_is_found_without_a_home(tmp_path, monkeypatch):
    """What is compiled from it leaves a link to it, which follows when it moves."""
    monkeypatch.setattr(paths, "is_system", lambda: False)
    monkeypatch.setitem(posix.environ, b"XDG_RUNTIME_DIR", os.fsencode(tmp_path / "run"))
    for home in ("a", "b"):
        own = tmp_path / home / ".config/cdi-runc/config.yaml"
        own.parent.mkdir(parents=True)
        own.write_text("runtime: /bin/true")
        monkeypatch.setitem(posix.environ, b"HOME", os.fsencode(tmp_path / home))
        settings.current()
        monkeypatch.delitem(posix.environ, b"HOME")
        place, named = paths.config()

        assert (os.path.realpath(place), named) == (str(own), False)
        assert settings.current().runtime == ("/bin/true",)
