"""What a run tells of its searches: the fastest of each format and load, and whether it sets a roof."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from suite.jobs.shapes import Shape
from suite.outcome import Evidence
from suite.report.peaks import peak_lines, peaks, stalled_lines
from suite.rows import ResultRow, RunInfo
from suite.search.name import key_of, subject_words
from suite.search.standings import Contender, Standings
from tests.report.builders import RUN, failed, result

SEARCHED = RunInfo(RUN, "peak", "complete", "2031-05-06T07:08:09Z", None, 11, 11, (), (), "", "1", None, None, {"search": {}})
LOOKED = Standings(
    [Contender(Shape(64 * number, 64, 64), {"0": (0.1, 0.0)}) for number in range(1, 64)]
    + [Contender(Shape(64, 64, 64), fallen="crashed: it is gone")],
    spent_s=10.02,
)


class Kept:
    """A store with these files and roofs; without roofs each device has its fastest trusted result."""

    def __init__(self, rows: list[ResultRow], files: Mapping[str, bytes] = {}, faster: float = 1.0) -> None:
        trusted = [row for row in rows if row.flop_s and not row.contended]
        self._roofs = {(row.device_uid, row.pipe, row.load): (row.flop_s or 0.0) * faster for row in trusted}
        for row in trusted:
            place = row.device_uid, row.pipe, row.load
            self._roofs[place] = max(self._roofs[place], row.flop_s or 0.0)
        self._files = files

    def empirical_roofs(self, evidence: Evidence = Evidence.MEASURED) -> Mapping[Any, float]:
        return self._roofs if evidence == Evidence.MEASURED else {}

    def artifacts(self, run: str | None = None) -> Mapping[str, bytes]:
        assert run == RUN
        return self._files


def file_of(row: ResultRow, standings: Standings = LOOKED) -> dict[str, bytes]:
    words = subject_words(row.format_label, row.implementation, row.params, row.distribution, row.switches)
    return {key_of(f"gemm {' '.join(words)}", row.device_slot): json.dumps(standings.to_json()).encode()}


def lines(rows: list[ResultRow], files: Mapping[str, bytes] = {}, faster: float = 1.0) -> list[str]:
    return list(peak_lines(Kept(rows, files, faster), SEARCHED, rows))


BEST, NEXT = result(8192, 4096, 1024, share=0.7), result(4096, 4096, 1024, share=0.6)


def test_the_fastest_of_each_load_is_told_with_how_many_were_looked_at() -> None:
    burst = result(4096, 4096, 2048, share=0.8, regime="cold/burst/device")
    assert lines([NEXT, BEST, burst], file_of(BEST)) == [
        "peak bf16 sustained 672 TFLOP/s by 8192x4096x1024 (of 63 shapes looked at in 10 s), sets the empirical roof",
        "peak bf16 burst 768 TFLOP/s by 4096x4096x2048 (of 63 shapes looked at in 10 s), sets the empirical roof",
    ]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"contended": True}, "contended"),
        ({"interval_s": None, "count": 1}, "not resolved"),
        ({"distribution": "zeros"}, "of zeros data"),
    ],
)
def test_where_no_finalist_may_be_a_roof_it_says_why(fields: dict[str, Any], why: str) -> None:
    doubted = [replace(row, **fields) for row in (BEST, NEXT)]
    assert lines(doubted) == [f"peak bf16 sustained 672 TFLOP/s by 8192x4096x1024, sets no roof: {why}"]


def test_a_contended_finalist_does_not_stand_for_one_that_had_the_device_to_itself() -> None:
    (line,) = lines([replace(BEST, contended=True), NEXT])
    assert line.endswith("TFLOP/s by 4096x4096x1024, sets the empirical roof")


def test_what_did_not_converge_is_a_roof_and_says_so() -> None:
    (line,) = lines([replace(BEST, converged=False)])
    assert line.endswith("sets the empirical roof (not converged)")


def test_an_earlier_result_of_the_store_stays_the_roof() -> None:
    (line,) = lines([BEST], faster=1.1)
    assert line.endswith("under the empirical roof of 739 TFLOP/s that another result sets")


def test_what_the_device_does_not_offer_is_said_and_counts_no_shapes() -> None:
    none = Standings([Contender(Shape(64, 64, 64), fallen="unsupported: no unit")], ["ready"], 0.01)
    lacking = [failed("unsupported", "no unit", m=size, format="tf32") for size in (512, 1024)]
    assert lines(lacking, file_of(lacking[0], none)) == ["peak tf32 sustained: none, sets no roof: unsupported: no unit"]


def test_finalists_that_ended_differently_are_counted() -> None:
    mixed = [failed("incorrect", "off"), failed("incorrect", "off by more"), failed("crashed", "gone")]
    assert lines(mixed) == ["peak bf16 sustained: none, sets no roof: 2 incorrect, 1 crashed"]


def test_searches_of_one_format_are_told_apart_and_so_are_devices() -> None:
    other = result(implementation="triton")
    assert [line.partition(" sustained")[0] for line in lines([BEST, other])] == ["peak bf16 library", "peak bf16 triton"]
    second = result(device_slot=1, device_uid="d1")
    assert [line.partition(" sustained")[0] for line in lines([BEST, second])] == [
        "peak bf16 on device 0",
        "peak bf16 on device 1",
    ]


@pytest.mark.parametrize("kept", [b"{", b"[]", b'{"contenders": 3}', b'{"contenders": [], "done": [], "spent_s": "x"}'])
def test_standings_that_cannot_be_read_cost_the_number_of_shapes_alone(kept: bytes) -> None:
    (line,) = lines([BEST], dict.fromkeys(file_of(BEST), kept))
    assert line == "peak bf16 sustained 672 TFLOP/s by 8192x4096x1024, sets the empirical roof"


def test_a_run_without_a_search_asks_the_store_nothing() -> None:
    assert peaks(None, replace(SEARCHED, config={}), [BEST]) == []  # type: ignore[arg-type]


def test_a_program_learns_the_same_of_each_result() -> None:
    (peak,) = peaks(Kept([BEST, NEXT], file_of(BEST)), SEARCHED, [NEXT, BEST])
    assert peak.to_json(BEST) == {
        "is_best": True,
        "sets_roof": True,
        "verdict": "sets the empirical roof",
        "shapes_looked_at": 63,
        "looking_s": 10.02,
    }
    assert peak.to_json(NEXT)["is_best"] is False


def test_a_search_that_came_no_further_is_named() -> None:
    kept = {**file_of(BEST), **file_of(result(format="fp16"), Standings(stalled=True)), "notes.txt": b"?"}
    (line,) = stalled_lines(Kept([], kept), SEARCHED)
    assert line.startswith("search gemm fp16 library data=normal on device 0 came no further: ")
