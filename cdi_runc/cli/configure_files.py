"""``cdictl configure podman|containerd|crio``: engines that are told in a file."""

from __future__ import annotations

import os
import sys

from cdi_runc.cli import common, configuring
from cdi_runc.engines.config_file import BadConfigFile, ConfigFile
from cdi_runc.errors import CdiRuncError
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

DROP_IN = "50-cdi-runc.conf"


class Engine(Record):
    """How an engine is told."""

    place: str
    """The file, for root."""
    then: str
    """What makes the engine see it."""
    example: str
    drop_in: bool
    """Whether the file is ours alone; if not, our entry goes into the engine's file."""


ENGINES = {
    "podman": Engine(
        f"/etc/containers/containers.conf.d/{DROP_IN}",
        "Podman reads it at its next call.",
        "podman --runtime cdi run --annotation cdi.k8s.io/x=vendor.com/class=name IMAGE",
        drop_in=True,
    ),
    "containerd": Engine(
        "/etc/containerd/config.toml",
        "containerd reads it when it starts again; containers go on running: "
        "systemctl restart containerd",
        "crictl runp --runtime cdi pod.json",
        drop_in=False,
    ),
    "crio": Engine(
        f"/etc/crio/crio.conf.d/{DROP_IN}",
        "CRI-O reads it when it starts again; containers go on running: systemctl restart crio",
        "crictl runp --runtime cdi pod.json",
        drop_in=True,
    ),
}


def add_arguments(parser: ArgumentParser, engine: str) -> None:
    """Add the options of *engine*."""
    own = ENGINES[engine]
    parser.add_argument(
        "--config-file", type=common.given, metavar="F", help=f"the file (default: {own.place})"
    )
    kept = (
        "The file is ours alone, and is removed with --remove."
        if own.drop_in
        else "Everything else in the file stays as it is, and a backup is made beside it."
    )
    parser.epilog = f"""\
{kept}
{own.then}

examples:
  cdictl configure {engine}
  {own.example}
  cdictl configure {engine} --remove       take it back
"""


def run(args: Namespace) -> int:
    """Write the file, or take back what was written."""
    engine = ENGINES[args.engine]
    named = os.path.abspath(args.config_file or _place(args.engine, engine))
    try:
        file = ConfigFile.load(named)
        text = _wanted(args, engine, file)
    except BadConfigFile as error:
        reason = f"{named} was left as it is: {error.message}"
        raise CdiRuncError(reason, cure=error.cure or "correct it, or move it away") from None
    if args.dry_run:
        sys.stdout.writelines(configuring.difference(file, text))
    elif text == file.text:
        print(f"{named}: nothing to change")
    else:
        _write(args, engine, file, text)
    return 0


def _place(name: str, engine: Engine) -> str:
    if name == "podman" and os.geteuid():
        home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        return f"{home}/containers/containers.conf.d/{DROP_IN}"
    return engine.place


def _wanted(args: Namespace, engine: Engine, file: ConfigFile) -> str | None:
    # Here, as man pages are made of our options where there is no tomlkit.
    from cdi_runc.engines import toml_files

    name = args.runtime_name
    if engine.drop_in:
        if file.text is not None and not file.text.startswith(toml_files.MARK):
            raise BadConfigFile("it was not made by cdictl configure")
        if args.remove:
            is_other = args.runtime_path and f'"{args.runtime_path}"' not in (file.text or "")
            return file.text if is_other else None
        path = configuring.program(args.runtime_path)
        make = toml_files.podman if args.engine == "podman" else toml_files.crio
        return make(name, path, default=args.set_default)
    if not args.remove:
        path = configuring.program(args.runtime_path)
        return toml_files.added(file.text, name, path, default=args.set_default)
    found = toml_files.program(file.text, name) if file.text is not None else None
    if found is None or args.runtime_path not in (None, found):
        return file.text
    return toml_files.removed(str(file.text), ConfigFile.load(file.backup).text, name)


def _write(args: Namespace, engine: Engine, file: ConfigFile, text: str | None) -> None:
    from cdi_runc.engines import toml_files

    backed_up = False
    try:
        if not engine.drop_in and not args.remove:
            has_entry = bool(file.text and toml_files.program(file.text, args.runtime_name))
            backed_up = file.back_up(has_entry=has_entry)
        file.write(text)
    except OSError as error:
        raise CdiRuncError(
            f"cannot write {error.filename or file.named}: {error.strerror}",
            cure="become root, or name another file with --config-file",
        ) from None
    word = "is gone" if args.remove else f"is {configuring.program(args.runtime_path)}"
    print(f"{file.named}: runtime {args.runtime_name!r} {word}")
    if file.drop_backup(text):
        print(f"It is as it was before cdi-runc, so {file.backup} is gone too.")
    elif backed_up:
        print(f"Backup: {file.backup}")
    print(engine.then)
    if not engine.drop_in and text is not None and not toml_files.has_cri(text):
        print("The CRI is off in this file (disabled_plugins): a kubelet cannot use it so.")
