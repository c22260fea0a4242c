"""NCCL's cost model rebuilt: it chooses and promises what the library does, and makes the table that a real log has."""

from collections.abc import Iterator

import pytest

from suite.collectives.bandwidth import busbw_bytes_s
from suite.collectives.log.graphs import parse_graph
from suite.collectives.log.reader import read_log
from suite.collectives.model.constants import constants
from suite.collectives.model.nccl import Communicator, Graph, cheapest, graph_of, predicted_s, rebuilt
from suite.collectives.names import Algo, Op, Proto
from suite.collectives.version import NcclVersion
from suite.errors import UsageError
from tests.importers.fixtures import text

V = NcclVersion(2, 30, 7)
KIB, MIB, GIB = 2**10, 2**20, 2**30
RING_LL, RING_LL128, RING_SIMPLE = (Algo.RING, Proto.LL), (Algo.RING, Proto.LL128), (Algo.RING, Proto.SIMPLE)
TREE_LL, TREE_LL128, TREE_SIMPLE = (Algo.TREE, Proto.LL), (Algo.TREE, Proto.LL128), (Algo.TREE, Proto.SIMPLE)


def hopper(ranks: int, version: NcclVersion = V) -> Communicator:
    """8 ranks a node, 16 channels of 22.5 GB/s, Intel CPUs, a network without latency, no NVLS."""
    graph = Graph(16, 22.5e9, 22.5e9)
    return Communicator(version, ranks, max(1, ranks // 8), 90, "intel", 16, {Algo.RING: graph, Algo.TREE: graph})


def switches(communicator: Communicator) -> Iterator[tuple[int, tuple[Algo, Proto]]]:
    """From which power of two on, from 8 bytes, which choice is the cheapest."""
    table, last = rebuilt(communicator), None
    for power in range(3, 37):
        found = cheapest(table, Op.ALL_REDUCE, 2**power, communicator)
        if last != (last := (found.algo, found.proto)):
            yield 2**power, last


SWITCHES = {
    8: [(8, RING_LL), (4 * MIB, RING_LL128), (64 * MIB, RING_SIMPLE)],
    16: [(8, TREE_LL), (256 * KIB, TREE_LL128), (32 * MIB, RING_LL128), (256 * MIB, RING_SIMPLE)],
    32: [(8, TREE_LL), (256 * KIB, TREE_LL128), (64 * MIB, RING_LL128), (GIB, RING_SIMPLE)],
    64: [(8, TREE_LL), (256 * KIB, TREE_LL128), (512 * MIB, TREE_SIMPLE), (2 * GIB, RING_SIMPLE)],
}


@pytest.mark.parametrize("ranks", SWITCHES)
def test_the_cheapest_choice_changes_where_nccl_changes_it(ranks: int) -> None:
    assert list(switches(hopper(ranks))) == SWITCHES[ranks]


@pytest.mark.parametrize(("ranks", "size"), [(128, 4 * GIB), (256, 8 * GIB), (512, 16 * GIB), (1024, 32 * GIB)])
def test_larger_worlds_come_to_the_ring_at_twice_the_size_each(ranks: int, size: int) -> None:
    found = list(switches(hopper(ranks)))
    assert found[-1] == (size, RING_SIMPLE)
    assert found[-2][1] == TREE_SIMPLE


@pytest.mark.parametrize(("ranks", "ring", "tree"), [(8, 359.5, 289.4), (64, 353.8, 325.1), (1024, 280.5, 329.2)])
def test_bus_bandwidth_of_8_gib_is_what_nccl_expects(ranks: int, ring: float, tree: float) -> None:
    communicator = hopper(ranks)
    table = rebuilt(communicator)
    for algo, printed in ((Algo.RING, ring), (Algo.TREE, tree)):
        key = (Op.ALL_REDUCE, algo, Proto.SIMPLE)
        time_s = predicted_s(key, table[key], 8 * GIB, communicator)
        assert time_s is not None
        assert round(busbw_bytes_s(Op.ALL_REDUCE, ranks, 8 * GIB, time_s) / 1e9, 1) == printed


@pytest.mark.parametrize(("size", "ring_us", "nvls_us"), [(MIB, 28.0, 28.6), (2 * MIB, 41.0, 32.2)])
def test_a_node_of_h100_changes_to_nvls_between_1_and_2_mib(size: int, ring_us: float, nvls_us: float) -> None:
    # The search of the library doubles the second bandwidth of NVLS, where no network bounds it.
    graphs = {Algo.RING: Graph(24, 15e9, 15e9), Algo.NVLS: Graph(16, 20e9, 40e9)}
    communicator = Communicator(V, 8, 1, 90, "intel", 24, graphs)
    table = rebuilt(communicator)
    times = {}
    for algo in graphs:
        own = {key: cost for key, cost in table.items() if key[1] is algo}
        times[algo] = cheapest(own, Op.ALL_REDUCE, size, communicator).time_s * 1e6
    assert (round(times[Algo.RING], 1), round(times[Algo.NVLS], 1)) == (ring_us, nvls_us)
    assert cheapest(table, Op.ALL_REDUCE, size, communicator).algo is (Algo.RING if size == MIB else Algo.NVLS)


def test_the_table_of_a_real_communicator_is_rebuilt_to_the_printed_digit() -> None:
    """Two ranks on two nodes over 10 Gbit/s sockets, NCCL 2.29.7; the graph lines are not in the log, its bandwidths follow."""
    log = read_log(text("tuning/tuning_2.29_broadcast_debug.log"))
    assert log.version is not None
    graphs = {
        Algo.RING: Graph(2, 1.2e9, 1.2e9, nvlink=False),
        Algo.TREE: Graph(4, 1.2e9, 1.2e9, nvlink=False, plain_tree=True),
    }
    found = rebuilt(Communicator(log.version, 2, 2, 120, "intel", 4, graphs, ll128=False))
    assert len(found) == 24
    assert {key: cost.printed for key, cost in found.items()} == {key: log.matrix[key].printed for key in found}


def test_a_table_that_was_logged_predicts_as_a_rebuilt_one_does() -> None:
    log = read_log(text("tuning/tuning_2.29_broadcast_debug.log"))
    graph = Graph(2, 1.2e9, 1.2e9, nvlink=False)
    communicator = Communicator(NcclVersion(2, 29, 7), 2, 2, 120, "intel", 4, {Algo.RING: graph, Algo.TREE: graph})
    chosen = [cheapest(log.matrix, Op.BROADCAST, 2**power, communicator).proto for power in range(10, 28)]
    # 16 KiB by LL and 32 KiB by Simple are the choices that the same log shows.
    assert chosen == [Proto.LL] * 5 + [Proto.SIMPLE] * 13


def test_a_logged_graph_is_what_the_model_takes() -> None:
    logged = parse_graph("Pattern 3, crossNic 0, nChannels 4, bw 1.200000/0.600000, type PHB/SYS, sameChannels 0")
    assert logged is not None
    assert graph_of(logged, 2e-6) == Graph(
        4, 1.2e9, 0.6e9, nvlink=False, link_latency_s=2e-6, plain_tree=True, same_channels=False
    )


def cost(communicator: Communicator, op: Op, algo: Algo, proto: Proto) -> str:
    return rebuilt(communicator)[op, algo, proto].printed


def test_a_networks_latency_counts_once_and_twice_where_data_is_flushed() -> None:
    slow = Graph(2, 10e9, 10e9, link_latency_s=3e-6)
    communicator = Communicator(V, 4, 2, 90, "intel", 2, {Algo.RING: slow, Algo.TREE: slow})
    # ring: base + 4 x max(link, 1 us or 3 us) + 2 x network
    assert cost(communicator, Op.ALL_REDUCE, Algo.RING, Proto.LL) == f"{6.6 + 4 * 1 + 2 * (2.7 + 3):.1f}/6.7"
    assert cost(communicator, Op.ALL_REDUCE, Algo.RING, Proto.SIMPLE) == f"{8.4 + 4 * 3.4 + 2 * (14 + 6):.1f}/13.3"
    assert cost(communicator, Op.ALL_REDUCE, Algo.TREE, Proto.SIMPLE) == f"{8.4 + 2 * (4 + 14 + 6):.1f}/9.2"


def test_amd_cpus_post_more_slowly_and_have_their_own_bounds() -> None:
    graph = Graph(16, 22.5e9, 22.5e9)
    graphs = {Algo.RING: graph, Algo.TREE: graph}
    amd, mixed = (Communicator(V, 16, 2, 90, cpu, 16, graphs) for cpu in ("amd", "mixed"))
    assert cost(amd, Op.ALL_REDUCE, Algo.RING, Proto.LL) == f"{6.6 + 28 * 2 + 2 * 2.7:.1f}/{22.5 * 16 / 30:.1f}"
    assert cost(mixed, Op.ALL_REDUCE, Algo.RING, Proto.LL) == f"{6.6 + 28 * 1 + 2 * 2.7:.1f}/{22.5 * 16 / 30:.1f}"


def test_a_ring_between_nodes_shows_more_latency_once_messages_are_long_enough() -> None:
    communicator = hopper(16)
    key = (Op.ALL_REDUCE, Algo.RING, Proto.SIMPLE)
    latency_s, bandwidth = rebuilt(communicator)[key]
    below, above = 64 * 16 * 16 - 1, 64 * 16 * 16
    table = rebuilt(communicator)[key]
    assert predicted_s(key, table, below, communicator) == pytest.approx(latency_s + below / bandwidth)
    assert predicted_s(key, table, above, communicator) == pytest.approx(1.4 * latency_s + above / bandwidth)


def test_constants_move_with_the_version() -> None:
    versions = [(2, 25, 1), (2, 28, 3), (2, 28, 7), (2, 29, 3), (2, 29, 7)]
    blackwell = [constants(NcclVersion(*version), 100, 2, amd_cpu=False) for version in versions]
    assert [each.ring_ll128 for each in blackwell] == [73.4, 73.4, 34.6, 34.6, 40.0]
    assert [each.tree_max for each in blackwell] == [82.8, 42.8, 42.8, 42.8, 42.8]
    assert constants(NcclVersion(2, 23, 4), 90, 1, amd_cpu=False).pat_share == 0.85
    assert constants(NcclVersion(2, 27, 7), 90, 1, amd_cpu=False).nvls_efficiency is None


@pytest.mark.parametrize(("capability", "nodes", "amd", "bound"), [
    (70, 1, False, 39.0), (80, 1, False, 87.7), (90, 1, True, 141.0), (100, 1, False, 282.0),
    (90, 2, False, 39.0), (90, 4, False, 20.4), (90, 2, True, 22.5), (100, 9, True, 19.0),
])  # fmt: skip
def test_ll_is_bounded_by_the_gpu_on_one_node_and_by_the_cpu_on_several(
    capability: int, nodes: int, amd: bool, bound: float
) -> None:
    assert constants(V, capability, nodes, amd).ll_max == bound


@pytest.mark.parametrize("version", [NcclVersion(2, 22, 3), NcclVersion(2, 31, 0)])
def test_a_version_whose_constants_are_not_known_is_refused(version: NcclVersion) -> None:
    with pytest.raises(UsageError, match="read the table that the library logs"):
        rebuilt(hopper(8, version))


def test_a_gpu_that_the_version_does_not_know_is_refused() -> None:
    with pytest.raises(UsageError, match="has no constants for compute capability 100"):
        constants(NcclVersion(2, 24, 3), 100, 1, amd_cpu=False)


@pytest.mark.parametrize(("ranks", "nodes"), [(1, 1), (9, 2), (8, 0)])
def test_a_world_that_the_model_does_not_describe_is_refused(ranks: int, nodes: int) -> None:
    with pytest.raises(UsageError, match="spread evenly over nodes"):
        Communicator(V, ranks, nodes, 90, "intel", 2, {})


def test_what_is_not_in_use_is_not_chosen() -> None:
    communicator = hopper(8)
    unused = {key: each._replace(bandwidth_bytes_s=0.0) for key, each in rebuilt(communicator).items()}
    with pytest.raises(UsageError, match="no algorithm of it is in use"):
        cheapest(unused, Op.ALL_REDUCE, 8, communicator)
