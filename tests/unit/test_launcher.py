"""The launcher alone: when it starts Python, and what it hands to whom (C1)."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import argv_cases
import pytest
from support.configurations import STATE, forget
from support.installations import ROOT
from support.programs import need

from cdi_runc import invocation
from cdi_runc.config import compile as config_compile
from cdi_runc.config import load

SHELLS = ("dash", "bash", "busybox")
ASKS = json.dumps({"annotations": {"cdi.k8s.io/x": "acme.example/widget=w0"}}).encode()
PLAIN = json.dumps({"annotations": {"note": "cdi.k8s.io"}, "process": {"env": ["A=1"]}}).encode()

# Writes who it is and its arguments, each ended by NUL, beside itself.
WITNESS = """#!/bin/sh
if [ $# -gt 0 ]; then printf '%s\\0' "$@"; fi >"$0.seen"
"""


class Launcher:
    """The launcher in *directory*, between a witness for Python and one for the real runtime."""

    def __init__(self, directory, shell):
        self.directory = directory
        self.shell = [need("busybox"), "sh"] if shell == "busybox" else [need(shell)]
        self.python = self._witness("python")
        self.runtime = self._witness("bin/runc")
        self.path = directory / "cdi-runc"
        (directory / "shim").touch()
        text = (ROOT / "packaging/launcher").read_text()
        for name, value in (("cdi_python", self.python), ("cdi_home", directory)):
            text = text.replace(f"\n{name}=", f"\n{name}={value}\nunused=", 1)
        self.path.write_text(text)
        self.path.chmod(0o755)
        self.env = {"PATH": f"{self.runtime.parent}:/usr/sbin:/usr/bin:/sbin:/bin"}

    def _witness(self, name):
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(WITNESS)
        path.chmod(0o755)
        return path

    def __call__(self, *words, **options):
        """Run it; return who was started last, and the words that it was given."""
        for program in (self.python, self.runtime):
            Path(f"{program}.seen").unlink(missing_ok=True)
        options.setdefault("env", self.env)
        self.finished = subprocess.run(
            [*self.shell, self.path, *map(os.fsencode, words)],
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            **options,
        )
        for program, name in ((self.runtime, "runtime"), (self.python, "python")):
            seen = Path(f"{program}.seen")
            if seen.exists():
                return name, seen.read_bytes().split(b"\0")[:-1]
        return "", []


@pytest.fixture(params=SHELLS)
def launcher(request, tmp_path):
    """Return a launcher for each shell; what it keeps on this machine goes with the test."""
    yield Launcher(tmp_path, request.param)
    forget(tmp_path)


@pytest.fixture
def bundle(tmp_path):
    """Return a function that makes a bundle whose config.json is the bytes given."""

    def make(content=ASKS):
        path = tmp_path / "bundle"
        path.mkdir(exist_ok=True)
        (path / "config.json").write_bytes(content)
        return path

    return make


def configure(launcher, text, *, compiled=True):
    """Give the launcher a configuration, and what would be compiled from it."""
    path = launcher.directory / "config.yaml"
    path.write_text(text)
    os.utime(path, (time.time() - 60, time.time() - 60))
    launcher.env["CDI_RUNC_CONFIG"] = str(path)
    kept = Path(f"{STATE}/launcher{path}/patterns")
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.unlink(missing_ok=True)
    if compiled:
        kept.write_bytes(config_compile.patterns(load.read(str(path))))
        os.utime(kept, ns=(path.stat().st_mtime_ns, path.stat().st_mtime_ns))
    return path, kept


@pytest.mark.parametrize(("words", "command", "id_", "reads", "by"), argv_cases.CASES)
def test_argv_is_read_as_the_module_reads_it(launcher, tmp_path, words, command, id_, reads, by):
    """Python is started if and only if the file that the runtime will read asks for a device."""
    top = tmp_path / "top"
    for name in argv_cases.DIRECTORIES:
        (top / name).mkdir(parents=True, exist_ok=True)
    files = [*(top / name / "config.json" for name in argv_cases.DIRECTORIES)]
    files += [top / name for name in argv_cases.FILES]
    words = [word.replace("@", str(top)) for word in words]
    expected = Path(os.path.join(top, reads.replace("@", str(top)))) if reads else None
    for asking, other in ((ASKS, PLAIN), (PLAIN, ASKS)):
        for file in files:
            file.write_bytes(other if expected else ASKS)
        if expected:
            expected.write_bytes(asking)
        who, given = launcher(*words, cwd=top)
        is_edited = command in invocation.EDITED and asking is ASKS

        assert ("python" if is_edited else "runtime") == who
        assert [os.fsencode(word) for word in words] == (given[4:] if is_edited else given)


@pytest.mark.parametrize(
    ("content", "who"),
    [
        pytest.param(ASKS, "python", id="annotation"),
        pytest.param(b'{"process":{"env":["CDI_DEVICES=a.b/c=d"]}}', "python", id="variable"),
        pytest.param(b'{ "process" : { "env" : [\n"CDI_DEVICES="\n] } }', "python", id="indented"),
        pytest.param(rb'{"env":["CDI_\u0044EVICES=a.b/c=d"]}', "python", id="escaped-letter"),
        pytest.param(rb'{"annotations":{"cdi.k8s.io\/x":"a"}}', "python", id="escaped-slash"),
        pytest.param(rb'{"annotations":{"cdi\u002ek8s.io/x":"a"}}', "python", id="escaped-dot"),
        pytest.param(rb'{"env":["CDI_DEVICES\u003da.b/c=d"]}', "python", id="escaped-equals"),
        pytest.param(
            rb'{"args":["a \u003e b \u0026\u0026 c \u003c d"]}', "runtime", id="escaped-by-go"
        ),
        pytest.param(b'{"env":["MY_CDI_DEVICES=a.b/c=d"]}', "runtime", id="longer-name"),
        pytest.param(b'{"annotations":{"cdi.k8s.iox":"a"}}', "runtime", id="no-slash"),
        pytest.param(PLAIN, "runtime", id="nothing"),
        pytest.param(b"", "runtime", id="empty-file"),
    ],
)
def test_request_is_never_missed(launcher, bundle, content, who):
    """Python is started for every way of writing a request, and for little else."""
    path = bundle(content)
    words = ("create", "--bundle", path, "c1")
    configured = launcher(*words)[0]
    configure(launcher, "{}")

    assert (who, who) == (configured, launcher(*words)[0])


@pytest.mark.parametrize(
    ("content", "who"),
    [
        pytest.param(b'{"annotations":{"acme.example/cdi/x":"a"}}', "python", id="annotation"),
        pytest.param(b'{"env":["NVIDIA_VISIBLE_DEVICES=0"]}', "python", id="variable"),
        pytest.param(
            b'{"mounts":[{"destination":"/devices/a.b/c/d","source":"/dev/null"}]}',
            "python",
            id="mount",
        ),
        pytest.param(ASKS, "runtime", id="default-annotation"),
        pytest.param(b'{"env":["CDI_DEVICES=a.b/c=d"]}', "runtime", id="default-variable"),
    ],
)
def test_configured_requests_are_seen(launcher, bundle, content, who):
    """What the configuration names is searched for, and nothing else."""
    configure(
        launcher,
        "requests: {annotations: [acme.example/cdi/], mounts: /devices,"
        " environment: {NVIDIA_VISIBLE_DEVICES: {kind: nvidia.com/gpu}}}",
    )

    assert who == launcher("create", "-b", bundle(content), "c1")[0]


@pytest.mark.parametrize("seconds", [-3600, 3600], ids=["older", "newer"])
def test_changed_configuration_is_compiled_first(launcher, bundle, seconds):
    """A configuration with another time stamp, whether older or newer, is compiled anew."""
    path, _ = configure(launcher, "{}")
    os.utime(path, (time.time() + seconds, time.time() + seconds))
    launcher("create", "-b", bundle(PLAIN), "c1")

    assert [] == Path(f"{launcher.python}.seen").read_bytes().split(b"\0")[3:-1]
    assert Path(f"{launcher.runtime}.seen").exists()


@pytest.mark.parametrize(
    ("content", "who"),
    [
        pytest.param(b'{"env":["ACME_DEVICES=a.b/c=d"]}', "refused", id="new-variable"),
        pytest.param(b'{"annotations":{"acme.example/cdi/x":"a"}}', "refused", id="new-prefix"),
        pytest.param(ASKS, "refused", id="default"),
        pytest.param(PLAIN, "runtime", id="nothing"),
        pytest.param(b'{"env":["COMMENTED=1","runtime=1"]}', "refused", id="any-word"),
        pytest.param(b'{"env":["COMMENTED=1"]}', "runtime", id="comment"),
    ],
)
def test_without_interpreter_every_word_counts(launcher, bundle, content, who):
    """When a changed configuration cannot be compiled, any of its words may name a request."""
    configure(
        launcher,
        "runtime: runc  # COMMENTED\nrequests:\n  environment: {ACME_DEVICES: {}}\n"
        "  annotations: [acme.example/cdi/]\n",
        compiled=False,
    )
    launcher.python.unlink()
    log = launcher.directory / "log.json"
    words = ("--log", log, "--log-format", "json", "create", "-b", bundle(content), "c1")
    started = launcher(*words)[0]

    assert ("" if who == "refused" else who) == started
    if who == "refused":
        told = json.loads(log.read_text().splitlines()[-1])

        assert 1 == launcher.finished.returncode
        assert "error" == told["level"]
        assert f"interpreter {launcher.python} is missing" in told["msg"]
        assert told["msg"] in launcher.finished.stderr.decode()


@pytest.mark.parametrize("how", ["link", "copy", "hard-link"])
def test_runtime_is_never_ourselves(launcher, tmp_path, how):
    """A runc that is this very file is passed over, and the next one is taken."""
    first = tmp_path / "first"
    first.mkdir()
    if how == "link":
        (first / "runc").symlink_to(launcher.path)
    elif how == "hard-link":
        os.link(launcher.path, first / "runc")
    else:  # another file that passes itself over in its turn
        shutil.copy2(launcher.path, first / "runc")
    launcher.env["PATH"] = f"{first}:{launcher.env['PATH']}"

    assert ("runtime", [b"state", b"c1"]) == launcher("state", "c1")


def test_configured_runtime_is_taken(launcher, tmp_path):
    """A runtime's absolute path is taken as it is, and the first that is there wins."""
    other = tmp_path / "other"
    other.write_text('#!/bin/sh\nprintf "%s " other "$@"\n')
    other.chmod(0o755)
    configure(launcher, f"runtime: [/nonexistent/runc, {other}, runc]")
    launcher("state", "c1")

    assert b"other state c1 " == launcher.finished.stdout


def test_missing_runtime(launcher, tmp_path):
    """Without any runtime, --version is still answered, and all else is an error that says why."""
    configure(launcher, "runtime: /nonexistent/runc")
    launcher("--version")
    version = launcher.finished
    log = tmp_path / "log"
    launcher("--log", log, "state", "c1")

    assert (0, b"cdi-runc") == (version.returncode, version.stdout[:8])
    assert 1 == launcher.finished.returncode
    assert 'level=error msg="cdi-runc: no real runtime was found' in log.read_text()


def test_missing_config_json_is_the_runtimes_affair(launcher, tmp_path):
    """A bundle without config.json goes to the runtime, which has its own words for it."""
    assert "runtime" == launcher("create", "-b", tmp_path / "none", "c1")[0]


def test_bundle_that_looks_like_an_option(launcher, tmp_path):
    """A bundle's name may begin with a dash."""
    (tmp_path / "-q").mkdir()
    (tmp_path / "-q/config.json").write_bytes(ASKS)

    assert "python" == launcher("create", "--bundle", "-q", "c1", cwd=tmp_path)[0]


def test_exported_variables_stay(launcher, tmp_path):
    """Variables with the names that the launcher works with reach the runtime unchanged."""
    launcher.runtime.write_text('#!/bin/sh\nenv >"$0.env"\n')
    names = ("python", "home", "command", "bundle", "file", "log", "state", "config", "name", "arg")
    env = {**launcher.env, **{name: f"own {name}" for name in names}}
    launcher("--root", "/r", "--log", "/l", "state", "c1", env=env)
    seen = Path(f"{launcher.runtime}.env").read_text().splitlines()

    assert [f"{name}=own {name}" for name in names] == [
        line for name in names for line in seen if line.startswith(f"{name}=")
    ]


def test_container_of_another_user_is_not_believed(launcher, bundle):
    """Compiled patterns that another user owns are not used."""
    _, kept = configure(launcher, "requests: {environment: {}}")
    os.chown(kept, 65534, 65534)
    launcher("create", "-b", bundle(ASKS), "c1")

    assert Path(f"{launcher.python}.seen").exists()


def test_python_is_started_alone(launcher, bundle):
    """Python is started isolated, with the launcher's own path before the arguments."""
    _, given = launcher("create", "-b", bundle(ASKS), "c1")
    isolated, no_site, shim, own, *words = given

    assert [b"-I", b"-S"] == [isolated, no_site]
    assert os.fsencode(launcher.directory / "shim") == shim
    assert os.fsencode(launcher.path) == own
    assert b"create" == words[0]
