"""The constants of NCCL's cost model by version, as they stand in its sources (``src/graph/tuning.cc``, 2.23 to 2.30).

They move between releases, and within: what is predicted with them names the version.  Latencies in microseconds, bandwidths
in GB/s, as there; each row of three is LL, LL128, Simple, or one node, two nodes, more.
"""

from collections.abc import Mapping
from typing import NamedTuple

from suite.collectives.names import Algo
from suite.collectives.version import NcclVersion
from suite.errors import UsageError

Row = tuple[float, float, float]
_BLACKWELL = 100
_FIRST, _BEYOND = NcclVersion(2, 23), NcclVersion(2, 31)

# 24 factors for powers of two from 64 B on, of which all_reduce by tree uses the first 23.
TREE_CORRECTION: tuple[tuple[float, ...], ...] = (
    (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1),
    (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1),
    (0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9),
)

BASE_US: Mapping[Algo, Row] = {
    Algo.TREE: (6.8, 14.0, 8.4),
    Algo.RING: (6.6, 14.0, 8.4),
    Algo.PAT: (8.0, 8.0, 8.0),
    Algo.NVLS: (0.0, 0.0, 0.0),
}
NVLINK_US: Mapping[Algo, Row] = {
    Algo.TREE: (0.6, 1.25, 4.0),
    Algo.RING: (0.6, 1.9, 3.4),
    Algo.PAT: (0.0, 0.0, 4.0),
    Algo.NVLS: (0.0, 0.0, 25.0),
}
PCI_US: Mapping[Algo, Row] = {
    Algo.TREE: (1.0, 1.9, 4.0),
    Algo.RING: (1.0, 2.5, 5.7),
    Algo.PAT: (0.0, 0.0, 4.0),
    Algo.NVLS: (0.0, 0.0, 0.0),
}
NETWORK_US: Mapping[Algo, Row] = {
    Algo.TREE: (5.0, 8.5, 14.0),
    Algo.RING: (2.7, 4.0, 14.0),
    Algo.PAT: (0.0, 0.0, 14.0),
    Algo.NVLS: (0.0, 0.0, 18.0),
}

# By generation: below sm_80, sm_80, sm_90; sm_100 is versioned.
_LL_MAX: dict[int, Row] = {0: (39.0, 39.0, 20.4), 80: (87.7, 22.5, 19.0), 90: (141.0, 45.0, 35.0), 100: (282.0, 90.0, 70.0)}
_RING_LL128: dict[int, Row] = {0: (20.0,) * 3, 80: (20.0,) * 3, 90: (36.7,) * 3}
_TREE_LL128: dict[int, Row] = {0: (20.0,) * 3, 80: (20.0,) * 3, 90: (36.7, 36.7, 29.0)}
_TREE_MAX: dict[int, Row] = {0: (26.5, 18.5, 10.0), 80: (24.0, 23.6, 17.8), 90: (38.7, 41.4, 36.0)}
_NVLS_EFFICIENCY = {0: 0.0, 80: 0.0, 90: 0.85, 100: 0.74}


class Constants(NamedTuple):
    """What the model takes for one version, GPU generation, CPU vendor and number of nodes.

    Bandwidths are GB/s per channel, ``ll_max`` of all channels.  ``nvls_efficiency`` is ``None`` before 2.28, where NVLS moves
    5/6 of its channels' bandwidth.
    """

    version: NcclVersion
    ll_max: float
    ring_ll128: float
    tree_ll128: float
    tree_max: float
    pat_share: float
    nvls_efficiency: float | None


def constants(version: NcclVersion, compute_capability: int, nodes: int, amd_cpu: bool) -> Constants:
    """Choose the constants; ``compute_capability`` as 90, ``amd_cpu`` also where CPUs are mixed.

    Raises ``UsageError`` for versions whose constants are not here, and for one that does not know the GPU.
    """
    if not _FIRST <= version < _BEYOND:
        raise UsageError(
            f"the cost model of NCCL {version} is not rebuilt here, only that of 2.23 to 2.30; "
            "read the table that the library logs with NCCL_DEBUG_SUBSYS=INIT,TUNING"
        )
    if compute_capability >= _BLACKWELL and version < (2, 25):
        raise UsageError(f"NCCL {version} has no constants for compute capability {compute_capability}; take 2.25 or newer")
    generation = max(each for each in _LL_MAX if each <= compute_capability)
    column = min(nodes, 3) - 1
    ring_ll128, tree_ll128, tree_max = (
        table.get(generation, newest)
        for table, newest in zip((_RING_LL128, _TREE_LL128, _TREE_MAX), _blackwell(version), strict=True)
    )
    return Constants(
        version,
        # On several nodes the CPU decides: Intel's row stands first, AMD's second.
        ll_max=_LL_MAX[generation if nodes == 1 else 80 if amd_cpu else 0][column],
        ring_ll128=ring_ll128[column],
        tree_ll128=tree_ll128[column],
        tree_max=tree_max[column],
        pat_share=0.75 if version >= (2, 24) else 0.85,
        nvls_efficiency=_NVLS_EFFICIENCY[generation] if version >= (2, 28) else None,
    )


def _blackwell(version: NcclVersion) -> tuple[Row, Row, Row]:
    """Ring LL128, tree LL128 and tree, from compute capability 100 on: twice Hopper's at first, measured ones later."""
    if version >= (2, 29, 7):
        ring: Row = (40.0, 40.0, 40.0)
    elif version >= (2, 29):
        ring = (34.5, 34.6, 34.5)
    elif version >= (2, 28, 7):
        ring = (73.4, 34.6, 73.4)
    else:
        ring = (73.4, 73.4, 73.4)
    if version >= (2, 28):
        return ring, (55.6, 31.67, 20.0), (70.0, 42.8, 24.0)
    return ring, (73.4, 73.4, 58.0), (77.4, 82.8, 72.0)
