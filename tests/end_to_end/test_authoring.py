"""Specs that cdictl wrote, put to use: real containers get what they describe."""

import json

import pytest
from support.commands import Cdictl
from support.devices import free_loop_numbers, probe
from support.engines import IMAGE
from support.programs import need, run

CAMERA = "usb-Acme_Cam_1234-video-index0"
# A /dev of its own, where udev has found the loop device $1 to be the camera $2.
HOST = f"""
mount -t tmpfs -o mode=755 none /dev || exit
for node in null:3 zero:5 full:7 random:8 urandom:9; do
    mknod -m 666 /dev/"${{node%:*}}" c 1 "${{node#*:}}" || exit
done
mknod -m 660 /dev/"$2" b 7 "$1" && chgrp 44 /dev/"$2" || exit
mkdir -p /dev/v4l/by-id && ln -s ../../"$2" /dev/v4l/by-id/{CAMERA} || exit
shift 2
exec "$@"
"""


def with_camera(minor, name):
    """Return the words that run a command on a host with a camera."""
    own = [need("unshare"), "-m", "--propagation", "private", "sh", "-c", HOST, "sh"]
    return [*own, str(minor), name]


@pytest.fixture
def cdictl(installation, configuration):
    """Return cdictl as installed, with the test's configuration."""
    return Cdictl(installation.cdictl, configuration)


def test_mapping_of_docker(cdictl, configuration, runtime, make_bundle, make_node):
    """A mapping of Docker's gives a container that device, and the record shows it."""
    node = make_node()
    file = configuration.spec_dir / "docker.yaml"
    cdictl("spec", "from-docker", "--device", f"{node.path}:/dev/acme0:r", "--output", file)
    bundle = make_bundle(*probe()).request("docker.local/device=acme0")

    seen = runtime.run(bundle).out.strip()

    assert f"block special file {node.major:x}:{node.minor:x} 640 0:0 read=yes write=no" == seen
    told = cdictl("audit", "show", bundle.id).out
    assert "docker.local/device=acme0" in told
    assert str(file) in told
    assert f"/dev/acme0: b {node.major}:{node.minor}" in told


def test_what_this_host_has(cdictl, configuration, runtime, make_bundle):
    """All that is found here can be asked for at once, and each node is in the container."""
    cdictl("spec", "generate", "--output-dir", configuration.spec_dir, check=False)
    found = [one for one in cdictl.json("devices")["devices"] if one["name"].endswith("=all")]
    if not found:
        pytest.skip("this host has no device of any class")
    paths = [
        edit["edit"]["path"]
        for one in found
        for edit in cdictl.json("show", one["name"])["edits"]
        if edit["kind"] == "deviceNodes"
    ]
    script = 'for path; do [ -c "$path" ] || [ -b "$path" ] || echo "$path"; done; echo end'
    bundle = make_bundle("sh", "-c", script, "sh", *paths)

    assert "end\n" == runtime.run(bundle.request(*(one["name"] for one in found))).out


def test_a_camera_is_found_again_after_a_reboot(
    cdictl, configuration, installation, make_runtime, make_bundle
):
    """A generated name leads to the camera whatever its number is now, with its group and owner."""
    first, second = free_loop_numbers()[:2]
    out = ("--class", "video", "--output-dir", configuration.spec_dir)
    run(*with_camera(first, "video0"), cdictl.program, "spec", "generate", *out, env=cdictl.env)
    command = ["sh", "-c", 'stat -c "%t:%T %a %u:%g" "$1" "$2"; id -G; exec <"$2"', "sh"]
    paths = ["/dev/video0", f"/dev/v4l/by-id/{CAMERA}"]
    seen = []
    for minor, name in ((first, "video0"), (second, "video5")):
        bundle = make_bundle(*command, *paths).request(f"host.local/video={CAMERA}")
        bundle.config["process"]["user"] = {"uid": 1000, "gid": 1000}
        bundle.save()
        runtime = make_runtime(installation.shim, configuration, with_camera(minor, name))
        seen.append(runtime.run(bundle).out.splitlines())

    assert [
        [f"7:{minor:x} 660 1000:44", f"7:{minor:x} 660 1000:44", "1000 44"]
        for minor in (first, second)
    ] == seen


WORDS = [
    "/dev/a",
    "/dev/a:/dev/b",
    "/dev/a:/dev/b:r",
    "/dev/a:/dev/b:mw",
    "/dev/a:rw",
]
REFUSED = [
    "/dev/a:/dev/b:x",
    "/dev/a:/dev/b:rr",
    "/dev/a:/dev/b:r:w",
    "/dev/a:b",
    "/dev/a:rwm:r",
    "/dev/a::r",
    "/dev/a:",
    "/dev/a:/dev/b:",
]


def test_docker_means_the_same(docker, cdictl, tmp_path):
    """What Docker makes of the words of --device is what we make of them, and of its own list."""
    file = tmp_path / "devices.json"
    for words in WORDS:
        made = docker("create", "--device", words, IMAGE, "true").out.strip()
        file.write_text(
            json.dumps(json.loads(docker("inspect", made).out)[0]["HostConfig"]["Devices"])
        )
        ours, theirs = (
            cdictl("spec", "from-docker", *given).out
            for given in (("--device", words), ("--file", file))
        )
        assert theirs == ours, words
    for words in REFUSED:
        assert 0 != docker("create", "--device", words, IMAGE, "true", check=False).status, words
        assert 1 == cdictl("spec", "from-docker", "--device", words, check=False).status, words
