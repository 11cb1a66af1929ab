"""Shared objects that come into an image without glibc are told of when it is created."""

import pytest
from support.samples import spec

from cdi_runc import plan, rootfs

LIBRARY = {"hostPath": "/opt/acme/libacme.so.1", "containerPath": "/usr/lib/libacme.so.1"}


@pytest.mark.parametrize(
    ("files", "links", "is_told"),
    [
        pytest.param(["lib/ld-musl-x86_64.so.1"], {}, True, id="musl"),
        pytest.param(["usr/lib/ld-musl-x86_64.so.1"], {"lib": "usr/lib"}, True, id="merged-usr"),
        pytest.param(["usr/lib/ld-musl-x86_64.so.1"], {"lib": "/usr/lib"}, True, id="own-root"),
        pytest.param(
            ["lib/ld-musl-x86_64.so.1", "lib64/ld-linux-x86-64.so.2"], {}, False, id="both"
        ),
        pytest.param(["lib64/ld-linux-x86-64.so.2"], {}, False, id="glibc"),
        pytest.param([], {}, False, id="static"),
        pytest.param([], {"lib": "../../lib"}, False, id="link-out-of-it"),
    ],
)
def test_musl_alone_is_told(host, tmp_path, files, links, is_told):
    """The warning comes for an image with musl and without glibc, its own links followed."""
    root = tmp_path / "rootfs"
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    root.mkdir(exist_ok=True)
    for name, target in links.items():
        (root / name).symlink_to(target)
    (host.etc / "a.json").write_text(spec(("w0", {"mounts": [LIBRARY]})))
    steps = plan.build(host.resolve("acme.example/widget=w0"), {}, preflight=False)
    told = rootfs.doubt(steps, {"root": {"path": "rootfs"}}, str(tmp_path))

    assert [True] == [rootfs.is_shared_object(step) for step in steps]
    assert is_told == bool(told)
    if told:
        assert "acme.example/widget=w0 brings shared objects" in told
        assert "/opt/acme/libacme.so.1" in told


@pytest.mark.parametrize("config", [{}, {"root": None}, {"root": {"path": 5}}])
def test_without_a_root_nothing_is_told(host, config):
    """A configuration that names no root file system gives no warning."""
    (host.etc / "a.json").write_text(spec(("w0", {"mounts": [LIBRARY]})))
    steps = plan.build(host.resolve("acme.example/widget=w0"), {}, preflight=False)

    assert "" == rootfs.doubt(steps, config, "/nonexistent")
