"""The checks of one container, from cause to effect, and the facts beside them."""

from __future__ import annotations

from functools import partial

from cdi_runc.doctor import (
    Finding,
    Report,
    access,
    carry_out,
    counted,
    injected,
    libraries,
    ordered,
    rootfs,
    system,
)
from cdi_runc.doctor.rootfs import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdi_runc.doctor.containers import Container
    from cdi_runc.settings import Settings


def examine(container: Container, settings: Settings, runtimes: frozenset[str] | None) -> Report:
    """Look over one container.

    *runtimes* are the names under which its Docker daemon knows cdi-runc; None if none was asked.
    """
    config = container.config
    mounts = [mount for mount in config.get("mounts") or () if isinstance(mount, dict)]
    ours = [one.value for one in container.of("mounts")]
    view = View(container.layers, mounts)
    own = View(container.layers, [mount for mount in mounts if mount not in ours])
    process = config.get("process") or {}
    program = (process.get("args") or [""])[0]
    image = libraries.image(view, own, process.get("env") or (), program)
    found = libraries.pieces(container, view)
    findings = carry_out(
        {
            "failed": partial(injected.failed, container),
            "engine-error": partial(injected.engine_error, container),
            "not-ours": partial(injected.not_ours, container, settings, runtimes),
            "mount-sources": partial(injected.missing_sources, container),
            "hook-programs": partial(injected.missing_hooks, container, view),
            "mount-targets": partial(injected.unlike_targets, container, own),
            "nodes-lost": partial(access.lost, container),
            "mounts-lost": partial(injected.lost_mounts, container),
            "groups": partial(access.missing_groups, container),
            "nodes-renumbered": partial(access.renumbered, container),
            "mounts-hidden": partial(injected.hidden_mounts, container, view),
            "library-libc": partial(libraries.other_libc, found, image),
            "library-too-new": partial(libraries.too_new, found, image),
            "library-machine": partial(libraries.other_machine, found, image),
            "library-loader": partial(libraries.missing_loader, found, image, view),
            "library-symbols": partial(libraries.missing_symbols, found, image, view),
            "library-missing": partial(libraries.missing_libraries, found, image, view),
            "nodes-rule": partial(access.without_rule, container),
            "nodes-mode": partial(access.forbidden, container),
            "nodes-user": partial(access.beyond_the_user, container),
            "requests-ignored": partial(injected.ignored_requests, container),
            "conflicts": partial(injected.conflicts, container),
            "library-path": partial(libraries.outside_path, found, image, view, container),
            "mounts-over": partial(injected.over_the_image, container, own),
            "selinux": partial(
                system.selinux,
                [one.value["path"] for one in access.nodes(container)],
                [mount["source"] for mount in ours if rootfs.is_bind(mount)],
                system.enforces() and bool(process.get("selinuxLabel")),
            ),
            "spec-changed": partial(injected.changed_specs, container),
            "noted": partial(injected.noted, container),
            "image-unseen": partial(unseen, container, view),
        }
    )
    record = container.record or {}
    engine = container.engine or "unknown engine"
    devices = list(dict.fromkeys(request["device"] for request in record.get("requests", ())))
    facts = [
        ("container", f"{container.title}, {engine}"),
        ("record", f"{record['id']} of {record['time']}: {record['result']}" if record else "none"),
        ("devices", ", ".join(devices) or "none on record"),
        ("edits", counted(len(container.injected), "value")),
        ("image", _described(image, view)),
    ]
    return Report(tuple(facts), ordered(findings))


def _described(image: libraries.Image, view: View) -> str:
    if not view.is_known:
        return "not mounted now"
    version = ".".join(str(part) for part in image.version)
    return f"{image.libc} {version}".strip() or "no C library"


def unseen(container: Container, view: View) -> Iterator[Finding]:
    """Say that the image could not be looked at, where something depends on it."""
    if container.of("mounts") and not view.is_known:
        yield Finding(
            "note",
            "its root file system is not mounted now, so its libraries were not looked at",
            "Most engines unmount it when a container ends.",
            f"{container.again} && cdictl doctor {container.id[:12]}",
        )
