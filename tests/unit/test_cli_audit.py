"""``cdictl audit``: what was put into which container."""

import bz2
import gzip
import json
import lzma
import os
import re
import subprocess
import sys
import time

import pytest
from support.configurations import let_others_enter
from support.programs import environment, need, run

from cdi_runc.bundle import Bundle
from cdi_runc.cli import rendering, replay
from cdi_runc.cli.records import NEEDED

ESCAPE = "\x1b["


@pytest.fixture
def edits(tmp_path):
    """Return edits of every kind that this host can carry out, and that conflict with a bundle."""
    library = tmp_path / "libacme.so.1.0"
    library.write_text("acme")
    hook = tmp_path / "hook"
    hook.write_text("#!/bin/sh\ncat >/dev/null\n")
    hook.chmod(0o755)
    mount = {"hostPath": str(library), "options": ["ro", "nosuid", "bind"]}
    return {
        "env": ["ACME=1", "PATH=/bin:/acme"],
        "deviceNodes": [
            {"path": "/dev/acme0", "hostPath": "/dev/zero", "permissions": "rw"},
            {"path": "/dev/acme1", "hostPath": "/dev/full", "permissions": "none"},
            {"path": "/dev/own", "hostPath": "/dev/zero"},
        ],
        "mounts": [
            {**mount, "containerPath": "/usr/lib/acme/libacme.so.1.0"},
            {**mount, "containerPath": "/acme"},
            {**mount, "containerPath": "/opt/own"},
        ],
        "hooks": [{"hookName": "createRuntime", "path": str(hook), "args": ["hook", "ldcache"]}],
        "additionalGids": [4242, 10],
    }


@pytest.fixture
def bundle(make_bundle, configuration, edits):
    """Return a bundle that asks for those edits, and has values of its own in their places."""
    configuration.spec(("one", edits), cdiVersion="0.7.0")
    bundle = make_bundle("sleep", "1000")
    bundle.config["process"]["env"] += ["SECRET=hunter2"]
    bundle.config["process"]["user"]["additionalGids"] = [10]
    own = {"path": "/dev/own", "type": "c", "major": 1, "minor": 7}
    bundle.config["linux"]["devices"] = [own, {**own, "path": "/dev/other"}]
    source = {"type": "bind", "source": "/etc", "options": ["rbind"]}
    bundle.config["mounts"][0:0] = [
        {"destination": "/a/deep/place", **source},
        {"destination": "/opt/own", **source},
    ]
    bundle.config["hooks"] = {"createRuntime": [{"path": "/bin/true"}]}
    return bundle.request("acme.com/widget=one")


def created(runtime, make_bundle, *devices, id_=None):
    """Create and delete a container with a false runtime; return its id."""
    bundle = make_bundle(rootfs=False).request(*devices)
    bundle.id = id_ or bundle.id
    runtime("create", "--bundle", bundle.path, bundle.id, check=False)
    return bundle.id


@pytest.fixture
def history(runtime, configuration, make_bundle):
    """Return the ids of some containers made one after the other."""
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", {"env": ["A=1"]}), ("two", {"env": ["A=2"]}))
    configuration.spec(("ace", {"env": ["A=3"]}), kind="other.org/toy", file="other.json")
    return [
        created(runtime, make_bundle, "acme.com/widget=one", id_="a" * 64),
        created(runtime, make_bundle, "other.org/toy=ace", id_="b" * 64),
        created(runtime, make_bundle, "acme.com/widget=none", id_="c" * 64),
        created(runtime, make_bundle, "acme.com/widget=two", "other.org/toy=ace", id_="d" * 64),
    ]


def test_newest_first(cdictl, history):
    """The list begins with the newest record, and has id, result and devices of each."""
    head, *lines = cdictl("audit", "list").out.splitlines()

    assert head.split() == ["ID", "TIME", "CONTAINER", "RESULT", "DEVICES"]
    assert [line.split()[3] for line in lines] == [id_[:12] for id_ in reversed(history)]
    assert [line.split()[4] for line in lines] == ["edited", "failed", "edited", "edited"]
    assert lines[0].endswith("acme.com/widget=two, other.org/toy=ace")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        pytest.param(("--limit", "1"), "d", id="limit"),
        pytest.param(("--container", "bbbb"), "b", id="container"),
        pytest.param(("--device", "other.org/toy=ace"), "db", id="device"),
        pytest.param(("--device", "acme.com/widget=*"), "dca", id="pattern"),
        pytest.param(("--device", "acme.com/widget=t"), "", id="no-part-of-a-device"),
        pytest.param(("--vendor", "other.org"), "db", id="vendor"),
        pytest.param(("--vendor", "ther.org"), "", id="no-part-of-a-vendor"),
        pytest.param(("--result", "failed"), "c", id="result"),
        pytest.param(("--vendor", "acme.com", "--result", "edited"), "da", id="both"),
        pytest.param(("--since", "1h"), "dcba", id="since"),
        pytest.param(("--until", "1h"), "", id="until"),
        pytest.param(("--since", "2020-01-01", "--until", "2099-12-31T23:59"), "dcba", id="times"),
    ],
)
def test_filters(cdictl, history, words, wanted):
    """Each filter lets through the records that it names, and several those that all name."""
    found = cdictl.json("audit", "list", *words)

    assert "".join(record["container"][0] for record in found) == wanted


def test_since_a_record(cdictl, configuration, history):
    """A record's own time, as it is shown, is a time that is understood."""
    at = configuration.records()[2]["time"]

    assert len(cdictl.json("audit", "list", "--since", at)) == 2
    assert len(cdictl.json("audit", "list", "--until", at)) == 3


@pytest.mark.parametrize("word", ["yesterday", "5y", "2026-13-01", ""])
def test_unknown_times(cdictl, word):
    """A time that nobody understands is wrong usage."""
    done = cdictl("audit", "list", "--since", word, check=False)

    assert done.status == 2
    assert "2026-12-31T23:59" in done.err


def test_json_is_the_record(cdictl, configuration, history):
    """``--json`` shows records as they were written."""
    assert cdictl.json("audit", "list") == configuration.records()[::-1]
    assert cdictl.json("audit", "show", "a" * 64) == configuration.records()[0]


def test_no_records(cdictl):
    """Without a record there is nothing to list, and that is no fault."""
    done = cdictl("audit", "list")

    assert done.out == ""
    assert "no such records" in done.err
    assert cdictl.json("audit", "list") == []


def test_show_has_it_all(runtime, cdictl, configuration, bundle, edits):
    """The tree has who asked, and each edit under its device, spec file and kind."""
    runtime.start(bundle)
    spec = configuration.spec_dir / "acme.json"
    shown = cdictl("audit", "show", bundle.id).out
    lines = [re.sub(r"^[\s│├└─]+", "", line) for line in shown.splitlines()]
    library, hook = edits["mounts"][0]["hostPath"], edits["hooks"][0]["path"]

    assert "result     edited" in lines
    at = lines.index("edits")
    assert lines[at + 1 : at + 3] == ["acme.com/widget=one", str(spec)]
    for line in (
        f"bundle     {bundle.path}",
        "acme.com/widget=one  allow: annotation cdi.k8s.io/test=acme.com/widget=one",
        "added     ACME=1",
        "replaced  PATH=/bin:/acme",
        "added     /dev/acme0: c 1:5, mode 0666",
        "added     cgroup rule: allow c 1:5 rw",
        "added     /dev/acme1: c 1:7, mode 0666",
        "replaced  /dev/own: c 1:5, mode 0666",
        "was  /dev/own: c 1:7",
        f"added     /acme from {library} (ro,nosuid,bind)",
        f"replaced  /opt/own from {library} (ro,nosuid,bind)",
        "was  /opt/own from /etc (bind, rbind)",
        f"added  createRuntime #1: {hook} ldcache",
        "added            group 4242",
        "already present  group 10",
        "env at /process/env/0",
        "decision              CDI's value stands",
    ):
        assert line in lines


def test_secrets_stay_secret(runtime, cdictl, bundle):
    """What the container itself says of a variable is shown as a digest only."""
    runtime.start(bundle)
    shown = [cdictl("audit", "show", bundle.id, *more).out for more in ((), ("--diff",))]

    assert "hunter2" not in "".join(shown)
    assert all("PATH=sha256:" in one for one in shown)


@pytest.mark.parametrize("conflicts", ["cdi", "container"])
def test_diff_is_that_of_the_file(runtime, cdictl, configuration, bundle, conflicts):
    """The diff from the record removes and adds the lines that differ in the file itself."""
    configuration.write(audit={"env": "plain"}, conflicts=conflicts)
    before = bundle.load()
    runtime.start(bundle)
    real = changed(rendering.diff(before, bundle.load(), ("before", "after")))
    told = changed(cdictl("audit", "show", bundle.id, "--diff").out.splitlines())

    assert told == real


def changed(lines):
    """Return the lines that a diff adds or removes, without what only ends them otherwise."""
    kept = [
        line.rstrip(",") for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    return sorted(line for line in kept if flipped(line) not in kept)


def flipped(line):
    """Return the line of a diff as its opposite."""
    return ("-" if line[0] == "+" else "+") + line[1:]


def test_undone(runtime, configuration, bundle):
    """The record's edits taken out of the file after give the file before."""
    configuration.write(audit={"env": "plain"})
    before = bundle.load()
    before["mounts"].sort(key=lambda mount: mount["destination"].count("/"))
    runtime.start(bundle)
    config = Bundle(str(bundle.config_path)).config
    replay.undo(config, configuration.records()[0]["edits"])
    config["mounts"].sort(key=lambda mount: mount["destination"].count("/"))

    assert config == before


def test_newest_of_several(runtime, cdictl, configuration, make_bundle):
    """Of several records of a container the newest is shown, and a record's id names any."""
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", {"env": ["A=1"]}))
    for _ in range(2):
        created(runtime, make_bundle, "acme.com/widget=one", id_="twice")
    first, second = configuration.records()

    assert cdictl.json("audit", "show", "twi")["id"] == second["id"]
    assert cdictl.json("audit", "show", first["id"][:10])["id"] == first["id"]


def test_show_of_nothing(cdictl, history):
    """What nobody knows is a fault, said in one line with a cure."""
    done = cdictl("audit", "show", "nonesuch", check=False)

    assert done.status == 1
    assert done.err.count("\n") == 1
    assert "cdictl audit list" in done.err


def test_the_beginning_of_several(runtime, cdictl, configuration, make_bundle):
    """Of several containers none is chosen; a name itself is, though it begins others too."""
    configuration.write(runtime="/bin/true")
    configuration.spec(("one", {"env": ["A=1"]}))
    ids = ["web", "web-1", "web-2", "web-3", "web-4", "0" * 64, "0" * 60 + "1234"]
    for id_ in (*ids, *ids[1:]):
        created(runtime, make_bundle, "acme.com/widget=one", id_=id_)
    for words in (("audit", "show"), ("audit", "export"), ("doctor",)):
        done = cdictl(*words, "web-", check=False)
        assert (done.status, done.out) == (1, "")
        assert "'web-' is the beginning of several: web-4, web-3, web-2 and more; " in done.err
        done = cdictl(*words, "00000000000000", check=False)
        assert f"is the beginning of several: {ids[6]}, {ids[5]}; " in done.err

    assert cdictl.json("audit", "show", "web")["container"] == "web"
    assert cdictl.json("audit", "show", "web-4")["id"] == configuration.records()[10]["id"]


def test_the_beginning_of_several_records(cdictl, configuration, history):
    """The ids of records of several containers may begin alike, too."""
    lines = configuration.audit_file.read_bytes()
    for number, record in enumerate(configuration.records()):
        lines = lines.replace(record["id"].encode(), b"%016x" % number)
    configuration.audit_file.write_bytes(lines)
    done = cdictl("audit", "show", "000", check=False)

    assert done.status == 1
    assert "'000' is the beginning of several: record 0000000000000003, record" in done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("list --limit 0", "--limit takes a whole number above 0"),
        ("list --limit -5", "'-5' is no whole number"),
        ("list --limit x", "'x' is no whole number"),
        ("tail -n -1", "'-1' is no whole number"),
        ("tail -n 0", "-n takes a whole number above 0; 0 is for --follow"),
    ],
)
def test_how_many_is_a_whole_number(cdictl, words, told):
    """Anything else is wrong usage, not an empty answer."""
    done = cdictl("audit", *words.split(), check=False)

    assert (done.status, done.out) == (2, "")
    assert told in done.err


def test_rotated_and_compressed(cdictl, configuration, history):
    """Rotated parts are read after the file itself, by their numbers, whatever packed them."""
    path = configuration.audit_file
    lines = path.read_bytes().splitlines(keepends=True)
    (path.parent / "audit.jsonl.10.xz").write_bytes(lzma.compress(lines[0]))
    (path.parent / "audit.jsonl.2.gz").write_bytes(gzip.compress(lines[1]))
    (path.parent / "audit.jsonl.1").write_bytes(lines[2])
    path.write_bytes(lines[3])
    (path.parent / "audit.jsonl.old").write_bytes(lines[3])
    found = cdictl.json("audit", "list")

    assert [record["container"][0] for record in found] == ["d", "c", "b", "a"]
    assert cdictl.json("audit", "show", "aaaa")["container"] == "a" * 64


def test_rotated_by_date(cdictl, configuration, history):
    """With logrotate's dateext the newest date comes first."""
    path = configuration.audit_file
    lines = path.read_bytes().splitlines(keepends=True)
    (path.parent / "audit.jsonl-20260101.bz2").write_bytes(bz2.compress(lines[0]))
    (path.parent / "audit.jsonl-20260201").write_bytes(lines[1])
    path.unlink()
    found = cdictl.json("audit", "list")

    assert [record["container"][0] for record in found] == ["b", "a"]


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(b'{"format":1,"id":"12', id="torn"),
        pytest.param(b"\x00\xff\xfe", id="no-text"),
        pytest.param(b"{}", id="no-record"),
        pytest.param(b"[1,2]", id="no-object"),
        pytest.param(json.dumps(dict.fromkeys(NEEDED)).encode(), id="other-types"),
        pytest.param(b"[" * 100000, id="nested"),
    ],
)
def test_damaged_lines(cdictl, configuration, history, damaged):
    """A damaged line is told with its number, and the others are listed."""
    lines = configuration.audit_file.read_bytes().splitlines()
    configuration.audit_file.write_bytes(b"\n".join([lines[0], damaged, b"", *lines[1:]]))
    done = cdictl("audit", "list")

    assert len(done.out.splitlines()) == 5
    assert f"{configuration.audit_file}: line 2 is damaged" in done.err
    assert done.err.count("\n") == 1


def test_many_damaged_lines(cdictl, configuration, history):
    """Of many damaged lines the last few are told."""
    with configuration.audit_file.open("ab") as file:
        file.write(b"{\n" * 1000)
    done = cdictl("audit", "list")

    assert len(done.out.splitlines()) == 5
    assert done.err.count("\n") == 4
    assert "line 1004" in done.err


def test_damaged_archive(cdictl, configuration, history):
    """What can be read of a damaged archive is read, and the damage told."""
    path = configuration.audit_file
    data = gzip.compress(path.read_bytes() * 200)
    (path.parent / "audit.jsonl.1.gz").write_bytes(data[: len(data) // 2])
    done = cdictl("audit", "list", "--limit", "1000")

    assert len(done.out.splitlines()) > 100
    assert "audit.jsonl.1.gz: its end is damaged" in done.err


def test_unreadable_file(cdictl, configuration, history):
    """A part that cannot be read is told, and the others are listed."""
    (configuration.audit_file.parent / "audit.jsonl.1").mkdir()
    done = cdictl("audit", "list")

    assert len(done.out.splitlines()) == 5
    assert "audit.jsonl.1: it cannot be read" in done.err


def test_a_file_that_may_not_be_read_is_no_empty_one(cdictl, configuration, history, tmp_path):
    """Who may not read the audit file is told so, by list and by drift, with exit code 1."""
    let_others_enter(tmp_path, cdictl.program.parent)
    for words in (("audit", "list"), ("drift",)):
        done = run(
            *(need("setpriv"), "--reuid", "65534", "--regid", "65534", "--clear-groups"),
            *(cdictl.program, *words),
            env=environment(**configuration.env),
            check=False,
        )
        assert 1 == done.status, done
        assert f"cannot read the audit file {configuration.audit_file}" in done.err
        assert "become root" in done.err


def test_escapes_do_not_reach_a_terminal(runtime, cdictl, configuration, make_bundle):
    """What an image says cannot steer the terminal."""
    configuration.write(runtime="/bin/true", audit={"env": "plain"})
    configuration.spec(("one", {"env": ["EVIL=good"]}))
    bundle = make_bundle(rootfs=False)
    bundle.config["process"]["env"] = ["EVIL=\x1b]0;evil\x07\u202e"]
    runtime("create", "--bundle", bundle.request("acme.com/widget=one").path, bundle.id)
    for more in ((), ("--diff",)):
        shown = cdictl("audit", "show", bundle.id, *more).out

        assert not {"\x1b", "\x07", "\u202e"} & set(shown)
        assert "evil" in shown


def test_colours_on_a_terminal_only(cdictl, history):
    """A terminal gets colours unless NO_COLOR says otherwise; a pipe gets none."""
    words = ("audit", "show", "aaaa")

    assert ESCAPE in cdictl.on_terminal(*words)
    assert ESCAPE not in cdictl.on_terminal(*words, NO_COLOR="1")
    assert ESCAPE not in cdictl(*words).out
    assert "\n+" in cdictl(*words, "--diff").out
    assert f"{ESCAPE}32m+" in cdictl.on_terminal(*words, "--diff")


@pytest.mark.parametrize("words", [("list",), ("show", "0123"), ("tail",)], ids="-".join)
def test_fits_in_80_columns(runtime, cdictl, configuration, bundle, words):
    """On a terminal of 80 columns no line is longer, and in a pipe none is broken."""
    bundle.id = "0123456789abcdef" * 4
    configuration.write(runtime="/bin/true")
    runtime("create", "--bundle", bundle.path, bundle.id)
    shown = cdictl.on_terminal("audit", *words, NO_COLOR="1").splitlines()
    mount = f"/usr/lib/acme/libacme.so.1.0 from {bundle.path.parent}/libacme.so.1.0"

    assert [line for line in shown if len(line) > 80] == []
    assert (mount in cdictl("audit", *words).out) == (words[0] == "show")


def test_tail(cdictl, history):
    """The newest records come last."""
    lines = cdictl("audit", "tail", "-n", "2").out.splitlines()

    assert [line.split()[3] for line in lines] == ["c" * 12, "d" * 12]
    (line,) = cdictl("audit", "tail", "-n", "1", "--json").out.splitlines()
    assert json.loads(line)["container"] == "d" * 64


def test_tail_follows(runtime, cdictl, configuration, make_bundle, history):
    """New records are printed as they come, those of a rotated file and of the new one too."""
    following = cdictl.start("audit", "tail", "-n", "1", "-f", "--vendor", "acme.com")
    try:
        seen = [following.stdout.readline()]
        created(runtime, make_bundle, "acme.com/widget=one", id_="e" * 64)
        created(runtime, make_bundle, "other.org/toy=ace", id_="f" * 64)
        seen.append(following.stdout.readline())
        configuration.audit_file.rename(f"{configuration.audit_file}.1")
        time.sleep(0.6)
        created(runtime, make_bundle, "acme.com/widget=one", id_="0" * 64)
        seen.append(following.stdout.readline())
    finally:
        following.terminate()
        following.wait()
        following.stdout.close()

    assert [line.split()[3] for line in seen] == ["d" * 12, "e" * 12, "0" * 12]


def test_exported_spec_does_the_same(runtime, cdictl, configuration, bundle, tmp_path):
    """The exported spec file is valid, and injects what the record says."""
    original = tmp_path / "original.json"
    original.write_bytes(bundle.config_path.read_bytes())
    runtime.start(bundle)
    directory = tmp_path / "exported"
    directory.mkdir()
    spec = directory / "exported.json"
    spec.write_text(cdictl("audit", "export", bundle.id).out)
    (device,) = cdictl.json("validate", spec)[0]["devices"]
    injected = cdictl("inject", "--spec-dir", directory, "--device", device, original).out

    assert device.startswith("exported.cdi-runc/container=")
    assert sorted_lists(json.loads(injected)) == sorted_lists(bundle.load())


def sorted_lists(value):
    """Return *value* with every list in one order."""
    if isinstance(value, dict):
        return {key: sorted_lists(member) for key, member in value.items()}
    if isinstance(value, list):
        return sorted((sorted_lists(entry) for entry in value), key=json.dumps)
    return value


def test_exported_options(runtime, cdictl, bundle, edits):
    """The options of docker run say what they can, and standard error what they cannot."""
    runtime.start(bundle)
    done = cdictl("audit", "export", bundle.id, "--format", "docker")
    source = edits["mounts"][0]["hostPath"]

    assert done.out.replace(" \\\n", " ").split() == [
        *("--env", "ACME=1", "--env", "PATH=/bin:/acme"),
        *("--device", "/dev/zero:/dev/acme0:rw", "--device", "/dev/zero:/dev/own:rwm"),
        *("--mount", f"type=bind,source={source},target=/usr/lib/acme/libacme.so.1.0,readonly"),
        *("--mount", f"type=bind,source={source},target=/acme,readonly"),
        *("--mount", f"type=bind,source={source},target=/opt/own,readonly"),
        *("--group-add", "4242", "--group-add", "10"),
    ]
    for word in ("nosuid", "createRuntime hook", "/dev/acme1"):
        assert word in done.err


def test_export_of_nothing(cdictl, history):
    """A create that failed has nothing to export."""
    done = cdictl("audit", "export", "cccc", check=False)

    assert (done.status, done.out) == (1, "")
    assert "no edit to export" in done.err


def test_hundred_thousand_records(cdictl, configuration, history):
    """A log of 100,000 records answers within moments."""
    template = configuration.audit_file.read_bytes().splitlines(keepends=True)[0]
    id_ = configuration.records()[0]["id"].encode()
    with configuration.audit_file.open("wb") as file:
        for number in range(100_000):
            own = template.replace(b"a" * 64, b"%064x" % number)
            file.write(own.replace(id_, b"%016x" % number))
    for words in (("list",), ("show", f"{7:064x}"), ("list", "--device", "acme.com/none")):
        began = time.monotonic()
        cdictl("audit", *words)
        assert time.monotonic() - began < 5


def untrusted(path, who):
    """Let others than root write *path*; return what is to be said of it."""
    if who == "mode":
        path.chmod(0o666)
        return f"{path} is writable by everybody (mode 0666); chmod go-w {path}"
    if who == "owner":
        os.chown(path, 65534, 65534)
        return f"{path} belongs to user 65534; chown root {path}"
    if who == "directory":
        path.parent.chmod(0o777)
        return f"{path.parent} is writable by everybody (mode 0777); chmod go-w {path.parent}"
    path.with_name("other").hardlink_to(path)
    return f"{path} has 2 names (hard links); cp -p {path} "


@pytest.mark.parametrize("who", ["mode", "owner", "directory", "link"])
@pytest.mark.parametrize(
    "words", [("audit", "list"), ("audit", "show", "a" * 64), ("audit", "tail"), ("drift",)]
)
def test_records_that_others_could_have_written(cdictl, configuration, history, who, words):
    """It is told once who could have, with the cure, and the records are shown."""
    told = untrusted(configuration.audit_file, who)
    done = cdictl(*words)

    assert done.out
    assert done.err.startswith(f"cdictl: others could have written these records: {told}")
    assert done.err.count("\n") == 1


def test_rotated_records_that_others_could_have_written(cdictl, configuration, history):
    """A rotated part is judged as the file is."""
    part = configuration.audit_file.with_name("audit.jsonl.1")
    part.write_bytes(configuration.audit_file.read_bytes())
    part.chmod(0o666)

    assert f"records: {part} is writable by everybody" in cdictl("audit", "list").err


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "directory"])
@pytest.mark.parametrize(
    "words",
    ["audit list", "audit show x", "audit tail -f", "audit tail -n0 -f", "drift", "explain x"],
)
def test_an_audit_file_of_another_kind(cdictl, configuration, history, make, words):
    """It is an error in words, and holds nobody up."""
    configuration.audit_file.unlink()
    make(configuration.audit_file)
    done = cdictl(*words.split(), check=False, timeout=20)

    assert (done.status, done.out) == (1, "")
    assert f"audit file {configuration.audit_file}: it is not a regular file; mv " in done.err


@pytest.mark.parametrize("name", ["audit.jsonl.1", "audit.jsonl.2.gz"])
def test_a_rotated_part_of_another_kind(cdictl, configuration, history, name):
    """It is told, and the others are listed."""
    os.mkfifo(configuration.audit_file.with_name(name))
    done = cdictl("audit", "list", timeout=20)

    assert len(done.out.splitlines()) == 5
    assert f"{name}: it cannot be read: it is not a regular file" in done.err


def test_a_large_archive_takes_little_memory(cdictl, configuration, history):
    """What a part unpacks to does not lie in memory as a whole."""
    lines = configuration.audit_file.read_bytes()
    with gzip.open(configuration.audit_file.with_name("audit.jsonl.1.gz"), "wb", 1) as file:
        block = lines * ((8 << 20) // len(lines))
        for _ in range(40):
            file.write(block)
    used = subprocess.run(
        [sys.executable, "-c", PEAK, cdictl.program, "audit", "list", "--limit", "6"],
        env=cdictl.env,
        check=True,
        capture_output=True,
        text=True,
    )

    assert len(used.stdout.splitlines()) == 8
    assert int(used.stdout.splitlines()[-1]) < 150_000


PEAK = """\
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, flush=True)
"""
