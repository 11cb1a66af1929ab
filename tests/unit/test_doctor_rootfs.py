"""What a container sees: links, layers and mounts, and the linker's directories in it."""

import os
import stat

import pytest

from cdi_runc.doctor import libraries
from cdi_runc.doctor.rootfs import View


@pytest.fixture
def tree(tmp_path):
    """Return a function that makes a tree: links are texts, files are bytes, None directories."""

    def make(name="tree", **entries):
        for path, content in entries.items():
            place = tmp_path / name / path.replace("__", "/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                place.mkdir()
            elif isinstance(content, str):
                place.symlink_to(content)
            else:
                place.write_bytes(content)
        return str(tmp_path / name)

    return make


@pytest.mark.parametrize(
    ("path", "real"),
    [
        pytest.param("/a/../b//c/.", "/b/c", id="clean"),
        pytest.param("/out/passwd", "/etc/passwd", id="absolute-link"),
        pytest.param("/bad/passwd", "/etc/passwd", id="escaping-link"),
        pytest.param("/loop", "/loop", id="loop"),
        pytest.param("/missing/x", "/missing/x", id="missing"),
        pytest.param("/../..", "/", id="above-the-root"),
    ],
)
def test_links_are_followed_inside_the_container(tree, path, real):
    """No link of an image leads to the host."""
    root = tree(out="/etc", bad="../../../../etc", loop="loop", etc__passwd=b"inside")
    view = View([root], [])

    assert real == view.real(path)
    if real == "/etc/passwd":
        assert f"{root}/etc/passwd" == view.find(path)


def test_upper_layers_hide_lower_ones(tree, tmp_path):
    """Of several layers the topmost counts, and a whiteout takes a file away."""
    upper, lower = tree("upper", same=b"upper"), tree("lower", same=b"lower", gone=b"", low=b"")
    os.mknod(f"{upper}/gone", stat.S_IFCHR, 0)
    view = View([upper, lower], [])

    assert f"{upper}/same" == view.find("/same")
    assert f"{lower}/low" == view.find("/low")
    assert view.find("/gone") is None
    assert ["low", "same"] == view.names("/")


def test_later_mounts_hide_earlier_ones(tree):
    """What a mount covers is hidden, by way of links too; what lies beside it is not."""
    root = tree(lib="usr/lib", usr__lib__x=b"")

    def bind(place):
        return {"destination": place, "source": "/etc", "options": ["rbind"]}

    view = View([root], [bind("/lib/a"), bind("/libb"), bind("/usr/lib"), bind("/usr/lib/c")])

    assert [("/lib/a", "/usr/lib")] == [
        (one["destination"], by["destination"]) for one, by in view.hidden
    ]
    assert "/etc/passwd" == view.find("/lib/passwd")


def test_the_linkers_directories_are_those_of_the_image(tree):
    """Environment, the usual places, and those beside the C library, in this order."""
    root = tree(**{"usr__lib__x86_64-linux-gnu__libc.so.6": b"GLIBC_2.31", "lib": "usr/lib"})
    view = View([root], [])

    image = libraries.image(view, view, ["LD_LIBRARY_PATH=/opt/a:/opt/b"])

    assert "glibc" == image.libc
    assert (2, 31) == image.version
    assert ("/opt/a", "/opt/b", "/usr/lib") == image.directories[:3]
    assert "/usr/lib/x86_64-linux-gnu" in image.directories
