"""What was found, as a table, as Markdown or as JSON."""

import json
import os
import platform
import subprocess

HEADS = ["what", "ms", "of that ours", "CPU ms", "x runc state", "x python"]
BUDGET_HEADS = ["budget", "allowed", "measured", "", "note"]


def circumstances(runc):
    """Return what the numbers depend on."""

    def first_line(*words):
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        return (done.stdout or done.stderr).partition("\n")[0]

    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": first_line("/usr/bin/python3", "-I", "-S", "-V"),
        "runc": first_line(runc, "--version"),
    }


def as_json(about, rows, verdicts):
    """Return all of it, numbers unrounded."""
    return json.dumps({"about": about, "rows": rows, "budget": verdicts}, indent=1) + "\n"


def as_text(about, rows, verdicts):
    """Return aligned tables."""
    parts = [_circumstances(about)]
    tables = [(HEADS, _lines(rows)), (BUDGET_HEADS, _verdict_lines(verdicts))]
    for (heads, lines), right in zip(tables, ({1, 2, 3, 4, 5}, {2}), strict=True):
        widths = [max(len(line[i]) for line in (heads, *lines)) for i in range(len(heads))]
        parts.append(
            "\n".join(
                "  ".join(
                    cell.rjust(width) if i in right else cell.ljust(width)
                    for i, (cell, width) in enumerate(zip(line, widths, strict=True))
                ).rstrip()
                for line in (heads, ["-" * width for width in widths], *lines)
            )
        )
    return "\n\n".join(parts) + "\n"


def as_markdown(about, rows, verdicts):
    """Return tables for README.md."""
    parts = [f"Medians: {_circumstances(about)}."]
    tables = [(HEADS, _lines(rows)), (BUDGET_HEADS, _verdict_lines(verdicts))]
    for (heads, lines), right in zip(tables, ({1, 2, 3, 4, 5}, {2}), strict=True):
        rule = ["---:" if i in right else "---" for i in range(len(heads))]
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *lines)))
    return "\n\n".join(parts) + "\n"


def _circumstances(about):
    cpus = f"{about['cpus']} CPUs, load {about['load']}"
    return f"{about['system']}, {cpus}, {about['python']}, {about['runc']}"


def _lines(rows):
    found = {row["name"]: row["ms"] for row in rows}
    lines = []
    for row in rows:
        ratios = ["", ""]
        if not row["name"].startswith("docker"):
            ratios = [f"{row['ms'] / found[unit]:.2f}" for unit in ("state", "python")]
        ours = "" if row["added_ms"] is None else f"{row['added_ms']:.1f}"
        lines.append([row["label"], f"{row['ms']:.1f}", ours, f"{row['cpu_ms']:.1f}", *ratios])
    return lines


def _verdict_lines(verdicts):
    return [
        [
            verdict["what"],
            verdict["budget"],
            verdict["measured"],
            {True: "ok", False: "over", None: "?"}[verdict["ok"]],
            verdict["note"],
        ]
        for verdict in verdicts
    ]
