"""Where ranks are that a launcher started, as rank 0 tells it to its worker: in one variable of its environment."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, Self

VARIABLE, RECORD_VARIABLE = "ROOFBENCH_RANKS", "ROOFBENCH_RANK_RECORD"


class Place(NamedTuple):
    """A rank's host by name, its address there, and its number among the ranks of that host."""

    host: str
    address: str
    local_rank: int


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
