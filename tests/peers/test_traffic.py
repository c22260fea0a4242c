"""Bytes moved beside Nsight Compute's: its table, the calls in it, and what is judged."""

import pytest

from tests.peers.child import PeerFailed
from tests.peers.record import Verdict
from tests.peers.traffic import READ, WRITTEN, Model, Moved, cases, parse, row

NAMES = f'"ID","Kernel Name","{READ}","{WRITTEN}"'
TABLE = f"""\
==PROF== Connected to process 4242
{NAMES}
"","","Gbyte","Mbyte"
"0","_Z11spin_kernell","0","0.01"
"1","scores","9","9"
"2","rows","9","9"
"3","scores","1.5","200"
"4","rows","0.5","100"
"5","scores","1.5","202"
"6","rows","0.7","100"
"""
LARGE = Model(4_000_000_000, 2_000_000_000, 4_000_000_000)


def test_kernels_of_a_call_are_added_and_the_first_call_is_dropped() -> None:
    moved = parse(TABLE, 3)
    assert moved.read == pytest.approx(2.1e9)
    assert moved.written == pytest.approx(301e6)


@pytest.mark.parametrize(
    "text", ["", "==ERROR== no permission\n", TABLE.replace("Gbyte", "Gbit"), TABLE.replace('"6","rows","0.7","100"\n', "")]
)
def test_what_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(PeerFailed, match="ncu"):
        parse(text, 3)


@pytest.mark.parametrize(
    ("model", "moved", "verdict"),
    [
        (LARGE, Moved(2.2e9, 9e9), Verdict.PASS),
        (LARGE, Moved(2.4e9, 0), Verdict.FAIL),
        (LARGE, Moved(1.6e9, 0), Verdict.FAIL),
        (LARGE._replace(read=None), Moved(2.2e9, 2.0e9), Verdict.PASS),
        (LARGE._replace(read=None), Moved(2.2e9, 0.5e9), Verdict.FAIL),
        (LARGE._replace(unique=500_000_000), Moved(9e9, 0), Verdict.INFO),
    ],
)
def test_reads_are_judged_where_the_cache_can_hold_little_of_them(model: Model, moved: Moved, verdict: Verdict) -> None:
    assert row("a case", model, moved, 60_000_000).verdict is verdict


def test_the_judged_cases_are_flash_naive_and_decode() -> None:
    asked = [(case.workload.job, case.implementation) for case in cases(tiny=True)]
    assert {("attention", "naive"), ("attention", "library_flash"), ("decode", "triton")} <= set(asked)
