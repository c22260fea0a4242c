"""Ranks on processors that have no core each: they take turns, and a time is then also that of waiting for a core.

Such a case is measured all the same, says so in the ``description`` of its result, and is marked where results are shown.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

SHARED_CORES = "ranks share cores"  # in the description of a result, and its mark


class Host(NamedTuple):
    """Ranks on one host, and the physical cores that they may use there together; 0 where that is not known."""

    ranks: int
    cores: int

    @property
    def is_crowded(self) -> bool:
        return 0 < self.cores < self.ranks

    @property
    def words(self) -> str:
        """``4 ranks on 2 cores``, ``2 ranks on 1 core``."""
        return f"{self.ranks} ranks on {self.cores} core{'s' if self.cores > 1 else ''}"


def shared_cores(hosts: Iterable[Host]) -> str:
    """The host with most ranks a core, in words; empty where every rank can have one, or nobody knows."""
    crowded = [host for host in hosts if host.is_crowded]
    return max(crowded, key=lambda host: host.ranks / host.cores).words if crowded else ""


def described(hosts: Iterable[Host]) -> dict[str, str]:
    """What a result's ``description`` says of it: nothing where no core is shared."""
    said = shared_cores(hosts)
    return {SHARED_CORES: f"{said}: the time is also of waiting for one"} if said else {}


def mark(description: Mapping[str, Any]) -> str:
    """``ranks share cores: 4 ranks on 2 cores`` of a result that was stored with it; else empty."""
    said = description.get(SHARED_CORES)
    return f"{SHARED_CORES}: {said.partition(':')[0]}" if isinstance(said, str) else ""
