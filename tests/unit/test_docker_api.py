"""Docker's API at a Unix socket, good answers and bad ones."""

import socket
import threading

import pytest

from cdi_runc.engines import docker_api

ANSWERS = {
    "good": b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"Id": "x1"}',
    "unknown": b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
    "failure": b"HTTP/1.1 500 Server Error\r\nContent-Length: 2\r\n\r\n{}",
    "garbage": b"220 smtp.example ESMTP\r\n",
    "not-json": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n<>",
    "nothing": b"",
}


@pytest.fixture
def serve(tmp_path):
    """Return a function that answers one request with the bytes given, and returns the address."""
    threads = []

    def start(answer):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / "s"))
        listener.listen(1)

        def once():
            with listener, listener.accept()[0] as connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        threads.append(threading.Thread(target=once))
        threads[-1].start()
        return f"unix://{tmp_path}/s"

    yield start
    for thread in threads:
        thread.join(10)


def test_an_answer_is_json(serve):
    """What the daemon says of a container is returned."""
    assert {"Id": "x1"} == docker_api.inspect(serve(ANSWERS["good"]), "a/b c")


def test_what_is_unknown_is_none(serve):
    """A container that the daemon does not know is None."""
    assert docker_api.inspect(serve(ANSWERS["unknown"]), "x") is None


@pytest.mark.parametrize("name", ["failure", "garbage", "not-json", "nothing"])
def test_what_is_no_answer_is_an_error(serve, name):
    """Anything else is an OSError, whatever the other side is."""
    with pytest.raises(OSError, match=r"it answers 500|its answer is not Docker's"):
        docker_api.get(serve(ANSWERS[name]), "/info")


@pytest.mark.parametrize("host", ["unix:///nonexistent/docker.sock", "tcp://127.0.0.1:1"])
def test_nobody_there_is_an_error(host):
    """A socket that is not there, or is none, is an OSError."""
    with pytest.raises(OSError, match=r"No such file|is not a Unix socket"):
        docker_api.get(host, "/info")
