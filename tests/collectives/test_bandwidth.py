"""Bandwidths against numbers that tools printed and that their documentation defines."""

import pytest

from suite.collectives.bandwidth import (
    RING_EQUIVALENT,
    busbw_bytes_s,
    busbw_factor,
    busbw_formula,
    busbw_label,
    wire_factor,
)
from suite.collectives.names import Algo, Op
from suite.errors import UsageError


@pytest.mark.parametrize(
    ("op", "ranks", "factor"),
    [
        (Op.ALL_REDUCE, 2, 1),
        (Op.ALL_REDUCE, 8, 1.75),
        (Op.ALL_GATHER, 16, 15 / 16),
        (Op.REDUCE_SCATTER, 4, 0.75),
        (Op.ALL_TO_ALL, 2, 0.5),
        (Op.GATHER, 4, 0.75),
        (Op.BROADCAST, 8, 1),
        (Op.REDUCE, 8, 1),
        (Op.SEND_RECV, 2, 1),
    ],
)
def test_the_factor_is_what_a_ring_moves_per_rank(op: Op, ranks: int, factor: float) -> None:
    assert busbw_factor(op, ranks) == factor


@pytest.mark.parametrize(
    ("op", "ranks", "size", "time_us", "printed_gb_s"),
    [
        (Op.ALL_REDUCE, 8, 134217728, 1916.4, 122.57),
        (Op.ALL_REDUCE, 72, 8589934592, 20299, 834.57),
        (Op.ALL_TO_ALL, 16, 8589934592, 235696, 34.17),
        (Op.ALL_GATHER, 8, 8589934592, 33646, 223.39),
        (Op.REDUCE, 8, 8589934592, 37613, 228.38),
    ],
)
def test_busbw_is_what_nccl_tests_print(op: Op, ranks: int, size: int, time_us: float, printed_gb_s: float) -> None:
    assert busbw_bytes_s(op, ranks, size, time_us * 1e-6) == pytest.approx(printed_gb_s * 1e9, rel=1e-4)


def test_one_rank_has_no_bus_bandwidth() -> None:
    with pytest.raises(UsageError, match="take at least 2 ranks"):
        busbw_factor(Op.ALL_REDUCE, 1)


def test_a_switch_that_reduces_leaves_less_on_the_wire_and_says_so() -> None:
    assert wire_factor(Op.ALL_REDUCE, Algo.NVLS, 8) == 9 / 8
    assert wire_factor(Op.ALL_REDUCE, Algo.RING, 8) == wire_factor(Op.ALL_REDUCE, None, 8) == 1.75
    assert busbw_label(Algo.NVLS) == RING_EQUIVALENT
    assert busbw_label(Algo.RING) is None
    # 8 GPUs with NVLS: 480 GB/s of bus bandwidth over links of 450.
    assert 480 / 1.75 * wire_factor(Op.ALL_REDUCE, Algo.NVLS, 8) < 450


def test_a_number_stands_beside_its_formula() -> None:
    assert busbw_formula(Op.ALL_REDUCE) == "S/t x 2(n-1)/n"
    assert busbw_formula(Op.ALL_GATHER) == "S/t x (n-1)/n"
    assert busbw_formula(Op.BROADCAST) == "S/t"
