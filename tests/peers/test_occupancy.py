"""Occupancy beside Nsight Compute's: its table, and which launch is the binary that was compiled."""

import pytest

from suite.targets.occupancy import Taken, occupancy
from tests.peers.child import PeerFailed
from tests.peers.occupancy import METRICS, Binary, compiled_of, parse, row
from tests.peers.record import Verdict

NAMES = ",".join(f'"{name}"' for name in ("ID", "Kernel Name", "Block Size", *METRICS.values()))
UNITS = '"","","","register/thread","","byte/block","byte/block","%"'
TABLE = f"""\
==PROF== Connected to process 4242
{NAMES}
{UNITS}
"0","_Z11spin_kernell","(1, 1, 1)","16","1","0","0","50"
"1","gemm_by_descriptors","(256, 1, 1)","155","256","0","213,016","12.50"
"2","gemm_by_pointers","(256, 1, 1)","80","256","0","8,192","37.50"
"""
CELL = {
    "program": "gemm.bf16",
    "outcome": "ok",
    "facts": {"kernel": "gemm_by_descriptors", "warps": 8, "registers": 155, "shared_bytes": 213016},
    "occupancy": {"share": 0.125},
}


def test_a_launch_is_read_with_what_a_block_takes_and_the_share_of_warps() -> None:
    _marker, square, odd = parse(TABLE)
    assert square == Binary("gemm_by_descriptors", 8, 155, 213016, 0.125)
    assert odd == Binary("gemm_by_pointers", 8, 80, 8192, 0.375)


def test_units_of_thousands_are_read_too() -> None:
    grouped = TABLE.replace('"byte/block","byte/block"', '"byte/block","Kbyte/block"').replace('"213,016"', '"213.016"')
    assert parse(grouped)[1].shared_bytes == 213016


@pytest.mark.parametrize("text", ["", "==ERROR== no permission\n", TABLE.replace('"155"', '"n/a"')])
def test_what_is_no_table_is_said(text: str) -> None:
    with pytest.raises(PeerFailed, match="ncu: "):
        parse(text)


def test_equal_shares_of_the_same_binary_pass_and_others_fail() -> None:
    compiled = compiled_of([CELL])["gemm.bf16"]
    assert row("gemm.bf16", compiled, parse(TABLE)).verdict is Verdict.PASS
    assert row("gemm.bf16", compiled._replace(share=0.25), parse(TABLE)).verdict is Verdict.FAIL


def test_another_binary_than_was_compiled_judges_nothing() -> None:
    compiled = compiled_of([CELL])["gemm.bf16"]._replace(registers=156)
    found = row("gemm.bf16", compiled, parse(TABLE))
    assert found.verdict is Verdict.ABSENT
    assert "launched 155 registers" in found.note
    assert row("gemm.bf16", None, parse(TABLE)).verdict is Verdict.ABSENT


def test_the_shares_of_the_example_are_those_of_the_rules() -> None:
    """Of 64 warps of an sm_90: one block of 8 by shared memory; three of 8 by 80 registers a thread."""
    assert occupancy("sm_90", Taken(8, 155, 213016)).share == 0.125
    assert occupancy("sm_90", Taken(8, 80, 8192)).share == 0.375


def test_cells_that_did_not_compile_are_left_out() -> None:
    assert compiled_of([{**CELL, "outcome": "error"}, {**CELL, "occupancy": None}]) == {}
