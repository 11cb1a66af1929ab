"""The format of the audit record: the schema that we ship says what the code writes, no more."""

import copy
import json
from typing import get_args

import jsonschema
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from support.installations import ROOT
from support.samples import config, spec
from test_edits import ANY_CONFIG, ANY_EDITS

from cdi_runc import audit, conflicts, edits, invocation, requests

SCHEMA = json.loads((ROOT / "cdi_runc/audit.schema.json").read_bytes())
W0, W1 = "acme.example/widget=w0", "acme.example/widget=w1"
CALL = invocation.parse(["create", "-b", "/b", "c1"])


def is_valid(record):
    """Tell whether the schema has nothing to say against *record*."""
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(record)


def recorded(host, given_, *names, policy="cdi"):
    """Return the record of an edit of a configuration, as it is read from the file."""
    record = audit.Record(CALL, host.settings)
    record.content["runtime"] = "/usr/sbin/runc"
    record.requests([requests.Request(name, "environment", "CDI_DEVICES", name) for name in names])
    record.devices(host.resolve(*names))
    done = host.done(given_, *names, policy={"": policy})
    record.edits(done)
    record.conflicts(conflicts.find(done, {"": policy}))
    record.digests(b"before", b"after")
    record.append("edited")
    with open(host.settings.audit_file, "rb") as file:
        return json.loads(file.readlines()[-1])


@pytest.fixture
def valid(host):
    """Return a record of a simple edit."""
    (host.etc / "a.json").write_text(spec(("w0", {"env": ["A=1", "TERM=cdi"]})))
    return recorded(host, config(), W0)


@examples(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    before=ANY_CONFIG,
    one=ANY_EDITS,
    two=ANY_EDITS,
    policy=st.sampled_from(["cdi", "container", "refuse"]),
    passes=st.integers(1, 2),
)
def test_whatever_is_edited_the_record_is_valid(host, before, one, two, policy, passes):
    """Every effect of every edit, in a first pass and in a second, makes a valid record."""
    (host.etc / "a.json").write_text(spec(("w0", one), ("w1", two)))
    given_ = copy.deepcopy(before)
    for _ in range(passes):
        jsonschema.Draft202012Validator(SCHEMA).validate(
            recorded(host, given_, W0, W1, policy=policy)
        )


@examples(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(secret=st.text(min_size=8), edited=ANY_EDITS)
def test_no_secret_is_recorded(host, secret, edited):
    """The value of a variable that is the container's own is nowhere in the record."""
    (host.etc / "a.json").write_text(spec(("w0", edited), ("w1", {"env": ["S3CRET=x"]})))
    env = [f"{name}={secret}" for name in ("A", "B", "PATH", "TERM", "S3CRET")]
    given_ = config()
    given_["process"]["env"] = env
    record = recorded(host, given_, W0, W1)

    assert secret not in {entry.partition("=")[2] for entry in _texts(record)}


def _texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def test_its_words_are_those_of_the_code():
    """The kinds, the commands and the format's number are the same here and there."""
    members = SCHEMA["properties"]

    assert [*edits.KEYS] == SCHEMA["$defs"]["kind"]["enum"]
    assert invocation.EDITED == {*members["command"]["enum"]}
    assert audit.FORMAT == members["format"]["const"]


def test_every_action_is_listed():
    """The actions in the schema are those that an effect can have."""
    source = (ROOT / "cdi_runc/edits/__init__.py").read_text()
    namespace = {}
    (line,) = [line.strip() for line in source.splitlines() if "Action = Literal" in line]
    exec(f"from typing import Literal\n{line}", namespace)
    listed = SCHEMA["properties"]["edits"]["items"]["properties"]["action"]["enum"]

    assert {*get_args(namespace["Action"])} == {*listed}


@pytest.mark.parametrize("member", [*SCHEMA["required"]])
def test_every_member_is_needed(valid, member):
    """A record without one of its members is no record."""
    assert is_valid(valid)
    del valid[member]

    assert not is_valid(valid)


CHANGES = [
    pytest.param(lambda record: record.update(extra=1), id="unknown-member"),
    pytest.param(lambda record: record.update(format=2), id="another-format"),
    pytest.param(lambda record: record.update(time="2026-01-01"), id="time"),
    pytest.param(lambda record: record.update(result="failed"), id="failed-without-error"),
    pytest.param(lambda record: record.update(error="x"), id="error-without-failure"),
    pytest.param(lambda record: record.update(specs=[]), id="edited-without-specs"),
    pytest.param(lambda record: record["config"].update(after=""), id="edited-without-digest"),
    pytest.param(lambda record: record["edits"][0].update(action="done"), id="unknown-action"),
    pytest.param(lambda record: record["edits"][0].update(before=1), id="added-over-something"),
    pytest.param(lambda record: record["edits"][0].update(was="/x"), id="added-from-elsewhere"),
    pytest.param(lambda record: record["edits"][0].update(where="process"), id="no-pointer"),
    pytest.param(lambda record: record["edits"][0].update(device="w0"), id="short-name"),
    pytest.param(lambda record: record["specs"][0].update(sha256="0"), id="no-digest"),
    pytest.param(lambda record: record["requests"][0].pop("decision"), id="no-decision"),
    pytest.param(lambda record: record["versions"].update(runc="1"), id="unknown-version"),
    pytest.param(lambda record: record["conflicts"][0].update(decision=""), id="no-winner"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_the_code_does_not_write_is_refused(valid, change):
    """The schema is strict: what we never write is not valid."""
    assert is_valid(valid)
    change(valid)

    assert not is_valid(valid)
