"""Text for man(7)."""

import os
import re
import time

from cdi_runc import VERSION


def title(name, section):
    """Return the line that begins a page; its date is that of the source, where a build says so."""
    now = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH") or time.time()))
    date = time.strftime("%Y-%m-%d", now)
    return f'.TH {text(name)} {section} {date} "cdi\\-runc {VERSION}" "cdi\\-runc"'


def text(words):
    """Return *words* so that roff shows them as they are."""
    lines = [
        line.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
        for line in words.splitlines()
    ]
    return "\n".join(f"\\&{line}" if line[:1] == "." else line for line in lines)


def bold(words):
    """Return *words* in bold."""
    return f"\\fB{text(words)}\\fR"


def example(lines):
    """Yield *lines* as they are."""
    yield from (".PP", ".RS 4", ".EX", *(text(line) if line else "\\&" for line in lines))
    yield from (".EE", ".RE")


def blocks(words):
    """Yield the paragraphs and examples of *words*, as an epilog has them; indented is verbatim."""
    for block in re.split(r"\n\s*\n", words.strip("\n")):
        prose, verbatim = [], []
        for line in block.splitlines():
            (verbatim if line.startswith("  ") else prose).append(line)
        if prose:
            yield ".PP"
            told = re.sub(r"\s+", " ", " ".join(prose))
            yield text(told[:1].upper() + told[1:])
        if verbatim:
            yield from example([line[2:] for line in verbatim])
