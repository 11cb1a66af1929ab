"""Every command that README.md and docs/ show is run, in the order in which they show it.

A ``console`` block's lines that begin with ``$`` are run, the others are output.  A block of
another language whose first line is a comment with an absolute path is written to that file first.
Comments before a block say more: ``shows: WORDS`` is part of the output, ``fails`` means that the
last command does, and ``not run: WHY`` is for what this machine cannot do.
"""

import re

import pytest
from support.installations import ROOT

FENCE = re.compile(
    r"(?P<notes>(?:^<!-- (?:shows|fails|not run).*?-->\n)*)"
    r"^```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NOTE = re.compile(r"<!-- (shows|fails|not run)(?:: (.*?))? *-->", re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)([^)#]+)")
FILE = re.compile(r"\A(?:#|//) (/[\w./-]+)\n")
# A reader's way through them; what one leaves behind the next finds.
ORDER = (
    *("README.md", "docs/install.md", "docs/tutorial.md", "docs/policy.md", "docs/platforms.md"),
    *("docs/audit.md", "docs/troubleshooting.md", "docs/engines.md", "docs/kubernetes.md"),
    *("docs/specs.md", "docs/configuration.md", "docs/architecture.md", "docs/comparison.md"),
    "docs/costs.md",
    "docs/json.md",
)


def commands(body):
    """Return the commands of a console block."""
    found = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append(line[2:])
        elif found and found[-1].endswith("\\"):
            found[-1] = f"{found[-1]}\n{line.removeprefix('> ')}"
    return found


def blocks():
    """Return each block of each document that does something."""
    for name in ORDER:
        path = ROOT / name
        for found in FENCE.finditer(path.read_text()) if path.exists() else ():
            notes = dict(NOTE.findall(found["notes"]))
            file = FILE.match(found["body"])
            wanted = commands(found["body"]) if found["language"] == "console" else []
            line = path.read_text().count("\n", 0, found.start("body")) + 1
            if "not run" not in notes and (wanted or file):
                words = (found["body"], file and file[1], wanted, notes)
                yield pytest.param(*words, id=f"{name}:{line}")


@pytest.mark.parametrize(("body", "file", "wanted", "notes"), [*blocks()])
def test_block(machine, body, file, wanted, notes):
    """The block's file can be written, and its commands do what the document says."""
    if file:
        machine.sh(f"mkdir -p $(dirname {file}) && cat >{file}", input=body)
    if not wanted:
        return
    done = machine.attempt("\n".join(wanted))

    assert (done.returncode != 0) == ("fails" in notes), done.stdout
    for words in notes.get("shows", "").splitlines():
        assert words.strip() in done.stdout


def test_every_document_is_known():
    """Each file in docs/ has its place in the order, and every ``not run`` says why."""
    names = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")}
    assert names <= {*ORDER}
    for name in names | {"README.md"}:
        for found in FENCE.finditer((ROOT / name).read_text()):
            notes = dict(NOTE.findall(found["notes"]))
            assert "not run" not in notes or len(notes["not run"]) > 10, found["body"]


def test_every_link_leads_somewhere():
    """Each link between the documents, and each to another file here, has its target."""
    for name in (*ORDER, "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        path = ROOT / name
        for target in LINK.findall(path.read_text()):
            assert (path.parent / target).exists(), (name, target)
