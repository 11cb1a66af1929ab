"""Spec files: that of a host with eight GPUs, and hundreds of small ones beside it."""

import json
import re
from pathlib import Path

SAMPLE = Path(__file__).with_name("data") / "nvidia-8gpu-mig.yaml"
KIND = "nvidia.com/gpu"

# As the libraries write YAML: block style, keys in order.
CLAIM = """\
cdiVersion: 0.6.0
containerEdits: {{}}
devices:
- containerEdits:
    deviceNodes:
    - major: 195
      minor: {minor}
      path: /dev/nvidia{minor}
      permissions: rw
      type: c
    - major: 195
      minor: 255
      path: /dev/nvidiactl
      permissions: rw
      type: c
    env:
    - CLAIM_{number}={edition}
    mounts:
    - containerPath: /run/claims/{number}
      hostPath: {host_path}
      options:
      - ro
      - nosuid
      - nodev
      - rbind
  name: claim-{number}
kind: {kind}
"""


def offer_gpus(configuration):
    """Write the sample as ``nvidia.yaml``, with host paths that this host has.

    Its device nodes come with their numbers, so they need no node here.
    """
    files = configuration.spec_dir.with_name("files")
    files.mkdir(exist_ok=True)

    def stand_in(found):
        path = files / found[2].lstrip("/").replace("/", "-")
        path.touch()
        return f"{found[1]}{path}"

    text = re.sub(r"(hostPath: )(\S+)", stand_in, SAMPLE.read_text())
    text = re.sub(r"(?m)^( *path: )/usr/\S+$", r"\1/bin/true", text)
    (configuration.spec_dir / "nvidia.yaml").write_text(text)


def offer_claims(configuration, count, kind):
    """Write *count* spec files with one device each, as the driver of a cluster does for claims.

    Every other one is JSON.  *kind* may hold ``{number}``.
    """
    for number in range(count):
        form = "yaml" if number % 2 == 0 else "json"
        path = configuration.spec_dir / f"claim-{number:04}.{form}"
        path.write_text(_claim(form, configuration, number, kind, edition=0))


def change_claim(configuration, number, kind, edition):
    """Replace one of those files, as the libraries do: by rename."""
    form = "yaml" if number % 2 == 0 else "json"
    path = configuration.spec_dir / f"claim-{number:04}.{form}"
    new = configuration.spec_dir / "spec.new"
    new.write_text(_claim(form, configuration, number, kind, edition))
    new.replace(path)


def _claim(form, configuration, number, kind, edition):
    values = {
        "number": number,
        "edition": edition,
        "minor": number % 8,
        "host_path": str(configuration.spec_dir),
        "kind": kind.format(number=number),
    }
    if form == "yaml":
        return CLAIM.format(**values)
    nodes = [
        {"path": f"/dev/nvidia{values['minor']}", "type": "c", "major": 195},
        {"path": "/dev/nvidiactl", "type": "c", "major": 195, "minor": 255},
    ]
    nodes[0]["minor"] = values["minor"]
    for node in nodes:
        node["permissions"] = "rw"
    mount = {
        "hostPath": values["host_path"],
        "containerPath": f"/run/claims/{number}",
        "options": ["ro", "nosuid", "nodev", "rbind"],
    }
    edits = {"env": [f"CLAIM_{number}={edition}"], "deviceNodes": nodes, "mounts": [mount]}
    content = {
        "cdiVersion": "0.6.0",
        "kind": values["kind"],
        "devices": [{"name": f"claim-{number}", "containerEdits": edits}],
        "containerEdits": {},
    }
    return json.dumps(content, separators=(",", ":"))
