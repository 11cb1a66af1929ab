"""Audit records, failures and our own log: what is written where."""

import hashlib
import json
import os
import re

import jsonschema
import pytest
from support.installations import ROOT
from support.samples import config, spec

from cdi_runc import audit, invocation, log, report, requests
from cdi_runc.errors import AuditRefused

W0 = "acme.example/widget=w0"
CALL = invocation.parse(["--root", "/run/docker/runtime-runc/moby", "create", "-b", "/b", "c1"])
RFC3339 = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"


@pytest.fixture
def record(host):
    """Return a function that makes the record of a create of one device."""

    def make(given, edits, **changes):
        (host.etc / "a.json").write_text(spec(("w0", edits)))
        made = audit.Record(CALL, host.settings.but(**changes))
        made.content["runtime"] = "/usr/sbin/runc"
        made.engine(given, CALL)
        made.requests([requests.Request(W0, "environment", "CDI_DEVICES", W0)])
        made.devices(host.resolve(W0))
        made.edits(host.done(given, W0))
        made.digests(b"before", b"after")
        made.append("edited")
        line = (host.etc.parent / "audit.jsonl").read_text().splitlines()[-1]
        found = json.loads(line)
        schema = json.loads((ROOT / "cdi_runc/audit.schema.json").read_bytes())
        jsonschema.Draft202012Validator(schema).validate(found)
        return found

    return make


def test_record_says_who_what_and_from_where(record, host):
    """The record names the request, the spec file by its digest, and each edit with its place."""
    found = record(config(), {"env": ["ACME=1"]})
    path = host.etc / "a.json"

    assert re.fullmatch(RFC3339, found["time"])
    assert "docker" == found["engine"]
    assert {
        "path": str(path),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "cdiVersion": "1.1.0",
    }.items() <= found["specs"][0].items()
    assert {
        "kind": "env",
        "action": "added",
        "where": "/process/env/3",
        "before": None,
        "after": "ACME=1",
        "device": W0,
        "spec": str(path),
        "pointer": "/devices/0/containerEdits/env/0",
    } == found["edits"][0]


def test_secrets_are_digests(record):
    """A variable of the container's own is a digest, unless plain values are configured."""
    digest = hashlib.sha256(b"hunter2").hexdigest()
    edits = {"env": ["SECRET=cdi", "SECRET=later"]}
    first, second = record(config(), edits)["edits"]
    (plain, _) = record(config(), edits, audit_env="plain")["edits"]

    assert (f"SECRET=sha256:{digest}", "SECRET=cdi") == (first["before"], first["after"])
    assert ("SECRET=cdi", "SECRET=later") == (second["before"], second["after"])
    assert "SECRET=hunter2" == plain["before"]


def test_required_record_that_cannot_be_written_refuses(host):
    """Only where the record is required does a failure to write it stop the create."""
    blocked = host.etc.parent / "file"
    blocked.write_text("")
    settings = host.settings.but(audit_file=str(blocked / "audit.jsonl"))
    with pytest.raises(OSError, match="Not a directory"):
        audit.Record(CALL, settings).append("edited")
    with pytest.raises(AuditRefused, match="cannot be written to"):
        audit.Record(CALL, settings.but(audit_required=True)).append("edited")


@pytest.mark.parametrize(
    ("root", "bundle", "engine"),
    [
        ("/var/run/docker/runtime-runc/moby", "/run/docker/containerd/x", "docker"),
        ("/run/containerd/runc/k8s.io", "/run/containerd/x", "containerd"),
        ("", "/var/lib/containers/storage/overlay-containers/x/userdata", "podman"),
        ("", "/home/u/.local/share/containers/storage/vfs-containers/x/userdata", "podman"),
        ("/run/runc", "/run/containers/storage/overlay-containers/x/userdata", "cri-o"),
        ("/run/runc", "/run/bundle", ""),
        ("", "userdata", ""),
        ("", "/userdata", ""),
        ("", ".", ""),
    ],
)
def test_engine_is_recognised(root, bundle, engine):
    """The engine is known by the runtime's root and the bundle's path."""
    assert engine == audit.engine(CALL.but(root=root, bundle=bundle))


@pytest.mark.parametrize(
    ("keys", "engine"),
    [
        ({"io.container.manager": "libpod"}, "podman"),
        ({"io.kubernetes.cri-o.Name": "x"}, "cri-o"),
        ({}, ""),
        ({"io.container.manager": []}, ""),
    ],
)
def test_engine_is_guessed_for_the_record(host, keys, engine):
    """Annotations count where the call does not tell, and only there."""
    record = audit.Record(CALL, host.settings)
    record.engine({"annotations": keys}, CALL.but(root="/run/runc"))
    told = [record.content["engine"]]
    record.engine({"annotations": keys}, CALL)

    assert [engine, "docker"] == [*told, record.content["engine"]]


@pytest.mark.parametrize("form", ["json", "text"])
def test_failure_is_told_as_runc_tells_its_own(tmp_path, capfd, form):
    """A failure is one line of at most 1 KB, in the log in its format and on standard error."""
    path = tmp_path / "log"
    path.write_text('{"level":"info"}\n')
    call = invocation.parse(["--log", str(path), "--log-format", form, "create", "c1"])
    report.failure('a "cause"\nin two lines ' + "x" * 2000, call)
    line = path.read_text().splitlines()[1]
    told = capfd.readouterr().err

    assert told.startswith('cdi-runc: a "cause" in two lines xx')
    assert len(told) <= 1001
    if form == "json":
        entry = json.loads(line)

        assert ("error", told.rstrip("\n")) == (entry["level"], entry["msg"])
        assert re.fullmatch(RFC3339, entry["time"])
    else:
        assert re.match(rf'time="{RFC3339}" level=error msg="cdi-runc: a \\"cause\\"', line)
    assert 0o644 == os.stat(path).st_mode & 0o777


def test_failure_without_a_log_is_on_standard_error(tmp_path, capfd):
    """Where the log cannot be opened, standard error alone has it."""
    report.failure("cause", invocation.parse(["--log", str(tmp_path), "create", "c1"]))

    assert "cdi-runc: cause\n" == capfd.readouterr().err


@pytest.mark.parametrize("has_log", [False, True])
def test_warning_without_a_log_is_on_standard_error(tmp_path, capfd, has_log):
    """A warning goes to the engine's log alone, and to standard error where there is none."""
    path = tmp_path / "log"
    report.warning("doubt", invocation.parse([*(["--log", str(path)] * has_log), "create", "c1"]))

    assert ("" if has_log else "cdi-runc: doubt\n") == capfd.readouterr().err
    assert has_log == path.exists()


def test_failure_steers_no_terminal(capfd):
    """A name of a file with escapes, or no text at all, is shown as escapes, in one line."""
    report.failure("/etc/cdi/a\x1b[2J\n\u202e\udcff.json is refused", invocation.parse(["create"]))

    told = "cdi-runc: /etc/cdi/a\\x1b[2J \\u202e\\udcff.json is refused\n"
    assert told == capfd.readouterr().err


def test_our_own_log_is_json_lines(host):
    """The log has one JSON object a line, from the configured level on."""
    log.unusual(host.settings, "info", "too little")
    log.unusual(host.settings, "warning", "spec file ignored", file="/etc/cdi/a.yaml")
    (line,) = (host.etc.parent / "log").read_text().splitlines()
    entry = json.loads(line)

    assert ("spec file ignored", "warning", "/etc/cdi/a.yaml") == (
        entry["event"],
        entry["level"],
        entry["file"],
    )
    assert re.fullmatch(RFC3339, entry["timestamp"])
