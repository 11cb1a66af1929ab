"""What is measured: runtimes called as engines call them."""

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import specs
from tests.bench.places import KEPT, PATH, Configuration
from tests.bench.timing import Broken, Call

CONFIG = Path(__file__).with_name("data") / "config.json"
"""What Docker 20.10 wrote, with the usual paths and the environment of a CUDA image put in."""

STUB = "/bin/true"
"""Stands in for the real runtime, so that its own work is not in the way."""

SETTLED = 0.1  # seconds after which a spec file no longer counts as being written
OLD = 2.2  # the same of a configuration
COUNT = 1000  # spec files
CLAIMS = "claims.example.com/gpu"
KINDS = "vendor{number}.example.com/gpu"


@dataclass(kw_only=True)
class Create(Call):
    """A create of one bundle, whose config.json is written anew before each."""

    bundle: Path
    configuration: Configuration
    devices: tuple = ()
    compiles = False
    """Whether the registry has to be compiled."""

    def __post_init__(self):
        self._file = self.bundle / "config.json"
        self._data = CONFIG.read_bytes()
        if self.devices:
            names = ",".join(f"{specs.KIND}={device}" for device in self.devices)
            end = b'"PORT=8080"'
            self._data = self._data.replace(end, b'%b,"CDI_DEVICES=%b"' % (end, names.encode()))
        self._registry = None

    def prepare(self):
        """Write config.json as the engine does, for a container of an id that is new."""
        self.bundle.mkdir(exist_ok=True)
        kept = f"{KEPT}{self.bundle.parent}/root/{self.bundle.name}"
        Path(kept).unlink(missing_ok=True)  # to empty it would take 0.3 ms
        self._file.unlink(missing_ok=True)
        self._file.write_bytes(self._data)
        self._registry = self.configuration.registry()

    def check(self):
        """Ask that config.json has the devices, or is as it was."""
        data = self._file.read_bytes()
        if not self.devices and data != self._data:
            raise Broken(f"{self.label}: config.json was changed")
        if not all(b'"/dev/nvidia%b"' % device.encode() in data for device in self.devices):
            raise Broken(f"{self.label}: config.json lacks devices")
        if (self.devices and self._registry) or self.compiles:
            is_new = self._registry != self.configuration.registry()
            if is_new != self.compiles:
                raise Broken(f"{self.label}: the registry was {'' if is_new else 'not '}compiled")


class FirstCreate(Create):
    """A create that finds no compiled registry."""

    compiles = True

    def prepare(self):
        """Remove the state."""
        shutil.rmtree(self.configuration.state_dir, ignore_errors=True)
        super().prepare()


@dataclass(kw_only=True)
class CreateAfterChange(Create):
    """A create after a spec file was changed."""

    changed: int
    """The number of the file."""
    compiles = True
    edition: int = field(default=0, init=False)

    def prepare(self):
        """Change the file."""
        self.edition += 1
        specs.change_claim(self.configuration, self.changed, KINDS, self.edition)
        time.sleep(SETTLED)
        super().prepare()


def baselines(runc, memory):
    """Return what the rest is compared with."""
    python = ["/usr/bin/python3", "-I", "-S", "-c", "pass"]
    return [
        _call("true", STUB, [STUB]),
        _call("sh", f"sh that becomes {STUB}", ["/bin/sh", "-c", f"exec {STUB}"], plain="true"),
        _call("python", "python3 -I -S -c pass", python),
        _call("state", "runc state", [runc, *_state(memory)], status=1),
    ]


def passed_through(shim, memory, configuration):
    """Return calls that need no edit."""
    words, label = [shim, *_state(memory)], "runc state, passed through"
    ends = {"status": 1, "plain": "state"}
    return [
        _call("passed", label, words, **ends),
        _call("passed-configured", f"{label}, configured", words, configuration, **ends),
    ]


def _call(name, label, words, configuration=None, **options):
    env = configuration.env if configuration else {"PATH": PATH}
    return Call(name=name, label=label, words=words, env=env, **options)


def _state(memory):
    """Return the arguments that ask for a container that does not exist."""
    log = memory / "log.json"
    return ["--root", memory / "root", "--log", log, "--log-format", "json", "state", "nothing"]


def creates(shim, places, rounds):
    """Return calls of which no time is the real runtime's, nearly all of them creates."""
    one, kinds, claims = (
        places.configuration(name, STUB) for name in ("one", "many-kinds", "many-claims")
    )
    for configuration in (one, kinds, claims):
        specs.offer_gpus(configuration)
    specs.offer_claims(kinds, COUNT - 1, KINDS)
    specs.offer_claims(claims, COUNT - 1, CLAIMS)
    # Stamps as young as these would not be believed.
    time.sleep(OLD)

    bundles = places.memory / "bundles"
    bundles.mkdir()

    def made(name, label, configuration, kind=Create, **options):
        bundle = bundles / name
        return kind(
            name=name,
            label=label,
            words=[shim, *_create(bundle)],
            env=configuration.env,
            plain="true",
            bundle=bundle,
            configuration=configuration,
            **options,
        )

    gpu = {"devices": ("0",)}
    gpus = {"devices": tuple("01234567")}
    many = f"create, 1 device, {COUNT:,} spec files"
    yaml = {"kind": CreateAfterChange, "changed": COUNT // 2}
    json = {"kind": CreateAfterChange, "changed": COUNT // 2 + 1}
    cold = {"kind": FirstCreate}
    rare = {"every": max(1, rounds // 8)}
    stub = [shim, *_state(places.memory)]
    return [
        _call("passed-stub", f"{STUB}, passed through", stub, one, plain="true"),
        made("none", "create without a request", one),
        made("one", "create, 1 device", one, **gpu),
        made("eight", "create, 8 devices", one, **gpus),
        made("many-kinds", f"{many} of as many kinds", kinds, **gpu),
        made("many-claims", f"{many} of one kind", claims, **gpu),
        made("changed-yaml", f"{many}, one (YAML) changed", kinds, **gpu, **yaml),
        made("changed-json", f"{many}, one (JSON) changed", kinds, **gpu, **json),
        made("cold", "create, 1 device, nothing compiled", one, **gpu, **cold),
        made("cold-many", f"{many}, nothing compiled", kinds, **gpu, **cold, **rare),
    ]


def _create(bundle):
    """Return the arguments with which containerd's shim creates the container of *bundle*."""
    return [
        *("--root", bundle.parent / "root", "--log", bundle / "log.json"),
        *("--log-format", "json", "create", "--bundle", bundle),
        *("--pid-file", bundle / "init.pid", bundle.name),
    ]
