"""Programs and libraries: does what was injected fit the image's C library and linker."""

from __future__ import annotations

import os
import re

from cdi_runc import files
from cdi_runc.doctor import Finding, counted, edit, elf, named, rootfs
from cdi_runc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cdi_runc.doctor.containers import Container
    from cdi_runc.doctor.rootfs import View

DIRECTORIES = ("/lib", "/usr/lib", "/lib64", "/usr/lib64")
MUSL_DIRECTORIES = ("/lib", "/usr/local/lib", "/usr/lib")
CACHE = "/etc/ld.so.cache"
CONFIGURATION = "/etc/ld.so.conf"
LIMIT = 16 << 20  # bytes of the linker's files
MANY = 1000  # files of one directory that was mounted
PLUGINS = re.compile(r"/(dri|gbm|gconv|vdpau|vulkan|xorg)(/|$)")
"""Directories whose libraries programs open by their full path."""
_LIBRARY = re.compile(r".*\.so(\.[0-9.]+)?")
_HELPERS = ("ldcache", "ldconfig")


class Piece(Record):
    """An ELF file that came into the container, by which device."""

    object: elf.Object
    host: str
    origin: str

    @property
    def name(self) -> str:
        """The file's name."""
        return self.object.path.rpartition("/")[2]


class Image(Record):
    """What the image brings: its C library, and where its linker looks."""

    libc: str
    """``glibc``, ``musl``, or nothing."""
    version: tuple[int, ...]
    """That of glibc, as far as its symbols tell."""
    directories: tuple[str, ...]
    """Where the linker looks, in order."""
    cached: frozenset[bytes]
    """The paths in the linker's cache."""
    configured: tuple[str, ...]
    """Directories that only ``ldconfig`` reads."""
    machine: str
    """That of its own programs, where one was found."""


def pieces(container: Container, view: View) -> list[Piece]:
    """Return every ELF file that was injected and can be seen."""
    hidden = [mount for mount, _ in view.hidden]
    found: list[Piece] = []
    for one in container.of("mounts"):
        source = rootfs.source(one.value)
        if source is None or one.value in hidden:
            continue
        target = rootfs.destination(one.value)
        inside = _inside(source) if os.path.isdir(source) else [""]
        for below in inside:
            read = elf.read(f"{source}{below}", f"{target}{below}")
            if read:
                found.append(Piece(read, f"{source}{below}", one.origin))
    return found


def _inside(directory: str) -> list[str]:
    """Return the libraries and programs below *directory*, as paths that begin with a slash."""
    found = []
    for place, directories, names in os.walk(directory):
        directories.sort()
        for name in sorted(names):
            path = f"{place}/{name}"
            if not os.path.islink(path) and (_LIBRARY.fullmatch(name) or os.access(path, os.X_OK)):
                found.append(path.removeprefix(directory))
                if len(found) == MANY:
                    return found
    return found


def image(view: View, own: View, env: Sequence[str], program: str = "") -> Image:
    """Return what there is to know of the image, seen with all mounts and with its own alone."""
    libraries = [
        f"{above}/{name}"
        for above in ("/lib", "/usr/lib", "/lib64", "/usr/lib64")
        for name in ("", *(n for n in own.names(above) if "-linux-" in n))
    ]
    glibc = next(
        (path for place in libraries if own.find(path := f"{place.rstrip('/')}/libc.so.6")), ""
    )
    musl = [name for name in own.names("/lib") if name.startswith("ld-musl-")]
    loaders = [
        f"{place}/{name}"
        for place in ("/lib64", "/lib")
        for name in own.names(place)
        if name.startswith(("ld-linux", "ld64.so", "ld-musl-"))
    ]
    libc = "glibc" if glibc or (loaders and not musl) else "musl" if musl else ""
    variables = dict(entry.partition("=")[::2] for entry in env)
    paths = [one for one in variables.get("LD_LIBRARY_PATH", "").split(":") if one]
    cached: frozenset[bytes] = frozenset()
    configured: tuple[str, ...] = ()
    if libc == "musl":
        named_ = _text(view, f"/etc/{musl[0].partition('.')[0]}.path")
        directories = (*re.split(r"[:\n]", named_),) if named_ else MUSL_DIRECTORIES
    else:
        beside = glibc.rpartition("/")[0]
        twin = beside.removeprefix("/usr") if beside.startswith("/usr/") else f"/usr{beside}"
        directories = (*DIRECTORIES, *((beside, twin) if glibc else ()))
        cached = frozenset(_bytes(view, CACHE).split(b"\0"))
        configured = tuple(_configured(view, CONFIGURATION))
    first = [program, *loaders, glibc, "/bin/sh"]
    read = [elf.read(host, path) for path in first if path and (host := own.find(path))]
    return Image(
        libc=libc,
        version=elf.glibc_version(own.find(glibc) or "") if glibc else (),
        directories=tuple(dict.fromkeys(view.real(one) for one in (*paths, *directories) if one)),
        cached=cached,
        configured=configured,
        machine=next((one.machine for one in read if one), ""),
    )


def _bytes(view: View, path: str) -> bytes:
    try:
        return files.read(view.find(path) or "", LIMIT)[0]
    except (OSError, ValueError):
        return b""


def _text(view: View, path: str) -> str:
    return _bytes(view, path).decode("utf-8", "replace")


def _configured(view: View, path: str, depth: int = 3) -> Iterator[str]:
    """Yield the directories that the linker's configuration at *path* names."""
    for line in _text(view, path).splitlines():
        words = line.partition("#")[0].split()
        if words[:1] == ["include"] and depth:
            for pattern in words[1:]:
                place, _, name = os.path.join("/etc", pattern).rpartition("/")
                wanted = re.compile(re.escape(name).replace(r"\*", ".*"))
                for found in view.names(place):
                    if wanted.fullmatch(found):
                        yield from _configured(view, f"{place}/{found}", depth - 1)
        else:
            yield from (word.rstrip("/") for word in words if word[:1] == "/")


def needs_glibc(one: elf.Object) -> bool:
    """Tell whether *one* was linked with glibc."""
    return (
        "libc.so.6" in one.needed
        or any(name.startswith("GLIBC_") for _, names in one.versions for name in names)
        or "/ld-linux" in one.interpreter
    )


def needs_musl(one: elf.Object) -> bool:
    """Tell whether *one* was linked with musl."""
    return "/ld-musl-" in one.interpreter or any("musl" in name for name in one.needed)


def fits(found: Sequence[Piece], own: Image) -> list[Piece]:
    """Return those that the image's C library can load."""
    if own.libc == "glibc":
        return [one for one in found if not needs_musl(one.object)]
    if own.libc == "musl":
        return [one for one in found if not needs_glibc(one.object)]
    return []


def other_libc(found: Sequence[Piece], own: Image) -> Iterator[Finding]:
    """Look for what was linked with another C library than the image has."""
    wrong = {
        "musl": [one for one in found if needs_glibc(one.object)],
        "glibc": [one for one in found if needs_musl(one.object)],
    }.get(own.libc, [])
    other = "glibc" if own.libc == "musl" else "musl"
    if wrong:
        yield Finding(
            "error",
            f"{counted(len(wrong), 'object')} of {wrong[0].origin}"
            f" {'needs' if len(wrong) == 1 else 'need'} {other}, and the image has only"
            f" {own.libc}: {named([one.object.path for one in wrong])}",
            'They cannot be loaded: programs end with "Error relocating" or "not found".',
            f"docker run ... {'debian:stable-slim' if other == 'glibc' else 'alpine'}"
            f"  # an image with {other}",
        )
    if not own.libc and found:
        yield Finding(
            "note",
            f"the image has no C library, so nothing in it can load"
            f" {named([one.object.path for one in found])}",
            "That is fine for a program that is linked statically and only uses the node.",
            "docker run ... debian:stable-slim  # an image with glibc",
        )


def too_new(found: Sequence[Piece], own: Image) -> Iterator[Finding]:
    """Look for what needs a newer glibc than the image has."""
    if not own.version:
        return
    needed = {
        one: version
        for one in fits(found, own)
        if (version := elf.glibc_needed(name for _, names in one.object.versions for name in names))
        > own.version
    }
    if needed:
        has, wanted = _dotted(own.version), _dotted(max(needed.values()))
        first = max(needed, key=lambda one: needed[one])
        others = len(needed) - 1
        yield Finding(
            "error",
            f"{first.object.path} needs GLIBC_{wanted}, and the image's glibc is {has}"
            f" ({first.origin}"
            + (f"; {counted(others, 'more object')} too new as well)" if others else ")"),
            f'It cannot be loaded: "version `GLIBC_{wanted}\' not found".',
            f"docker run ... IMAGE  # one with glibc {wanted} or newer",
        )


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


def other_machine(found: Sequence[Piece], own: Image) -> Iterator[Finding]:
    """Look for what is for another kind of processor than the image's programs."""
    # 32-bit libraries beside 64-bit ones are usual, as in NVIDIA's driver.
    family = {"386": "X86_64", "ARM": "AARCH64"}
    for one in found:
        machine = one.object.machine
        if own.machine and family.get(machine, machine) != family.get(own.machine, own.machine):
            yield Finding(
                "error",
                f"{one.object.path} is for {machine}, and the image's programs are for"
                f" {own.machine} ({one.origin})",
                'It cannot be loaded or run: "wrong ELF class" or "Exec format error".',
                f"docker run --platform linux/{_platform(machine)} ...",
            )


def _platform(machine: str) -> str:
    return {"X86_64": "amd64", "AARCH64": "arm64", "386": "386"}.get(machine, machine.lower())


def missing_loader(found: Sequence[Piece], own: Image, view: View) -> Iterator[Finding]:
    """Look for programs whose loader the image does not have."""
    for one in fits(found, own) if view.is_known else ():
        loader = one.object.interpreter
        if loader and not view.find(loader):
            yield Finding(
                "error",
                f"{one.object.path} asks for the loader {loader}, which is not in the image"
                f" ({one.origin})",
                'Starting it fails with "no such file or directory", though the file is there.',
                "docker run ... debian:stable-slim  # or another image that has it",
            )


def missing_symbols(found: Sequence[Piece], own: Image, view: View) -> Iterator[Finding]:
    """Look for symbol versions that the libraries in the container do not have."""
    for one in fits(found, own):
        for library, names in one.object.versions:
            path = _linked(library, own, view)
            provider = elf.read(view.find(path) or "", path) if path else None
            if provider is None or not provider.defined:
                continue
            missing = [
                name
                for name in names
                if name not in provider.defined
                and not (own.version and elf.glibc_needed(iter([name])) > own.version)
            ]
            if missing:
                yield Finding(
                    "error",
                    f"{one.object.path} needs {named(missing)} of {library}, and {path} in the"
                    f" container does not have it ({one.origin})",
                    f'It cannot be loaded: "version `{missing[-1]}\' not found".',
                    f"docker run ... IMAGE  # one with a newer {library}",
                )


def _linked(name: str, own: Image, view: View) -> str:
    """Return where the linker finds the library *name*, or nothing."""
    for directory in own.directories:
        if view.find(f"{directory}/{name}"):
            return f"{directory}/{name}"
    for entry in own.cached:
        path = os.fsdecode(entry)
        if path[:1] == "/" and path.endswith(f"/{name}") and view.find(path):
            return path
    return ""


def missing_libraries(found: Sequence[Piece], own: Image, view: View) -> Iterator[Finding]:
    """Look for libraries that what was injected needs, and that are nowhere in the container."""
    if not view.is_known:
        return
    beside = {one.object.path.rpartition("/")[0] for one in found}
    injected = {one.object.soname for one in found}
    missing: dict[str, Piece] = {}
    for one in fits(found, own):
        here = one.object.path.rpartition("/")[0]
        runpath = one.object.runpath.replace("${ORIGIN}", here).replace("$ORIGIN", here)
        places = [*(part for part in runpath.split(":") if part), *beside]
        for name in one.object.needed:
            known = name in injected or any(view.find(f"{place}/{name}") for place in places)
            if not known and not _linked(name, own, view):
                missing.setdefault(name, one)
    for name, one in missing.items():
        yield Finding(
            "error",
            f"{one.object.path} needs {name}, which is neither in the image nor injected"
            f" ({one.origin})",
            f'It cannot be loaded: "{name}: cannot open shared object file".',
            edit(_spec(one), f"add a mount of {name}; or install it in the image"),
        )


def _spec(one: Piece) -> str:
    return one.origin.partition(" in ")[2]


def outside_path(
    found: Sequence[Piece], own: Image, view: View, container: Container
) -> Iterator[Finding]:
    """Look for libraries that are there, and that the linker does not find by their name."""
    if not view.is_known or _refreshes(container):
        return
    places: dict[str, list[Piece]] = {}
    for one in fits(found, own):
        place = view.real(one.object.path).rpartition("/")[0]
        if not one.object.is_library or PLUGINS.search(place):
            continue
        if _linked(one.object.soname, own, view):
            continue
        if place in own.directories:
            yield Finding(
                "warning",
                f"{one.object.path} is there, and programs look for it as {one.object.soname},"
                f" which is not ({one.origin})",
                f'They end with "{one.object.soname}: cannot open shared object file": nobody made'
                " the link, since ldconfig does not run by itself.",
                edit(_spec(one), f"mount it as {place}/{one.object.soname}, too"),
            )
        else:
            places.setdefault(place, []).append(one)
    for place, own_pieces in places.items():
        known = place in own.configured
        yield Finding(
            "warning",
            f"{named([one.name for one in own_pieces])} in {place} "
            + ("is" if len(own_pieces) == 1 else "are")
            + f" not in the linker's path ({own_pieces[0].origin})",
            "Programs do not find what they do not name in full: "
            + (
                f"{CONFIGURATION} names the directory, but the cache was not made anew."
                if known
                else f"the directory is neither in LD_LIBRARY_PATH nor in {CONFIGURATION}."
            ),
            edit(_spec(own_pieces[0]), f"add to the device: env: [LD_LIBRARY_PATH={place}]"),
        )


def _refreshes(container: Container) -> bool:
    """Tell whether a hook of the device makes the linker's cache anew."""
    words = [
        word
        for one in container.of("hooks")
        for word in (one.value["path"], *(one.value.get("args") or ()))
    ]
    return any(helper in word for word in words for helper in _HELPERS)
