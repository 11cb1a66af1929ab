"""docs/json.md names what ``--json`` prints, held against real runs."""

import json
import re

import pytest
from support.installations import ROOT

DOCUMENT = (ROOT / "docs/json.md").read_text()
SECTION = re.compile(r"^## `cdictl ([^`]*)`\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
MEMBERS = {
    command: {
        name
        for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
        for name in re.findall(r"`(.*?)`", row)
    }
    for command, text in SECTION.findall(DOCUMENT)
}
ONE = "acme.com/widget=one"


def printed(value, known, place=""):
    """Return the members of *value*, in it only as far as something in it is *known*."""
    if place in known or not value:
        return {place} if place else set()
    found = set()
    for key, member in [(None, one) for one in value] if type(value) is list else value.items():
        below = f"{place}[]" if key is None else f"{place}.{key}".lstrip(".")
        found |= printed(member, known, below)
    return found


@pytest.fixture
def runs(cdictl, configuration, runtime, make_bundle, tmp_path):
    """Return a function that calls a command in cases that print all it can print."""
    edits = {
        "env": ["ACME=1", "OWN=2"],
        "hooks": [{"hookName": "poststop", "path": "/bin/true"}],
    }
    good = configuration.spec(("one", edits))
    configuration.spec(
        ("gone", {"mounts": [{"hostPath": "/gone", "containerPath": "/x"}]}),
        kind="acme.com/lost",
        file="lost.json",
    )
    bad = configuration.spec(("two", {"env": [5]}), file="bad.json")
    doubtful = configuration.spec(
        ("a", {"env": ["LD_PRELOAD=x"], "mounts": [{"hostPath": "b", "containerPath": "/c"}]}),
        file="doubtful.json",
        kind="acme.com/doubt",
    )
    twice = [
        configuration.spec(("both", {"env": ["A=1"]}), file=name, kind="acme.com/twice")
        for name in ("twice.json", "again.json")
    ]
    bundle = make_bundle("sleep", "1000").request(ONE)
    bundle.config["process"]["env"].append("OWN=1")
    runtime.start(bundle)
    config = tmp_path / "bad.yaml"
    config.write_text("polcy: []\n")
    useless = tmp_path / "useless.yaml"
    useless.write_text("policy: [{do: refuse}, {source: mount, do: allow}]")

    def calls(command):
        if command == "drift":
            configuration.spec(("one", {"env": ["ACME=2"]}))
        return {
            "devices": [()],
            "show": [(ONE,)],
            "plan": [
                ("--device", ONE, "--bundle", bundle.path),
                ("--device", "acme.com/lost=gone"),
            ],
            "drift": [()],
            "doctor": [(), (bundle.id,)],
            "explain": [("error running poststop hook #0",), ("acme.com/widget=none",)],
            "validate": [(good, bad, doubtful, *twice)],
            "config check": [(), (config,), (useless,)],
        }[command]

    def run(command):
        for words in calls(command):
            done = cdictl(*command.split(), *words, "--json", check=False)
            yield json.loads(done.out)

    return run


@pytest.mark.parametrize("command", MEMBERS)
def test_the_members_of(runs, command):
    """What the document names is printed, and what is printed it names."""
    known = MEMBERS[command]
    found = {name for told in runs(command) for name in printed(told, known)}
    rooms = {name[: end.start()] for name in known for end in re.finditer(r"\[\]|\.", name)}

    assert known == found - rooms


def test_the_ids_of_checks():
    """Each check of the doctor is in the document, under the id that it has for ever."""
    text = DOCUMENT[DOCUMENT.index("The checks of a host") : DOCUMENT.index("## `cdictl explain`")]
    found = []
    for name in ("host", "container"):
        code = (ROOT / f"cdi_runc/doctor/{name}.py").read_text()
        found += re.findall(r'"([a-z-]+)": (?:partial|installation|spec_files)', code)

    assert found
    assert re.findall(r"`(.*?)`", text) == found
