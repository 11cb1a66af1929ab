"""Files: replaced by rename, appended whole or not at all."""

import os
import socket
import stat
import subprocess
import sys
import threading

import pytest

from cdi_runc import files


def test_owner_and_mode_stay(tmp_path):
    """A replaced file keeps the owner and mode of the one before."""
    path = tmp_path / "config.json"
    path.write_text("old")
    path.chmod(0o640)
    os.chown(path, 1000, 1001)
    files.replace(str(path), b"new", like=os.stat(path))
    status = path.stat()

    assert ("new", 0o640, 1000, 1001) == (
        path.read_text(),
        status.st_mode & 0o7777,
        status.st_uid,
        status.st_gid,
    )
    assert [path] == list(tmp_path.iterdir())


def test_litter_of_a_killed_call_goes(tmp_path):
    """What a killed call left behind does not hinder the next one, and goes with it."""
    path = tmp_path / "config.json"
    (tmp_path / ".config.json.cdi-runc").symlink_to("/etc/passwd")
    files.replace(str(path), b"new")

    assert [path] == list(tmp_path.iterdir())


def test_failure_leaves_the_old_file(tmp_path):
    """When the last step fails, the old file stands and no litter stays."""
    path = tmp_path / "config.json"
    path.write_text("old")

    def fail():
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        files.replace(str(path), b"new", before_rename=fail)

    assert "old" == path.read_text()
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["fifo", "directory", "device", "large"])
def test_odd_files_are_refused_at_once(tmp_path, kind):
    """A FIFO, a directory, a device and a file over the limit are refused without a wait."""
    path = tmp_path / "odd"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "device":
        path = "/dev/zero"
    else:
        path.write_bytes(bytes((1 << 20) + 1))

    with pytest.raises((ValueError, OSError)):
        files.read(str(path), 1 << 20)


def test_two_hundred_appends_at_once(tmp_path):
    """Lines that many append at once are all there, and all whole."""
    path = tmp_path / "log/audit.jsonl"
    lines = [(f"{number:03d}" * 3000).encode() + b"\n" for number in range(200)]
    threads = [
        threading.Thread(target=files.append, args=(str(path), line, 0o640)) for line in lines
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(lines) == sorted(path.read_bytes().splitlines(keepends=True))
    assert 0o640 == path.stat().st_mode & 0o777


HOLD = """
import fcntl, signal, sys
fcntl.lockf(sys.stdin, fcntl.LOCK_SH)
print(flush=True)
signal.pause()
"""


@pytest.fixture
def hold(tmp_path):
    """Have another process hold a reader's lock on the log; return the log and the process."""
    path = tmp_path / "log"
    path.write_text("")
    words = [sys.executable, "-I", "-S", "-c", HOLD]
    with (
        path.open("rb") as log,
        subprocess.Popen(words, stdin=log, stdout=subprocess.PIPE) as holder,
    ):
        holder.stdout.readline()
        yield path, holder
        holder.kill()


def test_append_waits_for_its_turn(hold):
    """While another process has locked the log nothing is written to it, and then the line is."""
    path, holder = hold
    thread = threading.Thread(target=files.append, args=(str(path), b"line\n", 0o640))
    thread.start()
    thread.join(0.3)
    written = path.read_text()
    holder.kill()
    thread.join()

    assert ("", "line\n") == (written, path.read_text())


def test_append_does_not_wait_for_ever(hold, monkeypatch):
    """A lock that is not given back counts as a log that cannot be written."""
    monkeypatch.setattr(files, "_LOCK_SECONDS", 0.1)
    path, _ = hold
    with pytest.raises(OSError, match="another process keeps it locked"):
        files.append(str(path), b"line\n", 0o640)

    assert "" == path.read_text()


APPEND = """
import sys
from cdi_runc import files
sys.stdin.read()
for number in range(int(sys.argv[2])):
    files.append(sys.argv[1], b"%x " % number + sys.argv[3].encode() * 3000 + b"\\n", 0o640)
"""


def test_a_thousand_appends_of_many_processes(tmp_path):
    """Of 64 processes that append all at once none waits too long: every line is there, whole."""
    path = tmp_path / "log"
    letters = [f"{number:02x}" for number in range(64)]
    words = [sys.executable, "-c", APPEND, path, "16"]
    started = [subprocess.Popen([*words, one], stdin=subprocess.PIPE) for one in letters]
    for process in started:
        process.stdin.close()

    assert {0} == {process.wait(120) for process in started}
    expected = {f"{number:x} {one * 3000}\n" for one in letters for number in range(16)}
    lines = path.read_text().splitlines(keepends=True)
    assert (len(expected), expected) == (len(lines), set(lines))


@pytest.fixture
def small(tmp_path):
    """Return a directory on a file system of 64 KiB."""
    path = tmp_path / "small"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", path], check=True)
    yield path
    subprocess.run(["umount", path], check=True)


def test_full_disk_takes_whole_lines_only(small):
    """A line for which the disk has no room leaves no part of itself; a shorter one still fits."""
    path = small / "audit.jsonl"
    line = b"x" * 29_999 + b"\n"
    files.append(str(path), line, 0o640)
    files.append(str(path), line, 0o640)
    with pytest.raises(OSError, match="No space"):
        files.append(str(path), line, 0o640)
    files.append(str(path), b"short\n", 0o640)

    assert line + line + b"short\n" == path.read_bytes()


def test_log_is_not_a_link(tmp_path):
    """A log that is a symbolic link is not followed."""
    (tmp_path / "target").write_text("")
    (tmp_path / "log").symlink_to("target")
    with pytest.raises(OSError, match="symbolic links"):
        files.append(str(tmp_path / "log"), b"line\n", 0o640)

    assert "" == (tmp_path / "target").read_text()


@pytest.mark.parametrize(
    "trick", ["hard-link", "owner", "mode", "directory", "open-directory", "above", "linked"]
)
def test_log_that_others_could_change_is_not_written(tmp_path, trick):
    """Nothing is appended to a file with a second name, or that others could change or replace."""
    path = tmp_path / "top/log/audit.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("")
    if trick == "hard-link":
        (tmp_path / "victim").hardlink_to(path)
    elif trick == "owner":
        os.chown(path, 1000, 0)
    elif trick == "mode":
        path.chmod(0o660)
    elif trick == "directory":
        os.chown(path.parent, 1000, 0)
    elif trick == "open-directory":
        path.parent.chmod(0o770)
    elif trick == "above":
        path.parent.parent.chmod(0o777)
    else:
        path.parent.parent.chmod(0o1777)
        path.parent.rename(tmp_path / "victim")
        path.parent.symlink_to(tmp_path / "victim")
        os.lchown(path.parent, 1000, 0)
    with pytest.raises(PermissionError, match="others could change it: "):
        files.append(str(path), b"line\n", 0o640)

    assert "" == path.read_text()


@pytest.mark.parametrize("kind", ["fifo", "device", "socket"])
def test_log_that_is_no_file_is_refused_at_once(tmp_path, kind):
    """A FIFO that nobody reads, a device and a socket keep nobody waiting."""
    path = tmp_path / "log"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 7))
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    with pytest.raises(OSError, match=r"not a regular file|No such device"):
        files.append(str(path), b"line\n", 0o640)


def test_log_where_distributions_put_it(tmp_path):
    """A group that may write /var/log, as Ubuntu's syslog, keeps no line from our own directory."""
    path = tmp_path / "log/cdi-runc/audit.jsonl"
    path.parent.parent.mkdir(mode=0o775)
    path.parent.parent.chmod(0o775)
    os.chown(path.parent.parent, 0, 1000)
    files.append(str(path), b"line\n", 0o640)

    assert "line\n" == path.read_text()


def test_private_directory_of_another_is_refused(tmp_path):
    """A state directory that another user made, or may write to, is not used."""
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 1000, 1000)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for name in ("theirs", "open"):
        with pytest.raises(PermissionError):
            files.make_private(str(tmp_path / name))
    files.make_private(str(tmp_path / "a/b/ours"))

    assert 0o700 == (tmp_path / "a/b/ours").stat().st_mode & 0o777
