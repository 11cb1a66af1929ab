"""The launcher: when it starts Python, what the real runtime gets, and when it says no itself.

It runs under every shell that may be ``/bin/sh``.  Two witnesses, real programs, stand for what it
starts: each prints its name and its arguments.  Where the configuration is to be compiled, the
real interpreter does so.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import argv_cases
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.configurations import forget
from support.installations import ROOT
from support.programs import need

from cdi_runc import VERSION, exec_process, invocation, paths
from cdi_runc.config import compile as config_compile
from cdi_runc.config import load

SOURCE = (ROOT / "packaging/launcher").read_text()
SHELLS = [
    pytest.param(("dash",), "C", id="dash"),
    pytest.param(("bash", "--posix"), "C", id="bash"),
    pytest.param(("bash",), "C.UTF-8", id="bash-utf-8"),
    pytest.param(("busybox", "sh"), "C", id="busybox"),
]
every_shell = pytest.mark.parametrize(("shell", "locale"), SHELLS)
WITNESS = "#!/bin/sh\nprintf '%s\\0' {name} \"$@\"\n"
ASKS = '{"process": {"env": ["CDI_DEVICES=acme.com/widget=w0"]}}'
ASKS_NOT = '{"process": {"env": ["PATH=/bin"]}}'


class Launcher:
    """A launcher of a test's own, with witnesses for what it starts."""

    def __init__(self, top, **replaced):
        self.top = top
        self.home = top / "home"
        self.python = self.home / "python"
        self.path = self.home / "cdi-runc"
        self.bin = top / "bin"
        for directory in (self.home, self.bin, top / "work"):
            directory.mkdir()
        program(self.python, WITNESS.format(name="python"))
        program(self.bin / "runc", WITNESS.format(name="runc"))
        (self.home / "shim").write_text(
            f"import sys\nsys.path[:0] = {[str(ROOT), sysconfig.get_path('purelib')]!r}\n"
            "from cdi_runc.shim import main\nmain(sys.argv)\n"
        )
        text = SOURCE
        for old, new in {
            "/etc/cdi-runc/config.yaml": f"{top}/etc/config.yaml",
            "cdi_python=/usr/bin/python3": f"cdi_python={self.python}",
            "cdi_home=/usr/lib/cdi-runc": f"cdi_home={self.home}",
            **replaced,
        }.items():
            assert old in text
            text = text.replace(old, new)
        program(self.path, text)

    def run(self, *words, shell=("dash",), locale="C", python=None, **env):
        """Call the launcher in the directory ``work``."""
        if python is not None:
            self.python.unlink(missing_ok=True)
            if python:
                self.python.symlink_to(python)
        env = {"PATH": str(self.bin), "LC_ALL": locale, **env}
        return subprocess.run(
            [need(shell[0]), *shell[1:], self.path, *words],
            check=False,
            cwd=self.top / "work",
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )

    def started(self, *words, **options):
        """Return what the launcher became, with its arguments."""
        done = self.run(*words, **options)
        assert (0, b"") == (done.returncode, done.stderr), done
        return [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]]

    def for_python(self, *words):
        """Return what the interpreter is started with for *words*."""
        return ["python", "-I", "-S", str(self.home / "shim"), str(self.path), *words]


def program(path, text):
    """Write a program."""
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def launcher(tmp_path):
    """Return a launcher of the test's own, without a configuration."""
    yield Launcher(tmp_path)
    forget(tmp_path)


@pytest.fixture
def config(launcher):
    """Return the configuration that ``CDI_RUNC_CONFIG`` names, which is not there yet."""
    (launcher.top / "etc").mkdir()
    return launcher.top / "etc/config.yaml"


@pytest.fixture
def bundle(launcher):
    """Return a function that puts a config.json into the working directory."""

    def write(text):
        (launcher.top / "work/config.json").write_text(text)

    return write


def compiled(config, text):
    """Write the configuration and what the launcher reads of it, as if both were old."""
    config.write_text(text)
    kept = Path(f"{paths.state()}/launcher{config}")
    kept.mkdir(parents=True, exist_ok=True)
    (kept / "patterns").write_bytes(config_compile.patterns(load.read(str(config))))
    os.utime(config.parent, (1, 1))
    for name, of in (("patterns", config), ("directory", config.parent)):
        (kept / name).touch()
        os.utime(kept / name, ns=(of.stat().st_mtime_ns, of.stat().st_mtime_ns))
    return kept / "patterns"


def test_no_variable_of_the_callers_is_set():
    """Every variable that it sets begins with cdi_, so that it changes none of the caller's."""
    code = "\n".join(line.partition(" #")[0] for line in SOURCE.splitlines() if line[:1] != "#")
    code = re.sub(r"'[^']*'", "''", code)
    code = re.sub(r'"[^"\n]*"', '""', code)
    names = re.findall(r"(?:^|[\s;({])([A-Za-z_]\w*)=", code)
    names += re.findall(r"\bfor (\w+)|\bread -r (\w+)", code)
    found = {"".join(name) for name in names} - {"IFS", "LC_ALL"}  # both for one command only

    assert all(name.startswith("cdi_") for name in found), found


def make_bundles(top, reads, asks, asks_else):
    """Make every configuration that argv could mean, the one that is read with its own text."""
    read = os.path.realpath(os.path.join(top, reads.replace("@", str(top)))) if reads else ""
    places = [f"{name}/config.json" for name in argv_cases.DIRECTORIES]
    for place in (*places, *argv_cases.FILES):
        path = top / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(asks if os.path.realpath(path) == read else asks_else)


@every_shell
@pytest.mark.parametrize(("words", "command", "id_", "reads", "by"), argv_cases.CASES)
def test_argv_decides(launcher, shell, locale, words, command, id_, reads, by):
    """Python is started for a create or run whose configuration asks, and the runtime else.

    Either gets every argument byte for byte.
    """
    top = launcher.top / "work"
    words = [word.replace("@", str(top)) for word in words]
    make_bundles(top, reads, ASKS, ASKS_NOT if reads else ASKS)
    with_request = launcher.started(*words, shell=shell, locale=locale)
    make_bundles(top, reads, ASKS_NOT, ASKS)
    without = launcher.started(*words, shell=shell, locale=locale)

    if command in invocation.EDITED and command != "restore":
        assert launcher.for_python(*words) == with_request
    else:
        assert ["runc", *words] == with_request
    if reads:
        assert ["runc", *words] == without


WORDS = (
    *(
        "create",
        "run",
        "exec",
        "state",
        "--root",
        "--root=x",
        "--bundle",
        "--bundle=b",
        "-b",
        "-b=b",
    ),
    *("-b/x", "-bb", "--bundle=", "b", "p", "sub/a=b", "c1", "--", "-", "", "--debug", "--unknown"),
    *(
        "--config",
        "--config=f.json",
        "-f",
        "f.json",
        "--pid-file",
        "--console-socket=",
        "---bundle",
    ),
    *("--log", "-log", "--no-pivot", "-q", "\udcff", "a b", "--systemd-cgroup", "--process", "-e"),
)


@settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.sampled_from(WORDS), max_size=8), st.booleans())
def test_any_argv_is_read_alike(launcher, words, asks):
    """Whatever the words, the launcher reads them as the shim does, and hands them on whole."""
    top = launcher.top / "work"
    call = invocation.parse(words)
    reads = call.config_path if call.command in invocation.EDITED else ""
    is_there = bool(reads) and call.config_path.startswith(("./", "b/", "p/", "sub/a=b/", "f.json"))
    make_bundles(top, reads, *((ASKS, ASKS_NOT) if asks else (ASKS_NOT, ASKS)))
    started = launcher.started(*words)

    if not reads:
        assert ["runc", *words] == started
    elif is_there and os.path.isfile(top / reads):
        assert (launcher.for_python(*words) if asks else ["runc", *words]) == started
    else:
        assert words == started[-len(words) :]


def escaped(text, letter, template="\\u{:04x}"):
    """Return *text* with the first *letter* written as an escape."""
    return text.replace(letter, template.format(ord(letter)), 1)


ENV = '["CDI_DEVICES=acme.com/widget=w0"]'
KEY = '{"cdi.k8s.io/x": "acme.com/widget=w0"}'
TEXTS = [
    pytest.param(f'{{"process": {{"env": {ENV}}}}}', True, id="env"),
    pytest.param('{"process":{"env":["A=1","CDI_DEVICES="]}}', True, id="env-compact"),
    pytest.param(f'{{"annotations": {KEY}}}', True, id="annotation"),
    pytest.param('{\n"annotations" :\n{\n"cdi.k8s.io/x" : "y"}}', True, id="lines"),
    *(
        pytest.param(f'{{"env": {escaped(ENV, letter)}}}', True, id=f"env-escaped-{letter}")
        for letter in "CDI_EVS="
    ),
    *(
        pytest.param(f'{{"a": {escaped(KEY, letter)}}}', True, id=f"key-escaped-{letter}")
        for letter in "cdi.k8so"
    ),
    pytest.param(escaped(KEY, "k", "\\u{:04X}"), True, id="upper-case-escape"),
    pytest.param(escaped(KEY, ".", "\\u{:04X}"), True, id="upper-case-escaped-dot"),
    pytest.param('{"cdi.k8s.io\\/x": "y"}', True, id="escaped-slash"),
    pytest.param('{"cdi.k8s.io\\u002Fx": "y"}', True, id="escaped-slash-as-number"),
    pytest.param("{}", False, id="nothing"),
    pytest.param("", False, id="empty"),
    pytest.param('["NOT_CDI_DEVICES=x", "cdi_devices=x"]', False, id="other-variables"),
    pytest.param('["CDI_DEVICES_X=1"]', False, id="longer-name"),
    pytest.param('["see CDI_DEVICES=x", "x cdi.k8s.io/y"]', False, id="in-other-text"),
    pytest.param('{"x.cdi.k8s.io/y": "", "cdi.k8s.io": ""}', False, id="other-keys"),
    pytest.param('{"cdi.k8s.iox": ""}', False, id="key-without-slash"),
    pytest.param('["\\u003c\\u003e\\u0026\\n\\t\\\\ \\""]', False, id="escapes-of-go"),
    pytest.param('["\\u00e9 é \U0001f600"]', False, id="beyond-ascii"),
]
GREPS = [pytest.param({}, id="busybox-grep"), pytest.param({"/bin/busybox": "/-"}, id="grep")]


@pytest.mark.parametrize("replaced", GREPS)
@pytest.mark.parametrize(("text", "asks"), TEXTS)
def test_requests_are_found(tmp_path, replaced, text, asks):
    """A text that may ask for a device starts Python, and JSON may write it with escapes."""
    launcher = Launcher(tmp_path, **replaced)
    (tmp_path / "work/config.json").write_text(text)
    started = launcher.started("create", "c1")

    assert (launcher.for_python("create", "c1") if asks else ["runc", "create", "c1"]) == started


CONFIGURED = json.dumps(
    {
        "requests": {
            "annotations": ["cdi.k8s.io/", "acme.com/devices/"],
            "environment": {"ACME_VISIBLE": {"kind": "acme.com/widget"}},
            "mounts": "/var/run/cdi-runc/devices",
        }
    }
)
CONFIGURED_TEXTS = [
    pytest.param('["ACME_VISIBLE=all"]', True, id="env"),
    pytest.param('["\\u0041CME_VISIBLE=all"]', True, id="env-escaped"),
    pytest.param('{"acme.com/devices/x": ""}', True, id="annotation"),
    pytest.param('{"acme.com\\/devices/x": ""}', True, id="annotation-escaped"),
    pytest.param('{"cdi.k8s.io/x": ""}', True, id="standard-annotation"),
    pytest.param('{"source":"/dev/null"}', True, id="mount"),
    pytest.param('{"source":"\\/dev\\/null"}', True, id="mount-escaped"),
    pytest.param('["CDI_DEVICES=x"]', False, id="variable-not-configured"),
    pytest.param('{"acme.com/device": ""}', False, id="other-key"),
    pytest.param('["/var/run/other"]', False, id="other-mount"),
]


@pytest.mark.parametrize(("text", "asks"), CONFIGURED_TEXTS)
def test_configured_requests_are_found(launcher, config, bundle, text, asks):
    """What the configuration names is searched for, and nothing else."""
    compiled(config, CONFIGURED)
    bundle(text)
    started = launcher.started("create", "c1", CDI_RUNC_CONFIG=str(config))

    assert (launcher.for_python("create", "c1") if asks else ["runc", "create", "c1"]) == started


@every_shell
@pytest.mark.parametrize(
    ("text", "asks", "by_python"),
    [
        pytest.param("{restore: edit}", ASKS, True, id="edited"),
        pytest.param("{restore: edit}", ASKS_NOT, False, id="nothing-asked"),
        pytest.param("{restore: pass}", ASKS, False, id="passed-through"),
        pytest.param("{runtime: runc}", ASKS, False, id="by-default"),
    ],
)
def test_restore_is_edited_where_the_configuration_says_so(
    launcher, config, shell, locale, text, asks, by_python
):
    """A restore is passed through, unless the configuration wants it edited and it asks."""
    compiled(config, text)
    (launcher.top / "work/b").mkdir()
    (launcher.top / "work/b/config.json").write_text(asks)
    words = ["restore", "--image-path", "create", "--work-path", "w", "--bundle", "b", "c1"]
    started = launcher.started(*words, shell=shell, locale=locale, CDI_RUNC_CONFIG=str(config))

    assert started == (launcher.for_python(*words) if by_python else ["runc", *words])


@every_shell
def test_restore_with_a_configuration_that_cannot_be_compiled(launcher, config, shell, locale):
    """Without an interpreter, a configuration that may want restores edited misses none."""
    config.write_text("restore: edit")
    (launcher.top / "work/config.json").write_text(ASKS)
    done = launcher.run(
        "restore", "c1", shell=shell, locale=locale, python="", CDI_RUNC_CONFIG=str(config)
    )

    assert 1 == done.returncode
    assert b"the interpreter" in done.stderr


@every_shell
@pytest.mark.parametrize("young", [False, True])
def test_default_devices_start_python_for_every_container(
    launcher, config, bundle, shell, locale, young
):
    """Where every container gets a device, no config.json is passed by."""
    compiled(config, "requests: {default: [acme.com/widget=w0]}")
    if young:
        config.touch()
    bundle("{}")
    words = ["create", "c1"]
    started = launcher.started(*words, shell=shell, locale=locale, CDI_RUNC_CONFIG=str(config))

    if young:  # the witness does not compile, so the first call of it is not seen
        started = started[-len(launcher.for_python(*words)) :]
    assert launcher.for_python(*words) == started


@every_shell
@pytest.mark.parametrize("change", ["newer", "older", "replaced", "replaced-unseen", "no-state"])
def test_a_changed_configuration_is_compiled_anew(launcher, config, bundle, shell, locale, change):
    """What was compiled from another state of the configuration is not believed."""
    patterns = compiled(config, "{}")
    old = config.stat()
    bundle('{"process": {"env": ["ACME_VISIBLE=all"]}}')
    before = launcher.started(
        "create", "c1", CDI_RUNC_CONFIG=str(config), shell=shell, locale=locale
    )
    if change.startswith("replaced"):
        (launcher.top / "new").write_text(CONFIGURED)
        (launcher.top / "new").rename(config)
    else:
        config.write_text(CONFIGURED)
    seconds = {"newer": 2, "older": -2, "replaced": 3}.get(change, 0)  # busybox sees no less
    stamp = old.st_mtime_ns + seconds * 1_000_000_000
    os.utime(config, ns=(stamp, stamp))
    if change == "no-state":
        patterns.unlink()
    after = launcher.run(
        "create",
        "c1",
        CDI_RUNC_CONFIG=str(config),
        shell=shell,
        locale=locale,
        python=sys.executable,
    )

    assert ["runc", "create", "c1"] == before
    assert b"unknown device acme.com/widget=all" in after.stderr


def test_a_fresh_configuration_is_not_compiled_again(launcher, config, bundle):
    """The interpreter is not started for a container that asks for nothing."""
    compiled(config, CONFIGURED)
    bundle(ASKS_NOT)
    program(launcher.python, f"#!/bin/sh\n: >{launcher.top}/called\n")
    started = launcher.started("create", "c1", CDI_RUNC_CONFIG=str(config))

    assert ["runc", "create", "c1"] == started
    assert not (launcher.top / "called").exists()


def test_calls_that_edit_nothing_need_no_fresh_configuration(launcher, config):
    """A container that runs keeps the runtime that made it, whatever became of the file."""
    compiled(config, json.dumps({"runtime": str(launcher.bin / "other")}))
    program(launcher.bin / "other", WITNESS.format(name="other"))
    config.write_text("{")
    os.utime(config, (1, 1))
    program(launcher.python, f"#!/bin/sh\n: >{launcher.top}/called\n")
    started = launcher.started("kill", "c1", CDI_RUNC_CONFIG=str(config))

    assert ["other", "kill", "c1"] == started
    assert not (launcher.top / "called").exists()


BROKEN = [
    pytest.param("requests: {environment: {ACME_VISIBLE: {kind: [\n", id="not-yaml"),
    pytest.param("requests: {environment: {ACME_VISIBLE: {knid: x}}}\n", id="unknown-key"),
    pytest.param("nonsense: 1\n# C\nrequests:\n  environment: {ACME_VISIBLE: {}}\n", id="comment"),
    pytest.param("{requests: {annotations: [acme.com/], environment: [ACME_VISIBLE]}}", id="flow"),
]


@every_shell
@pytest.mark.parametrize("text", BROKEN)
@pytest.mark.parametrize("has_python", [True, False], ids=["python", "no-python"])
def test_a_broken_configuration_misses_no_request(
    launcher, config, bundle, shell, locale, text, has_python
):
    """Who asks is refused, by the name of the configuration or the interpreter; others start."""
    config.write_text(text)
    python = sys.executable if has_python else ""
    options = {"shell": shell, "locale": locale, "CDI_RUNC_CONFIG": str(config), "python": python}
    bundle('{"process": {"env": ["ACME_VISIBLE=w0"]}}')
    asking = launcher.run("create", "c1", **options)
    bundle(ASKS)
    asking_as_ever = launcher.run("create", "c1", **options)
    bundle(ASKS_NOT)

    assert ["runc", "create", "c1"] == launcher.started("create", "c1", **options)
    for refused in (asking, asking_as_ever):
        assert (1, b"") == (refused.returncode, refused.stdout)
        assert os.fsencode(config if has_python else launcher.python) in refused.stderr
        assert 1 == refused.stderr.count(b"\n")


@every_shell
def test_configured_prefixes_and_mounts_are_found_without_python(
    launcher, config, bundle, shell, locale
):
    """Each word of a configuration that nobody could compile counts, a path as a beginning."""
    config.write_text(f"{CONFIGURED}  # COMMENTED")
    options = {"shell": shell, "locale": locale, "CDI_RUNC_CONFIG": str(config), "python": ""}
    for text, asks in [
        ('{"annotations": {"acme.com/devices/x": "y"}}', True),
        ('{"mounts": [{"destination": "/var/run/cdi-runc/devices/acme.com/w/w0"}]}', True),
        ('{"process": {"env": ["kind=1"]}}', True),
        ('{"process": {"env": ["COMMENTED=1"]}}', False),
        ('{"process": {"env": ["OTHER=1"]}, "annotations": {"a.b/c": ""}}', False),
    ]:
        bundle(text)

        assert (1 if asks else 0) == launcher.run("create", "c1", **options).returncode


@every_shell
@pytest.mark.parametrize(
    ("format_", "pattern"),
    [
        pytest.param(
            "json", r'\{"level":"error","msg":"(?P<msg>.*)","time":"(?P<t>.*)"\}', id="json"
        ),
        pytest.param("text", r'time="(?P<t>.*)" level=error msg="(?P<msg>.*)"', id="text"),
    ],
)
def test_a_refusal_reaches_the_engine(launcher, bundle, shell, locale, format_, pattern):
    """The --log file gets one entry in the format asked for, with standard error's text."""
    bundle(ASKS)
    log = launcher.top / "log"
    log.write_text("before\n")
    words = ["--log", str(log), "--log-format", format_, "create", "c1"]
    done = launcher.run(*words, shell=shell, locale=locale, python="")
    first, entry = log.read_text().splitlines()
    found = re.fullmatch(pattern, entry)

    assert "before" == first
    assert f"{found['msg']}\n" == done.stderr.decode()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["t"])
    assert format_ == "text" or found["msg"] == json.loads(entry)["msg"]
    assert str(launcher.python) in found["msg"]
    assert done.returncode == 1


def test_a_log_that_cannot_be_written_leaves_standard_error(launcher, bundle):
    """The refusal is told on standard error all the same."""
    bundle(ASKS)
    done = launcher.run("--log", "/nonexistent/log", "create", "c1", python="")

    assert done.returncode == 1
    assert b"interpreter" in done.stderr


def test_a_missing_shim_is_named(launcher, bundle):
    """Without our own program a container that asks is refused, and others start."""
    (launcher.home / "shim").unlink()
    bundle(ASKS)
    refused = launcher.run("create", "c1")
    bundle(ASKS_NOT)

    assert refused.returncode == 1
    assert os.fsencode(launcher.home / "shim") in refused.stderr
    assert ["runc", "create", "c1"] == launcher.started("create", "c1")


def test_the_frozen_program_is_preferred(launcher, bundle):
    """hot.pyc is started in the shim's place where it is."""
    (launcher.home / "hot.pyc").write_text("")
    bundle(ASKS)

    assert str(launcher.home / "hot.pyc") == launcher.started("create", "c1")[3]


@every_shell
@pytest.mark.parametrize("kind", ["missing", "fifo", "directory"])
def test_a_config_json_that_is_no_file_is_the_runtimes_affair(launcher, shell, locale, kind):
    """The runtime says in its own words what is missing; a FIFO does not hold us up."""
    path = launcher.top / "work/config.json"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()

    assert ["runc", "create", "c1"] == launcher.started("create", "c1", shell=shell, locale=locale)


@every_shell
@pytest.mark.parametrize("kind", ["link", "hard-link", "copy", "directory", "not-executable"])
def test_the_runtime_is_never_ourselves(launcher, shell, locale, kind):
    """What is ourselves, or no program, is passed over for the next in PATH."""
    early = launcher.top / "early"
    early.mkdir()
    runc = early / "runc"
    if kind == "link":
        runc.symlink_to(launcher.path)
    elif kind == "hard-link":
        runc.hardlink_to(launcher.path)
    elif kind == "copy":
        shutil.copy(launcher.path, runc)
    elif kind == "directory":
        runc.mkdir()
    else:
        runc.write_text("#!/bin/sh\n")
    path = f"{early}:relative::{launcher.bin}"

    assert ["runc", "kill", "c1"] == launcher.started(
        "kill", "c1", shell=shell, locale=locale, PATH=path
    )


@every_shell
def test_runtimes_are_tried_in_their_order(launcher, config, shell, locale):
    """The first of the configured runtimes that is there is used: a name or a path."""
    program(launcher.bin / "crun", WITNESS.format(name="crun"))
    (launcher.top / "with blank").mkdir()
    program(launcher.top / "with blank/my runc", WITNESS.format(name="mine"))
    options = {"shell": shell, "locale": locale, "CDI_RUNC_CONFIG": str(config)}
    for runtimes, expected in [
        (["nosuch-runtime", "crun", "runc"], "crun"),
        ([str(launcher.top / "nosuch"), "runc"], "runc"),
        ([str(launcher.top / "with blank/my runc")], "mine"),
        ("crun", "crun"),
    ]:
        compiled(config, json.dumps({"runtime": runtimes}))

        assert [expected, "state", "c1"] == launcher.started("state", "c1", **options)


@every_shell
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--version",), id="long"),
        pytest.param(("-v",), id="short"),
        pytest.param(("--root", "/r", "--version"), id="behind-a-flag"),
        pytest.param(("--log-format=json", "-v"), id="behind-another"),
    ],
)
def test_version_is_told_without_a_runtime(launcher, config, shell, locale, words):
    """Without any runtime the version is our own, and the exit status 0."""
    compiled(config, json.dumps({"runtime": "nosuch-runtime"}))
    done = launcher.run(*words, shell=shell, locale=locale, CDI_RUNC_CONFIG=str(config))

    assert (0, b"") == (done.returncode, done.stderr)
    assert b"cdi-runc" in done.stdout
    assert VERSION.encode() in done.stdout


@every_shell
def test_without_a_runtime_every_other_call_fails(launcher, config, shell, locale):
    """The error says what to install or to configure."""
    compiled(config, json.dumps({"runtime": "nosuch-runtime"}))
    done = launcher.run("state", "c1", shell=shell, locale=locale, CDI_RUNC_CONFIG=str(config))

    assert (1, b"") == (done.returncode, done.stdout)
    assert b"no real runtime" in done.stderr
    assert os.fsencode(config) in done.stderr


@every_shell
@pytest.mark.parametrize("words", ["--version", "features", "--help", "state c1", "create c1"])
@pytest.mark.parametrize("broken", ["python", "configuration", "state"])
def test_what_is_broken_holds_up_nobody_who_asks_for_nothing(
    launcher, config, bundle, shell, locale, words, broken
):
    """Every call reaches the runtime, and standard error stays clean."""
    bundle(ASKS_NOT)
    config.write_text("runtime: [" if broken == "configuration" else '{"runtime": "runc"}')
    options = {"shell": shell, "locale": locale, "CDI_RUNC_CONFIG": str(config)}
    if broken == "python":
        options["python"] = ""
    elif broken == "configuration":
        options["python"] = sys.executable
    else:
        place = Path(f"{paths.state()}/launcher{config.parent}")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("a file where a directory should be")
        options["python"] = sys.executable
    try:
        assert ["runc", *words.split()] == launcher.started(*words.split(), **options)
    finally:
        if broken == "state":
            place.unlink()


@every_shell
def test_the_runtime_gets_the_callers_environment(launcher, bundle, shell, locale):
    """Exported variables, some named like what a script would use, reach the runtime unchanged."""
    names = "name value option runtime config bundle command arg line words state id log path"
    env = {name: f"of the caller: {name}" for name in [*names.split(), *names.upper().split()]}
    del env["PATH"]
    program(launcher.bin / "runc", "#!/bin/sh\nexec cat /proc/$$/environ\n")
    bundle(ASKS_NOT)
    for words in ("create c1", "state c1"):
        done = launcher.run(
            *words.split(), shell=shell, locale=locale, **env, PATH=f"{launcher.bin}:/bin:/usr/bin"
        )
        found = dict(entry.split("=", 1) for entry in done.stdout.decode().split("\0")[:-1])

        assert env == {name: found.get(name) for name in env}


ENVIRONMENTS = [
    pytest.param({}, id="none"),
    pytest.param({"CDI_RUNC_CONFIG": "/x/c.yaml"}, id="named"),
    pytest.param({"CDI_RUNC_CONFIG": "c.yaml"}, id="named-relative"),
    pytest.param({"CDI_RUNC_CONFIG": ""}, id="named-empty"),
    pytest.param({"XDG_RUNTIME_DIR": "/run/user/7"}, id="runtime-dir"),
    pytest.param({"XDG_RUNTIME_DIR": "run"}, id="runtime-dir-relative"),
    pytest.param({"XDG_RUNTIME_DIR": ""}, id="runtime-dir-empty"),
    pytest.param({"HOME": "TOP/home"}, id="home"),
    pytest.param({"HOME": "TOP/none"}, id="home-without"),
    pytest.param({"HOME": "TOP/none", "XDG_CONFIG_HOME": "TOP/home/.config"}, id="config-home"),
    pytest.param({"XDG_CONFIG_HOME": "", "HOME": "TOP/home"}, id="config-home-empty"),
    pytest.param({"XDG_CONFIG_HOME": "home", "HOME": "TOP/home"}, id="config-home-relative"),
    pytest.param({"HOME": "home"}, id="home-relative"),
    pytest.param({"XDG_RUNTIME_DIR": "TOP/runtime"}, id="no-home"),
]


@pytest.fixture(scope="module")
def rules():
    """Return a launcher that prints the places it uses, where every user can read it."""
    with tempfile.TemporaryDirectory() as top:
        Path(top).chmod(0o755)
        own = Path(top) / "home/.config/cdi-runc"
        own.mkdir(parents=True)
        (own / "config.yaml").write_text("")
        state = Path(top) / "runtime/cdi-runc"
        state.mkdir(parents=True)
        (state / "config.yaml").symlink_to(own / "config.yaml")
        marker = "cdi_compiled=$cdi_state"
        text = SOURCE.replace(marker, f'printf "%s\\n" "$cdi_config" "$cdi_state"; exit\n{marker}')
        assert text.count("; exit\n") == 1
        program(Path(top) / "launcher", text)
        shutil.copytree(
            ROOT / "cdi_runc", f"{top}/cdi_runc", ignore=shutil.ignore_patterns("__*__")
        )
        shutil.copy(ROOT / "cdi_runc/__init__.py", f"{top}/cdi_runc")
        yield top


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("user", [0, 65534, "mapped"], ids=str)
@every_shell
def test_launcher_and_paths_have_the_same_rules(rules, shell, locale, env, user):
    """Configuration and state are looked for where cdi_runc.paths says."""
    if os.geteuid() != user and os.geteuid():
        pytest.skip("only root can be another user")
    env = {name: value.replace("TOP", rules) for name, value in env.items()}
    prefix = [need("unshare"), "--user", "--map-root-user"] if user == "mapped" else []
    outside = 54321 if user == "mapped" else user  # who is root in the namespace
    options = {"cwd": rules, "user": outside, "capture_output": True, "text": True}
    words = [*prefix, need(shell[0]), *shell[1:], f"{rules}/launcher", "state"]
    told = subprocess.run(
        words, check=True, env={"PATH": "/bin", "LC_ALL": locale, **env}, **options
    )
    asked = "from cdi_runc import paths; print(paths.config()[0], paths.state() or '', sep='\\n')"
    words = [*prefix, "/usr/bin/python3", "-S", "-B", "-c", asked]
    ours = subprocess.run(words, check=True, env={"PATH": "/bin", **env}, **options)

    assert ours.stdout == told.stdout


def test_launcher_and_paths_look_in_the_same_directories():
    """A runtime's name is looked up in the same places, in the same order."""
    assert f'${{PATH-}}:{":".join(paths.RUNTIME_DIRS)}"' in SOURCE


@every_shell
@pytest.mark.parametrize("root", ["", "@/root", "relative/root", "@/root/", "@//root"], ids=repr)
def test_what_exec_needs_is_found_and_deleted(launcher, monkeypatch, shell, locale, root):
    """Exec starts Python where something is kept for it, and delete removes just that."""
    monkeypatch.chdir(launcher.top / "work")
    root = root.replace("@", str(launcher.top / "work"))
    words = ["--root", root] if root else []
    kept = Path(exec_process.place(invocation.parse([*words, "exec", "c1"])))
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text("")
    (kept.parent / "c2").write_text("")
    options = {"shell": shell, "locale": locale}
    call = [*words, "exec", "--process", "p.json", "c1"]

    assert launcher.for_python(*call) == launcher.started(*call, **options)
    assert ["runc", *words, "exec", "c1", "sh"] == launcher.started(
        *words, "exec", "c1", "sh", **options
    )
    assert ["runc", *words, "delete", "c3"] == launcher.started(*words, "delete", "c3", **options)
    assert kept.exists()
    assert ["runc", *words, "delete", "--force", "c1"] == launcher.started(
        *words, "delete", "--force", "c1", **options
    )
    assert not kept.exists()
    (kept.parent / "c2").unlink()


def test_a_kept_file_of_another_user_is_not_believed(launcher):
    """What anybody else could have made starts nothing."""
    if os.geteuid():
        pytest.skip("only root can give a file away")
    root = str(launcher.top / "work/root")
    kept = Path(exec_process.place(invocation.parse(["--root", root, "exec", "c1"])))
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text("")
    os.chown(kept, 65534, 65534)
    call = ["--root", root, "exec", "--process", "p.json", "c1"]

    assert ["runc", *call] == launcher.started(*call)


def test_compiled_patterns_of_another_user_are_not_believed(launcher, config, bundle):
    """What anybody else could have made decides nothing: the configuration is read again."""
    if os.geteuid():
        pytest.skip("only root can give a file away")
    patterns = compiled(config, CONFIGURED)
    patterns.write_text("#runtime=runc\n")
    os.utime(patterns, ns=(config.stat().st_mtime_ns,) * 2)
    os.chown(patterns, 65534, 65534)
    bundle('["ACME_VISIBLE=all"]')

    assert launcher.for_python("create", "c1") == launcher.started(
        "create", "c1", CDI_RUNC_CONFIG=str(config)
    )


@every_shell
@pytest.mark.parametrize("state", ["away", "directory"])
def test_the_configured_runtime_without_compiled_patterns(
    launcher, config, bundle, shell, locale, state
):
    """Where nothing compiled can be kept or read, the runtime is still the configured one."""
    program(launcher.bin / "other", WITNESS.format(name="other"))
    kept = compiled(config, "runtime: other\n")
    kept.unlink()
    if state == "directory":
        kept.mkdir()
    bundle(ASKS_NOT)
    words = ("create", "c1")

    env = {"CDI_RUNC_CONFIG": str(config)}
    done = launcher.run(*words, shell=shell, locale=locale, python=sys.executable, **env)

    assert (0, b"other\0create\0c1\0") == (done.returncode, done.stdout)


@every_shell
def test_an_interpreter_that_cannot_be_executed_is_named(launcher, bundle, shell, locale):
    """Our words come last; bash, which drops its traps, has only its own."""
    program(launcher.python, "#!/nonexistent/interpreter\n")
    bundle(ASKS)
    done = launcher.run("--log", "log", "create", "c1", shell=shell, locale=locale)
    last = done.stderr.decode().splitlines()[-1]

    assert done.returncode != 0
    assert str(launcher.python) in last
    if shell[0] != "bash":
        assert 1 == done.returncode
        assert last.startswith("cdi-runc: this container asks for a CDI device")
        assert "cannot be executed" in (launcher.top / "work/log").read_text()


@every_shell
def test_a_launcher_that_is_read_in_part_does_nothing(launcher, shell, locale):
    """Cut off anywhere behind its brace, the script is an error, not a success."""
    text = launcher.path.read_text()
    for cut in (text.index("\n{") + 2, 4096, 8192, len(text) - 3):
        launcher.path.write_text(text[:cut])
        done = launcher.run("create", "c1", shell=shell, locale=locale)
        assert done.returncode != 0
        assert done.stdout == b""
