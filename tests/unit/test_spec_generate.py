"""What ``cdictl spec generate`` finds on a host, real or a tree of files."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from support.programs import need
from support.trees import Tree

from cdi_runc import settings
from cdi_runc.authoring import generate, write
from cdi_runc.authoring.host import Host
from cdi_runc.cli import main
from cdi_runc.cli import spec_generate as command
from cdi_runc.specs import check, lint

PCI = "/sys/devices/pci0000:00/0000:00:02.0"
USB = "/sys/devices/pci0000:00/0000:00:14.0/usb1/1-1"


@pytest.fixture
def tree(tmp_path):
    """Return a host without devices."""
    return Tree(tmp_path / "host")


def spec_of(tree, class_, **options):
    """Return the one spec that *class_* gives, which is valid and of the lowest version."""
    (result,) = generate.specs(Host(str(tree.root), **options), [class_])
    if result.spec is None:
        return None
    for form in ("yaml", "json"):
        assert_minimal(write.rendered(result.spec, form))
    assert [] == list(lint.warnings(result.spec, result.spec))
    return result.spec


def assert_minimal(data):
    """Hold that *data* is a valid spec, and would be none with the version before its own."""
    content = yaml.safe_load(data)
    assert check.examine(data)[1] == []
    before = check.VERSIONS.index(content["cdiVersion"]) - 1
    if before >= 2:
        content["cdiVersion"] = check.VERSIONS[before]
        assert check.examine(json.dumps(content).encode())[1] != []


def devices(spec):
    """Return the edits of each device of *spec*."""
    return {device["name"]: device["containerEdits"] for device in spec["devices"]}


def nodes(edits):
    """Return the paths of the nodes in *edits*, each with where it is from."""
    return {one["path"]: one.get("hostPath", one["path"]) for one in edits["deviceNodes"]}


def add_camera(tree, number=0, name="usb-Acme_Cam_1234-video-index0"):
    """Add a camera that udev knows by its serial number."""
    tree.node(f"/dev/video{number}", (81, number), 0o660, 44)
    tree.link(f"/dev/v4l/by-id/{name}", f"../../video{number}")
    tree.link(f"/dev/v4l/by-path/pci-0000:00:14.0-usb-0:{number}", f"../../video{number}")


def test_camera_is_named_by_its_id(tree):
    """A camera has the name of its by-id link, and is found through it, with its group."""
    add_camera(tree)

    data = write.rendered(spec_of(tree, "video"), "yaml", "by a test")

    edits = """\
  containerEdits:
    deviceNodes:
    - path: /dev/v4l/by-id/usb-Acme_Cam_1234-video-index0
      permissions: rw
      gid: 44
    - path: /dev/video0
      hostPath: /dev/v4l/by-id/usb-Acme_Cam_1234-video-index0
      permissions: rw
      gid: 44
    additionalGids:
    - 44
"""
    expected = f"""\
# by a test
cdiVersion: 0.7.0
kind: host.local/video
devices:
- name: all
{edits}- name: usb-Acme_Cam_1234-video-index0
{edits}"""
    assert expected == data.decode()


def test_names_do_not_change_with_numbers(tree, tmp_path):
    """After a boot that numbers two cameras the other way round, each name is the same camera."""
    other = Tree(tmp_path / "other")
    for number, host in ((0, tree), (1, other)):
        add_camera(host, number, "usb-Left-video-index0")
        add_camera(host, 1 - number, "usb-Right-video-index0")

    sources = [
        {name: set(nodes(own).values()) for name, own in devices(spec_of(host, "video")).items()}
        for host in (tree, other)
    ]

    assert sources[0] == sources[1]
    assert {"/dev/v4l/by-id/usb-Left-video-index0"} == sources[0]["usb-Left-video-index0"]


def test_resolved_nodes_are_no_links(tree):
    """With --resolve no host path is a link; the names are the same."""
    add_camera(tree)
    spec = spec_of(tree, "video", plain=True)

    assert ["all", "usb-Acme_Cam_1234-video-index0"] == list(devices(spec))
    assert {"/dev/video0"} == set(nodes(devices(spec)["all"]).values())


def test_a_camera_without_links_is_named_by_its_bus(tree):
    """Where udev made no link the name is of the place on the bus, as its link would be."""
    for number, name in enumerate(("video3", "video4")):
        tree.node(f"/dev/{name}")
        tree.device(f"{USB}/1-1:1.0", "video4linux", name, index=number)
    tree.node("/dev/media0")
    tree.file(f"{PCI}/media0/model")
    tree.link("/sys/bus/media/devices/media0", f"{PCI}/media0")

    assert {
        "all",
        "pci-0000:00:02.0-media",
        "usb-1-1:1.0-video-index0",
        "usb-1-1:1.0-video-index1",
    } == set(devices(spec_of(tree, "video")))


def test_a_camera_without_links_or_bus_has_its_kernel_name(tree):
    """Where udev made no link the kernel's name is all there is; numbers sort as numbers."""
    for number in (10, 9):
        tree.node(f"/dev/video{number}")
    tree.file("/dev/video7", "no node")

    assert ["all", "video9", "video10"] == list(devices(spec_of(tree, "video")))


@pytest.mark.parametrize(
    ("mode", "gid", "groups"),
    [
        pytest.param(0o660, 44, [44], id="group"),
        pytest.param(0o664, 44, [44], id="others only read"),
        pytest.param(0o666, 44, None, id="everybody"),
        pytest.param(0o600, 44, None, id="owner only"),
        pytest.param(0o660, 0, None, id="group of root"),
    ],
)
def test_groups(tree, mode, gid, groups):
    """A group comes along if it opens what is not open to all."""
    tree.node("/dev/video0", mode=mode, gid=gid)

    assert groups == devices(spec_of(tree, "video"))["video0"].get("additionalGids")


def add_card(tree, number=0, links=True):
    """Add a graphics card at :data:`PCI`."""
    for name, minor in ((f"card{number}", number), (f"renderD{128 + number}", 128 + number)):
        tree.node(f"/dev/dri/{name}", (226, minor), 0o660, 109)
        tree.device(PCI, "drm", name)
        role = "render" if name.startswith("render") else "card"
        if links:
            tree.link(f"/dev/dri/by-path/pci-0000:00:02.0-{role}", f"../{name}")


@pytest.mark.parametrize("links", [True, False])
def test_card_whole_and_in_parts(tree, links):
    """A card is known by its PCI address, with udev's links or without; so is each node alone."""
    add_card(tree, links=links)
    found = devices(spec_of(tree, "dri"))
    name = "pci-0000:00:02.0"

    assert ["all", name, f"{name}-card", f"{name}-render"] == list(found)
    own = {"/dev/dri/renderD128", *([f"/dev/dri/by-path/{name}-render"] if links else [])}
    assert own == set(nodes(found[f"{name}-render"]))
    assert {"/dev/dri/card0", *own} <= set(nodes(found[name]))
    assert [109] == found[name]["additionalGids"]


def test_amd_gpu_is_kfd_with_its_card(tree):
    """An AMD GPU is /dev/kfd and the card that the topology names; a processor is none."""
    add_card(tree)
    tree.node("/dev/kfd", (510, 0), 0o660, 109)
    topology = "/sys/class/kfd/kfd/topology/nodes"
    tree.file(f"{topology}/0/properties", "cpu_cores_count 8\ndrm_render_minor 0\n")
    tree.file(f"{topology}/1/properties", "simd_count 256\ndrm_render_minor 128\n")
    spec = spec_of(tree, "amd")
    found = devices(spec)

    assert "amd.com/gpu" == spec["kind"]
    assert ["all", "0", "pci-0000:00:02.0"] == sorted(found, key=lambda name: name != "all")
    assert {"/dev/kfd", "/dev/dri/card0", "/dev/dri/renderD128"} <= set(nodes(found["0"]))
    assert found["0"] == found["pci-0000:00:02.0"] == found["all"]


def test_amd_needs_kfd(tree):
    """A card without /dev/kfd is no GPU for computing."""
    add_card(tree)

    assert spec_of(tree, "amd") is None


def test_sound_card_has_all_its_nodes(tree):
    """A sound card is known by its link, else by ALSA's id; the timer comes with any card."""
    for name in ("controlC0", "pcmC0D0p", "pcmC0D0c", "controlC10", "hwC10D0", "timer", "seq"):
        tree.node(f"/dev/snd/{name}", (116, 1), 0o660, 29)
    tree.link("/dev/snd/by-id/usb-Acme_Audio-00", "../controlC10")
    tree.file("/sys/class/sound/card0/id", "PCH\n")
    spec = spec_of(tree, "sound")
    found = devices(spec)

    assert ["PCH", "all", "usb-Acme_Audio-00"] == list(found)
    assert {"controlC0", "pcmC0D0p", "pcmC0D0c"} == {n[9:] for n in nodes(found["PCH"])}
    assert "/dev/snd/by-id/usb-Acme_Audio-00" == nodes(found["all"])["/dev/snd/controlC10"]
    assert {"/dev/snd/timer", "/dev/snd/seq"} == set(nodes(spec["containerEdits"]))


def test_serial_ports(tree):
    """Ports of hardware are found; not consoles, reserved numbers and virtual terminals."""
    for name in ("ttyUSB0", "ttyACM0", "ttyS0", "ttyS1", "ttyS2", "tty1"):
        tree.node(f"/dev/{name}", (188, 0), 0o660, 20)
    tree.device(f"{USB}/1-1:1.0", "tty", "ttyUSB0")
    tree.device(f"{USB}/1-1:1.2", "tty", "ttyACM0")
    tree.link("/dev/serial/by-id/usb-Acme_Zigbee_77-if00", "../../ttyUSB0")
    for name, type_ in (("ttyS0", 4), ("ttyS1", 4), ("ttyS2", 0)):
        tree.device(f"/sys/devices/pnp0/00:0{name[-1]}", "tty", name, type=type_)
    tree.file("/sys/class/tty/tty1/dev", "4:1")
    tree.file("/sys/class/tty/console/active", "tty0 ttyS0\n")
    found = devices(spec_of(tree, "serial"))

    assert {"all", "ttyS1", "usb-1-1:1.2", "usb-Acme_Zigbee_77-if00"} == set(found)
    link = "/dev/serial/by-id/usb-Acme_Zigbee_77-if00"
    assert {link: link, "/dev/ttyUSB0": link} == nodes(found["usb-Acme_Zigbee_77-if00"])


def add_usb(tree, port, number, **attributes):
    """Add a USB device at a port of the first bus."""
    place = f"/sys/devices/pci0000:00/0000:00:14.0/usb1/{port}"
    tree.link(f"/sys/bus/usb/devices/{port}", place)
    told = {"idVendor": "1050", "idProduct": "0407", "busnum": 1, "devnum": number, **attributes}
    for key, value in told.items():
        tree.file(f"{place}/{key}", f"{value}\n")
    tree.node(f"/dev/bus/usb/001/{number:03d}", (189, number), 0o664)
    return place


def test_usb_devices(tree):
    """A USB device has its raw nodes, and its serial number or its port in its name; no hubs."""
    key = add_usb(tree, "1-1", 4, serial="00 12/3")
    add_usb(tree, "1-1.4", 5)
    add_usb(tree, "usb1", 1, bDeviceClass="09")
    tree.device(f"{key}/1-1:1.0/0003:1050", "hidraw", "hidraw3", uevent="MAJOR=2\nDEVNAME=hidraw3")
    tree.node("/dev/hidraw3")
    found = devices(spec_of(tree, "usb"))

    assert {"all", "usb-1050:0407-00_12_3", "usb-1-1.4"} == set(found)
    named = nodes(found["usb-1050:0407-00_12_3"])
    assert {"/dev/bus/usb/001/004", "/dev/hidraw3"} == set(named)


def test_infiniband_adapter(tree):
    """An adapter is known by its PCI address and has its verbs and its management node."""
    tree.device(PCI, "infiniband", "mlx5_0")
    for class_, name in (("infiniband_verbs", "uverbs0"), ("infiniband_mad", "umad0")):
        tree.device(PCI, class_, name, ibdev="mlx5_0")
        tree.node(f"/dev/infiniband/{name}", (231, 0), 0o666)
    tree.node("/dev/infiniband/rdma_cm", (10, 60), 0o666)
    spec = spec_of(tree, "infiniband")

    assert ["all", "pci-0000:00:02.0"] == list(devices(spec))
    paths = {"/dev/infiniband/umad0", "/dev/infiniband/uverbs0"}
    assert paths == set(nodes(devices(spec)["pci-0000:00:02.0"]))
    assert {"/dev/infiniband/rdma_cm"} == set(nodes(spec["containerEdits"]))


@pytest.mark.parametrize(
    ("class_", "paths"),
    [
        ("fuse", ["/dev/fuse"]),
        ("hwrng", ["/dev/hwrng"]),
        ("kvm", ["/dev/kvm"]),
        ("tpm", ["/dev/tpm0", "/dev/tpmrm0"]),
        ("tun", ["/dev/net/tun"]),
    ],
)
def test_single_devices(tree, class_, paths):
    """What a host has once is a class of its own, under the kernel's name."""
    for path in paths:
        tree.node(path)
    spec = spec_of(tree, class_)

    assert f"host.local/{class_}" == spec["kind"]
    assert [path.rpartition("/")[2] for path in paths] == list(devices(spec))[1:]
    assert paths == list(nodes(devices(spec)["all"]))


def test_network_interfaces(tree):
    """Interfaces of hardware are found, but not those that the host lives on, or virtual ones."""
    tree.device(f"{PCI}/virtio1", "net", "eth1", dev_port=0)
    tree.device(PCI, "net", "enp2s0", dev_port=1)
    for name in ("eth0", "eth6", "bonded"):
        tree.device("/sys/devices/pci0000:00/0000:00:03.0", "net", name)
    tree.link("/sys/devices/pci0000:00/0000:00:03.0/net/bonded/master", "../../../../..")
    tree.file("/sys/devices/virtual/net/veth0/mtu")
    tree.link("/sys/class/net/veth0", "../../devices/virtual/net/veth0")
    tree.file("/proc/net/route", "Iface\tDestination\tGateway\neth0\t00000000\t010200C0\n")
    zero = "0" * 32
    tree.file("/proc/net/ipv6_route", f"{zero} 00 {zero} 00 {zero} 0 0 0 0 eth6\n")
    spec = spec_of(tree, "net")
    found = devices(spec)

    assert "1.1.0" == spec["cdiVersion"]
    assert {"all", "pci-0000:00:02.0", "pci-0000:00:02.0-port1"} == set(found)
    edits = {"netDevices": [{"hostInterfaceName": "eth1", "name": "eth1"}]}
    assert edits == found["pci-0000:00:02.0"]
    assert "net" not in generate.USUAL


VERSION = "550.54.15"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"


def library(soname, like):
    """Return a shared object called *soname*, made of the system's own *like*."""
    assert len(soname) == len(like)
    (path,) = {p.resolve() for p in Path("/usr/lib").glob(f"*-linux-gnu/{like}")}
    data = path.read_bytes()
    assert like.encode() in data
    return data.replace(like.encode(), soname.encode())


@pytest.fixture
def nvidia(tree):
    """Return a host with two GPUs, one with a MIG device, and the driver's libraries."""
    for number in (0, 1):
        uuid = f"GPU-0000000{number}-aaaa-bbbb-cccc-000000000000"
        # The driver may number the nodes otherwise than the bus does.
        text = f"Model: \t\t H100\nGPU UUID: \t {uuid}\nDevice Minor: \t {1 - number}\n"
        bus = ("07", "0f")[number]  # 0f comes after 07, though a number sorts it before
        tree.file(f"/proc/driver/nvidia/gpus/0000:{bus}:00.0/information", text)
        tree.node(f"/dev/nvidia{number}", (195, number), 0o666)
        tree.node(f"/dev/dri/renderD{128 + number}", (226, 128 + number), 0o666)
        link = f"/dev/dri/by-path/pci-0000:{bus}:00.0-render"
        tree.link(link, f"../renderD{128 + number}")
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"):
        tree.node(f"/dev/{name}", (195, 255), 0o666)
    place = "/proc/driver/nvidia/capabilities/gpu1/mig/gi2"
    tree.file(f"{place}/access", "DeviceFileMinor: 21\nDeviceFileMode: 256\n")
    tree.file(f"{place}/ci0/access", "DeviceFileMinor: 22\nDeviceFileMode: 256\n")
    for number in (21, 22):
        tree.node(f"/dev/nvidia-caps/nvidia-cap{number}", (237, number), 0o444)
    for soname, like in (
        ("libcuda.so.1", "libzstd.so.1"),
        ("libnvidia-ml.so.1", "libthread_db.so.1"),
    ):
        path = f"{LIBRARIES}/{soname.removesuffix('1')}{VERSION}"
        tree.file(path)
        (tree.root / path[1:]).write_bytes(library(soname, like))
    (tree.root / LIBRARIES[1:] / "libother.so.2").write_bytes(
        library("libzstd.so.1", "libzstd.so.1")
    )
    tree.link("/lib", "usr/lib")
    tree.file("/etc/ld.so.conf", "/lib/x86_64-linux-gnu\n")
    subprocess.run([need("ldconfig"), "-r", tree.root], check=True)
    tree.file("/usr/bin/nvidia-smi", mode=0o755)
    tree.file(f"/lib/firmware/nvidia/{VERSION}/gsp_ga10x.bin")
    tree.file("/sys/module/nvidia/version", f"{VERSION}\n")
    return tree


def test_nvidia_gpus(nvidia):
    """GPUs are known by number, in the order of the bus, and by UUID; MIG by instances."""
    spec = spec_of(nvidia, "nvidia")
    found = devices(spec)
    uuids = [f"GPU-0000000{number}-aaaa-bbbb-cccc-000000000000" for number in (0, 1)]

    assert ("nvidia.com/gpu", "0.5.0") == (spec["kind"], spec["cdiVersion"])
    assert {"0", "0:gi2:ci0", "1", "all", *uuids} == set(found)
    link = "/dev/dri/by-path/pci-0000:07:00.0-render"
    assert {"/dev/nvidia1": "/dev/nvidia1", "/dev/dri/renderD128": link, link: link} == nodes(
        found["0"]
    )
    assert found["0"] == found[uuids[0]]
    caps = [f"/dev/nvidia-caps/nvidia-cap{number}" for number in (21, 22)]
    assert ["/dev/nvidia1", *caps] == sorted(nodes(found["0:gi2:ci0"]), key=len)
    shared = spec["containerEdits"]
    assert ["NVIDIA_VISIBLE_DEVICES=void"] == shared["env"]
    names = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"}
    assert {f"/dev/{name}" for name in names} == set(nodes(shared))


def mounted(spec):
    """Return where each thing is mounted in the container, with what it is on the host."""
    return {m["containerPath"]: m["hostPath"] for m in spec["containerEdits"]["mounts"]}


def test_nvidia_libraries_without_a_hook(nvidia):
    """Without a hook's program the driver's libraries come under each name programs ask for."""
    cuda, ml = (f"{LIBRARIES}/{name}.so.{VERSION}" for name in ("libcuda", "libnvidia-ml"))
    spec = spec_of(nvidia, "nvidia")
    firmware = f"/lib/firmware/nvidia/{VERSION}/gsp_ga10x.bin"

    assert {
        cuda: cuda,
        f"{LIBRARIES}/libcuda.so.1": cuda,
        ml: ml,
        f"{LIBRARIES}/libnvidia-ml.so.1": ml,
        "/usr/bin/nvidia-smi": "/usr/bin/nvidia-smi",
        firmware: firmware,
    } == mounted(spec)
    assert "hooks" not in spec["containerEdits"]


@pytest.mark.parametrize(
    ("program", "words"),
    [("nvidia-cdi-hook", ["nvidia-cdi-hook"]), ("nvidia-ctk", ["nvidia-ctk", "hook"])],
)
def test_nvidia_hooks_where_their_program_is(nvidia, program, words):
    """Where the vendor's program is, its hooks make the links, and libraries come once."""
    nvidia.file(f"/usr/bin/{program}", mode=0o755)
    spec = spec_of(nvidia, "nvidia")
    hooks = spec["containerEdits"]["hooks"]

    assert {f"/usr/bin/{program}"} == {hook["path"] for hook in hooks}
    assert [*words, "update-ldcache", "--folder", LIBRARIES] == hooks[1]["args"]
    link = f"libcuda.so.1::{LIBRARIES}/libcuda.so"
    assert [*words, "create-symlinks", "--link", link] == hooks[0]["args"]
    assert f"{LIBRARIES}/libcuda.so.1" not in mounted(spec)


def test_nvidia_module_of_another_version_is_told(nvidia):
    """A kernel module and libraries of two versions, as after an upgrade, are told of."""
    nvidia.file("/sys/module/nvidia/version", "535.1.2\n")
    (result,) = generate.specs(Host(str(nvidia.root)), ["nvidia"])

    assert any("535.1.2" in note and VERSION in note for note in result.notes)
    assert f"{LIBRARIES}/libcuda.so.{VERSION}" in mounted(result.spec)


def test_nvidia_without_proc(tree):
    """With nothing but nodes there is a device for each, and it is told that libraries lack."""
    tree.node("/dev/nvidia0", (195, 0), 0o666)
    (result,) = generate.specs(Host(str(tree.root)), ["nvidia"])

    assert {"0", "all"} == set(devices(result.spec))
    assert any("ldconfig" in note for note in result.notes)


def test_links_never_lead_out_of_the_tree(tree):
    """An absolute link is followed inside the tree, so this machine's devices are not found."""
    tree.link("/dev/fuse", "/dev/null")

    assert spec_of(tree, "fuse") is None


def generated(capsys, *words):
    """Call the command, and return its exit status and what it said."""
    status = main.main(["spec", "generate", *map(str, words)])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_this_host(capsys):
    """On this machine itself every spec that comes out is valid and minimal."""
    status, out, err = generated(capsys)
    texts = out.split("---\n") if out else []

    assert (0 if texts else 1) == status, err
    for text in texts:
        assert_minimal(text.encode())


def test_files_of_a_directory(tree, tmp_path, capsys):
    """Each kind has a file; again, nothing changes; a kind that is gone has its file removed."""
    add_camera(tree)
    tree.node("/dev/fuse")
    out = tmp_path / "new/cdi"
    words = ("--root", tree.root, "--output-dir", out)
    status, told, _ = generated(capsys, *words)
    files = {path.name: settings.signature(path.stat()) for path in out.iterdir()}

    assert (0, {"host.local-fuse.yaml", "host.local-video.yaml"}) == (status, set(files))
    assert {0o100644} == {path.stat().st_mode for path in out.iterdir()}
    assert f"{out}/host.local-video.yaml: written, 2 devices of host.local/video" in told
    assert "unchanged" in generated(capsys, *words)[1]
    assert files == {path.name: settings.signature(path.stat()) for path in out.iterdir()}

    (tree.root / "dev/fuse").unlink()
    assert [{"video": "unchanged"}, {"fuse": "removed"}] == [
        {one["kind"][11:]: one["result"]}
        for one in sorted(
            json.loads(generated(capsys, *words, "--json")[1]), key=lambda one: one["devices"] == 0
        )
    ]
    assert ["host.local-video.yaml"] == [path.name for path in out.iterdir()]


def test_a_file_by_hand_is_neither_replaced_nor_removed(tree, tmp_path, capsys):
    """What this command did not make stays, and the other kinds are written all the same."""
    tree.node("/dev/fuse")
    tree.node("/dev/kvm")
    out = tmp_path / "cdi"
    out.mkdir()
    (out / "host.local-fuse.yaml").write_text("mine")
    (out / "host.local-tun.yaml").write_text("mine")
    status, _, err = generated(capsys, "--root", tree.root, "--output-dir", out)

    assert 1 == status
    assert "host.local-fuse.yaml is not written: it was not made by this command" in err
    assert ["mine", "mine"] == [(out / f"host.local-{n}.yaml").read_text() for n in ("fuse", "tun")]
    assert (out / "host.local-kvm.yaml").exists()


def test_one_file_holds_one_kind(tree, tmp_path, capsys):
    """Two kinds do not go into one file; the choice of a class makes one."""
    tree.node("/dev/fuse")
    tree.node("/dev/kvm")
    out = tmp_path / "one.json"
    status, _, err = generated(capsys, "--root", tree.root, "--output", out)

    assert (1, False) == (status, out.exists())
    assert "host.local/fuse, host.local/kvm" in err
    assert 0 == generated(capsys, "--root", tree.root, "--output", out, "--class", "kvm")[0]
    assert "host.local/kvm" == json.loads(out.read_text())["kind"]


def test_a_list_for_machines(tree, capsys):
    """With --json a list comes out, one spec or several; --vendor is the vendor of the kinds."""
    tree.node("/dev/fuse")
    status, out, _ = generated(capsys, "--root", tree.root, "--json", "--vendor", "acme.example")

    assert (0, ["acme.example/fuse"]) == (status, [spec["kind"] for spec in json.loads(out)])


def test_a_class_without_devices(tree, capsys):
    """What was asked for and is not here is told of; nothing at all is a fault."""
    status, _, err = generated(capsys, "--root", tree.root, "--class", "video")
    tree.node("/dev/kvm")

    assert (1, True) == (status, "is on this host" in err)
    status, _, err = generated(capsys, "--root", tree.root, "--class", "video,kvm")
    assert (0, True) == (status, "no device of host.local/video is here" in err)


@pytest.mark.parametrize(
    "words",
    [
        ["--class", "camera"],
        ["--vendor", "1bad"],
        ["--output", "cam.txt"],
        ["--output", "cam.yaml", "--output-dir", "cdi"],
        ["--watch"],
        ["--watch", "0", "--output-dir", "cdi"],
    ],
    ids=" ".join,
)
def test_wrong_usage(words, capsys):
    """A wrong usage ends with 2, and nothing is written."""
    with pytest.raises(SystemExit) as ended:
        generated(capsys, *words)

    assert 2 == ended.value.code


def test_watch_writes_what_changes(tree, tmp_path, capsys, monkeypatch):
    """With --watch a new device is written at the next look, and nothing while nothing changes."""
    tree.node("/dev/kvm")
    out = tmp_path / "cdi"
    seen = []

    def sleep(_):
        seen.append({path.name: path.stat().st_ino for path in out.iterdir()})
        if len(seen) == 2:
            tree.node("/dev/fuse")
        elif len(seen) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(command.time, "sleep", sleep)
    status, told, _ = generated(capsys, "--root", tree.root, "--output-dir", out, "--watch", "0.1")

    assert 130 == status
    assert [1, 1, 2] == [len(files) for files in seen]
    assert {files["host.local-kvm.yaml"] for files in seen} == {seen[0]["host.local-kvm.yaml"]}
    assert 2 == len(told.splitlines())


def test_shipped_units_call_the_command_as_it_is():
    """The command line in the systemd unit is one that the command takes."""
    root = Path(__file__).parents[2] / "packaging"
    text = (root / "systemd/cdi-runc-generate.service").read_text()
    (words,) = re.findall(r"^ExecStart=\S+/cdictl (.+)$", text, re.MULTILINE)
    args = main.parser_for(words.split()).parse_args(words.split())

    assert settings.defaults().spec_dirs[-1] == args.output_dir
    assert {*generate.USUAL} - {"amd", "nvidia"} == {*command.classes(args)}
    assert "cdi-runc-generate.service" in (root / "udev/90-cdi-runc.rules").read_text()
