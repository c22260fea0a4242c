"""JSON objects, a line each, over a TCP connection: what rank 0 and the keepers of the others tell each other."""

import json
import socket
import threading
from contextlib import suppress
from typing import Any, Self

LONGEST_BYTES = 2**20
_MALFORMED = (ValueError, RecursionError)

Said = dict[str, Any]


class Lost(Exception):
    """The other side is gone, or talks nonsense."""


class Line:
    """One connection.  ``send`` may be called from several threads, ``receive`` from one."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._sending = threading.Lock()
        self._rest = b""

    @classmethod
    def to(cls, address: str, port: int, timeout_s: float) -> Self:
        """Connect; raises ``OSError``."""
        return cls(socket.create_connection((address, port), timeout_s))

    @property
    def own_address(self) -> str:
        """By which this side is on the network to the other."""
        return str(self._socket.getsockname()[0])

    @property
    def other_address(self) -> str:
        return str(self._socket.getpeername()[0])

    def limit(self, seconds: float | None) -> None:
        """How long ``receive`` waits."""
        self._socket.settimeout(seconds)

    def send(self, said: Said) -> None:
        """Raises ``Lost`` where the other side is gone."""
        try:
            with self._sending:
                self._socket.sendall(json.dumps(said).encode() + b"\n")
        except OSError as error:
            raise Lost(str(error)) from error

    def receive(self) -> Said:
        """The next object; raises ``Lost`` at the end, for anything that is none, and where the limit is over."""
        while b"\n" not in self._rest:
            try:
                got = self._socket.recv(2**16)
            except OSError as error:
                raise Lost(str(error)) from error
            if not got or len(self._rest) > LONGEST_BYTES:
                raise Lost("the connection was closed" if not got else "a line without an end")
            self._rest += got
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            said = json.loads(line)
        except _MALFORMED as error:
            raise Lost(f"no JSON: {error}") from error
        if not isinstance(said, dict):
            raise Lost("no object")
        return said

    def close(self) -> None:
        """End it for both sides, also for a thread that waits in ``receive``."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
