"""One call for one bundle, over and over, up to the point where the real runtime takes over."""

import json
import os

from support.bundles import config
from support.configurations import audit_validator
from support.programs import environment, run
from support.traces import system_calls


class Create:
    """A create with *configuration*, whose real runtime is *runtime*: it does nothing."""

    must_start = False

    def __init__(self, shim, configuration, bundle, runtime="/bin/true"):
        self.bundle = bundle
        self.configuration = configuration
        self.runtime = str(runtime)
        self.shell = f"{shim}: "  # before the launcher's shell's own words
        self.path = bundle.config_path
        self.env = environment(**configuration.env)
        self.log = bundle.path / "log"
        root = configuration.directory.with_name("root")
        self.head = [shim, "--root", root, "--log", self.log, "--log-format", "json"]
        self.words = [*self.head, "create", "--bundle", bundle.path, bundle.id]
        self.old = self.read()

    def settle(self):
        """Let it run in peace until nothing is compiled any more, and note what it leaves."""
        self.configuration.grow_old()
        for _ in range(2):
            self.set_back()
            before = len(self.lines())
            self.finish()
        self.good = self.results(before)
        self.new = self.read()
        self.all_files = self.files()
        return self

    def finish(self):
        """Let it run to its end."""
        return run(*self.words, env=self.env)

    def set_back(self):
        """Put the old file in place, as the engine would, and an empty log."""
        self.path.write_bytes(self.old)
        self.log.write_bytes(b"")

    def read(self):
        """Return what the file that it edits says now."""
        return self.path.read_bytes()

    def files(self):
        """Return the names of all files in the bundle and in our own directories, but our log."""
        return {
            os.path.join(place, name)
            for directory in (self.bundle.path, self.configuration.directory)
            for place, _, names in os.walk(directory)
            for name in names
            if name != self.configuration.log_file.name
        }

    def calls(self, out):
        """Return each system call that it makes until it becomes the real runtime."""
        calls = system_calls(self.words, out, self.env)
        last = max(number for number, call in enumerate(calls) if call.name == "execve")
        return calls[: last + 1]

    def lines(self):
        """Return the lines of the audit record so far, each a whole one."""
        try:
            lines = self.configuration.audit_file.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        assert all(line.endswith(b"\n") for line in lines)
        return lines

    def results(self, since):
        """Return the results of the audit records from *since* on, each valid by the schema."""
        records = [json.loads(line) for line in self.lines()[since:]]
        for record in records:
            audit_validator().validate(record)
        return [record["result"] for record in records]


class Plain(Create):
    """A create that asks for nothing."""

    must_start = True


class Exec(Create):
    """An exec in the container of *create*."""

    must_start = True

    def __init__(self, create):
        super().__init__(
            create.head[0], create.configuration, create.bundle, runtime=create.runtime
        )
        create.set_back()
        create.finish()
        self.path = create.bundle.path / "process.json"
        self.path.write_text(json.dumps(config("true")["process"]))
        self.old = self.read()
        self.words = [*self.head, "exec", "--process", self.path, create.bundle.id]


class Delete(Exec):
    """A forced delete of the container of *create*, each time after it was made."""

    def __init__(self, create):
        super().__init__(create)
        self.create = create
        self.words = [*self.head, "delete", "--force", create.bundle.id]

    def set_back(self):
        """Have the container made."""
        self.create.set_back()
        self.create.finish()
        super().set_back()
