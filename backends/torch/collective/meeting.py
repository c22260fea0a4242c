"""How a rank that is no child of the crew comes to it: over TCP, with a key that the two alone know."""

import os
import secrets
import socket
from multiprocessing.connection import Connection

from backends.torch.collective.safe_pickle import NetworkConnection
from suite.ranks.keeper import KEY_VARIABLE

HOST = "127.0.0.1"  # where ranks meet that are all children of the crew
REACH_S = 10.0
LONGEST = 256


def greet(host: str, port: int, rank: int) -> Connection:
    """A rank's side: connect, and say who it is."""
    connected = socket.create_connection((host, port))
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.sendall(f"{os.environ[KEY_VARIABLE]} {rank}\n".encode())
    return NetworkConnection(connected.detach())


def greeted(connected: socket.socket, key: str) -> int | None:
    """The crew's side: the number of the rank that connects; ``None`` for whoever does not know the key."""
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.settimeout(REACH_S)
    said = b""
    try:
        while not said.endswith(b"\n") and len(said) < LONGEST:
            got = connected.recv(1)  # no more than the line: what follows is the connection's
            if not got:
                return None
            said += got
    except OSError:
        return None
    given, _, rank = said.decode(errors="replace").strip().partition(" ")
    connected.settimeout(None)
    return int(rank) if secrets.compare_digest(given.encode(), key.encode()) and rank.isdigit() else None
