"""The budget of C12, and whether it is kept."""

from tests.bench import processes

RATIOS = [
    # what, which call, in units of which, at most
    ("create, 1 device", "one", "python", 1.4),
    ("create, 8 devices", "eight", "python", 1.4),
    ("1,000 spec files of as many kinds", "many-kinds", "one", 2),
    ("1,000 spec files of one kind", "many-claims", "one", 2),
    ("one of 1,000 changed, YAML", "changed-yaml", "one", 5),
    ("one of 1,000 changed, JSON", "changed-json", "one", 2.5),
]
UNITS = {"python": "python3 -I -S -c pass", "one": "create with 1 device and spec file"}


def of_times(rows):
    """Return the verdicts on ratios: without the stub's own time, and with it in a note."""
    found = {row["name"]: row for row in rows}
    verdicts = []
    for what, name, unit, most in RATIOS:
        row, base = found[name], found[unit]
        own = row["added_ms"] / (base["ms"] if base["added_ms"] is None else base["added_ms"])
        verdicts.append(
            {
                "what": what,
                "budget": f"at most {most} x {UNITS[unit]}",
                "measured": f"{own:.2f}",
                "note": f"{row['ms'] / base['ms']:.2f} with the stub runtime's own time",
                "ok": own <= most,
            }
        )
    return verdicts


def of_processes(calls, out):
    """Return the verdicts on processes."""
    by_name = {call.name: call for call in calls}
    verdicts = []
    for what, name, budget, is_kept in [
        ("passed through", "passed-stub", "one sh, then the runtime", _is_passed),
        ("create without a request", "none", "one small process more", _is_small),
        ("create, 1 device", "one", "one interpreter, no dear import", _is_one_interpreter),
    ]:
        verdict = {"what": what, "budget": budget, "measured": "", "ok": None}
        verdicts.append(verdict)
        if not processes.is_possible():
            verdict["note"] = "not counted: strace is missing"
            continue
        trace = processes.Trace(by_name[name], out)
        programs = [program.rpartition("/")[2] for program in trace.programs]
        dear = f"; imports {', '.join(trace.dear)}" if trace.dear else ""
        verdict["measured"] = f"{trace.processes} process{'es' * (trace.processes > 1)}"
        verdict["note"] = " > ".join(programs) + dear
        verdict["ok"] = is_kept(trace)
    return verdicts


def _is_passed(trace):
    return trace.processes == 1 and len(trace.programs) == 2


def _is_small(trace):
    return trace.processes <= 2 and not trace.interpreters


def _is_one_interpreter(trace):
    return trace.interpreters == 1 and not trace.dear
