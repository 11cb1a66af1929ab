"""cdictl(1), from the parsers."""

from roff import blocks, bold, text, title

FILES = (
    ("/etc/cdi-runc/config.yaml", "the configuration, see cdi-runc.yaml(5)"),
    ("/etc/cdi, /var/run/cdi", "spec files, unless the configuration says otherwise"),
    ("/var/log/cdi-runc/audit.jsonl", "the audit records"),
)


def page(known):
    """Return the page; *known* are all commands, cdictl itself first."""
    whole, *rest = known
    lines = [
        title("CDICTL", 1),
        ".SH NAME",
        "cdictl \\- see, check and audit the CDI devices that containers get",
        ".SH SYNOPSIS",
        ".nf",
        "\\fBcdictl\\fR [\\fB\\-h\\fR] [\\fB\\-\\-version\\fR] \\fICOMMAND\\fR ...",
        ".fi",
        ".SH DESCRIPTION",
        text(whole.description),
        ".SH OPTIONS",
        *_options(whole),
        ".SH COMMANDS",
    ]
    for command in rest:
        lines += _command(command)
    examples, _, codes = whole.epilog.partition("exit codes:")
    lines += [".SH EXAMPLES", *list(blocks(examples.removeprefix("examples:\n")))[1:]]
    lines += [".SH EXIT STATUS", text(codes.strip()), ".SH FILES"]
    for path, what in FILES:
        lines += [".TP", f"\\fI{text(path)}\\fR", text(what)]
    lines += [".SH SEE ALSO", "\\fBcdi\\-runc\\fR(8), \\fBcdi\\-runc.yaml\\fR(5)"]
    return "\n".join(lines) + "\n"


def _command(command):
    yield f".SS cdictl {text(' '.join(command.words))}"
    told = command.description or f"{command.summary[:1].upper()}{command.summary[1:]}."
    yield text(told)
    yield from (".PP", ".nf", *map(_usage, command.usage.splitlines()), ".fi")
    for one in command.arguments:
        yield from (".TP", f"\\fI{text(one.metavar)}\\fR", text(one.help or "see above"))
    yield from _options(command)
    if command.epilog:
        yield from blocks(command.epilog)


def _usage(line):
    return text(line.strip() if line.startswith(" ") else line)


def _options(command):
    for one in command.options:
        if command.words and one.names == ("-h", "--help"):
            continue
        value = f" \\fI{text(one.metavar)}\\fR" if one.metavar else ""
        yield from (".TP", ", ".join(bold(name) + value for name in one.names))
        yield text(one.help or f"one of: {', '.join(one.choices)}")
