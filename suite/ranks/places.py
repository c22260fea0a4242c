"""Where ranks are that a launcher started, as rank 0 tells it to its worker: in one variable of its environment."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Self

from suite.collectives.cores import Host

NAMED = 32  # ranks in one line
VARIABLE, RECORD_VARIABLE = "ROOFBENCH_RANKS", "ROOFBENCH_RANK_RECORD"


class Place(NamedTuple):
    """A rank's host by name, its address there, and its number among the ranks of that host.

    ``cores`` are the physical cores that all ranks of that host may use together; 0 where that is not known.
    """

    host: str
    address: str
    local_rank: int
    cores: int = 0


class Places(NamedTuple):
    """Every rank's place; ``address`` and ``port`` are where the hub of rank 0 listens, ``secret`` what it knows its own by."""

    launcher: str
    address: str
    port: int
    secret: str
    ranks: tuple[Place, ...]

    @property
    def hosts(self) -> int:
        return len({place.host for place in self.ranks})

    def beside(self, rank: int) -> int:
        """How many ranks are on the host of this one."""
        return sum(place.host == self.ranks[rank].host for place in self.ranks)

    def hosts_of(self, ranks: int) -> tuple[Host, ...]:
        """Each host of the first so many ranks, with how many of them are there."""
        counts = Counter(place.host for place in self.ranks[:ranks])
        cores = {place.host: place.cores for place in self.ranks}
        return tuple(Host(count, cores[host]) for host, count in counts.items())

    @property
    def hosts_words(self) -> str:
        """Whose the numbers of hosts are in what is stored: ``host 1 is a, ranks 0 to 3; host 2 is b, ranks 4, 6``."""
        ranks: dict[str, list[int]] = {}
        for rank, place in enumerate(self.ranks):
            ranks.setdefault(place.host, []).append(rank)
        return "; ".join(f"host {number} is {host}, {ranks_words(of)}" for number, (host, of) in enumerate(ranks.items(), 1))

    @classmethod
    def told(cls, environment: Mapping[str, str] = os.environ) -> Self | None:
        """What this process was told; ``None`` where no launcher's ranks are to be joined."""
        text = environment.get(VARIABLE)
        if text is None:
            return None
        launcher, address, port, secret, ranks = json.loads(text)
        return cls(launcher, address, port, secret, tuple(Place(*each) for each in ranks))

    @contextmanager
    def telling(self, record: str) -> Iterator[None]:
        """Have every child that is started meanwhile told, and rank 0 write to ``record``."""
        os.environ |= {VARIABLE: json.dumps(self), RECORD_VARIABLE: record}
        try:
            yield
        finally:
            del os.environ[VARIABLE], os.environ[RECORD_VARIABLE]


def ranks_words(of: Sequence[int]) -> str:
    """``rank 3``, ``ranks 4, 6``, ``ranks 1 to 999``; of many that do not follow each other, the first and how many more."""
    if len(of) > 2 and list(of) == list(range(of[0], of[-1] + 1)):
        return f"ranks {of[0]} to {of[-1]}"
    more = f" and {len(of) - NAMED} more" if len(of) > NAMED else ""
    return f"rank{'s' if len(of) > 1 else ''} {', '.join(map(str, of[:NAMED]))}{more}"
