"""``cdictl configure docker``: merge cdi-runc into daemon.json, reload Docker, see that it took."""

from __future__ import annotations

import os
import shutil
import sys

from cdi_runc.cli import common, configuring
from cdi_runc.engines import daemon_json, dockerd
from cdi_runc.engines.config_file import BadConfigFile, ConfigFile
from cdi_runc.errors import CdiRuncError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

EPILOG = """\
Everything else in daemon.json stays as it is, and a backup is made beside it.  Docker is told to
read the file again (by SIGHUP: containers go on running), and asked whether it did; if it did
not, the file is put back.

examples:
  cdictl configure docker --dry-run      show what would change
  cdictl configure docker
  docker run --rm --runtime=cdi -e CDI_DEVICES=vendor.com/class=name IMAGE
  cdictl configure docker --remove       take it back
"""


def add_arguments(parser: argparse.ArgumentParser, _engine: str) -> None:
    """Add the command's options."""
    parser.epilog = EPILOG
    add = parser.add_argument
    add("--force", action="store_true", help="with --remove: though containers still use it")
    add("--unless-default", action="store_true", help="with --remove: not while it is the default")
    add(
        "--config-file",
        type=common.given,
        metavar="F",
        help=f"the daemon.json (default: the running dockerd's, or else {dockerd.CONFIG})",
    )
    add("--no-reload", action="store_true", help="only write the file")


def run(args: argparse.Namespace) -> int:
    """Configure the engine."""
    name = args.runtime_name
    daemon, named = choose(args.config_file, dockerd.running())
    path = args.runtime_path if args.remove else configuring.program(args.runtime_path)
    by_hand = f"take the runtime {name!r} out by hand" if args.remove else _fragment(args, path)
    try:
        file = ConfigFile.load(named)
        values = daemon_json.read(file.text)
        client = dockerd.Client(daemon, values) if daemon and not args.no_reload else None
        if args.remove:
            text = _without(args, file, daemon, client)
        else:
            _refuse_flags(args, daemon, named)
            text = daemon_json.added(file.text, name, path, args.set_default)
        if args.dry_run:
            sys.stdout.writelines(configuring.difference(file, text))
            return 0
        told = _carry_out(name, file, text, client)
    except BadConfigFile as error:
        reason = f"{named} was left as it is: {error.message}"
        raise CdiRuncError(reason, cure=f"correct it, or {by_hand}") from None
    except OSError as error:
        reason = f"cannot write {error.filename or named}: {error.strerror}"
        raise CdiRuncError(reason, cure=by_hand) from None
    if text != file.text and not daemon:
        told.append("No Docker daemon that uses it runs now; it will read the file when it starts.")
    elif text != file.text and daemon and not client:
        told.append(f"Docker will read it after: kill -HUP {daemon.pid}")
    print("\n".join(told))
    return 0


def choose(given: str | None, daemons: list[dockerd.Daemon]) -> tuple[dockerd.Daemon | None, str]:
    """Return the running daemon that is meant, if there is one, and its daemon.json."""
    path = os.path.abspath(given) if given else dockerd.default()
    found = [daemon for daemon in daemons if daemon.config == os.path.realpath(path)]
    if not found and not given and daemons:
        if len(daemons) > 1:
            raise CdiRuncError(
                f"{len(daemons)} Docker daemons run here",
                cure="say which with --config-file: " + ", ".join(d.config for d in daemons),
            )
        found, path = daemons, daemons[0].config
    only_snap = not given and not shutil.which("dockerd") and os.path.isdir("/var/snap/docker")
    if any(daemon.is_snap for daemon in found) or "/var/snap/" in path or (only_snap and not found):
        raise CdiRuncError(
            "this Docker is a snap: it may start only programs inside the snap, so not cdi-runc",
            cure="install Docker from the distribution's or from Docker's own packages",
        )
    if os.geteuid() and not given and not found:
        raise CdiRuncError(
            f"only root may change {dockerd.CONFIG}, and you have no Docker daemon running",
            cure=f"become root; or, for a rootless Docker, add: --config-file {path}",
        )
    return (found[0] if found else None), path


def _fragment(args: argparse.Namespace, path: str) -> str:
    default = f', "default-runtime": "{args.runtime_name}"' if args.set_default else ""
    return f'add by hand: "runtimes": {{"{args.runtime_name}": {{"path": "{path}"}}}}{default}'


def _refuse_flags(args: argparse.Namespace, daemon: dockerd.Daemon | None, named: str) -> None:
    """Refuse what the daemon's command line says too: Docker does not start with both."""
    for flag, is_ours in (("add-runtime", True), ("default-runtime", args.set_default)):
        if daemon and is_ours and daemon.option(flag):
            raise CdiRuncError(
                f"dockerd (pid {daemon.pid}) was started with --{flag}, and would not start"
                f" again if {named} said the same kind of thing",
                cure=f"move what --{flag} says from its unit file to that file, and restart it",
            )


def _without(
    args: argparse.Namespace,
    file: ConfigFile,
    daemon: dockerd.Daemon | None,
    client: dockerd.Client | None,
) -> str | None:
    """Return the text without what we added, if nothing depends on it."""
    name, values = args.runtime_name, daemon_json.read(file.text)
    for flag in ("add-runtime", "default-runtime"):
        if daemon and any(word.split("=")[0] == name for word in daemon.option(flag)):
            raise CdiRuncError(
                f"dockerd (pid {daemon.pid}) was started with --{flag} for {name!r}",
                cure="take that from its unit file, and restart it",
            )
    path, is_default = _path(values, name), values.get("default-runtime") == name
    if (path is None and not is_default) or (args.runtime_path and path != args.runtime_path):
        return file.text
    if args.unless_default and is_default and not args.force:
        raise CdiRuncError(
            f"{name!r} is Docker's default runtime ({file.named})",
            cure="set another default-runtime first, or use --force",
        )
    if not args.force:
        used = client.containers(name) if client else dockerd.containers_on_disk(values, name)
        if used:
            raise CdiRuncError(
                f"{len(used)} of Docker's containers need the runtime {name!r}: {', '.join(used)}",
                cure="remove them (docker rm), or use --force: then they cannot start any more",
            )
    text = daemon_json.removed(file, name)
    if text is None and daemon and daemon.option("config-file"):
        return "{}\n"  # it does not start without the file that its flag names
    return text


def _carry_out(
    name: str, file: ConfigFile, text: str | None, client: dockerd.Client | None
) -> list[str]:
    """Write and reload; put back what was there if Docker does not take it up."""
    wanted = daemon_json.read(text)
    if text == file.text and (not client or _agrees(client.info(), wanted, name)):
        return [f"{file.named}: nothing to change"]
    told = _told(file, wanted, name)
    has_entry = name in daemon_json.read(file.text).get("runtimes", {})
    backed_up = text not in (None, file.text) and file.back_up(has_entry=has_entry)
    if client:
        reason = _reload(client, file, text, name)
        if reason:
            _reload(client, file, file.text, name)
            if backed_up:
                os.unlink(file.backup)
            raise CdiRuncError(
                f"{reason}, so {file.named} is again as it was",
                cure="dockerd's log says why: journalctl -u docker",
            )
        told.append(f"Docker (pid {client.daemon.pid}) has taken it up.")
    else:
        file.write(text)
    if file.drop_backup(text):
        told.append(f"It is as it was before cdi-runc, so {file.backup} is gone too.")
    elif backed_up:
        told.append(f"Backup: {file.backup}")
    return told


def _reload(client: dockerd.Client, file: ConfigFile, text: str | None, name: str) -> str:
    """Bring *file* and the daemon to *text*, and return what went wrong."""
    wanted = daemon_json.read(text)
    reason = ""
    try:
        is_default = client.info()["DefaultRuntime"] == name
        file.write(daemon_json.spelled_out(text, default=is_default))
        if not client.reload(lambda info: _agrees(info, wanted, name)):
            reason = (
                f"Docker (pid {client.daemon.pid}) did not take it up in {dockerd.PATIENCE:.0f} s"
            )
    except CdiRuncError as error:
        reason = error.message
    except ProcessLookupError:
        reason = f"Docker (pid {client.daemon.pid}) has ended"
    finally:
        file.write(text)
    return reason


def _agrees(info: dict[str, Any], values: dict[str, Any], name: str) -> bool:
    """Tell whether the daemon does with the runtime *name* what its file says."""
    listed = info["Runtimes"].get(name, {}).get("path") or None
    is_default, shall_be = (
        d == name for d in (info["DefaultRuntime"], values.get("default-runtime"))
    )
    return bool(listed == _path(values, name) and is_default == shall_be)


def _path(values: dict[str, Any], name: str) -> str | None:
    entry = values.get("runtimes", {}).get(name)
    return entry.get("path") if isinstance(entry, dict) else None


def _told(file: ConfigFile, after: dict[str, Any], name: str) -> list[str]:
    """Say what changes."""
    before = daemon_json.read(file.text)
    told = []
    old, new = _path(before, name), _path(after, name)
    if old != new:
        word = f"is {new}" + (f" (was {old})" if old else "") if new else f"is gone (was {old})"
        told.append(f"{file.named}: runtime {name!r} {word}")
    was, default = (v.get("default-runtime", daemon_json.STOCK) for v in (before, after))
    if was != default:
        told.append(f"{file.named}: default-runtime is {default} (was {was})")
    return told or [f"{file.named}: already right"]
