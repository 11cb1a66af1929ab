"""``cdictl doctor``: its findings in order, on paper and for machines."""

import json
import re
from functools import partial

import pytest
from support.programs import need, run

from cdi_runc.cli import doctor, main
from cdi_runc.doctor import Finding, Report, carry_out, edit, named, ordered


def finding(severity, what):
    """Return a finding."""
    return Finding(severity, what, "It matters.", "true")


def test_errors_come_first_and_nothing_twice():
    """Findings are in the order of their severity, and else in that of the checks."""
    found = [
        finding("note", "a"),
        finding("error", "b"),
        finding("note", "a"),
        finding("error", "c"),
    ]

    assert ["b", "c", "a"] == [one.what for one in ordered(found)]


def test_a_check_that_fails_is_a_finding():
    """What is broken on a host may break a check, and the others go on."""

    def broken(place):
        raise OSError(5, "Input/output error", place)

    def sound():
        yield finding("note", "sound")

    found = carry_out({"ill": partial(broken, "/x"), "well": sound})

    assert ["ill", "well"] == [one.check for one in found]
    assert "the check ill could not be made: OSError" in found[0].what


def test_an_editor_is_started_and_no_file(tmp_path):
    """Without $EDITOR the cure starts vi, and a path with blanks stays one."""
    vi, spec = tmp_path / "vi", tmp_path / "my spec.yaml"
    for program, words in ((vi, 'echo "$#: $*"'), (spec, "echo the file was run")):
        program.write_text(f"#!/bin/sh\n{words}\n")
        program.chmod(0o755)
    cure = [need("sh"), "-c", edit(str(spec), "take this out")]
    done = run(*cure, env={"PATH": str(tmp_path)})

    assert f"1: {spec}\n" == done.out


def test_long_lists_are_cut():
    """Of many words the first are shown, each once."""
    assert "a, b, c and 1 more" == named(["a", "b", "a", "c", "d"])


@pytest.mark.parametrize("columns", [80, 60])
def test_lines_fit_a_terminal(monkeypatch, columns):
    """All but the cure, which is for copying, is wrapped."""
    monkeypatch.setattr("cdi_runc.cli.rendering.width", lambda: columns)
    report = Report((("audit", "word " * 30),), (finding("error", "what " * 40),))

    lines = list(doctor.lines(report))

    assert max(map(len, lines)) <= columns
    assert "error    what what" in "\n".join(lines)
    assert "         cure: true" in lines
    assert "1 error" == lines[-1]


def test_what_images_name_steers_no_terminal():
    """Control characters are shown as escapes."""
    report = Report((), (finding("error", "a\033[31mb"),))

    assert "\033" not in "".join(doctor.lines(report))


def test_colours_only_where_wanted(monkeypatch):
    """FORCE_COLOR brings colours, and the text stays the same."""
    report = Report((), (finding("warning", "what"),))
    plain = list(doctor.lines(report))
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = list(doctor.lines(report))

    assert plain != coloured
    assert plain == [re.sub(r"\033\[\d+m", "", line) for line in coloured]


def test_json_has_every_field(capsys, tmp_path, monkeypatch):
    """With --json each finding has its check, severity, text, reason and cure."""
    config = tmp_path / "config.yaml"
    config.write_text("unknown: 1\n")
    monkeypatch.setenv("CDI_RUNC_CONFIG", str(config))

    code = main.main(["doctor", "--json"])
    told = json.loads(capsys.readouterr().out)

    assert 1 == code
    assert {"check", "severity", "what", "why", "cure"} == told["findings"][0].keys()
    assert any(one["check"] == "configuration" for one in told["findings"])
