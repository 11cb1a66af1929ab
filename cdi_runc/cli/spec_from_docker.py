"""``cdictl spec from-docker``: what Docker was told of devices, as a spec."""

from __future__ import annotations

import os

from cdi_runc.authoring import found, from_docker
from cdi_runc.authoring.host import Host
from cdi_runc.cli import common, spec_output
from cdi_runc.errors import CdiRuncError
from cdi_runc.names import fault_in_device, fault_in_kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EPILOG = """\
Each mapping becomes a device, named after its path in the container, and "all" is all of them;
with --name they become one device.  Of a Compose file each service that has devices becomes one.
As in Docker, the permissions are rwm unless given, and a directory is all device nodes below it:
those that are there now.  A FILE is a JSON list as in Docker's API:

  [{"PathOnHost": "/dev/video0", "PathInContainer": "/dev/cam", "CgroupPermissions": "rw"}]

examples:
  cdictl spec from-docker --device /dev/video0:/dev/cam:rw
  cdictl spec from-docker --device /dev/snd --name sound --output /etc/cdi/sound.yaml
  cdictl spec from-docker --env FN_DOCKER_DEVICE_MAPPING_CONFIG --kind acme.example/fn --name all
  cdictl spec from-docker --compose compose.yaml --service frigate
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="HOST[:CONTAINER[:PERMS]]",
        help="a mapping as docker run --device takes it; may be given again",
    )
    parser.add_argument(
        "--file", action="append", default=[], metavar="FILE", help="a JSON list of mappings"
    )
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="VARIABLE",
        help="the environment variable that holds the path of such a FILE",
    )
    parser.add_argument(
        "--compose", type=common.given, metavar="FILE", help="the devices of a Compose file"
    )
    parser.add_argument(
        "--service", type=common.given, metavar="NAME", help="of --compose: this service only"
    )
    parser.add_argument(
        "--kind",
        default=from_docker.KIND,
        metavar="VENDOR/CLASS",
        help=f"the kind of the devices ({from_docker.KIND})",
    )
    parser.add_argument("--name", metavar="NAME", help="one device of this name with all mappings")
    add_host(parser)
    spec_output.add_output(parser)
    parser.epilog = EPILOG


def add_host(parser: ArgumentParser) -> None:
    """Add ``--resolve`` and ``--root``."""
    parser.add_argument(
        "--resolve",
        action="store_true",
        help="name the device nodes themselves on the host, not links to them:"
        " for tools that do not follow links",
    )
    parser.add_argument(
        "--root",
        type=common.given,
        metavar="DIR",
        help="look at the host whose files are below DIR",
    )


def run(args: Namespace) -> int:
    """Print or write the spec."""
    _check_usage(args)
    host = Host(args.root or "", plain=args.resolve)
    mappings = [from_docker.option(text) for text in args.device]
    for path in (*args.file, *map(_named_by, args.env)):
        mappings += from_docker.listed(path)
    services = _services(args) if args.compose else {}
    if args.name or not services:
        mappings += [one for own in services.values() for one in own]
        services = {}
    devices, doubts = from_docker.devices(host, mappings, args.name or "") if mappings else ([], [])
    for name, own in services.items():
        service, more = from_docker.devices(host, own, found.name_of(name))
        devices, doubts = devices + service, doubts + more
    if not devices:
        raise CdiRuncError("there is no device mapping in what was given")
    spec_output.tell(f"warning: {doubt}" for doubt in dict.fromkeys(doubts))
    whole = len(devices) > 1 and not args.compose
    spec = found.spec(args.kind, devices, whole=whole)
    spec_output.emit(args, spec, spec_output.comment("from-docker", spec, host))
    return 0


def _check_usage(args: Namespace) -> None:
    if not (args.device or args.file or args.env or args.compose):
        raise common.usage("give a --device, --file, --env or --compose; see --help")
    if args.service and not args.compose:
        raise common.usage("--service is one of a --compose file")
    vendor, _, class_ = args.kind.partition("/")
    wrong = fault_in_kind("vendor", vendor) or fault_in_kind("class", class_)
    wrong = wrong or (fault_in_device(args.name) if args.name is not None else None)
    if wrong:
        raise common.usage(wrong)
    spec_output.form(args)


def _named_by(variable: str) -> str:
    path = os.environ.get(variable, "")
    if not path:
        raise CdiRuncError(f"the variable {variable} names no file: it is empty or not set")
    return path


def _services(args: Namespace) -> dict[str, list[from_docker.Mapping]]:
    found_ = from_docker.services(args.compose, args.service)
    if not args.service:
        return found_
    if args.service not in found_:
        known = ", ".join(from_docker.services(args.compose)) or "none"
        raise CdiRuncError(
            f"{args.compose}: no service {args.service!r} has devices; those that have: {known}"
        )
    return {args.service: found_[args.service]}
