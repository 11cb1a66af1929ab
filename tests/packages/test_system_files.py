"""logrotate and tmpfiles.d, read by the real programs."""

import json
import os

from support.installations import ROOT
from support.programs import need, run


def test_records_go_on_in_a_new_file(runtime, configuration, make_bundle, tmp_path):
    """Logrotate renames the audit file, the next record begins a new one, and cdictl reads both."""
    configuration.spec(("w0", {"env": ["A=1"]}))
    runtime.run(make_bundle("true").request("acme.com/widget=w0"))
    rules = tmp_path / "logrotate.conf"
    text = (ROOT / "packaging/logrotate").read_text()
    rules.write_text(text.replace("/var/log/cdi-runc", str(configuration.audit_file.parent)))
    configuration.audit_file.parent.chmod(0o750)
    run(need("logrotate"), "--force", "--state", tmp_path / "state", rules)
    (first,) = json.loads(f"[{(configuration.audit_file.with_name('audit.jsonl.1')).read_text()}]")
    empty = configuration.audit_file.stat()
    runtime.run(make_bundle("true").request("acme.com/widget=w0"))
    (second,) = configuration.records()
    listed = run(runtime.program.parent / "cdictl", "audit", "list", "--json", env=runtime.env).out

    assert (empty.st_size, empty.st_mode & 0o777) == (0, 0o640)
    assert first["id"] != second["id"]
    assert [one["id"] for one in json.loads(listed)] == [second["id"], first["id"]]


def test_tmpfiles_makes_what_we_would(tmp_path):
    """The directories are made for root alone to write to, as a create makes them itself."""
    words = ("--create", f"--root={tmp_path}", ROOT / "packaging/tmpfiles")
    run(need("systemd-tmpfiles"), *words)

    assert os.stat(tmp_path / "run/cdi-runc").st_mode & 0o7777 == 0o700
    assert os.stat(tmp_path / "var/log/cdi-runc").st_mode & 0o7777 == 0o750
