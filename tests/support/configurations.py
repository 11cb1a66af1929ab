"""A configuration of a test's own, and the places that it names."""

import contextlib
import json
import shutil
import time
from functools import cache
from pathlib import Path

import jsonschema
from support.installations import ROOT

STATE = Path("/run/cdi-runc")
"""Of what is kept about a directory, the path begins here and ends with the directory's own."""

YOUNG = 2.1
"""Seconds: what was compiled from a file younger than this is not believed."""


@cache
def audit_validator():
    """Return the validator of audit records."""
    schema = json.loads((ROOT / "cdi_runc/audit.schema.json").read_bytes())
    return jsonschema.Draft202012Validator(schema)


def audit_records(path):
    """Return the audit records in the file *path*, each valid by the schema that we ship."""
    if not path.exists():
        return []
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    for record in records:
        audit_validator().validate(record)
    return records


class Configuration:
    """A config.yaml in *directory*, with spec files, state and logs beside it."""

    def __init__(self, directory):
        self.directory = directory
        # In a directory of its own: what else changes there would seem to replace it.
        self.path = directory / "etc/config.yaml"
        self.spec_dir = directory / "cdi"
        self.state_dir = directory / "state"
        self.audit_file = directory / "log/audit.jsonl"
        self.log_file = directory / "log/cdi-runc.log"
        self.env = {"CDI_RUNC_CONFIG": str(self.path)}
        self.reset()

    def reset(self):
        """Remove all spec files, state and logs, and write the file as for a new test."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.spec_dir.mkdir(parents=True)
        self.path.parent.mkdir()
        self.write()

    def write(self, **changes):
        """Write the file: the test's own places, and the sections given."""
        content = {
            "runtime": "runc",
            "spec_dirs": [str(self.spec_dir)],
            "state_dir": str(self.state_dir),
            "audit": {"file": str(self.audit_file)},
            "log": {"file": str(self.log_file)},
        }
        for section, value in changes.items():
            whole = {**content.get(section, {}), **value} if isinstance(value, dict) else value
            content[section] = whole
        self.path.write_text(json.dumps(content, indent=1))

    def spec(self, *devices, kind="acme.com/widget", file="acme.json", **members):
        """Write a spec file; *devices* are pairs of a name and its containerEdits."""
        content = {
            "cdiVersion": "0.6.0",
            "kind": kind,
            **members,
            "devices": [{"name": name, "containerEdits": edits} for name, edits in devices],
        }
        path = self.spec_dir / file
        path.write_text(json.dumps(content, indent=1))
        return path

    def grow_old(self):
        """Wait until no file here is so young that it could change again unseen."""
        files = [self.path, self.path.parent, self.spec_dir, *self.spec_dir.iterdir()]
        newest = max(file.stat().st_ctime for file in files)
        time.sleep(max(0, newest + YOUNG - time.time()))

    def records(self):
        """Return the audit records so far, each valid by the schema that we ship."""
        return audit_records(self.audit_file)

    def forget(self):
        """Remove what the state directory of this machine holds about it."""
        forget(self.directory)


def forget(directory):
    """Remove what the state directory of this machine holds about *directory*."""
    for place in ("launcher", "exec"):
        kept = STATE / place / str(directory).lstrip("/")
        shutil.rmtree(kept, ignore_errors=True)
        for parent in kept.parents:
            if parent == STATE:
                break
            with contextlib.suppress(OSError):  # in use, or gone already
                parent.rmdir()
