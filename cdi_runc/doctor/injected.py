"""What was asked for and what came of it: refusals, conflicts, hooks, mounts."""

from __future__ import annotations

import os
import re
import shutil

from cdi_runc import files, paths, requests
from cdi_runc.cli import records
from cdi_runc.digest import sha256
from cdi_runc.doctor import Finding, counted, edit, named, rootfs
from cdi_runc.edits import hooks
from cdi_runc.errors import BadRequest, BadSpec
from cdi_runc.specs import check
from cdi_runc.specs.compile import SIZE_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from cdi_runc.doctor.containers import Container, Injected
    from cdi_runc.doctor.rootfs import View
    from cdi_runc.settings import Settings

OURS = "cdi-runc: "
# runc: "error running hook #0", since 1.2 "error running createContainer hook #0".
_HOOK_NUMBER = re.compile(r"running (?:(\w+) )?hook #(\d+)")
_LIBRARIES = re.compile(r"(/usr(/local)?)?/lib(64)?(/[a-z0-9_]+-linux-\w+)?")
_LOADER_OR_LIBC = re.compile(r"libc\.so(\.6)?|libc-[0-9.]+\.so|ld-(linux|musl).*|ld64\.so.*")


def failed(container: Container) -> Iterator[Finding]:
    """Tell why the container was not created, or would not be."""
    record, now = container.record, container.would_fail
    why = "A container gets all of a device that it asks for, or does not start."
    if record is None:
        if now:
            message, cure = _halves(now)
            yield Finding("error", f"a create would fail: {message}", why, cure)
    elif record["result"] == "failed":
        message, cure = _halves(str(record.get("error") or "it is not on record why"))
        yield Finding(
            "error",
            f"it was not created ({record['time']}): {message}",
            f"{why} {'That has not changed.' if now else 'By now nothing is in its way.'}",
            cure if now else container.again,
        )


def _halves(error: str) -> tuple[str, str]:
    """Return the cause and the cure of *error*, one of ours in words."""
    message, _, cure = error.rpartition("; ")
    return (message, cure) if message else (cure, "cdictl doctor")


def engine_error(container: Container) -> Iterator[Finding]:
    """Tell what Docker says of a container that did not start, and whose hook it was."""
    text = str((container.details.get("State") or {}).get("Error") or "")
    if not text or OURS in text:  # told by failed
        return
    blamed = _blamed(container, text)
    if blamed:
        yield Finding(
            "error",
            f"a hook failed: {' or '.join(_program(one) for one in blamed)}, of {blamed[0].origin}",
            f"The runtime gave up: {text}",
            f"cdictl show {blamed[0].device}",
        )
    else:
        yield Finding(
            "error",
            f"Docker could not start it: {text}",
            "It is the runtime's own error"
            + ("; cdi-runc had done its part." if container.record else "."),
            f"cdictl audit show {container.id[:12]}",
        )


def _blamed(container: Container, text: str) -> list[Injected]:
    """Return the hooks that the engine's error *text* can speak of."""
    own = container.of("hooks")
    by_path = [one for one in own if f"{one.value['path']}" in text]
    match = _HOOK_NUMBER.search(text)
    if by_path or not match:
        return by_path
    return [
        one
        for one in own
        if one.where.split("/")[3:] == [match[2]] and match[1] in (None, one.where.split("/")[2])
    ]


def _program(one: Injected) -> str:
    return f"{one.where.split('/')[2]} {' '.join(one.value.get('args') or [one.value['path']])}"


def not_ours(
    container: Container, settings: Settings, runtimes: frozenset[str] | None
) -> Iterator[Finding]:
    """Look for a container that asks for devices, and that cdi-runc never saw.

    *runtimes* are the names under which its Docker daemon knows cdi-runc; None if none was asked.
    """
    if container.record is not None or container.injected:
        return
    try:
        asked = requests.devices(requests.read(container.config, settings, container.engine))
    except BadRequest as error:
        yield Finding(
            "error",
            error.message,
            "A request that cannot be understood keeps the container from starting.",
            error.cure,
        )
        return
    name = (container.details.get("HostConfig") or {}).get("Runtime")
    if not asked:
        yield Finding(
            "note",
            "it asks for no device",
            "cdi-runc left it as it was.",
            "docker run --runtime=cdi --env CDI_DEVICES=vendor.com/class=name ...",
        )
    elif runtimes is not None and name and name not in runtimes:
        yield Finding(
            "error",
            f"it asks for {named(asked)}, and was made with the runtime {name!r}, not cdi-runc",
            "Only cdi-runc gives it devices, so it has none.",
            "docker run --runtime=cdi ...",
        )
    elif elsewhere := records.elsewhere(settings.audit_file):
        yield Finding(
            "warning",
            f"it asks for {named(asked)}, and {elsewhere}",
            "What it got cannot be told from here.",
            f"sudo cdictl doctor {container.id[:12]}",
        )
    else:
        yield Finding(
            "error",
            f"it asks for {named(asked)}, and there is no record of it in {settings.audit_file}",
            "cdi-runc did not make it, or could not write its record.",
            "cdictl doctor",
        )


def ignored_requests(container: Container) -> Iterator[Finding]:
    """Look for devices that were asked for, and that policy did not give."""
    for request in (container.record or {}).get("requests", ()):
        if request["decision"] != "allow":
            yield Finding(
                "warning",
                f"it asked for {request['device']} ({request['source']} {request['key']}), and"
                f" policy decided: {request['decision']}",
                "The container does not have that device.",
                edit(paths.config()[0], "key policy"),
            )


def conflicts(container: Container) -> Iterator[Finding]:
    """Tell where an edit met another value, and whose stayed."""
    for one in (container.record or {}).get("conflicts", ()):
        other = (
            "the container's own" if one["against"] == "container" else f"that of {one['against']}"
        )
        won, lost = (
            (other, one["device"]) if one["decision"] == "container" else (one["device"], other)
        )
        outcome = (
            "so it was refused" if one["decision"] == "refuse" else f"and {won} won over {lost}"
        )
        yield Finding(
            "warning",
            f"conflict at {one['where']}: {one['device']} wants {_value(one['after'])}, {other} is"
            f" {_value(one['before'])}, {outcome}",
            "One of the two does not have what it was set up with.",
            edit(paths.config()[0], "key conflicts: cdi, container or refuse"),
        )


def _value(value: Any) -> str:
    """Return what tells a value from another, in few characters."""
    if isinstance(value, dict):
        shown = ("source", "path", "name", "closID")
        text = next((str(value[key]) for key in shown if key in value), str(value))
        return (
            f"{text} ({value['type']} {value['major']}:{value['minor']})"
            if "major" in value
            else text
        )
    return re.sub(r"(sha256:[0-9a-f]{8})[0-9a-f]+", r"\1...", str(value))


def noted(container: Container) -> Iterator[Finding]:
    """Repeat what the record warns of about this container."""
    for text in (container.record or {}).get("warnings", ()):
        if not text.startswith("spec file ignored"):  # cdictl doctor tells of the host's files
            yield Finding(
                "warning",
                f"at its creation: {text}",
                "It did not keep the container from starting.",
                f"cdictl audit show {container.id[:12]}",
            )


def changed_specs(container: Container) -> Iterator[Finding]:
    """Look for spec files that are not what they were when the container was made."""
    for spec in (container.record or {}).get("specs", ()):
        path = spec["path"]
        now = unusable = ""
        try:
            data = files.read(path, SIZE_LIMIT)[0]
            now = sha256(data)
            check.load(data)
        except (OSError, ValueError):
            pass
        except BadSpec as error:
            unusable = error.message
        if not now or (unusable and now != spec["sha256"]):
            yield Finding(
                "error",
                f"{path} {f'cannot be used now: {unusable}' if now else 'has gone'}",
                "The container runs with what the file said before, and may not start again.",
                f"cdictl validate {path}  # and restart the container only when it is right",
            )
        elif now != spec["sha256"]:
            yield Finding(
                "warning",
                f"{path} has changed since the container was made",
                "It has what the file said then (" + spec["mtime"] + "), which may not fit the"
                " driver any more.",
                container.again,
            )


def missing_hooks(container: Container, view: View) -> Iterator[Finding]:
    """Look for hooks that cannot run, now."""
    for one in container.of("hooks"):
        name, path = one.where.split("/")[2], one.value["path"]
        if name == "startContainer":
            why = "" if not view.is_known or view.find(path) else f"hook {path} is not in the image"
        else:
            why = hooks.Edit(name, path).preflight({}) or _cannot_run(path)
        if why:
            yield Finding(
                "error",
                f"{why} ({name}, of {one.origin})",
                "The container does not start again, or its end does not run.",
                f"ls -l {path}; cdictl show {one.device}",
            )


def _cannot_run(path: str) -> str:
    """Say whether the interpreter that a script names is missing."""
    try:
        with open(path, "rb") as file:
            first = file.readline(256)
    except OSError:
        return ""
    words = first[2:].split() if first[:2] == b"#!" else []
    if not words:
        return ""
    program = os.fsdecode(words[0])
    if not os.access(program, os.X_OK):
        return f"hook {path} asks for {program}, which is not on this host"
    if os.path.basename(program) == "env" and len(words) > 1:
        wanted = os.fsdecode(words[-1])
        safe = hooks.SAFE_ENV[0].partition("=")[2]
        if shutil.which(wanted, path=safe) is None:
            return f"hook {path} asks for {wanted}, which is not in {safe}"
    return ""


def missing_sources(container: Container) -> Iterator[Finding]:
    """Look for mount sources that are gone by now."""
    gone = [
        one
        for one in container.of("mounts")
        if rootfs.is_bind(one.value) and not paths.exists(one.value["source"])
    ]
    if gone:
        yield Finding(
            "error",
            f"{counted(len(gone), 'mount source')} of {gone[0].origin}"
            f" {'is' if len(gone) == 1 else 'are'} not on this host any more:"
            f" {named([one.value['source'] for one in gone])}",
            "A running container keeps the old file; it does not start again.",
            f"cdictl doctor && {container.again}",
        )


def hidden_mounts(container: Container, view: View) -> Iterator[Finding]:
    """Look for injected mounts that a later mount covers."""
    own = {_mount_key(one.value): one for one in container.of("mounts")}
    for mount, by in view.hidden:
        one = own.get(_mount_key(mount))
        if one is None or mount == by:
            continue
        other = own.get(_mount_key(by))
        whose = f"of {other.origin}" if other else "of the container itself"
        yield Finding(
            "error",
            f"the mount at {mount['destination']} ({one.origin}) is hidden by the later one at"
            f" {by['destination']} ({by.get('source')}, {whose})",
            "The container sees what the later one shows there, so it misses a part of its device.",
            f"docker run ...  # without the volume at {by['destination']}, or at another path"
            if other is None
            else f"cdictl show {other.device}",
        )


def _mount_key(mount: dict[str, Any]) -> tuple[str, str]:
    return rootfs.destination(mount), str(mount.get("source"))


def lost_mounts(container: Container) -> Iterator[Finding]:
    """Look for injected mounts that are not in the configuration any more."""
    if not container.is_original:
        return
    there = {_mount_key(mount) for mount in container.config.get("mounts") or ()}
    lost = [one for one in container.of("mounts") if _mount_key(one.value) not in there]
    if lost:
        yield Finding(
            "error",
            f"{counted(len(lost), 'mount')} of {lost[0].origin}"
            f" {'is' if len(lost) == 1 else 'are'} not in config.json any more:"
            f" {named([one.value['destination'] for one in lost])}",
            "Something changed config.json after cdi-runc, so the container misses a part of its"
            " device.",
            container.again,
        )


def unlike_targets(container: Container, image: View) -> Iterator[Finding]:
    """Look for a file to be mounted over a directory of the image, or the other way round."""
    for one in container.of("mounts"):
        target = image.find(one.value["destination"])
        if not rootfs.is_bind(one.value) or target is None or not paths.exists(one.value["source"]):
            continue
        is_directory = os.path.isdir(one.value["source"])
        if is_directory != os.path.isdir(target):
            kinds = ("a directory", "a file") if is_directory else ("a file", "a directory")
            yield Finding(
                "error",
                f"{one.value['source']} is {kinds[0]}, and {one.value['destination']} in the image"
                f" is {kinds[1]} ({one.origin})",
                'The runtime cannot mount one over the other: "not a directory".',
                edit(one.spec, "change containerPath, or use another image"),
            )


def over_the_image(container: Container, image: View) -> Iterator[Finding]:
    """Look for the host's C library in the place of the image's own, or all libraries hidden."""
    for one in container.of("mounts"):
        destination = rootfs.destination(one.value)
        real = image.real(destination)
        if _LIBRARIES.fullmatch(real) and image.names(real):
            yield Finding(
                "error",
                f"the mount of {one.value['source']} at {destination} hides all that the image has"
                f" there ({one.origin})",
                "Programs of the image do not find their own libraries any more.",
                edit(one.spec, "mount single files, or at a path of their own"),
            )
        elif _LOADER_OR_LIBC.fullmatch(destination.rpartition("/")[2]) and image.find(destination):
            yield Finding(
                "warning",
                f"{one.value['source']} takes the place of the image's own {destination}"
                f" ({one.origin})",
                "Every program of the image runs with the host's C library then, and may crash.",
                edit(one.spec, "take this mount out"),
            )
