"""One function for each thing that we read and others write; each asserts what has to hold.

A target takes bytes.  Only the project's own errors may come out of the code that it calls, and
whatever else comes out is a finding.
"""

import contextlib
import io
import json
import marshal
import os
import posix
import sys
import time
from argparse import Namespace
from pathlib import Path

from cdi_runc import (  # noqa: F401  # all that is loaded late is instrumented with the rest
    capabilities,
    conflicts,
    create,
    edits,
    errors,
    exec_process,
    invocation,
    jsonio,
    names,
    paths,
    registry,
    report,
    requests,
    rootfs,
    settings,
    shim,
)
from cdi_runc.cli import audit, matching, records, replay, standing
from cdi_runc.cli import validate as cli_validate
from cdi_runc.config import compile as config_compile
from cdi_runc.config import load, salvage
from cdi_runc.engines import config_file, daemon_json
from cdi_runc.specs import check, document, explain, yaml_nodes  # noqa: F401
from cdi_runc.specs import compile as specs_compile

KINDS = [edits.kind(key) for key in edits.KEYS]
W0, W1 = "acme.example/widget=w0", "acme.example/widget=w1"
LONG = 1 << 20
"""Bytes; a longer input is not compared in every way."""
DOCKER_JSON_NAME, DOCKER_JSON_PROGRAM = "cdi", "/usr/bin/cdi-runc"

# Edits of every kind that this host can carry out, some of them twice over one place.
DEVICES = {
    "w0": {
        "env": ["ACME=1", "TERM=cdi"],
        "deviceNodes": [{"path": "/dev/acme0", "type": "c", "major": 240, "minor": 1}],
        "netDevices": [{"hostInterfaceName": "lo", "name": "eth1"}],
        "mounts": [
            {"hostPath": "/etc", "containerPath": "/opt/acme", "options": ["rbind", "ro"]},
            {"hostPath": "{top}/libacme.so.1", "containerPath": "/usr/lib/libacme.so.1"},
        ],
        "hooks": [{"hookName": "createRuntime", "path": "/bin/true", "env": ["A=1"]}],
        "intelRdt": {"closID": "gold"},
        "additionalGids": [44],
    },
    "w1": {
        "env": ["ACME=2"],
        "deviceNodes": [{"path": "/dev/own", "type": "c", "major": 10, "minor": 1}],
        "mounts": [{"hostPath": "/usr", "containerPath": "/data", "type": "bind"}],
        "additionalGids": [0, 44, 45],
    },
}


class Here:
    """Places of a run's own: none of this machine's are read or written."""

    def __init__(self, top):
        self.top = top
        self.settings = settings.defaults().but(
            spec_dirs=(f"{top}/cdi",),
            state_dir=f"{top}/registry",
            audit_file=f"{top}/log/audit.jsonl",
            log_file=f"{top}/log/cdi-runc.log",
            environment=(
                ("CDI_DEVICES", "", ("", "void", "none")),
                ("ACME_VISIBLE", "acme.example/widget", ("", "none")),
            ),
            mounts="/var/run/cdi-runc/devices",
            unsupported="warn",
            audit_env="plain",
        )
        for name in ("cdi", "one", "bundle/rootfs/lib", "log"):
            os.makedirs(f"{top}/{name}", exist_ok=True)
        Path(f"{top}/bundle/rootfs/lib/ld-musl-x86_64.so.1").touch()
        Path(f"{top}/libacme.so.1").touch()
        devices = [{"name": name, "containerEdits": own} for name, own in DEVICES.items()]
        content = {
            "cdiVersion": "1.1.0",
            "kind": "acme.example/widget",
            "containerEdits": {"env": ["ALL=1"], "additionalGids": [43]},
            "devices": devices,
        }
        text = json.dumps(content).replace("{top}", top)
        Path(f"{top}/cdi/acme.json").write_text(text, encoding="utf-8")
        time.sleep(2 * specs_compile.RACY_NS / 1e9)  # so that it counts as settled
        self.call = self.calling("create", "--bundle", f"{top}/bundle", "c1")
        self._runs = 0
        self.exec = self.calling("exec", "--process", f"{top}/process.json", "c2")

    def calling(self, *words):
        """Return a call of the runtime."""
        return invocation.parse(["--root", f"{self.top}/root", "--log", "/dev/null", *words])

    def tidy(self):
        """Close now and then what a create leaves open, as it becomes the real runtime."""
        self._runs += 1
        if self._runs % 256 == 0:
            for fd in os.listdir("/proc/self/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/self/fd/{fd}") == f"{self.top}/registry/registry":
                        os.close(int(fd))

    def write(self, name, data):
        """Write a file, and return its path."""
        path = f"{self.top}/{name}"
        with open(path, "wb") as file:
            file.write(data)
        return path

    def read(self, name):
        """Return what a file holds; nothing where there is none."""
        try:
            with open(f"{self.top}/{name}", "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""


_here = []


def here():
    """Return the places of this run."""
    return _here[-1]


@contextlib.contextmanager
def places(top):
    """Lead every path that the code would use by itself below *top*."""
    names_ = ("CONFIG", "STATE", "LOGS", "SPEC_DIRS")
    before = {name: getattr(paths, name) for name in names_}
    own = (f"{top}/no-config", f"{top}/state", f"{top}/log", (f"{top}/cdi",))
    variables = {
        name: posix.environ.pop(name)
        for name in (b"CDI_RUNC_CONFIG", b"XDG_CONFIG_HOME", b"XDG_RUNTIME_DIR", b"XDG_STATE_HOME")
        if name in posix.environ
    }
    try:
        for name, value in zip(names_, own, strict=True):
            setattr(paths, name, value)
        _here.append(Here(top))
        yield
    finally:
        if _here:
            _here.pop()
        for name, value in before.items():
            setattr(paths, name, value)
        posix.environ.update(variables)


def same(one, other, ordered=True):
    """Tell whether two values are alike, types included, and with *ordered* the order of keys."""
    waiting = [(one, other)]
    while waiting:
        one, other = waiting.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, dict):
            if one.keys() != other.keys() or (ordered and [*one] != [*other]):
                return False
            waiting += [(one[key], other[key]) for key in one]
        elif isinstance(one, list):
            if len(one) != len(other):
                return False
            waiting += zip(one, other, strict=True)
        elif repr(one) != repr(other):
            return False
    return True


def usable(path):
    """Tell whether the kernel could take *path*."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def spec(data):
    """A spec file, JSON or YAML: it is valid and compiles, or each fault has a message.

    What the C scanner reads of it, YAML reads alike.
    """
    path = here().write("one/spec.json", data)
    if len(data) > LONG:
        specs_compile.compiled((f"{here().top}/one",))
        return
    found, findings = check.examine(data)
    assert (found is None) == bool(findings)
    assert all(one.message and one.line >= 0 and one.column >= 0 for one in findings)
    assert all(len(one.message) <= check.LONGEST for one in findings)
    compiled = specs_compile.compiled((f"{here().top}/one",))
    kept = registry.Registry(lambda length, offset: compiled[offset : offset + length])
    if found is None:
        assert [path] == [fault[0] for fault in kept.faults]
        assert kept.names() == []
    else:
        assert sorted(found.names) == kept.names()
        assert found.values() == marshal.loads(marshal.dumps(found.values()))
        for name in found.names:
            assert names.fault(name) is None
            device = kept.find(name)
            for key, entries in (*device.spec_edits, *device.edits):
                for arguments in entries:
                    jsonio.dumps(edits.kind(key).Edit(*arguments).entry())
    told = cli_validate.examined(path)
    assert told["valid"] == (found is not None), told
    json.dumps(told)
    if data[:1] in (b"{", b"[") and data.isascii() and b"\\" not in data and b"\x7f" not in data:
        try:
            scanned = document._read_json(data)
        except ValueError:
            return
        try:
            composed = document._read_yaml(data)
        except errors.BadSpec as error:
            assert error.message.startswith(("nested", "not YAML", "aliases", "more than")), error
        else:
            assert same(scanned, composed), (scanned, composed)


def configuration(data):
    """Our own configuration: it is usable, or refused, and then a guess misses no request."""
    path = here().write("config.yaml", data)
    try:
        found = load.parse(path, data)
    except errors.BadConfiguration as error:
        found = salvage.guess(path, error.message)
        assert found.broken
        assert {*settings.defaults().annotations} <= {*found.annotations}
        known = {variable for variable, _, _ in found.environment}
        assert "CDI_DEVICES" in known
    else:
        assert not found.broken
        assert found.annotations == tuple(filter(usable, found.annotations))
        assert all(
            usable(one)
            for one in (
                *found.runtime,
                *found.spec_dirs,
                found.state_dir,
                found.audit_file,
                found.log_file,
            )
        )
        again = load.parse(path, data)
        assert found.values() == again.values()
    assert found.values() == marshal.loads(marshal.dumps(found.values()))
    lines = config_compile.patterns(found).split(b"\n")
    wanted = len(found.runtime) + len(found.annotations) + len(found.environment)
    also = (found.mounts, found.default, found.restores)
    assert len(lines) == wanted + sum(map(bool, also)) + len(("#end", "")), lines
    assert all(lines[:-1])
    assert lines[-2:] == [b"#end", b""]


# Where CDI edits go; all else in config.json stays.
OURS = (
    ("process", "env"),
    ("process", "user", "additionalGids"),
    ("linux", "devices"),
    ("linux", "resources", "devices"),
    ("linux", "netDevices"),
    ("linux", "intelRdt"),
    ("mounts",),
    ("hooks",),
)


def rest(value, places_=OURS):
    """Return *value* without what is at the places where CDI edits go."""
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, member in value.items():
        below = [place[1:] for place in places_ if place[0] == key]
        if () in below:
            continue
        kept[key] = rest(member, [place for place in below if place]) if below else member
    # A section that was missing or null is made for what goes there.
    return {key: member for key, member in kept.items() if not (key in MADE and not member)}


MADE = ("process", "user", "linux", "resources")


def prepared(data):
    """Return what a create makes of config.json *data*, or None if it refuses."""
    here().write("bundle/config.json", data)
    here().tidy()
    try:
        create.prepare(here().call, here().settings, "/bin/true")
    except errors.CdiRuncError as error:
        assert error.message
        with contextlib.redirect_stderr(io.StringIO()):
            report._shown(error.message, error.cure)
        assert here().read("bundle/config.json") == data
        return None
    return here().read("bundle/config.json")


def config_json(data):
    """A config.json: it is refused and as it was, or edited, and all else in it is as it was.

    A second pass changes nothing, and undone by its own record the file is what it was.
    """
    here().write("log/audit.jsonl", b"")
    made = prepared(data)
    lines = here().read("log/audit.jsonl").splitlines()
    try:
        kept = [records.parsed(line) for line in lines]
    except ValueError as error:
        assert "nested" in str(error), error
        return
    assert len(kept) <= 1
    if made is None or made == data or len(data) > LONG:
        return
    assert kept[0]["result"] == "edited"
    before, after = jsonio.loads(data), jsonio.loads(made)
    assert same(rest(before), rest(after)), "what is not ours changed"
    undone = jsonio.loads(made)
    replay.undo(undone, kept[0]["edits"])
    assert same(before, undone, ordered=False), "the record does not tell what happened"
    assert prepared(made) == made, "a second pass changes it"


def argv(data):
    """An argv is always read, and every word of what it says is a word of it, or part of one."""
    words = [os.fsdecode(word) for word in data.split(b"\0")]
    call = invocation.parse(words)
    found = call.values()
    assert all(type(one) is str for one in found)
    for one in found:
        assert one in ("", ".", "text") or any(word.endswith(one) for word in words), one
    assert call == invocation.parse(words)
    assert call.config_path.endswith(call.config or "/config.json")


def asking(data):
    """Return a config.json that asks by annotations, variables and mounts, one in each line."""
    annotations, env, mounts = {}, [], []
    for line in data.decode("utf-8", "surrogatepass" if b"\xed" in data else "replace").split("\n"):
        kind, text = line[:1], line[1:]
        if kind == "a":
            key, _, value = text.partition(":")
            annotations[f"cdi.k8s.io/{key}"] = value
        elif kind == "m":
            mounts.append({"source": "/dev/null", "destination": text})
        elif kind == "v":
            env.append(f"ACME_VISIBLE={text}")
        else:
            env.append(f"CDI_DEVICES={text}")
    return {"annotations": annotations, "process": {"env": env}, "mounts": mounts}


def asked(data):
    """Annotations, variables and mounts: what asks is a name, or the create says why not."""
    try:
        config = asking(data)
    except UnicodeDecodeError:
        return
    try:
        found = requests.read(config, here().settings)
    except errors.BadRequest as error:
        with contextlib.redirect_stderr(io.StringIO()):
            report._shown(error.message, error.cure).encode("utf-8", "replace")
        return
    for one in found:
        assert names.fault(one.device) is None
        assert "=".join(("/".join(names.parse(one.device)[:2]), names.parse(one.device)[2]))
        assert one.source in ("annotation", "environment", "mount")
    here().tidy()
    devices = requests.devices(found)
    assert {one.device for one in found} == {*devices}
    try:
        registry.resolve(devices, here().settings)
    except errors.UnknownDevice as error:
        assert error.message
    jsonio.dumps([one.values() for one in found])


def daemon(data):
    """Docker's daemon.json: refused, or changed and changed back with nothing else touched."""
    path = here().write("daemon.json", data)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path + config_file.BACKUP)
    for default in (False, True):
        try:
            file = config_file.ConfigFile.load(path)
            before = daemon_json.read(file.text)
            text = daemon_json.added(
                file.text, DOCKER_JSON_NAME, DOCKER_JSON_PROGRAM, set_default=default
            )
        except config_file.BadConfigFile as error:
            assert error.message
            return
        after = daemon_json.read(text)
        assert after["runtimes"][DOCKER_JSON_NAME]["path"] == DOCKER_JSON_PROGRAM
        assert same(others(before, default), others(after, default))
        assert text == daemon_json.added(text, DOCKER_JSON_NAME, DOCKER_JSON_PROGRAM, default)
        daemon_json.read(daemon_json.spelled_out(text, default=default))
        if DOCKER_JSON_NAME in before.get("runtimes", {}):
            continue
        known = ("", daemon_json.STOCK, *before.get("runtimes", {}))
        if before.get("default-runtime", "") not in known:
            continue  # Docker does not start with that, so it is not put back
        file.back_up(has_entry=False)
        file.write(text)
        back = daemon_json.removed(config_file.ConfigFile.load(path), DOCKER_JSON_NAME)
        assert same(before, daemon_json.read(back), ordered=False), (text, back)
        file.write(file.text)
        os.unlink(path + config_file.BACKUP)


def others(values, default):
    """Return what in a daemon.json is not ours."""
    kept = {key: value for key, value in values.items() if key != "runtimes"}
    if default:
        kept.pop("default-runtime", None)
    known = dict(values.get("runtimes", {}))
    known.pop(DOCKER_JSON_NAME, None)
    return [kept, known]


def audit_file(data):
    """An audit file: what is damaged is told and passed over, and the rest is shown."""
    path = here().write("log/read.jsonl", data)
    err = io.StringIO()
    # What is printed must be printable in UTF-8: half a surrogate pair is not.
    printed = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="strict")
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(err):
        filters = {"container": "", "device": "", "vendor": "", "result": ""}
        for json_ in (True,) if len(data) > LONG else (False, True):
            args = Namespace(audit="list", limit=50, json=json_, since=None, until=None, **filters)
            audit._list(args, path)
            args = Namespace(
                audit="tail", n=5, follow=False, json=json_, since="2", until="3", **filters
            )
            audit._tail(args, path)
        wanted = records.Filter(device="acme*", vendor="acme.example", result="edited")
        assert all(wanted.fits(one) for one in records.newest(path, wanted))
        for record in list(records.newest(path))[:5]:
            for form in ("spec", "docker"):
                show(lambda record=record, form=form: audit.show(record, "export", form))
            for form in ("", "json", "diff"):
                show(lambda record=record, form=form: audit.show(record, "show", form))
            show(lambda record=record: explained(record))
    printed.flush()
    assert all(line.startswith("cdictl: ") for line in err.getvalue().splitlines())


def explained(record):
    """Match an error's text with the edits of *record*."""
    text = matching.Text('error mounting "/opt/acme": hook #0, 240:1, group, rdt')
    with audit.damage(record):
        matching.matches(text, standing.of(record["edits"]).values())


def show(what):
    """Show a record, or say that it is damaged."""
    try:
        what()
    except errors.CdiRuncError as error:
        assert error.message


def process(data):
    """A process.json: merged whole, or as it was, and nothing keeps the exec from running."""
    if not _kept_for_exec():
        raise AssertionError("nothing is kept for exec")
    here().write("log/cdi-runc.log", b"")
    here().write("process.json", data)
    shim._merge(here().exec, here().settings)
    made = here().read("process.json")
    if made == data or len(data) > LONG:
        return
    before, after = jsonio.loads(data), jsonio.loads(made)
    ours = (("env",), ("user", "additionalGids"))
    assert same(rest(before, ours), rest(after, ours))
    assert [one for one in before.get("env") or [] if one not in KEPT_OVER] == [
        one for one in after["env"] if one not in KEPT_NEW
    ]
    shim._merge(here().exec, here().settings)
    assert here().read("process.json") == made


KEPT_OVER, KEPT_NEW = ("TERM=xterm", "ACME=1", "TERM=cdi"), ("ACME=1", "TERM=cdi", "TERM=xterm")


def _kept_for_exec():
    where = exec_process.place(here().exec)
    if not os.path.exists(where):
        os.makedirs(os.path.dirname(where), mode=0o700, exist_ok=True)
        kept = (("ACME", "1", None), ("TERM", "cdi", "TERM=xterm"))
        exec_process._write(where, marshal.dumps((exec_process.FORMAT, kept, (44, 45))))
    return where


TARGETS = {
    "spec": spec,
    "configuration": configuration,
    "config_json": config_json,
    "argv": argv,
    "requests": asked,
    "daemon_json": daemon,
    "audit": audit_file,
    "process_json": process,
}


def words():
    """Return words of the formats, for a dictionary of the fuzzer."""
    found = {*names_in(check.schema()), *names_in(load.schema())}
    found |= {"CDI_DEVICES=", "ACME_VISIBLE=", "cdi.k8s.io/x", W0, W1, "acme.example/widget"}
    found |= {"/dev/null", "/var/run/cdi-runc/devices/", "runtimes", "default-runtime", "cdi"}
    found |= {"additionalGids", "namespaces", "annotations", "process", "user", "linux", "source"}
    found |= {*invocation.COMMANDS, "--bundle", "--root", "--process", "--config", "-b", "--"}
    found |= {*records.NEEDED, "pointer", "where", "before", "after", "action", "was", "note"}
    found |= {"<<: *a", "&a ", "*a", "!!binary ", "!!float ", "\\u0000", "\\ud800", "1e3", "-0"}
    return sorted(found)


def names_in(schema):
    """Yield the names of all members that *schema* knows."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for member in schema.values():
            yield from names_in(member)
    elif isinstance(schema, list):
        for member in schema:
            yield from names_in(member)


if __name__ == "__main__":
    sys.exit("see: python3 -m tests.fuzz --help")
