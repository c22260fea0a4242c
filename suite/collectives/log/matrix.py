"""The table of latency and bandwidth that a library prints of a communicator: its own cost model, with what it was given."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from suite.collectives.names import Algo, Op, Proto, algo_of, op_of

_ENTRY = re.compile(r"\s*([\d.]+)/\s*([\d.]+)\s*")


class Cost(NamedTuple):
    """Of one operation, algorithm and protocol: ``time = latency + bytes / bandwidth``; no bandwidth means it is not used."""

    latency_s: float
    bandwidth_bytes_s: float

    @property
    def printed(self) -> str:
        """Microseconds and GB/s, to the digit that the log has: ``16.8/0.5``."""
        return f"{self.latency_s * 1e6:.1f}/{self.bandwidth_bytes_s / 1e9:.1f}"


Key = tuple[Op, Algo, Proto]
Matrix = Mapping[Key, Cost]


def parse_matrix(lines: Iterable[str]) -> dict[Key, Cost]:
    """Read the blocks of a table from the messages of a log, in order; of several communicators the last stands.

    A line that is cut gives what is whole of it.
    """
    costs: dict[Key, Cost] = {}
    algos: list[Algo | None] = []
    for line in lines:
        name, *cells = line.split("|")
        if name.strip() == "Algorithm":
            algos = [algo_of(cell) for cell in cells if cell.strip()]
        op = op_of(name)
        if op is None or not algos:
            continue
        whole = (_ENTRY.fullmatch(cell) for cell in cells[:-1])
        keys = ((algo, proto) for algo in algos for proto in Proto)
        for (algo, proto), found in zip(keys, whole, strict=False):
            if found and algo is not None:
                costs[op, algo, proto] = Cost(float(found[1]) * 1e-6, float(found[2]) * 1e9)
    return costs
