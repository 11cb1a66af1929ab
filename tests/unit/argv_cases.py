"""How runc and crun read argv: one table for the module, for the launcher and for both runtimes.

The working directory of a case holds the directories of :data:`DIRECTORIES`, and ``@`` in a word
is that working directory.
"""

import pytest

DIRECTORIES = (".", "b", "p", "create", "c1", "-q", "sub/a=b", "b\udcff")
"""Every bundle that a case names, and some that a wrong reading would find."""
FILES = ("f.json",)
"""What crun's ``--config`` may name."""

BOTH, RUNC, CRUN, NEITHER = ("runc", "crun"), ("runc",), ("crun",), ()


def case(name, *words, reads="", command="create", id_="c1", by=BOTH):
    """Return a case: *words*, the command and id in them, and the configuration that is read.

    Only create and run are edited.  *reads* is empty where the runtime reads none.  *by* tells
    which runtimes, of the versions in Debian 12, were seen to read it so; the others refuse the
    call, or do not know the flag.
    """
    return pytest.param(words, command, id_, reads, by, id=name)


HERE = "./config.json"

CASES = [
    # The command is the first word that is no flag and no flag's value.
    case("no-words", command="", id_=""),
    case("only-a-flag", "--version", command="", id_=""),
    case("command-is-a-value", "--root", "create", "state", "c1", command="state"),
    case(
        "command-is-a-value-twice", "--root", "run", "--log", "create", "kill", "c1", command="kill"
    ),
    case("id-named-create", "delete", "create", command="delete", id_="create"),
    case("id-named-run", "start", "run", command="start", id_="run"),
    case("program-named-create", "exec", "c1", "create", command="exec"),
    case("programs-flags", "exec", "c1", "sh", "--bundle", "b", command="exec"),
    case("exec-with-flags", "exec", "-t", "-e", "create", "c1", "create", command="exec"),
    case("create-named-create", "create", "create", id_="create", reads=HERE),
    case("dash", "-", "create", "-b", "b", "c1", command="-", id_="create"),
    case("empty-first-word", "", "create", "-b", "b", "c1", command="", id_="create"),
    case("other-case", "Create", "c1", command="Create"),
    case("prefix", "creat", "c1", command="creat"),
    case(
        "restore",
        "restore",
        "--bundle",
        "b",
        "c1",
        command="restore",
        reads="b/config.json",
        by=RUNC,
    ),
    case("spec", "spec", "--bundle", "b", command="spec", id_=""),
    # Global flags.
    case(
        "engine",
        "--root",
        "@/r",
        "--log",
        "@/l",
        "--log-format",
        "json",
        "create",
        "--bundle",
        "@/b",
        "--pid-file",
        "@/pid",
        "c1",
        reads="@/b/config.json",
    ),
    case(
        "systemd",
        "--log=@/l",
        "--log-format=json",
        "--systemd-cgroup",
        "create",
        "--console-socket",
        "s",
        "--no-pivot",
        "--bundle",
        "@/b",
        "c1",
        reads="@/b/config.json",
    ),
    case("one-dash", "-root", "@/r", "create", "-b", "b", "c1", reads="b/config.json", by=RUNC),
    case("one-dash-equals", "-root=@/r", "create", "c1", reads=HERE, by=RUNC),
    case("rootless", "--rootless", "true", "create", "-b", "b", "c1", reads="b/config.json"),
    case("rootless-equals", "--rootless=true", "create", "-b", "b", "c1", reads="b/config.json"),
    case("criu", "--criu", "create", "create", "-b", "b", "c1", reads="b/config.json", by=RUNC),
    case("debug", "--debug", "create", "-b", "b", "c1", reads="b/config.json"),
    case("debug-equals", "--debug=true", "create", "-b", "b", "c1", reads="b/config.json", by=RUNC),
    case(
        "cgroup-manager",
        "--cgroup-manager",
        "cgroupfs",
        "create",
        "-b",
        "b",
        "c1",
        reads="b/config.json",
        by=CRUN,
    ),
    case(
        "log-level",
        "--log-level",
        "debug",
        "create",
        "-b",
        "b",
        "c1",
        reads="b/config.json",
        by=NEITHER,
    ),
    case("empty-value", "--log", "", "create", "-b", "b", "c1", reads="b/config.json", by=RUNC),
    case("empty-value-equals", "--log=", "create", "-b", "b", "c1", reads="b/config.json", by=RUNC),
    case("two-dashes-before", "--", "create", "-b", "b", "c1", reads="b/config.json"),
    case("two-dashes-before-another", "--", "delete", "create", command="delete", id_="create"),
    # Flags that nobody knows: the command still is what it is.
    case("unknown", "--foo", "create", "-b", "b", "c1", reads="b/config.json", by=NEITHER),
    case("unknown-equals", "--foo=x", "create", "-b", "b", "c1", reads="b/config.json", by=NEITHER),
    case(
        "unknown-with-value",
        "--foo",
        "bar",
        "create",
        "-b",
        "b",
        "c1",
        reads="b/config.json",
        by=NEITHER,
    ),
    case("unknown-after", "create", "--foo", "-b", "b", "c1", reads="b/config.json", by=NEITHER),
    case(
        "unknown-before-another", "--foo", "bar", "delete", "create", command="delete", id_="create"
    ),
    # The bundle.
    case("bundle", "create", "-b", "b", "--pid-file", "p", "c1", reads="b/config.json"),
    case("bundle-equals", "create", "--pid-file", "p", "--bundle=b", "c1", reads="b/config.json"),
    case("bundle-short-equals", "create", "-b=b", "c1", reads="b/config.json", by=RUNC),
    case("bundle-one-dash", "create", "-bundle", "b", "c1", reads="b/config.json", by=RUNC),
    case("bundle-one-dash-equals", "create", "-bundle=b", "c1", reads="b/config.json", by=RUNC),
    case("bundle-two-dashes-b", "create", "--b", "b", "c1", reads="b/config.json", by=BOTH),
    case("bundle-joined", "create", "-b@/b", "c1", reads="@/b/config.json", by=CRUN),
    case("bundle-joined-relative", "create", "-b./b", "c1", reads="./b/config.json", by=CRUN),
    case("bundle-named-create", "create", "-b", "create", "c1", reads="create/config.json"),
    case(
        "bundle-named-create-and-id",
        "create",
        "-b",
        "create",
        "create",
        id_="create",
        reads="create/config.json",
    ),
    case("bundle-with-equals", "create", "--bundle=sub/a=b", "c1", reads="sub/a=b/config.json"),
    case("bundle-beyond-utf-8", "create", "-b", "b\udcff", "c1", reads="b\udcff/config.json"),
    case(
        "bundle-beyond-utf-8-equals",
        "create",
        "--bundle=@/b\udcff",
        "c1",
        reads="@/b\udcff/config.json",
    ),
    case("bundle-is-here", "run", "-d", "-b", ".", "c1", command="run", reads=HERE),
    case("bundle-like-a-flag", "create", "--bundle", "-q", "c1", reads="-q/config.json"),
    case("bundle-slash", "create", "-b", "b/", "c1", reads="b//config.json"),
    case("bundle-empty", "create", "-b", "", "c1", reads=HERE, by=RUNC),
    case("bundle-empty-equals", "create", "--bundle=", "c1", reads=HERE, by=RUNC),
    case("bundle-twice", "create", "-b", "b", "-b", "p", "c1", reads="p/config.json"),
    case("bundle-after-the-id", "create", "c1", "--bundle", "b", reads="b/config.json", by=RUNC),
    case("bundle-after-two-dashes", "create", "--", "c1", "-b", "b", reads=HERE, by=NEITHER),
    case("bundle-without-a-value", "create", "c1", "--bundle", reads=HERE, by=NEITHER),
    case("bundle-before-the-command", "--bundle", "b", "create", "c1", reads=HERE, by=NEITHER),
    case("no-bundle", "create", "c1", reads=HERE),
    case("run", "run", "--bundle", "b", "c1", command="run", reads="b/config.json"),
    case("run-detached", "run", "-d", "--bundle=b", "c1", command="run", reads="b/config.json"),
    # Values of other flags are not the bundle, and not the id.
    case("pid-file-named-b", "create", "--pid-file", "-b", "-b", "p", "c1", reads="p/config.json"),
    case("pid-file-like-a-flag", "create", "--pid-file", "--bundle=b", "c1", reads=HERE),
    case("console-socket", "create", "--console-socket", "b", "c1", reads=HERE),
    case("preserve-fds", "create", "--preserve-fds", "3", "-b", "b", "c1", reads="b/config.json"),
    case(
        "preserve-fds-equals", "create", "--preserve-fds=3", "-b", "b", "c1", reads="b/config.json"
    ),
    case(
        "pidfd-socket",
        "create",
        "--pidfd-socket",
        "p",
        "-b",
        "b",
        "c1",
        reads="b/config.json",
        by=NEITHER,
    ),
    case(
        "stand-alone",
        "create",
        "--no-pivot",
        "--no-new-keyring",
        "-b",
        "b",
        "c1",
        reads="b/config.json",
    ),
    case("dash-as-id", "create", "-", "-b", "b", id_="-", reads="b/config.json", by=RUNC),
    case("empty-id", "create", "-b", "b", "", id_="", reads="b/config.json"),
    # crun's --config.
    case("config", "create", "--config", "f.json", "c1", reads="f.json", by=CRUN),
    case("config-equals", "create", "--config=@/f.json", "c1", reads="@/f.json", by=CRUN),
    case("config-short", "create", "-f", "f.json", "-b", "b", "c1", reads="f.json", by=CRUN),
    case("config-joined", "create", "-f@/f.json", "-b", "b", "c1", reads="@/f.json", by=CRUN),
    case("config-run", "run", "--config", "f.json", "c1", command="run", reads="f.json", by=CRUN),
    # Bytes that a shell might touch.
    case(
        "bytes",
        "create",
        "-b",
        "b",
        "--label",
        "a b\n*?[x]\\$'\"\udcff\xe9",
        "c1",
        id_="a b\n*?[x]\\$'\"\udcff\xe9",
        reads="b/config.json",
        by=NEITHER,
    ),
    case("newline-at-end", "create", "-b", "b", "c1\n", id_="c1\n", reads="b/config.json"),
    case("empty-words", "create", "", "", "-b", "b", id_="", reads="b/config.json", by=NEITHER),
]
