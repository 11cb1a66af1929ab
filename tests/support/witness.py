"""A real runtime that tells what it was given: a program, so nothing stands between (C1)."""

import os
import signal
import subprocess

# Perl, since it leaves its process as it found it: dash unblocks signals, CPython ignores some.
SCRIPT = r"""#!/usr/bin/perl
sub content {
    open(my $in, "<", $_[0]) or return "";
    local $/;
    my $text = <$in>;
    return $text;
}
sub tell_of {
    open(my $out, ">", ($ENV{TELL_AT} || $0) . ".$_[0]") or die;
    print $out $_[1];
    close($out);
}
my @descriptors = map { "$_ " . readlink("/proc/self/fd/$_") }
    grep { length(readlink("/proc/self/fd/$_")) } 0 .. 255;
tell_of("descriptors", join("\n", @descriptors));
tell_of("arguments", content("/proc/self/cmdline"));
tell_of("environment", content("/proc/self/environ"));
my @status = content("/proc/self/status") =~ /^((?:Umask|Sig(?:Blk|Ign|Cgt)):.*)$/mg;
tell_of("status", join("\n", @status));
tell_of("directory", readlink("/proc/self/cwd"));
tell_of("family", join(" ", (split(/ /, content("/proc/self/stat")))[0, 3 .. 5]));
tell_of("limits", content("/proc/self/limits"));
tell_of("file", content($ENV{LOOK_AT})) if $ENV{LOOK_AT};
exit 42;
"""


class Witness:
    """An executable that stands in for the real runtime.

    What it tells lies beside it, or begins with the path in TELL_AT, for many calls at once.
    """

    def __init__(self, path):
        self.path = path
        path.write_text(SCRIPT)
        path.chmod(0o755)

    def environment(self):
        """Return the entries of the environment that it was given."""
        return sorted(self._seen("environment").split(b"\0")[:-1])

    def arguments(self):
        """Return the arguments that it was given, without its own name."""
        words = self._seen("arguments").split(b"\0")[:-1]
        return words[words.index(os.fsencode(self.path)) + 1 :]

    def rest(self):
        """Return all else that it could see of how it was started."""
        names = ("status", "descriptors", "directory", "limits")
        process, *family = self._seen("family").decode().split()
        own = ["itself" if number == process else number for number in family]
        return {
            **{name: self._seen(name).decode().splitlines() for name in names[1:]},
            **dict(line.split(":\t") for line in self._seen("status").decode().splitlines()),
            "parent, group and session": own,
        }

    def file(self):
        """Return the content of the file that LOOK_AT named, as it was then."""
        return self._seen("file")

    def _seen(self, name):
        return self.path.with_name(f"{self.path.name}.{name}").read_bytes()


def call(program, arguments, env, directory):
    """Call *program* as an unusual engine would; return its exit status.

    It has a mask, an ignored and a blocked signal, open descriptors and limits of its own.
    """

    def prepare():
        os.umask(0o027)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
        os.dup2(0, 103)  # above what subprocess itself may hold open here
        os.dup2(2, 107)

    files = {}
    for name in ("stdin", "stdout", "stderr"):
        files[name] = (directory / name).open("w+b")
    try:
        # A session of its own, so that group and session are comparable.
        return subprocess.run(
            [program, *arguments],
            check=False,
            env=env,
            cwd=directory,
            preexec_fn=prepare,
            close_fds=False,
            start_new_session=True,
            timeout=60,
            **files,
        ).returncode
    finally:
        for file in files.values():
            file.close()
