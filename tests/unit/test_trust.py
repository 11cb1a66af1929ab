"""Who else could change a file: the whole way to it, links and user namespaces included."""

import os
import shutil
import struct

import pytest
from support.configurations import let_others_enter
from support.installations import ROOT
from support.programs import need, run

from cdi_runc import trust

OTHER = 54321
GROUP = 54322
NOWHERE = r"symbolic links|No such file|Not a directory"


@pytest.fixture
def file(tmp_path):
    """Return a file in a directory in a directory."""
    path = tmp_path / "top/below/file.json"
    path.parent.mkdir(parents=True)
    path.write_text("")
    return path


@pytest.fixture
def reachable(tmp_path):
    """Return a directory that others may enter."""
    let_others_enter(tmp_path)
    return tmp_path


def fault(path):
    """Return who else could change *path*, and the cure, as one sentence."""
    return "; ".join(trust.fault(str(path)) or ())


def test_what_root_and_we_own_is_fine(file):
    """A file of ours is fine, in a directory of ours, below root's and a sticky one."""
    assert fault(file) == fault(file.parent) == fault("/etc") == fault("/") == ""
    file.parent.parent.chmod(0o1777)
    assert fault(file) == ""


@pytest.mark.parametrize("step", ["top", "top/below", "top/below/file.json"])
@pytest.mark.parametrize(
    ("change", "what", "cure"),
    [
        pytest.param((OTHER, 0, 0o755), f"belongs to user {OTHER}", "chown root", id="owner"),
        pytest.param(
            (0, GROUP, 0o775), f"is writable by group {GROUP} (mode 0775)", "chmod g-w", id="group"
        ),
        pytest.param(
            (0, 0, 0o770), "is writable by group 0 (mode 0770)", "chmod g-w", id="group-0"
        ),
        pytest.param((0, 0, 0o757), "is writable by everybody (mode 0757)", "chmod o-w", id="all"),
        pytest.param(
            (0, 0, 0o777), "is writable by everybody (mode 0777)", "chmod go-w", id="both"
        ),
    ],
)
def test_every_step_counts(tmp_path, file, step, change, what, cure):
    """What others own or may write is named, wherever on the way, and its cure cures it."""
    place = tmp_path / step
    uid, gid, mode = change
    os.chown(place, uid, gid)
    place.chmod(mode)

    assert f"{place} {what}; {cure} {place}" == fault(file).partition("  #")[0]
    run("sh", "-c", trust.fault(str(file))[1])
    assert fault(file) == ""


def test_sticky_directory_keeps_what_its_owner_made(file):
    """Below a sticky directory only the owner of what lies there counts; it holds no spec files."""
    top = file.parent.parent
    top.chmod(0o1777)
    os.chown(file.parent, OTHER, OTHER)

    cure = f"chown root {file.parent}  # or keep it elsewhere"
    assert f"{file.parent} belongs to user {OTHER}; {cure}" == fault(file)
    cure = f"mkdir {top}/cdi-runc  # and keep it there"
    assert f"{top} is writable by everybody (mode 1777); {cure}" == fault(top)


def test_links_are_followed_step_by_step(tmp_path, file):
    """The directory of a link counts, and so does the way to its target."""
    links, real = tmp_path / "links", tmp_path / "real"
    links.mkdir()
    real.mkdir()
    (real / "x.json").write_text("")
    (links / "a").symlink_to("../links/b/./x.json")
    (links / "b").symlink_to(real)
    passed = [place for place, _ in trust.way(str(links / "a"))]

    assert [str(links / "a"), str(links), str(links / "b"), str(real), str(real / "x.json")] == [
        place
        for place in passed[passed.index(str(links / "a")) :]
        if place.startswith((str(links), str(real)))
    ]
    assert fault(links / "a") == ""
    real.chmod(0o777)
    assert f"{real} is writable" in fault(links / "a")
    real.chmod(0o755)
    links.chmod(0o757)
    assert f"{links} is writable" in fault(links / "a")


def test_link_of_another_in_a_sticky_directory(tmp_path, file):
    """A link that somebody else made in a sticky directory is not followed in good faith."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "link").symlink_to(file)
    os.lchown(shared / "link", OTHER, OTHER)

    assert f"{shared}/link belongs to user {OTHER}; chown -h root {shared}/link" == fault(
        shared / "link"
    )


@pytest.mark.parametrize("kind", ["loop", "chain", "dangling", "through-a-file"])
def test_what_leads_nowhere_ends(tmp_path, file, kind):
    """Loops, chains longer than the kernel follows and dangling links are errors, at once."""
    path = tmp_path / "link0"
    if kind == "loop":
        path.symlink_to("link0")
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "through-a-file":
        path = file / "x"
    else:
        for number in range(41):
            (tmp_path / f"link{number}").symlink_to(f"link{number + 1}")
        (tmp_path / "link41").write_text("")
    with pytest.raises(OSError, match=NOWHERE):
        trust.fault(str(path))
    with pytest.raises(OSError, match=NOWHERE):
        os.stat(path)

    assert trust.refusal(str(path)) == ""


def test_forty_links_are_followed_as_the_kernel_does(tmp_path):
    """The longest chain that the kernel follows is followed here too."""
    for number in range(40):
        (tmp_path / f"link{number}").symlink_to(f"link{number + 1}")
    (tmp_path / "link40").write_text("")

    assert (tmp_path / "link0").stat()
    assert fault(tmp_path / "link0") == ""


def test_access_control_list_shows_in_the_mode(reachable, file):
    """An ACL that lets another user write makes the group bits say so; the cure takes it back."""
    entries = [(1, 6, 2**32 - 1), (2, 6, OTHER), (4, 4, 2**32 - 1), (16, 6, 2**32 - 1)]
    entries.append((32, 4, 2**32 - 1))  # user, user OTHER, group, mask, others
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    os.setxattr(file, "system.posix_acl_access", acl)
    theirs = ("setpriv", "--reuid", str(OTHER), "--regid", str(OTHER), "--clear-groups")

    assert f"{file} is writable by group 0 (mode 0664); chmod g-w {file}" == fault(file)
    assert run(*theirs, "sh", "-c", f"echo >>{file}", check=False).status == 0
    run("chmod", "g-w", file)
    assert fault(file) == ""
    assert run(*theirs, "sh", "-c", f"echo >>{file}", check=False).status != 0


def test_relative_path(file, monkeypatch):
    """A path that begins nowhere begins in the working directory."""
    monkeypatch.chdir(file.parent)
    file.parent.chmod(0o777)

    assert f"{file.parent} is writable by everybody" in fault("file.json")


def test_cure_is_a_word_for_the_shell(tmp_path):
    """A name that the shell would take apart is quoted in the cure."""
    path = tmp_path / "it's; rm -rf x"
    path.write_text("")
    path.chmod(0o666)
    found = trust.fault(str(path))
    run("sh", "-c", found[1])

    assert fault(path) == ""


@pytest.fixture
def in_namespace(reachable):
    """Run Python code as another user, in a user namespace that has only this one."""
    library = reachable / "library"
    library.mkdir()
    shutil.copy(ROOT / "cdi_runc/trust.py", library)

    def call(code, *arguments):
        need("setpriv")
        user = ("setpriv", "--reuid", str(OTHER), "--regid", str(OTHER), "--clear-groups")
        program = f"import sys; sys.path.insert(0, {str(library)!r}); import trust; {code}"
        words = (*user, need("unshare"), "--user", "--map-root-user", "/usr/bin/python3", "-S")
        return run(*words, "-B", "-c", program, *arguments).out.strip()

    return call


def test_in_a_user_namespace_the_hosts_root_is_believed(reachable, in_namespace):
    """Where host root is not mapped, what it owns is believed, and the mode counts all the same."""
    place = reachable / "place"
    place.mkdir(mode=0o755)
    ask = "print(trust.fault(sys.argv[1]))"

    assert in_namespace(ask, "/etc") == "None"
    assert in_namespace("print(trust.private(sys.argv[1]))", "/etc") == "False"
    os.chown(place, OTHER, OTHER)
    assert in_namespace(ask, place) == "None"
    assert in_namespace("print(trust.private(sys.argv[1]))", place) == "True"
    place.chmod(0o777)
    assert f"{place} is writable by everybody" in in_namespace(ask, place)


def test_in_a_user_namespace_a_sticky_directory_hides_who_owns(reachable, in_namespace):
    """Below a sticky directory an owner outside the namespace could be anybody."""
    shared = reachable / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "theirs").mkdir()
    os.chown(shared / "theirs", OTHER + 1, OTHER + 1)
    (shared / "theirs/ours").mkdir()
    os.chown(shared / "theirs/ours", OTHER, OTHER)
    ask = "print(trust.fault(sys.argv[1]))"

    assert "belongs to user 65534" in in_namespace(ask, shared / "theirs")
    assert in_namespace(ask, shared / "theirs/ours") == "None"


@pytest.mark.parametrize("target", ["/dev/null", "fifo"])
def test_what_is_no_file_is_left_to_the_reader(tmp_path, target):
    """No cure takes the rights of a device away: what is not read is refused when it is read."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "fifo").chmod(0o666)
    (tmp_path / "link").symlink_to(target)

    assert fault(tmp_path / "link") == ""


def test_outside_a_user_namespace_nobody_is_a_user(tmp_path, file):
    """On the host the owner that stands for outsiders elsewhere is an ordinary other user."""
    os.chown(file, 65534, 65534)

    assert f"{file} belongs to user 65534; chown root {file}" == fault(file)


def test_marks_show_what_matters(tmp_path, file):
    """A new owner, mode, directory or link on the way shows; a file put beside it does not."""
    link = tmp_path / "link"
    link.symlink_to("top")
    path = str(link / "below")
    marks = [*trust.marks(path)]

    (tmp_path / "beside").write_text("")
    assert trust.are_current(marks)
    (tmp_path / "top").chmod(0o777)
    assert not trust.are_current(marks)
    (tmp_path / "top").chmod(0o755)
    assert trust.are_current(marks)
    os.chown(tmp_path / "top", OTHER, 0)
    assert not trust.are_current(marks)
    os.chown(tmp_path / "top", 0, 0)
    link.unlink()
    link.symlink_to("top")
    assert not trust.are_current(marks)


def test_marks_end_where_the_way_ends(tmp_path):
    """Of what is missing the way is marked as far as it goes."""
    assert str(tmp_path) == [place for place, _ in trust.marks(f"{tmp_path}/a/b")][-1]
