"""What NCCL and RCCL say they chose, in the form of every version, and whether it is what was asked for."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.collectives.choice import Choice
from suite.collectives.log.choices import LoggedChoice, logged_bytes, parse_choice
from suite.collectives.log.graphs import parse_graph
from suite.collectives.log.observed import observed
from suite.collectives.log.reader import DebugLog, read_log
from suite.collectives.names import Algo, Op, Proto
from suite.collectives.version import NcclVersion
from tests.importers.fixtures import text

NEW = "node1:10:10 [0] NCCL INFO "
V = NcclVersion(2, 28, 9)


def log(*lines: str, version: str = "2.28.9") -> DebugLog:
    return read_log("\n".join(NEW + line for line in (f"NCCL version {version}+cuda13.0", *lines)))


def test_numbers_of_2_21_are_named_and_have_no_operation() -> None:
    found = read_log(text("tuning/tuning_2.21_splits_table_row.log")).choices
    assert Counter((each.op, each.logged_bytes, each.algo, each.proto) for each in found) == {
        (None, 65536, Algo.TREE, Proto.LL): 6,
        (None, 131072, Algo.TREE, Proto.LL128): 7,
    }
    assert sorted({each.predicted_s or 0 for each in found}) == pytest.approx([37.798233e-6, 51.603912e-6])


def test_names_and_channels_of_2_29_are_read_for_every_launch() -> None:
    found = read_log(text("tuning/tuning_2.29_broadcast_debug.log"))
    assert (found.library, found.version, found.build) == ("NCCL", NcclVersion(2, 29, 7), "+cuda12.9")
    assert found.settings == {"NCCL_P2P_DISABLE": "1"}
    assert len(found.choices) == 72
    assert {each.op for each in found.choices} == {Op.BROADCAST}
    assert [each.logged_bytes for each in found.choices[:18]] == [2**power for power in range(10, 28)]
    assert Counter(each.logged_bytes for each in found.choices[18:]) == dict.fromkeys((4**power for power in range(5, 14)), 6)
    assert {each.algo for each in found.choices} == {Algo.RING}
    assert {each.logged_bytes for each in found.choices if each.proto is Proto.LL} == {2**power for power in range(10, 15)}
    channels = {each.logged_bytes: each.channels for each in found.choices}
    assert [size for size, count in channels.items() if count == 1] == [1024, 2048, 4096, 8192, 32768]
    assert [size for size, count in channels.items() if count == 2] == [16384, 65536]
    assert {count for size, count in channels.items() if size >= 131072} == {4}


def test_the_table_of_latency_and_bandwidth_has_every_algorithm() -> None:
    matrix = read_log(text("tuning/tuning_2.29_broadcast_debug.log")).matrix
    assert len(matrix) == 5 * 7 * 3
    assert matrix[Op.ALL_REDUCE, Algo.TREE, Proto.SIMPLE].printed == "36.4/1.9"
    assert matrix[Op.ALL_GATHER, Algo.PAT, Proto.SIMPLE].printed == "17.6/3.6"
    assert matrix[Op.BROADCAST, Algo.RING, Proto.LL] == (pytest.approx(9.3e-6), pytest.approx(1.2e9))


def test_the_manuals_lines_have_32_channels() -> None:
    found = read_log(text("tuning/tuning_docs_three_lines.log")).choices
    assert found == (LoggedChoice(Op.ALL_REDUCE, 33554432, Algo.RING, Proto.SIMPLE, 32),) * 3


def test_a_time_of_zero_is_no_estimate() -> None:
    scatter, gather = read_log(text("tuning/tuning_rccl_zero_time.log")).choices
    assert (scatter.op, scatter.logged_bytes, scatter.algo, scatter.proto) == (
        Op.REDUCE_SCATTER,
        302006272,
        Algo.RING,
        Proto.SIMPLE,
    )
    assert scatter.predicted_s == pytest.approx(3628.243652e-6)
    assert (gather.op, gather.logged_bytes, gather.predicted_s) == (Op.ALL_GATHER, 151003136, None)


def test_a_kernel_of_symmetric_memory_has_no_algorithm() -> None:
    (found,) = read_log(text("tuning/tuning_symmetric_kernel.log")).choices
    assert (found.op, found.logged_bytes, found.algo, found.proto) == (Op.ALL_REDUCE, 2097152, None, None)
    assert (found.kernel, found.channels, found.threads, found.works) == ("AllReduce_RSxLDMC_AGxSTMC", 16, 512, 1)


@pytest.mark.parametrize("end", [" cgaClusterSize 4", " comm 0x55d0c8a1b2c0", " comm 0x55d0c8a1b2c0 cgaClusterSize 4"])
def test_what_newer_versions_append_to_a_choice_is_passed_over(end: str) -> None:
    constructed = f"AllReduce: 65536 Bytes -> Algo RING proto LL128 channel{{Lo..Hi}}={{0..15}}{end}"  # of no real log
    assert parse_choice(constructed) == LoggedChoice(Op.ALL_REDUCE, 65536, Algo.RING, Proto.LL128, 16)
    assert parse_choice(constructed + " and more") is None


def test_a_copy_engine_is_named() -> None:
    found = parse_choice("AllGather [Copy Engine]: 4194304 Bytes -> cudaMemcpyBatchAsync")
    assert found == LoggedChoice(Op.ALL_GATHER, 4194304, kernel="Copy Engine: cudaMemcpyBatchAsync")


@given(
    share=st.floats(0, 1),
    name=st.sampled_from(["tuning/tuning_2.29_broadcast_debug.log", "tuning/tuning_2.21_splits_table_row.log"]),
)
@settings(deadline=None)
def test_a_log_cut_anywhere_gives_a_beginning_of_its_choices(share: float, name: str) -> None:
    whole = text(name)
    found = read_log(whole[: int(share * len(whole))]).choices
    # A number at the very end may have lost digits; everything before it is whole.
    assert found[:-1] == read_log(whole).choices[: max(0, len(found) - 1)]


def test_graphs_are_read_with_the_algorithm_they_are_for() -> None:
    found = log(
        "Pattern 4, crossNic 0, nChannels 12, bw 20.000000/10.000000, type NVL/PIX, sameChannels 1",
        "Pattern 3, crossNic 0, nChannels 2, bw 1.200000/1.200000, type PHB/PHB, sameChannels 0",
        "Pattern 5, crossNic 0, nChannels 8, bw 45.000000/90.000000, type NVL/NVL, sameChannels 1",
    )
    ring, tree = found.graph(Algo.RING), found.graph(Algo.TREE)
    assert ring is not None
    assert tree is not None
    assert (ring.channels, ring.intra_bytes_s, ring.inter_bytes_s, ring.intra_path, ring.inter_path) == (
        12,
        20e9,
        10e9,
        "NVL",
        "PIX",
    )
    assert (tree.pattern, tree.same_channels, found.graph(Algo.PAT)) == (3, False, None)
    assert parse_graph("Pattern 4, crossNic 0, nChannels 4, speed 1.200000/1.200000, type SYS/SYS, sameChannels 0") is not None


def test_facts_of_the_communicator_are_read() -> None:
    found = log(
        "comm 0x5580 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0",
        "4 coll channels, 4 collnet channels, 0 nvls channels, 4 p2p channels, 2 p2p channels per peer",
        "NCCL_ALGO set by environment to allreduce:Tree",
        "TUNER/Plugin: Using tuner plugin Example",
    )
    assert (found.ranks, found.nodes, found.channels) == (4, 2, 4)
    assert found.settings == {"NCCL_ALGO": "allreduce:Tree"}
    assert found.tuner_plugin == "TUNER/Plugin: Using tuner plugin Example"
    assert log("TUNER/Plugin: Could not find: libnccl-tuner.so").tuner_plugin is None


def test_messages_of_several_processes_in_one_line_are_all_read() -> None:
    line = "AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}"
    assert len(read_log(f"# a table {NEW}{line}[1] {NEW}{line}\n").choices) == 1  # the first one has a tag at its end
    assert len(read_log(f"# a table {NEW}{line} {NEW}{line}\n").choices) == 2


def test_warnings_are_kept() -> None:
    found = read_log('node1:10:10 [0] graph/tuning.cc:90 NCCL WARN Unrecognized element token "treee" when parsing "treee"\n')
    assert found.warnings == ('Unrecognized element token "treee" when parsing "treee"',)


RING_LL = "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}"


def test_what_was_asked_for_and_ran_is_honoured() -> None:
    found = observed(log(RING_LL, RING_LL), Op.ALL_REDUCE, 1024, 4, Choice(Algo.RING, Proto.LL))
    assert (found.honoured, found.reason, len(found.ran)) == (True, None, 1)
    assert found.ran[0].channels == 4


@pytest.mark.parametrize("asked", [Choice(Algo.TREE, Proto.LL), Choice(Algo.RING, Proto.SIMPLE), Choice(None, Proto.SIMPLE)])
def test_what_was_asked_for_and_did_not_run_is_not_honoured(asked: Choice) -> None:
    found = observed(log(RING_LL), Op.ALL_REDUCE, 1024, 4, asked)
    assert (found.honoured, found.reason) == (False, f"asked for {asked.label}, ran ring/ll")


def test_one_launch_in_many_that_ran_another_way_is_not_honoured() -> None:
    other = RING_LL.replace("RING", "TREE")
    found = observed(log(RING_LL, RING_LL, other), Op.ALL_REDUCE, 1024, 4, Choice(Algo.RING, Proto.LL))
    assert (found.honoured, found.reason) == (False, "asked for ring/ll, ran tree/ll")


def test_a_kernel_that_replaced_the_choice_is_not_honoured_and_a_plugin_is_named() -> None:
    kernel = "AllReduce [Symmetric]: 1024 Bytes -> Kernel AllReduce_AGxLL_R nchannels 16 nthreads 512"
    found = observed(log("TUNER/Plugin: Using tuner plugin X", kernel), Op.ALL_REDUCE, 1024, 4, Choice(Algo.RING))
    assert found.honoured is False
    assert found.reason == "asked for ring/library, ran AllReduce_AGxLL_R (TUNER/Plugin: Using tuner plugin X)"


def test_other_sizes_and_operations_say_nothing() -> None:
    other = RING_LL.replace("AllReduce", "Broadcast").replace("1024", "2048")
    found = observed(log(RING_LL, other), Op.ALL_REDUCE, 2048, 4, Choice(Algo.RING))
    assert found.honoured is None
    assert "no choice for all_reduce of 2048 bytes" in str(found.reason)


@pytest.mark.parametrize(
    ("version", "told"), [("2.18.5", "does not log what it chose"), (None, "does not name the library's version")]
)
def test_a_log_that_cannot_tell_says_so(version: str | None, told: str) -> None:
    found = observed(log(version=version) if version else DebugLog(), Op.ALL_REDUCE, 8, 2, Choice(Algo.RING))
    assert found.honoured is None
    assert told in str(found.reason)


def test_the_librarys_own_choice_is_always_honoured_and_stored() -> None:
    found = observed(log(RING_LL), Op.ALL_REDUCE, 1024, 4, Choice())
    assert (found.honoured, found.ran[0].algo) == (True, Algo.RING)


def test_shares_of_ranks_are_logged_by_rank_from_2_24_on() -> None:
    assert logged_bytes(Op.ALL_GATHER, 8192, 8, V) == logged_bytes(Op.REDUCE_SCATTER, 8192, 8, V) == 1024
    assert logged_bytes(Op.ALL_GATHER, 8192, 8, NcclVersion(2, 23, 4)) == 8192
    assert logged_bytes(Op.ALL_REDUCE, 8192, 8, V) == 8192
