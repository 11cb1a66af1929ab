"""What may come of a call in which one system call failed, and which calls can fail so."""

import itertools
import json
import re

from support.traces import inject

ERRORS = ("ENOSPC", "EROFS", "EIO", "EMFILE", "EACCES")
FILES = """
access chmod chown close dup dup2 dup3 execve faccessat faccessat2 fchmod fchmodat fchown fchownat
fcntl fdatasync fstat fsync ftruncate getcwd getdents64 ioctl link linkat lseek lstat mkdir
mkdirat newfstatat open openat pipe pipe2 pread64 pwrite64 read readlink readlinkat rename
renameat2 rmdir stat statx symlink symlinkat unlink unlinkat utimensat write
""".split()  # noqa: SIM905
HIT = "(INJECTED)"
MODULE = re.compile(r"/site-packages\b|/usr/lib/python3")


def points(calls):
    """Return each of *calls* that is about a file, with the part of us that makes it.

    ``start`` is a shell or an interpreter before it has our code; ``launcher`` and ``python`` are
    ours.
    """
    part, last = "start", ""
    found = []
    for call in calls:
        if call.name.startswith("faccessat") and "hot.pyc" in call.line and part == "start":
            part = "launcher"  # its first command
        # An injected close leaves the file open, which no real one does, and the shell would wait
        # for the end of its own pipe.
        if call.name in FILES and (part, call.name) != ("launcher", "close"):
            found.append((part, call))
        if call.name == "execve":
            part = "start"
        elif call.name == "close" and "hot.pyc>" in call.line and '"", 4096)' in last:
            part = "python"  # it has read the frozen program to the end
        last = call.line if call.name == "read" else last
    return found


def one_of_each(points, own):
    """Return one point of each call name and file; of the files outside *own*, one a directory."""
    chosen = {}
    for part, call in points:
        path = call.path
        if not any(place in path for place in own):
            path = path.rpartition("/")[0]
        chosen.setdefault((part, call.name, re.sub(r"\d+", "", path)), (part, call))
    return list(chosen.values())


def attempts(points, *, whole):
    """Return what to inject: each error once at each point and, from it on, one in turn.

    Where the interpreter starts or imports a module, the errors take turns.  Unless *whole* they
    do so everywhere, and so do once and from then on.
    """
    turns = itertools.cycle(ERRORS)
    if not whole:
        return [
            (part, call, next(turns), number % 3 == 2) for number, (part, call) in enumerate(points)
        ]
    return [
        (part, call, error, onwards)
        for part, call in points
        for errors, onwards in (
            ([next(turns)] if part == "start" or MODULE.search(call.line) else ERRORS, False),
            ([next(turns)], True),
        )
        for error in errors
    ]


def attempt(create, part, call, error, onwards, trace):
    """Run *create* with *error* injected at *call*; return what is wrong with the outcome."""
    create.set_back()
    before = len(create.lines())
    ended = inject(f"error={error}", call, create.words, create.env, trace, onwards)
    told = trace.read_text(errors="replace")
    reached = re.search(rf'execve\("{re.escape(create.runtime)}".* = 0$', told, re.MULTILINE)
    results = create.results(before)
    wrong = ""
    if HIT in told:
        wrong = (
            check_start(create, results, mute=call.name == "write" and onwards)
            if reached
            else check_failure(create, part, call, onwards, ended)
        )
    wrong = wrong or retried(create)
    return wrong and f"{part} {call} {error}{'+' * onwards}: {wrong}\n{ended}"


def check_start(create, results, *, mute):
    """Return what is wrong with a create that reached the real runtime.

    If it was *mute*, it could write neither its record nor the warning that there is none.
    """
    if create.read() != create.new and not (create.must_start and create.read() == create.old):
        return "the runtime was reached without the edits"
    if results == create.good:
        return ""
    told = mute or "audit record not written" in create.log.read_text()
    return "" if told and not results else f"no record and no warning: {results}"


def check_failure(create, part, call, onwards, ended):  # noqa: PLR0911
    """Return what is wrong with a create that did not reach it."""
    if create.read() not in (create.old, create.new):
        return "config.json is neither the old nor the new one"
    if part == "start":
        # Nothing is ours yet.  dash takes an error on reading the script for its end.
        silent = call.name == "read" and "launcher>" in call.line
        return "" if ended.status or silent else "it seems to have gone well"
    foreign = create.runtime in call.line or "lib-dynload" in call.line
    if create.must_start and not foreign and not onwards:
        return "it did not go on"
    if not ended.status:
        return "it seems to have gone well"
    # Then not even that can be written, or the interpreter's own start fails, in its own words.
    if onwards and (call.name == "write" or part == "launcher"):
        return ""
    if "Traceback" in ended.err:
        return "a traceback"
    lines = [line for line in ended.err.splitlines() if not line.startswith(create.shell)]
    if [line[:10] for line in lines] != ["cdi-runc: "] or ended.status != 1:
        return "it did not say why in one line"
    if not all(json.loads(line)["msg"] for line in create.log.read_text().splitlines()):
        return "the engine's log is torn"
    return ""


def retried(create):
    """Return what is wrong with the next create, in which nothing fails."""
    create.set_back()
    before = len(create.lines())
    try:
        create.finish()
    except AssertionError as error:
        return f"a retry fails: {error}"
    if create.read() != create.new:
        return "after a retry config.json is not the new one"
    if create.results(before) != create.good:
        return "the retry is not recorded"
    extra = create.files() - create.all_files
    return f"there is litter: {extra}" if extra else ""
