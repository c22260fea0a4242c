"""The graphs that a library found over its links: what its cost model is given."""

import re
from typing import NamedTuple

from suite.collectives.names import Algo

_GRAPH = re.compile(
    r"^Pattern (?P<pattern>\d+), crossNic (?P<cross_nic>\d+), nChannels (?P<channels>\d+), "
    r"(?:bw|speed) (?P<intra>[\d.]+)/(?P<inter>[\d.]+), type (?P<intra_path>\w+)/(?P<inter_path>\w+), "
    r"sameChannels (?P<same>\d+)$"
)
# 1 balanced, 2 split and 3 plain trees; 4 a ring; 5 through the switch; 6 CollNet.
_ALGOS = {1: Algo.TREE, 2: Algo.TREE, 3: Algo.TREE, 4: Algo.RING, 5: Algo.NVLS, 6: Algo.COLLNET_DIRECT}
PLAIN_TREE = 3


class LoggedGraph(NamedTuple):
    """Bandwidths are those of one channel, bytes per second, within a node and between nodes; paths as NVL, PIX or SYS."""

    algo: Algo | None
    pattern: int
    channels: int
    intra_bytes_s: float
    inter_bytes_s: float
    intra_path: str
    inter_path: str
    same_channels: bool


def parse_graph(text: str) -> LoggedGraph | None:
    """The graph that a message tells of; ``None`` for any other message."""
    found = _GRAPH.match(text)
    if not found:
        return None
    pattern = int(found["pattern"])
    return LoggedGraph(
        algo=_ALGOS.get(pattern),
        pattern=pattern,
        channels=int(found["channels"]),
        intra_bytes_s=float(found["intra"]) * 1e9,
        inter_bytes_s=float(found["inter"]) * 1e9,
        intra_path=found["intra_path"],
        inter_path=found["inter_path"],
        same_channels=found["same"] != "0",
    )
