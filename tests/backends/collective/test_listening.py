"""What a crew listens on is this host's alone."""

import ipaddress
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from suite.collectives.names import Op
from tests.backends.collective.helpers import crew_of, prepared, task

LISTENS = "0A"  # in the state column of /proc/net/tcp
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def test_nothing_of_a_crew_listens_beyond_the_loopback() -> None:
    before = sockets([os.getpid()])
    with crew_of(2) as crew:
        prepared(crew, task(Op.ALL_REDUCE, 2, 1000)).close()
        found = listening(sockets([os.getpid()]) - before)
        of_ranks = listening(sockets(crew.pids))
    assert len(found) == 1  # the store
    assert of_ranks  # gloo's pairs
    assert all(is_loopback(address) for address in found + of_ranks)


def sockets(pids: Iterable[int]) -> set[str]:
    links = (link for pid in pids for link in Path(f"/proc/{pid}/fd").iterdir())
    return {name.removeprefix("socket:[").removesuffix("]") for name in map(target, links) if name.startswith("socket:[")}


def target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:  # closed meanwhile
        return ""


def listening(inodes: set[str]) -> list[Address]:
    return [address for table in ("tcp", "tcp6") for inode, address in listeners(Path("/proc/net", table)) if inode in inodes]


def listeners(table: Path) -> Iterator[tuple[str, Address]]:
    for line in table.read_text().splitlines()[1:]:
        columns = line.split()
        if columns[3] == LISTENS:
            yield columns[9], parsed(columns[1].partition(":")[0])


def parsed(text: str) -> Address:
    """An address as the kernel writes it: words of 32 bits in the machine's order."""
    words = [bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8)]
    return ipaddress.ip_address(b"".join(words))


def is_loopback(address: Address) -> bool:
    inner = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (inner or address).is_loopback
