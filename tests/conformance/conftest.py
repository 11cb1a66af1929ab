"""Counts the shared cases, so that the output shows that none was left out."""

from collections import Counter

FOLDERS = {"inject": "test_inject", "validate": "test_validate", "names": "test_names"}


def pytest_terminal_summary(terminalreporter):
    """Say how many tests of each folder's cases passed, and how many did not."""
    counts = {folder: Counter() for folder in FOLDERS}
    for outcome in ("passed", "failed", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            for folder, module in FOLDERS.items():
                if f"conformance/{module}.py" in report.nodeid:
                    counts[folder][outcome] += 1
    if any(sum(count.values()) for count in counts.values()):
        terminalreporter.section("conformance")
        for folder, count in counts.items():
            told = ", ".join(f"{count[outcome]} {outcome}" for outcome in sorted(count))
            terminalreporter.line(f"{folder}: {told or 'none run'}")
