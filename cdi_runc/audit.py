"""Steps and effects -> one audit record, appended to the audit file (C7).

Its format is audit.schema.json, beside this file.
"""

from __future__ import annotations

import posix
import sys
import time

from cdi_runc import VERSION, errors, files, jsonio
from cdi_runc.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from cdi_runc.conflicts import Conflict
    from cdi_runc.edits import Config
    from cdi_runc.invocation import Invocation
    from cdi_runc.plan import Done, Step
    from cdi_runc.registry import Device
    from cdi_runc.requests import Request
    from cdi_runc.settings import Settings

FORMAT = 1
SHOWN = 1000  # characters of a key and of a value, which a record repeats with each request


class Record:
    """The record of one call, filled in as the call goes on."""

    def __init__(self, call: Invocation, settings: Settings) -> None:
        self._settings = settings
        self._started = time.monotonic_ns()
        now = time.time_ns()
        seconds, rest = divmod(now, 1_000_000_000)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        bundle = call.bundle if call.bundle[:1] == "/" else f"{posix.getcwd()}/{call.bundle}"
        self.content: dict[str, Any] = {
            "format": FORMAT,
            "id": posix.urandom(8).hex(),
            "time": f"{stamp}.{rest // 1_000_000:03d}Z",
            "versions": {"cdi-runc": VERSION, "python": sys.version.partition(" ")[0]},
            "command": call.command,
            "container": call.id,
            "bundle": bundle,
            "engine": "",
            "root": call.root,
            "runtime": "",
            "requests": [],
            "specs": [],
            "edits": [],
            "conflicts": [],
            "warnings": [],
            "result": "failed",
            "config": {"before": "", "after": ""},
            "duration_ms": 0,
        }

    def engine(self, config: Config, call: Invocation) -> None:
        """Note who calls: by the call itself, or else as far as the annotations tell."""
        self.content["engine"] = engine(call) or _guess(config)

    def requests(self, requests: Sequence[Request]) -> None:
        """Note who asked for what."""
        self.content["requests"] = [
            {
                "device": request.device,
                "source": request.source,
                "key": _cut(request.key),
                "value": _cut(request.value),
                "decision": request.decision,
            }
            for request in requests
        ]

    def devices(self, devices: Sequence[Device]) -> None:
        """Note the spec files that the devices came from."""
        self.content["specs"] = [
            {
                "path": device.path,
                "sha256": device.sha256,
                "cdiVersion": device.version,
                "mtime": _time(device.mtime_ns),
            }
            for device in {device.path: device for device in devices}.values()
        ]

    def warn(self, text: str) -> None:
        """Note something that did not keep the container from starting."""
        self.content["warnings"].append(text)

    def edits(self, done: Iterable[Done]) -> None:
        """Note every effect of every edit, in the order in which they happened."""
        self.content["edits"] = [self._edit(one) for one in done]

    def _edit(self, one: Done) -> dict[str, Any]:
        step, effect = one.step, one.effect
        before, after = effect.before, effect.after
        if effect.action != "already present":
            before = self._shown(before, one.over)
            after = before if effect.action in ("kept", "superseded") else after
        edit = {
            "kind": step.key,
            "action": effect.action,
            "where": effect.where,
            "before": before,
            "after": after,
            "device": step.device,
            "spec": step.spec,
            "pointer": step.pointer,
        }
        if effect.was:
            edit["was"] = effect.was
        if one.note:
            edit["note"] = one.note
        return edit

    def conflicts(self, conflicts: Iterable[Conflict]) -> None:
        """Note each conflict, with both values."""
        self.content["conflicts"] = [
            {
                "kind": conflict.done.step.key,
                "where": conflict.done.effect.where,
                "device": conflict.done.step.device,
                "against": conflict.against,
                "before": self._shown(conflict.done.effect.before, conflict.done.over),
                "after": conflict.done.step.edit.entry(),
                "decision": conflict.decision,
            }
            for conflict in conflicts
        ]

    def _shown(self, value: object, setter: Step | None) -> object:
        """Return *value*; where it is a variable that no device set, its value as a digest.

        Only env has text as its values, and what the container's own configuration says there
        can be a secret.
        """
        if type(value) is not str or setter or self._settings.audit_env == "plain":
            return value
        name, equals, secret = value.partition("=")
        return f"{name}{equals}sha256:{sha256(secret.encode('utf-8', 'surrogatepass'))}"

    def digests(self, before: bytes, after: bytes) -> None:
        """Note the SHA-256 of config.json before and after."""
        self.content["config"] = {"before": sha256(before), "after": sha256(after)}

    def append(self, result: str, error: str = "") -> None:
        """Write the record, as one line.

        Raises:
            AuditRefused: it cannot be written, and the configuration requires it.
            BadBundle: it holds of config.json what is nested too deeply; the next one will not.
            OSError: it cannot be written.

        """
        content = self.content
        content["result"] = result
        if error:
            content["error"] = error
        content["duration_ms"] = (time.monotonic_ns() - self._started) // 10_000 / 100
        path = self._settings.audit_file
        try:
            line = jsonio.dumps(content) + b"\n"
        except RecursionError:
            content["edits"] = content["conflicts"] = []
            raise errors.BadBundle("config.json is nested too deeply") from None
        try:
            files.append(path, line, 0o640)
        except OSError as problem:
            if self._settings.audit_required:
                raise errors.AuditRefused(
                    f"the audit record cannot be written to {path}: {problem.strerror}"
                ) from problem
            raise


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _time(ns: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(files.seconds(ns)))


def engine(call: Invocation) -> str:
    """Return which engine calls, by its own arguments; the empty text where these do not tell.

    Observed: Docker 20.10 and 28, containerd 1.6, Podman 4.3.  Of those that keep bundles in
    containers/storage, CRI-O always gives a root, and Podman does so only when told to.
    """
    if "/runtime-runc/" in call.root:
        return "docker"
    if "/containerd/runc/" in call.root:
        return "containerd"
    steps = call.bundle.split("/")
    if steps[-1] == "userdata" and steps[-3:][0].endswith("-containers"):
        return "cri-o" if call.root else "podman"
    return ""


def _guess(config: Config) -> str:
    """Return which engine the annotations speak of.  An image can forge them under Podman."""
    annotations = config.get("annotations")
    keys = annotations if type(annotations) is dict else {}
    if keys.get("io.container.manager") == "libpod":
        return "podman"
    if any(key.startswith("io.kubernetes.cri-o.") for key in keys):
        return "cri-o"
    return ""
