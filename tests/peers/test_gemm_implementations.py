"""Implementations beside each other: turns, ratios, and what is said where a side is missing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.planned import PlannedCase
from tests.peers import gemm_implementations as implementations
from tests.peers.bench import COLD, Bench
from tests.peers.child import Deadline
from tests.peers.gemm_implementations import Pair, conclusions, overall, products, row
from tests.peers.gemms import Gemm, square
from tests.peers.part import Session
from tests.peers.record import Record, Verdict
from tests.peers.together import together

DEVICE = "tests.peers.stand_in.device:CudaStandIn"

Make = Callable[..., Session]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def session(seconds: float = 300.0, **options: Any) -> Session:
        bench = Bench(DEVICE, tiny=True, options=options)
        return Session(bench, Record("x", tmp_path / "x.json"), Deadline(seconds), DEVICE, "")

    return session


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implementations, "products", lambda name: [square(name, 4096), square(name, 8192)])


def sides(bench: Bench) -> list[PlannedCase]:
    planned = bench.gemm(square("bf16", 64), COLD)
    return [planned, planned._replace(case=replace(planned.case, implementation="triton"))]


def test_rounds_alternate_in_order_and_every_case_has_each(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make().bench
    measured: list[tuple[str, int]] = []
    trial = bench.trial

    def watched(planned: PlannedCase, *arguments: Any, **options: Any) -> Any:
        made = trial(planned, *arguments, **options)
        measure = made.measure

        def noted(number: int) -> None:
            measured.append((planned.case.implementation, number))
            measure(number)

        made.measure = noted  # type: ignore[method-assign]
        return made

    monkeypatch.setattr(bench, "trial", watched)
    found = together(bench, sides(bench), bench.settings(), rounds=3)
    names = [name for name, _ in measured]
    assert names == ["library", "triton", "triton", "library", "library", "triton"]
    assert [number for _, number in measured] == [0, 0, 1, 1, 2, 2]
    assert all(each.summary is not None for each in found)
    boundaries = [each.measurement.samples.boundaries for each in found if each.measurement and each.measurement.samples]
    assert [len(each) for each in boundaries] == [3, 3]


@pytest.mark.parametrize(("fault", "words"), [("oom", "no room"), ("wrong", "incorrect"), ("unsupported", "planted")])
def test_a_side_that_fails_leaves_the_other_to_go_on(make: Make, fault: str, words: str) -> None:
    bench = make(faults={"64x64x64": fault}, struck="triton").bench
    library, ours = together(bench, sides(bench), bench.settings(), rounds=2)
    assert library.summary is not None, library.reason
    assert ours.summary is None
    assert words in ours.reason


def test_every_product_that_a_ratio_is_promised_for_comes_first() -> None:
    found = products("bf16")
    assert found[:3] == [square("bf16", 4096), square("bf16", 8192), Gemm("bf16", 8192, 8192, 28672)]
    assert len(found) == len(set(found))
    assert {gemm.m for gemm in found[3:]} == {2048, 4096, 8192}
    assert [gemm.n for gemm in found[-3:]] == [128256] * 3


@pytest.mark.usefixtures("few")
def test_equal_sides_have_a_ratio_of_one(make: Make) -> None:
    session = make()
    implementations.run(session)
    by_name = {row.name: row for row in session.record.rows}
    assert by_name["bf16 64x64x64"].figures["ratio"] == pytest.approx(1, abs=1e-3)
    assert len(by_name["bf16 64x64x64"].figures["ratios"]) == implementations.ROUNDS
    assert by_name["fp8_e4m3 mean"].verdict is Verdict.INFO
    assert by_name["bf16 mean"].figures["mean"] == pytest.approx(1, abs=1e-3)


@pytest.mark.usefixtures("few")
def test_what_is_not_offered_is_absent_and_nothing_is_measured(make: Make) -> None:
    session = make(faults={"64x64x64": "unsupported", "128x128x128": "unsupported"})
    implementations.run(session)
    assert {row.verdict for row in session.record.rows} == {Verdict.ABSENT}
    assert session.record.rows[0].note == "planted: unsupported"
    assert not session.record.raw


@pytest.mark.usefixtures("few")
def test_without_time_nothing_is_begun(make: Make) -> None:
    session = make(seconds=0.0)
    implementations.run(session)
    assert session.record.rows[0].note == "no time was left"
    assert {row.verdict for row in session.record.rows} == {Verdict.ABSENT}


@pytest.mark.usefixtures("few")
def test_a_wrong_result_is_a_failure(make: Make) -> None:
    session = make(faults={"64x64x64": "wrong"}, struck="triton")
    implementations.run(session)
    assert session.record.rows[0].verdict is Verdict.FAILED
    mean = next(row for row in session.record.rows if row.name == "bf16 mean")
    assert "1 of 2 products" in mean.note


def pair(name: str, ratio: float, **tried: float) -> Any:
    class Scripted(Pair):
        ratios = [ratio] * implementations.ROUNDS

    return Scripted(name, tried=tried)


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [((1.02, 0.99), Verdict.PASS), ((1.02, 0.97), Verdict.FAIL), ((1.2, 0.96), Verdict.FAIL), ((0.99, 0.99), Verdict.FAIL)],
)
def test_the_mean_and_the_lowest_are_both_judged(ratios: tuple[float, float], verdict: Verdict) -> None:
    """1.02 and 0.97 have a mean under 1."""
    pairs = [pair(f"p{index}", ratio) for index, ratio in enumerate(ratios)]
    mean, *_ = conclusions("bf16", pairs)
    assert mean.verdict is verdict
    assert mean.figures["lowest"] == min(ratios)
    other, *_ = conclusions("fp8_e4m3", pairs)
    assert other.verdict is Verdict.INFO


def test_configurations_are_ranked_over_the_products_they_were_tried_on() -> None:
    first = {"default": 2.0, "good": 1.0, "lucky": 0.1, "bad": 4.0}
    second = {"default": 3.0, "good": 2.0, "bad": 3.0}
    third = {"default": 1.0, "good": 1.0}
    found = overall([first, second, third])
    assert list(found) == ["good", "default", "bad"], "what was tried on one product of three tells too little"
    gain, count = found["good"]
    assert (gain, count) == (pytest.approx((2 * 1.5 * 1) ** (1 / 3)), 3)
    assert found["default"] == (1.0, 3)


def test_the_best_of_a_sweep_stands_in_its_row(make: Make) -> None:
    session = make()
    found = implementations.measured(session, square("bf16", 64))
    shown = row(found._replace(tried={"128x128, 8 warps": 2.0, "64x64, 4 warps": 1.6}))
    assert (shown.figures["best"], shown.figures["gain"]) == ("64x64, 4 warps", pytest.approx(1.25))
    assert shown.cells[-1] == "64x64, 4 warps"


def test_no_time_that_another_product_needs_goes_to_trying_configurations(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(implementations, "find_spec", lambda name: True)
    monkeypatch.setattr(implementations, "caught", lambda attempt, classify: tried.append("tried"))
    session = make(100.0)
    implementations.swept(session, sides(session.bench)[1], others_s=101.0)
    assert tried == []
    implementations.swept(session, sides(session.bench)[1], others_s=50.0)
    assert tried == ["tried"]
