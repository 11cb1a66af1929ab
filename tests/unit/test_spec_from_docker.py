"""Docker's device mappings as specs: ``cdictl spec from-docker``."""

import json

import pytest
import yaml
from support.trees import Tree

from cdi_runc.authoring import from_docker
from cdi_runc.authoring.from_docker import Mapping
from cdi_runc.cli import main
from cdi_runc.errors import CdiRuncError
from cdi_runc.specs import check


@pytest.fixture
def tree(tmp_path):
    """Return a host with a camera and two nodes of sound."""
    tree = Tree(tmp_path / "host")
    tree.node("/dev/video0")
    tree.link("/dev/v4l/by-id/usb-Cam", "../../video0")
    for name in ("snd/timer", "snd/card/pcm"):
        tree.node(f"/dev/{name}")
    tree.file("/dev/snd/notes")
    return tree


@pytest.fixture
def call(tree, capsys):
    """Return a function that calls the command on that host."""

    def call(*words):
        status = main.main(["spec", "from-docker", "--root", str(tree.root), *map(str, words)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


def spec_of(finished):
    """Return the spec that the command printed, which is valid, and its warnings."""
    status, out, err = finished
    assert 0 == status, err
    assert check.examine(out.encode())[1] == []
    return yaml.safe_load(out)


def nodes(spec, name):
    """Return the nodes of the device *name* as Docker's words."""
    (own,) = [d["containerEdits"] for d in spec["devices"] if d["name"] == name]
    return [
        f"{n.get('hostPath', n['path'])}:{n['path']}:{n['permissions']}" for n in own["deviceNodes"]
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/dev/a", ("/dev/a", "/dev/a", "rwm")),
        ("/dev/a:/dev/b", ("/dev/a", "/dev/b", "rwm")),
        ("/dev/a:/dev/b:r", ("/dev/a", "/dev/b", "r")),
        ("/dev/a:/dev/b:mw", ("/dev/a", "/dev/b", "wm")),
        ("/dev/a:rw", ("/dev/a", "/dev/a", "rw")),
        ("/dev/a/:/dev//b", ("/dev/a", "/dev/b", "rwm")),
    ],
)
def test_words_of_docker_run(text, expected):
    """The words of ``docker run --device`` mean what they mean to Docker."""
    assert Mapping(*expected) == from_docker.option(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/dev/a:/dev/b:x", "permissions 'x'"),
        ("/dev/a:/dev/b:rr", "permissions 'rr'"),
        ("/dev/a:b", "the path on the container, 'b', is not absolute"),
        ("/dev/a::r", "an empty part"),
        ("/dev/a:", "an empty part"),
        ("dev/a", "the path on the host, 'dev/a', is not absolute"),
        ("", "is not absolute"),
        ("/dev/a:/dev/b:r:w", "more than three parts"),
        ("acme.com/cam=front", "is a CDI device already"),
    ],
)
def test_wrong_words_are_told(text, why):
    """What is no mapping is refused, in words that say why."""
    with pytest.raises(CdiRuncError, match="device") as refused:
        from_docker.option(text)

    assert why in str(refused.value)


def test_options(call):
    """Each mapping is a device named by its place, "all" is all; only another path is told."""
    spec = spec_of(call("--device", "/dev/video0:/dev/cam:rw", "--device", "/dev/video0"))

    assert ("docker.local/device", "0.5.0") == (spec["kind"], spec["cdiVersion"])
    assert ["all", "cam", "video0"] == [device["name"] for device in spec["devices"]]
    assert ["/dev/video0:/dev/cam:rw"] == nodes(spec, "cam")
    assert ["/dev/video0:/dev/cam:rw", "/dev/video0:/dev/video0:rwm"] == nodes(spec, "all")
    (device, *_) = [d for d in spec["devices"] if d["name"] == "video0"]
    assert "hostPath" not in device["containerEdits"]["deviceNodes"][0]


def test_the_list_of_a_platform(call, tmp_path, monkeypatch):
    """A file in the form of Docker's API, named by a variable of the platform, is one device."""
    file = tmp_path / "mappings.json"
    mappings = [
        {"PathOnHost": "/dev/video0", "PathInContainer": "/dev/cam", "CgroupPermissions": "rw"},
        {"pathonhost": "/dev/snd/timer"},
    ]
    file.write_text(json.dumps(mappings))
    monkeypatch.setenv("FN_DOCKER_DEVICE_MAPPING_CONFIG", str(file))
    words = ("--env", "FN_DOCKER_DEVICE_MAPPING_CONFIG", "--kind", "acme.example/fn")
    spec = spec_of(call(*words, "--name", "gpu"))

    assert ["gpu"] == [device["name"] for device in spec["devices"]]
    expected = ["/dev/video0:/dev/cam:rw", "/dev/snd/timer:/dev/snd/timer:rwm"]
    assert sorted(expected) == sorted(nodes(spec, "gpu"))
    assert spec == spec_of(call("--file", file, "--kind", "acme.example/fn", "--name", "gpu"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[{]", "is not JSON"),
        ("{}", "a list of objects with PathOnHost"),
        ('["/dev/a"]', "entry 0 is no object with PathOnHost"),
        ('[{"PathOnHost": "/dev/a", "PathOnDevice": "/dev/b"}]', "unknown key 'PathOnDevice'"),
        ('[{"PathOnHost": 7}]', "entry 0: PathOnHost is no text"),
        ('[{"PathInContainer": "/dev/a"}]', "the path on the host, '', is not absolute"),
        ("[]", "no device mapping"),
    ],
)
def test_wrong_lists_are_told(call, tmp_path, text, why):
    """A file that is no such list is refused, in words that say why and where."""
    file = tmp_path / "mappings.json"
    file.write_text(text)
    status, out, err = call("--file", file)

    assert (1, "") == (status, out)
    assert why in err


@pytest.mark.parametrize("value", [None, "", "/nonexistent"])
def test_variable_without_a_file(call, monkeypatch, value):
    """A variable that is not set, is empty or names no file is told of."""
    monkeypatch.delenv("MAPPINGS", raising=False)
    if value is not None:
        monkeypatch.setenv("MAPPINGS", value)
    status, _, err = call("--env", "MAPPINGS")

    assert (1, True) == (status, (value or "MAPPINGS") in err)


COMPOSE = """
x-cam: &cam
  devices: ["/dev/video0:/dev/cam:rw"]
services:
  frigate:
    <<: *cam
  player:
    image: player
    devices:
      - source: /dev/snd/timer
        target: /dev/timer
        permissions: r
      - source: /dev/video0
  web: {image: nginx}
  gpu:
    devices: [nvidia.com/gpu=0]
"""


def test_compose_file(call, tmp_path):
    """Each service with devices is a device, in short and long words; or only one, by name.

    What is a CDI device already is none of Docker's.
    """
    file = tmp_path / "compose.yaml"
    file.write_text(COMPOSE)
    spec = spec_of(call("--compose", file))

    assert ["frigate", "player"] == [device["name"] for device in spec["devices"]]
    assert ["/dev/video0:/dev/cam:rw"] == nodes(spec, "frigate")
    expected = ["/dev/snd/timer:/dev/timer:r", "/dev/video0:/dev/video0:rwm"]
    assert expected == nodes(spec, "player")
    one = spec_of(call("--compose", file, "--service", "player"))
    assert ["player"] == [device["name"] for device in one["devices"]]
    status, _, err = call("--compose", file, "--service", "web")
    assert (1, True) == (status, "frigate, player" in err)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("services: {a: {devices: ['${CAM}:/dev/cam']}}", "docker compose config"),
        ("services: {a: {devices: /dev/a}}", "service a: devices is no list"),
        ("services: {a: {devices: [x]}}", "service a: device 'x'"),
        ("services: {a: {devices: [{src: /dev/a}]}}", "unknown key 'src'"),
        ("a: 1\na: 2", "line 2: key 'a' is given twice"),
        ("- a", "is no Compose file"),
    ],
)
def test_wrong_compose_files_are_told(call, tmp_path, text, why):
    """What cannot be understood of a Compose file is refused, in words that say where."""
    file = tmp_path / "compose.yaml"
    file.write_text(text)
    status, out, err = call("--compose", file)

    assert (1, "") == (status, out)
    assert why in err


def test_directory_is_all_nodes_below(call):
    """A directory stands for the nodes below it, under the directory in the container."""
    spec = spec_of(call("--device", "/dev/snd:/dev/sound:r"))

    expected = ["/dev/snd/card/pcm:/dev/sound/card/pcm:r", "/dev/snd/timer:/dev/sound/timer:r"]
    assert expected == nodes(spec, "sound")


def test_link_stays_unless_resolved(call):
    """A link is kept, to be followed at each create; with --resolve it is its node."""
    word = ("--device", "/dev/v4l/by-id/usb-Cam:/dev/cam")

    assert ["/dev/v4l/by-id/usb-Cam:/dev/cam:rwm"] == nodes(spec_of(call(*word)), "cam")
    assert "# it makes a container. Other tools may want" in call(*word)[1]
    assert "links" not in call(*word, "--resolve")[1]
    assert ["/dev/video0:/dev/cam:rwm"] == nodes(spec_of(call(*word, "--resolve")), "cam")


def test_what_is_not_here_is_told(call):
    """A node that this host lacks is written with a warning; what is no node is refused."""
    status, out, err = call("--device", "/dev/gone")

    assert (0, True, True) == (status, "/dev/gone" in out, "/dev/gone is not on this host" in err)
    status, out, err = call("--device", "/dev/snd/notes")
    assert (1, "", True) == (status, out, "is no device node" in err)


def test_two_at_one_place(call):
    """Two devices of the host at one place in the container are refused; one twice is one."""
    status, _, err = call("--device", "/dev/video0:/dev/x", "--device", "/dev/snd/timer:/dev/x")

    assert (1, True) == (status, "/dev/video0 and /dev/snd/timer are both to be /dev/x" in err)
    spec = spec_of(call("--device", "/dev/video0", "--device", "/dev/video0"))
    assert ["video0"] == [device["name"] for device in spec["devices"]]


def test_names_that_meet_get_numbers(call):
    """Two places whose names come out the same are two devices."""
    spec = spec_of(call("--device", "/dev/video0:/dev/a-b", "--device", "/dev/video0:/dev/a/b"))

    assert ["a-b", "a-b-2", "all"] == [device["name"] for device in spec["devices"]]


def test_conflict_with_another_file(call, tmp_path, monkeypatch):
    """In a spec directory nothing is written that another file there defines, and it is named."""
    directory = tmp_path / "cdi"
    configuration = tmp_path / "config.yaml"
    configuration.write_text(f"spec_dirs: [{directory}]\nstate_dir: {tmp_path}/state\n")
    monkeypatch.setenv("CDI_RUNC_CONFIG", str(configuration))
    monkeypatch.setitem(
        __import__("posix").environ, b"CDI_RUNC_CONFIG", str(configuration).encode()
    )
    words = ("--device", "/dev/video0", "--output")

    assert 0 == call(*words, directory / "one.yaml")[0]
    status, _, err = call(*words, directory / "two.yaml")
    assert (1, True) == (status, f"{directory}/one.yaml in the same directory" in err)
    assert ["one.yaml"] == [path.name for path in directory.iterdir()]
    assert 0 == call(*words, directory / "one.yaml")[0]
    assert 0 == call(*words, tmp_path / "elsewhere.yaml")[0]


def test_output_follows_a_link_and_keeps_the_mode(call, tmp_path):
    """A file that is there keeps its mode, and a link to it stays a link."""
    file, link = tmp_path / "real.json", tmp_path / "link.json"
    file.write_text("{}")
    file.chmod(0o600)
    link.symlink_to(file)

    status, out, _ = call("--device", "/dev/video0", "--output", link)

    assert (0, f"{link}: written, 1 device of docker.local/device\n") == (status, out)
    assert (True, 0o100600) == (link.is_symlink(), file.stat().st_mode)
    assert "docker.local/device" == json.loads(file.read_text())["kind"]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--device", "/dev/a", "--kind", "acme"],
        ["--device", "/dev/a", "--name", "-x"],
        ["--device", "/dev/a", "--name", ""],
        ["--device", "/dev/a", "--service", "web"],
        ["--device", "/dev/a", "--output", "spec.txt"],
    ],
    ids=" ".join,
)
def test_wrong_usage(call, words):
    """A wrong usage ends with 2."""
    with pytest.raises(SystemExit) as ended:
        call(*words)

    assert 2 == ended.value.code


def test_a_directory_that_is_not_there_is_not_made(call, tmp_path):
    """A misspelt directory is told, as no spec file counts there."""
    path = tmp_path / "etc/cid/cam.yaml"
    status, _, err = call("--device", "/dev/video0", "--output", path)

    assert status == 1
    assert f"there is no directory {path.parent}; make it first" in err
    assert not path.parent.parent.exists()
