"""The engines: who calls cdi-runc, and whether a daemon does what its file says."""

from __future__ import annotations

import glob
import os
import re
import shutil

from cdi_runc import paths, policy
from cdi_runc.doctor import Finding, edit, installation
from cdi_runc.engines import NAME, daemon_json, docker_api, dockerd
from cdi_runc.engines.config_file import BadConfigFile, ConfigFile
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from cdi_runc.settings import Settings

OTHERS = (
    (
        "Podman",
        "/usr/share/containers/containers.conf",
        "/etc/containers/containers.conf",
        "/etc/containers/containers.conf.d/*.conf",
        "~/.config/containers/containers.conf",
    ),
    ("containerd", "/etc/containerd/config.toml", "/etc/containerd/conf.d/*.toml"),
    ("CRI-O", "/etc/crio/crio.conf", "/etc/crio/crio.conf.d/*"),
)
_NAMES = {"Podman": "podman", "containerd": "containerd", "CRI-O": "cri-o"}
_COPIED = {
    "Podman": "Podman copies annotations from an image's manifest",
    "CRI-O": "CRI-O copies every annotation of a pod",
}
"""Where annotations come from whoever made the image or the pod."""
ANY = "vendor.example/class=any"
"""Stands for a device of which the policy says nothing in particular."""
PATH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
_PROGRAM = re.compile(
    r"""^[ \t]*["']?([\w.-]+)["']?[ \t]*=.*?["'](/[^"']*/cdi-runc)["']""", re.MULTILINE
)
_DEFAULT = re.compile(
    rf"""^[ \t]*(?:default_)?runtime(?:_name)?[ \t]*=[ \t]*["'](?:{NAME}|/[^"']*/cdi-runc)["']""",
    re.MULTILINE,
)


class Docker(Record):
    """A Docker daemon, or what one would read that does not run."""

    config: str
    """Its daemon.json."""
    content: dict[str, Any]
    fault: str
    """Why daemon.json cannot be read, if so."""
    daemon: dockerd.Daemon | None
    host: str
    info: dict[str, Any]
    """What the daemon says of itself; empty if it does not run, or does not answer."""
    silence: str
    """Why a daemon that runs does not answer."""

    @property
    def title(self) -> str:
        """What to call it."""
        return f"Docker (pid {self.daemon.pid})" if self.daemon else "Docker"

    @property
    def listed(self) -> dict[str, str]:
        """Name and program of each runtime of ours, by the file and the daemon's flags."""
        found = {
            name: str(entry.get("path") or "")
            for name, entry in self.content.get("runtimes", {}).items()
            if isinstance(entry, dict)
        }
        for flag in self.daemon.option("add-runtime") if self.daemon else ():
            name, _, path = flag.partition("=")
            found[name] = path
        return _ours(found)

    @property
    def known(self) -> dict[str, str]:
        """The same by the daemon itself."""
        runtimes = self.info.get("Runtimes") or {}
        return _ours({name: str(entry.get("path") or "") for name, entry in runtimes.items()})

    @property
    def default(self) -> str:
        """The name of its default runtime."""
        flags = self.daemon.option("default-runtime") if self.daemon else []
        return str((flags or [self.content.get("default-runtime") or ""])[-1])


class Registration(Record):
    """An engine that knows cdi-runc, or did."""

    engine: str
    place: str
    name: str
    program: str


def _ours(runtimes: dict[str, str]) -> dict[str, str]:
    return {
        name: path
        for name, path in runtimes.items()
        if name == NAME or os.path.basename(path) == "cdi-runc" or installation.is_launcher(path)
    }


def dockers(
    daemons: Sequence[dockerd.Daemon] | None = None,
    config: str | None = None,
    get: Callable[[str, str], Any] = docker_api.get,
) -> list[Docker]:
    """Return each Docker daemon of this host; one that does not run if only its program is here."""
    running = dockerd.running() if daemons is None else daemons
    found = [_asked(daemon.config, daemon, get) for daemon in running]
    config = config or dockerd.default()
    if not found and (os.path.lexists(config) or shutil.which("dockerd", path=PATH)):
        found = [_asked(config, None, get)]
    return found


def _asked(config: str, daemon: dockerd.Daemon | None, get: Callable[[str, str], Any]) -> Docker:
    values: dict[str, Any] = {}
    fault = host = silence = ""
    info: dict[str, Any] = {}
    try:
        values = daemon_json.read(ConfigFile.load(config).text)
    except BadConfigFile as error:
        fault = error.message
    if daemon:
        host = dockerd.Client(daemon, values).host
        try:
            info = get(host, "/info") or {}
        except OSError as error:
            silence = error.strerror or str(error)
    return Docker(config, values, fault, daemon, host, info, silence)


def runtimes(
    host: str, found: Sequence[Docker], get: Callable[[str, str], Any] = docker_api.get
) -> frozenset[str] | None:
    """Return the names under which the daemon at *host* knows cdi-runc; None if it does not say.

    It need not be one of those *found*: another user's daemon may be ours to ask.
    """
    try:
        info = get(host, "/info") or {}
    except OSError:
        return None
    asked = Docker("", {}, "", None, host, info, "")
    return frozenset(name for docker in (*found, asked) for name in (*docker.known, *docker.listed))


def registrations(
    found: Sequence[Docker], others: Sequence[Sequence[str]] = OTHERS
) -> list[Registration]:
    """Return where cdi-runc is registered."""
    told = [
        Registration(docker.title, docker.config, name, path)
        for docker in found
        for name, path in {**docker.known, **docker.listed}.items()
    ]
    for engine, *patterns in others:
        for path in _files(patterns):
            told += [
                Registration(engine, path, match[1], match[2])
                for match in _PROGRAM.finditer(_text(path))
            ]
    return told


def _files(patterns: Sequence[str]) -> list[str]:
    return [path for one in patterns for path in sorted(glob.glob(os.path.expanduser(one)))]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""


def unreadable(found: Sequence[Docker]) -> Iterator[Finding]:
    """Look for a daemon.json that Docker cannot read, and for a daemon that does not answer."""
    for docker in found:
        if docker.fault:
            yield Finding(
                "error",
                f"{docker.config} cannot be used: {docker.fault}",
                "Docker does not start with it, and takes up nothing from it while it runs.",
                edit(docker.config),
            )
        if docker.silence:
            yield Finding(
                "warning",
                f"{docker.title} does not answer at {docker.host}: {docker.silence}",
                "Whether it has taken up its configuration cannot be seen.",
                f"docker --host {docker.host} info",
            )


def unregistered(found: Sequence[Docker], known: Sequence[Registration]) -> Iterator[Finding]:
    """Look for a Docker that does not know cdi-runc, where no other engine does either."""
    if known:
        return
    if not paths.is_system() and not any(docker.daemon for docker in found):
        yield Finding(
            "note",
            "only your own engines are looked at here, and none of them knows cdi-runc",
            "What root's engines know, and what their containers got, can be told by root alone.",
            "sudo cdictl doctor",
        )
        return
    for docker in found:
        if not docker.fault:
            yield Finding(
                "warning",
                f"{docker.title} does not know cdi-runc: {docker.config} names no such runtime",
                f"docker run --runtime={NAME} fails, and any other container gets no device.",
                "cdictl configure docker",
            )
    if not found:
        yield Finding(
            "note",
            "no engine here has cdi-runc in its configuration",
            "It works only where it is named in each call, as in podman --runtime.",
            "podman --runtime $(command -v cdi-runc) run ...",
        )


def not_reloaded(found: Sequence[Docker]) -> Iterator[Finding]:
    """Look for a running daemon that has not read its file since the file changed."""
    for docker in found:
        if not docker.info or not docker.daemon or docker.fault:
            continue
        cure = f"kill -HUP {docker.daemon.pid}"
        for name, path in docker.listed.items():
            now = docker.known.get(name)
            if now == path:
                continue
            has = f"still calls {now} for it" if now else "does not know it yet"
            yield Finding(
                "error",
                f"{docker.title} has not read {docker.config} since the runtime {name!r} was"
                f" changed there to {path}; it {has}",
                f"docker run --runtime={name} "
                + ("runs the old program." if now else "fails: unknown runtime."),
                cure,
            )
        for name, path in docker.known.items():
            if name not in docker.listed:
                yield Finding(
                    "warning",
                    f"{docker.title} knows the runtime {name!r} ({path}), and {docker.config}"
                    " does not name it any more",
                    "After the daemon's next restart containers made for it do not start.",
                    f"cdictl configure docker --runtime-name {name} --runtime-path {path}",
                )
        default, now = docker.default or daemon_json.STOCK, docker.info.get("DefaultRuntime")
        if default != now and (default in docker.listed or now in docker.known):
            yield Finding(
                "error",
                f"{docker.title} has not read {docker.config} since its default runtime was"
                f" changed there to {default}; it still uses {now}",
                "Containers that name no runtime are made by another one than the file says.",
                cure,
            )


def doubled(found: Sequence[Docker]) -> Iterator[Finding]:
    """Look for what both the daemon's flags and its file say: it does not start with both."""
    for docker in found:
        for flag, key in (("add-runtime", "runtimes"), ("default-runtime", "default-runtime")):
            if docker.daemon and docker.daemon.option(flag) and key in docker.content:
                yield Finding(
                    "error",
                    f"{docker.title} was started with --{flag}, and {docker.config} has"
                    f" {key!r} too",
                    "dockerd refuses to start with both, so its next restart fails.",
                    f"systemctl edit --full docker.service  # take --{flag} out",
                )


def missing_programs(known: Sequence[Registration]) -> Iterator[Finding]:
    """Look for an engine that calls a program which is not there, or is not cdi-runc."""
    for one in dict.fromkeys(known):
        again = (
            f"cdictl configure docker --runtime-name {one.name} --runtime-path"
            " $(command -v cdi-runc)"
        )
        cure = again if one.engine.startswith("Docker") else edit(one.place)
        if not one.program:
            yield Finding(
                "error",
                f"the runtime {one.name!r} in {one.place} has no path",
                "It is not cdi-runc, so containers made for it get no device.",
                cure,
            )
        elif not os.path.isfile(one.program) or not os.access(one.program, os.X_OK):
            state = "is not executable" if os.path.isfile(one.program) else "is missing"
            yield Finding(
                "error",
                f"{one.engine} calls {one.program} as the runtime {one.name!r}"
                f" ({one.place}), and that program {state}",
                "No container made for this runtime starts.",
                f"./install.sh  # or: {cure}",
            )
        elif not installation.is_launcher(one.program):
            yield Finding(
                "warning",
                f"{one.engine} calls {one.program} as the runtime {one.name!r}"
                f" ({one.place}), and that program is not cdi-runc's launcher",
                "Whether its containers get their devices is up to that program.",
                cure,
            )


def default_runtime(
    found: Sequence[Docker], settings: Settings, others: Sequence[Sequence[str]] = OTHERS
) -> Iterator[Finding]:
    """Look for engines whose default runtime is ours: then an image can ask for devices."""
    places = [
        (docker.title, docker.config)
        for docker in found
        if docker.default in docker.listed or docker.info.get("DefaultRuntime") in docker.known
    ]
    places += [
        (engine, path)
        for engine, *patterns in others
        for path in _files(patterns)
        if _DEFAULT.search(_text(path))
    ]
    variables = [variable for variable, _, _ in settings.environment]
    for engine, place in places:
        ways = {}
        if variables:
            ways["environment"] = variables, "an image can set a variable as well as you can (ENV)"
        if engine in _COPIED and settings.annotations:
            keys = [f"annotations {prefix}*" for prefix in settings.annotations]
            ways["annotation"] = keys, _COPIED[engine]
        caller = _NAMES.get(engine, "docker")
        risky = [
            way
            for source, way in ways.items()
            if policy.decide(settings.policy, ANY, source, caller) not in ("ignore", "refuse")
        ]
        if not risky:
            continue
        asked = " and ".join(word for words, _ in risky for word in words)
        why = ", and ".join(why for _, why in risky)
        sources = next(iter(ways)) if len(ways) == 1 else f"[{', '.join(ways)}]"
        yield Finding(
            "warning",
            f"cdi-runc is the default runtime of {engine} ({place}), and containers may ask for"
            f" devices in {asked}",
            f"{why[0].upper()}{why[1:]}: whoever can run one of their own gets any device of this"
            " host.",
            edit(paths.config()[0], f"policy: [{{source: {sources}, do: ignore}}]"),
        )


def snap(found: Sequence[Docker]) -> Iterator[Finding]:
    """Look for a Docker that may not start programs of the host."""
    for docker in found:
        if docker.daemon and docker.daemon.is_snap:
            yield Finding(
                "error",
                f"{docker.title} is a snap",
                "It may start only programs inside the snap, so not cdi-runc.",
                "snap remove docker && apt-get install docker.io",
            )
