"""Paths: cleaned as Go cleans them, and where things lie for whom."""

import posix
import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdi_runc import paths, settings


@pytest.mark.parametrize(
    ("path", "cleaned"),
    [
        ("", "."),
        (".", "."),
        ("/", "/"),
        ("//", "/"),
        ("/a", "/a"),
        ("/a/", "/a"),
        ("//a", "/a"),
        ("/a//b", "/a/b"),
        ("/a/./b", "/a/b"),
        ("/a/../b", "/b"),
        ("/..", "/"),
        ("/../a", "/a"),
        ("a", "a"),
        ("a/", "a"),
        ("./a", "a"),
        ("a/..", "."),
        ("..", ".."),
        ("../..", "../.."),
        ("../a/../..", "../.."),
        ("/a/...", "/a/..."),
        ("/.a/..b", "/.a/..b"),
        ("/a b/\udcff", "/a b/\udcff"),
    ],
    ids=repr,
)
def test_path_is_cleaned(path, cleaned):
    """A path is what Go's path.Clean makes of it."""
    assert cleaned == paths.clean(path)


@given(st.lists(st.sampled_from(["", ".", "..", "a", "b.", "..c"])).map("/".join))
def test_clean_paths_stay(path):
    """Cleaning is what normpath does, but for two leading slashes, and twice is once."""
    expected = posixpath.normpath(path)
    expected = expected[1:] if expected.startswith("//") else expected

    assert expected == paths.clean(path) == paths.clean(paths.clean(path))


def test_root_has_the_places_of_the_host(monkeypatch):
    """For root everything lies where the host's packages put it, whatever XDG says."""
    monkeypatch.setitem(posix.environ, b"XDG_RUNTIME_DIR", b"/run/user/7")
    monkeypatch.setattr(paths, "is_system", lambda: True)

    assert (paths.STATE, paths.LOGS) == (paths.state(), paths.logs())
    assert ("/etc/cdi", "/var/run/cdi") == paths.spec_dirs()
    assert (paths.CONFIG, False) == paths.config()


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param(
            {"HOME": "/h", "XDG_RUNTIME_DIR": "/r"},
            ("/r/cdi-runc", "/h/.local/state/cdi-runc", ("/h/.config/cdi", "/r/cdi")),
            id="usual",
        ),
        pytest.param(
            {"HOME": "/h"}, (None, "/h/.local/state/cdi-runc", ("/h/.config/cdi",)), id="no-session"
        ),
        pytest.param(
            {"XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c", "XDG_RUNTIME_DIR": "/r"},
            ("/r/cdi-runc", "/s/cdi-runc", ("/c/cdi", "/r/cdi")),
            id="moved",
        ),
        pytest.param(
            {
                "HOME": "/h",
                "XDG_RUNTIME_DIR": "relative",
                "XDG_CONFIG_HOME": "c",
                "XDG_STATE_HOME": "s",
            },
            (None, "/h/.local/state/cdi-runc", ("/h/.config/cdi",)),
            id="relative",
        ),
    ],
)
def test_others_have_places_of_their_own(monkeypatch, environ, expected):
    """A caller who is not root adds spec directories, and keeps state where nobody else can."""
    monkeypatch.setattr(paths, "is_system", lambda: False)
    monkeypatch.delitem(posix.environ, b"HOME", raising=False)
    for name, value in environ.items():
        monkeypatch.setitem(posix.environ, name.encode(), value.encode())
    state, logs, spec_dirs = expected

    assert (state, logs) == (paths.state(), paths.logs())
    assert (*paths.SPEC_DIRS, *spec_dirs) == paths.spec_dirs()
    assert (state, f"{logs}/audit.jsonl") == (
        settings.defaults().state_dir,
        settings.defaults().audit_file,
    )


def test_what_leads_nowhere_does_not_exist(tmp_path):
    """A dangling link, and what cannot be a path, lead to nothing."""
    (tmp_path / "link").symlink_to("nowhere")

    assert paths.exists(str(tmp_path))
    assert not paths.exists(str(tmp_path / "link"))
    assert not paths.exists("/a\0b")
    assert not paths.exists("")
