"""NVIDIA's GPUs: nodes, the driver's libraries and programs, and hooks where their program is."""

from __future__ import annotations

import re

from cdi_runc.authoring import dri, ldcache
from cdi_runc.authoring.found import Found, base, name_of, with_nodes
from cdi_runc.edits.hooks import SAFE_ENV

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdi_runc.authoring.found import Edits
    from cdi_runc.authoring.host import Host

KIND = "nvidia.com/gpu"
_GPUS = "/proc/driver/nvidia/gpus"
_CAPABILITIES = "/proc/driver/nvidia/capabilities"
_SHARED = "nvidiactl|nvidia-uvm|nvidia-uvm-tools|nvidia-modeset"
_PROGRAMS = (
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-smi",
)
_FILES = (
    "/etc/vulkan/icd.d/nvidia_icd.json",
    "/etc/vulkan/implicit_layer.d/nvidia_layers.json",
    "/usr/share/egl/egl_external_platform.d/10_nvidia_wayland.json",
    "/usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json",
    "/usr/share/glvnd/egl_vendor.d/10_nvidia.json",
    "/usr/share/vulkan/icd.d/nvidia_icd.json",
)
_HOOKS = (
    ("/usr/bin/nvidia-cdi-hook", ("nvidia-cdi-hook",)),
    ("/usr/bin/nvidia-ctk", ("nvidia-ctk", "hook")),
)
_OPTIONS = ["ro", "nosuid", "nodev", "rbind", "rprivate"]
_DRIVER = re.compile(r"lib(?:cuda|nvidia-ml)\.so\.(\d+(?:\.\d+)+)")


def find(host: Host) -> Found:
    """Return each GPU by its number and its UUID, and each MIG device by its instances."""
    devices: list[tuple[str, Edits]] = []
    cards = dri.cards(host)
    for index, (minor, uuid, address) in enumerate(_gpus(host)):
        node = f"/dev/nvidia{minor}"
        own = with_nodes(host, {node: "", **cards.get(f"pci-{address}", {})})
        devices += [(name_of(name), own) for name in (str(index), uuid) if name]
        for name, nodes in _mig(host, minor):
            devices.append((f"{index}:{name}", with_nodes(host, [node, *nodes])))
    if not devices:
        return Found([])
    shared = with_nodes(host, host.nodes("/dev", _SHARED))
    # The toolkit's own runtime, where it is in use too, must not add the devices once more.
    shared["env"] = ["NVIDIA_VISIBLE_DEVICES=void"]
    version, libraries = _driver(host)
    shared["hooks"] = _hooks(host, libraries)
    shared["mounts"] = _mounts(host, version, libraries, link=not shared["hooks"])
    return Found(devices, shared, tuple(_notes(host, version, libraries, shared)))


def _gpus(host: Host) -> Iterator[tuple[str, str, str]]:
    """Yield the node's number, the UUID and the PCI address of each GPU, in the order of NVML."""
    nodes = [base(n).removeprefix("nvidia") for n in host.nodes("/dev", r"nvidia\d+")]
    told = []
    for address in sorted(host.names(_GPUS)):  # hexadecimal and of one width, as NVML counts
        text = host.text(f"{_GPUS}/{address}/information")
        fields = dict(re.findall(r"^([^:\n]+):\s*(.*?)\s*$", text, re.MULTILINE))
        if fields.get("Device Minor") in nodes:
            uuid = fields.get("GPU UUID", "")
            # Until a process has used the GPU, the driver may know no UUID and write "?".
            told.append((fields["Device Minor"], "" if "?" in uuid else uuid, address))
    yield from told or [(number, "", "") for number in nodes]


def _mig(host: Host, minor: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the nodes of each compute instance of a GPU that is divided."""
    place = f"{_CAPABILITIES}/gpu{minor}/mig"
    for instance in host.names(place):
        for compute in host.names(f"{place}/{instance}"):
            below = (instance, f"{instance}/{compute}")
            texts = [host.text(f"{place}/{one}/access") for one in below]
            numbers = [re.search(r"DeviceFileMinor: (\d+)", text) for text in texts]
            nodes = [f"/dev/nvidia-caps/nvidia-cap{found[1]}" for found in numbers if found]
            if len(nodes) == len(below) and all(host.is_node(node) for node in nodes):
                yield f"{instance}:{compute}", nodes


def _driver(host: Host) -> tuple[str, dict[str, set[str]]]:
    """Return the driver's version, and for each of its libraries the names in the cache.

    They are those whose real name ends with that version.
    """
    cached = [(name, host.real(path)) for name, path in ldcache.libraries(host)]
    loaded = host.text("/sys/module/nvidia/version")
    known = {found[1] for _, path in cached if (found := _DRIVER.fullmatch(base(path)))}
    version = loaded if loaded in known else max(known, default="")
    libraries: dict[str, set[str]] = {}
    for name, path in cached:
        if version and path.endswith(f".so.{version}"):
            libraries.setdefault(path, set()).add(name)
    return version, dict(sorted(libraries.items()))


def _hooks(host: Host, libraries: dict[str, set[str]]) -> list[dict[str, object]]:
    """Return the hooks that make the libraries known to the container's own linker."""
    found = next((one for one in _HOOKS if host.is_program(one[0])), None)
    folders = sorted({path.rpartition("/")[0] for path in libraries})
    if found is None or not folders:
        return []
    program, words = found
    links = [
        ("libcuda.so.1", f"{path.rpartition('/')[0]}/libcuda.so")
        for path in libraries
        if base(path).startswith("libcuda.so.")
    ]
    calls = [("create-symlinks", [w for t, at in links for w in ("--link", f"{t}::{at}")])]
    calls.append(("update-ldcache", [w for folder in folders for w in ("--folder", folder)]))
    return [
        {
            "hookName": "createContainer",
            "path": program,
            "args": [*words, call, *arguments],
            "env": list(SAFE_ENV),
        }
        for call, arguments in calls
        if arguments
    ]


def _mounts(
    host: Host, version: str, libraries: dict[str, set[str]], *, link: bool
) -> list[dict[str, object]]:
    """Return the mounts; with *link*, libraries also under the names by which programs ask.

    No hook makes links then.
    """
    pairs = {(path, path) for path in libraries}
    if link:
        for path, names in libraries.items():
            pairs |= {(path, f"{path.rpartition('/')[0]}/{name}") for name in names}
    firmware = f"/lib/firmware/nvidia/{version}"
    others = [f"/usr/bin/{name}" for name in _PROGRAMS] + list(_FILES)
    others += [f"{firmware}/{name}" for name in host.names(firmware) if version]
    pairs |= {(path, path) for path in others if host.place(path)}
    return [
        {"hostPath": source, "containerPath": target, "options": list(_OPTIONS)}
        for source, target in sorted(pairs, key=lambda pair: pair[1])
    ]


def _notes(
    host: Host, version: str, libraries: dict[str, set[str]], shared: Edits
) -> Iterator[str]:
    loaded = host.text("/sys/module/nvidia/version")
    if not libraries:
        yield "the linker's cache of this host has no library of the driver; run: ldconfig"
    elif loaded and loaded != version:
        yield (
            f"the kernel has driver {loaded}, and the libraries are of {version}:"
            " programs will refuse to work until the module is loaded anew (reboot)"
        )
    if libraries and not shared["hooks"]:
        folders = ":".join(sorted({path.rpartition("/")[0] for path in libraries}))
        yield (
            "nvidia-cdi-hook and nvidia-ctk are not here, so libraries are mounted under each of"
            f" their names; an image whose linker does not look in {folders} needs"
            f" LD_LIBRARY_PATH={folders}"
        )
