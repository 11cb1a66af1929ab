"""``cdictl plan``: what a create would do, before it happens.

The create is carried out, by the code of every create, on a copy in a directory of its own; only
the real runtime is not called.
"""

from __future__ import annotations

import copy
import os
import tempfile

from cdi_runc import create, jsonio, names, plan, registry, requests, runtime
from cdi_runc.cli import bases, common, record_tree, rendering
from cdi_runc.cli.rendering import Node
from cdi_runc.edits import Doubt
from cdi_runc.errors import BadBundle, CdiRuncError
from cdi_runc.invocation import Invocation
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator
    from typing import Any

    from cdi_runc.cli.bases import Base
    from cdi_runc.cli.records import Entry
    from cdi_runc.edits import Config
    from cdi_runc.settings import Settings

EPILOG = """\
Prints the changes of the container's configuration as a diff, then conflicts,
warnings and every finding of the preflight.  The container's own requests
count, and those of --device besides.  Without a base, a minimal standard
configuration is used.  The exit code is 1 if a create would fail.

examples:
  cdictl plan --device nvidia.com/gpu=0
  cdictl plan --device nvidia.com/gpu=0 --device nvidia.com/gpu=1 --image ubuntu
  cdictl plan --container web
  cdictl plan --bundle ./bundle --json | jq .findings
"""
ANNOTATION = "~cdictl-plan/devices"
VARIABLE = "CDICTL_PLAN_DEVICES"
"""What asks for the devices of the command line; it comes after all others of its source."""


class Outcome(Record):
    """What became of a create that was tried."""

    record: Entry
    error: str
    findings: tuple[tuple[str, str, str, str], ...]
    """Device, spec file, place in it, and what is wrong."""
    sources: dict[str, int]
    """How many mounts each spec file has."""
    before: Config
    after: Config


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="NAME",
        help="a device's qualified name; may be given again",
    )
    parser.add_argument(
        "--source",
        choices=["environment", "annotation"],
        default="environment",
        help="how the devices of --device are asked for, where the policy makes a difference"
        " (default: %(default)s, as with docker run -e)",
    )
    base = parser.add_mutually_exclusive_group()
    base.add_argument(
        "--image", type=common.given, metavar="IMAGE", help="an image that Docker or Podman has"
    )
    base.add_argument("--bundle", type=common.given, metavar="DIR", help="a bundle's directory")
    base.add_argument(
        "--container",
        type=common.given,
        metavar="NAME",
        help="a container's name or id, as if it were made again",
    )
    common.add_spec_dir(parser)
    common.add_json(parser)
    parser.epilog = EPILOG


def run(args: Namespace) -> int:
    """Say what a create would do; 1 if it would fail."""
    settings = common.in_force(args)
    for name in args.device:
        names.parse(name)
    outcome = tried(_base(args, settings), args.device, settings, args.source)
    if args.json:
        rendering.print_json(_told(outcome))
    else:
        print("\n".join(_lines(outcome)))
    return 1 if outcome.error else 0


def _base(args: Namespace, settings: Settings) -> Base:
    if args.image:
        return bases.of_image(args.image)
    if args.bundle:
        return bases.of_bundle(args.bundle)
    if args.container:
        return bases.of_container(args.container, settings.audit_file)
    return bases.standard()


def tried(
    base: Base, devices: list[str], settings: Settings, source: str = "environment"
) -> Outcome:
    """Return what a create of *base*, with *devices* besides its own requests, would do.

    Raises:
        CdiRuncError: it asks for nothing.

    """
    config = base.config
    if devices and source == "annotation":
        config.setdefault("annotations", {})[ANNOTATION] = ",".join(devices)
        settings = settings.but(annotations=(*settings.annotations, ANNOTATION))
    elif devices:
        _ask(config, f"{VARIABLE}={','.join(devices)}")
        settings = settings.but(environment=(*settings.environment, (VARIABLE, "", ("",))))
    with tempfile.TemporaryDirectory() as directory:
        call = Invocation(
            command="create",
            id="plan",
            bundle=base.bundle or directory,
            config=f"{directory}/config.json",
            root=base.root,
            log=f"{directory}/log",  # the record has the warnings
        )
        with open(call.config_path, "wb") as file:
            file.write(jsonio.dumps(config))
        own = settings.but(
            audit_file=f"{directory}/audit", audit_required=False, audit_env="plain", exec="pass"
        )
        error = ""
        try:
            create.prepare(call, own, runtime.find(settings.runtime, ""))
        except CdiRuncError as problem:
            error = _named(str(problem))
        record = _record(own.audit_file)
    if record is None:
        if error:
            raise CdiRuncError(error)
        raise CdiRuncError(f"{base.title} asks for no device", cure="name one with --device")
    return _outcome(config, record, error, settings)


def _ask(config: Config, entry: str) -> None:
    """Append *entry* to the container's variables.

    Raises:
        BadBundle: there can be none.

    """
    process = config.setdefault("process", {})
    env = (process.get("env") or []) if isinstance(process, dict) else None
    if not isinstance(env, list):
        raise BadBundle("config.json: /process/env is not a list")
    process["env"] = [*env, entry]


def _record(path: str) -> Entry | None:
    """Return the record that the create wrote to *path*; None if it found no request."""
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        record: Entry = jsonio.loads(file.read())
    for request in record["requests"]:
        if request["key"] in (ANNOTATION, VARIABLE):
            request.update(source="command", key="--device", value=request["device"])
    record["warnings"] = [_named(text) for text in record["warnings"]]
    return record


def _named(text: str) -> str:
    """Return *text* with what the person typed in the place of what asks for it here."""
    for words in (
        f"annotation {ANNOTATION}",
        f"environment variable {VARIABLE}",
        f"environment {VARIABLE}",
    ):
        text = text.replace(words, "--device")
    return text


def _outcome(config: Config, record: Entry, error: str, settings: Settings) -> Outcome:
    """Return what a create found and did; of one that failed, what it would have done."""
    found = registry.current(settings)
    asked = requests.devices([requests.Request(**one) for one in record["requests"]])
    devices = [device for name in asked if (device := found.find(name)) is not None]
    steps: list[plan.Step] = []
    problems: list[plan.Problem] = []
    after = copy.deepcopy(config)
    try:
        steps, problems = plan.examine(devices, config)
        plan.carry_out(steps, after, dict(settings.conflicts))
    except BadBundle:
        after = copy.deepcopy(config)
    for one in (config, after):
        _forget(one)
    if error:  # it came to no warnings
        record["warnings"] += [step.note for step in steps if type(step.note) is Doubt]
    findings = tuple(
        (device.name, device.path, place, why) for device, place, why in problems if error
    )
    sources: dict[str, int] = {}
    for step in steps:
        sources[step.spec] = sources.get(step.spec, 0) + (step.key == "mounts")
    return Outcome(record, error, findings, sources, config, after)


def _forget(config: Config) -> None:
    """Take out of *config* what asked for the devices of the command line."""
    annotations = config.get("annotations", {})
    if annotations.pop(ANNOTATION, None) and not annotations:
        del config["annotations"]
    env = config.get("process", {}).get("env")
    if env:
        env[:] = [entry for entry in env if not str(entry).startswith(f"{VARIABLE}=")]


def _told(outcome: Outcome) -> dict[str, Any]:
    record = outcome.record
    return {
        "ok": not outcome.error,
        **({"error": outcome.error} if outcome.error else {}),
        "findings": [
            {"device": device, "spec": spec, "pointer": pointer, "message": why}
            for device, spec, pointer, why in outcome.findings
        ],
        **{key: record[key] for key in ("conflicts", "warnings", "requests", "specs", "edits")},
        "diff": list(_diff(outcome)),
    }


def _diff(outcome: Outcome) -> Iterator[str]:
    return rendering.diff(
        outcome.before, outcome.after, ("config.json", "config.json after the create")
    )


def _lines(outcome: Outcome) -> Iterator[str]:
    told = [
        *_diff(outcome),
        *record_tree.troubles(outcome.record),
        *record_tree.section("findings", _findings(outcome), "red"),
    ]
    yield from [*told, ""] if told else []
    if outcome.findings:
        count = len(outcome.findings)
        why = "of the finding above" if count == 1 else f"of the {count} findings above"
        yield from rendering.paragraph(f"A create would fail, because {why}.", "red")
    elif outcome.error:
        yield from rendering.paragraph(f"A create would fail: {outcome.error}", "red")
    elif not any(one["decision"] in ("allow", "optional") for one in outcome.record["requests"]):
        text = "A create would succeed, and give no device: the policy ignores every request."
        yield from rendering.paragraph(text, "yellow")
    elif outcome.record["result"] == "unchanged":
        text = "A create would succeed, and change nothing: all is there already."
        yield from rendering.paragraph(text, "green")
    else:
        yield from rendering.paragraph("A create would succeed.", "green")


def _findings(outcome: Outcome) -> list[Node]:
    groups: dict[tuple[str, str], list[Node]] = {}
    missing: dict[str, int] = {}
    for device, spec, pointer, why in outcome.findings:
        groups.setdefault((device, spec), []).append(Node(why, "", [Node(pointer, "", (), "dim")]))
        missing[spec] = missing.get(spec, 0) + ("/mounts/" in pointer)
    return [
        Node(
            device, "", [Node(spec, _summary(missing[spec], outcome.sources[spec]), nodes)], "bold"
        )
        for (device, spec), nodes in groups.items()
    ]


def _summary(missing: int, sources: int) -> str:
    if not missing:
        return ""
    return f"{missing} of {sources} mount sources are missing; is it older than the driver?"
