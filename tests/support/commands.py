"""cdictl as people call it, in a pipe and at a terminal."""

import json
import os
import pty
import struct
import subprocess
import termios
from fcntl import ioctl

from support.programs import environment, run


class Cdictl:
    """The command *program*, which sees *configuration*."""

    def __init__(self, program, configuration, **env):
        self.program = program
        self.env = environment(**configuration.env, **env)

    def __call__(self, *words, check=True, **options):
        """Call the command; *options* are those of :func:`support.programs.run`."""
        return run(self.program, *words, check=check, env=self.env, **options)

    def json(self, *words, status=0):
        """Return what the command says with ``--json``; its exit status must be *status*."""
        done = self(*words, "--json", check=False)
        assert done.status == status, done
        return json.loads(done.out)

    def start(self, *words):
        """Start the command, its output in a pipe, and return its process."""
        return subprocess.Popen(
            [self.program, *words], env=self.env, stdout=subprocess.PIPE, text=True
        )

    def on_terminal(self, *words, columns=80, **env):
        """Return what the command shows on a terminal of so many columns."""
        ours, its = pty.openpty()
        ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        env = {**self.env, "TERM": "xterm", **env}
        process = subprocess.Popen(
            [self.program, *words], env=env, stdin=its, stdout=its, stderr=its
        )
        os.close(its)
        shown = b""
        try:
            while block := os.read(ours, 1 << 16):
                shown += block
        except OSError:  # the terminal's other end is closed
            pass
        os.close(ours)
        process.wait()
        return shown.decode().replace("\r\n", "\n")
