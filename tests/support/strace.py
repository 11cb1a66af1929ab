"""The lines of strace's output, each call in one."""

import re

CUT = " <unfinished ...>"
RESUMED = re.compile(r"<\.\.\. \w+ resumed>")


def whole(lines):
    """Return *lines* with each call in one of them: strace cuts one that another comes into."""
    begun, whole = {}, []
    for line in lines:
        process = line.split()[0]
        if line.endswith(CUT):
            begun[process] = line.removesuffix(CUT)
        elif found := RESUMED.search(line):
            whole.append(begun.pop(process) + line[found.end() :])
        else:
            whole.append(line)
    return whole
