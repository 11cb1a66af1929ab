"""Docker's API at its Unix socket: the daemon's own word on itself and on its containers."""

from __future__ import annotations

import http.client
import json
import socket
import urllib.parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECONDS = 10.0


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("docker", timeout=SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(SECONDS)
        self.sock.connect(self._path)


def get(host: str, path: str) -> Any:
    """Return what the daemon at *host* answers to ``GET path``; None if it knows no such thing.

    Raises:
        OSError: it does not answer.

    """
    if not host.startswith("unix://"):
        raise OSError(f"{host} is not a Unix socket")
    connection = _Connection(host.removeprefix("unix://"))
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status == http.client.NOT_FOUND:
            return None
        if answer.status != http.client.OK:
            raise OSError(f"it answers {answer.status} {answer.reason}")
        return json.loads(body)
    except (http.client.HTTPException, ValueError) as error:
        raise OSError(f"its answer is not Docker's: {error}") from error
    finally:
        connection.close()


def inspect(host: str, container: str) -> dict[str, Any] | None:
    """Return what Docker knows of the container of that name or id, or None.

    Raises:
        OSError: the daemon does not answer.

    """
    found: dict[str, Any] | None = get(host, f"/containers/{urllib.parse.quote(container)}/json")
    return found
