"""The comparison of grouped products, as far as it goes without a device: shapes, turns, ratios, and what is said."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suite.jobs.grouped_gemm import GroupedGemmJob, sizes_of
from tests.peers import grouped_gemm, grouped_gemm_cases
from tests.peers.bench import Bench, Measured
from tests.peers.child import Deadline
from tests.peers.grouped_gemm import GLUON, LIBRARY, LOOP, OURS, TUNED, judged, mean, row
from tests.peers.grouped_gemm_cases import Product, Result, products, square
from tests.peers.part import Session, main
from tests.peers.record import Record, Verdict

DEVICE = "tests.peers.stand_in.device:CudaStandIn"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    bench = Bench(DEVICE, tiny=True)
    return Session(bench, Record("x", tmp_path / "x.json"), Deadline(300.0), DEVICE, "")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[Product]:
    chosen = list(products(tiny=True))[:1]
    monkeypatch.setattr(grouped_gemm, "products", lambda tiny: chosen)
    return chosen


def test_the_shapes_are_deepseeks_and_each_product_plans_one_workload() -> None:
    found = [[sizes_of(each) for each in GroupedGemmJob().workloads(product.settings)] for product in products()]
    assert all(len(each) == 1 for each in found)
    even = {(each.groups, each.m // each.groups, each.n, each.k) for (each,) in found[:16]}
    assert even == {
        (groups, rows, n, k)
        for groups, rows in ((4, 8192), (8, 4096))
        for n, k in ((6144, 7168), (7168, 3072), (4096, 4096), (4096, 2048))
    }
    routed = [(each.groups, each.top_k, each.m, each.n, each.k) for (each,) in found[16:20]]
    assert routed == [
        (256, 8, 32768, 4096, 7168), (256, 8, 32768, 7168, 2048), (256, 8, 512, 4096, 7168), (256, 8, 512, 7168, 2048),
    ]  # fmt: skip
    assert [next(iter(GroupedGemmJob().workloads(each.settings))).format for each in products()].count("fp8_e4m3") == len(
        found
    ) // 2
    names = [product.name for product in products()]
    assert len(set(names)) == len(names)


def test_squares_in_blocks_and_by_rows_are_of_one_size(session: Session) -> None:
    by_row, blocks = (square(128, scaling).sides(session.bench, [LOOP])[0].case.workload for scaling in ("row", "block"))
    assert by_row.params == blocks.params
    assert (by_row.format_label, blocks.format_label) == ("fp8_e4m3 row", "fp8_e4m3 block")


def test_every_side_is_planned_cold_on_the_same_data(session: Session, few: list[Product]) -> None:
    sides = few[0].sides(session.bench, (LIBRARY, LOOP, OURS))
    assert [each.case.implementation for each in sides] == [LIBRARY, LOOP, OURS]
    assert len({each.case.workload.key for each in sides}) == 1
    assert {each.case.regime.label for each in sides} == {"cold/sustained/device"}


def sampled(session: Session, product: Product, medians_s: dict[str, list[float]]) -> Result:
    """A result whose rounds took what is said."""

    sides = {}
    for planned in product.sides(session.bench, list(medians_s)):
        times_s = medians_s[planned.case.implementation]
        summary: Any = SimpleNamespace(flop_s=1e12 / times_s[0]) if times_s else None
        measurement: Any = SimpleNamespace(samples=times_s, description={"tiles": "128x256x64"}) if times_s else None
        sides[planned.case.implementation] = Measured(planned, measurement, summary, "" if times_s else "unsupported: not here")
    return Result(product, sides)


@pytest.fixture(autouse=True)
def _batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped_gemm_cases, "batches_s", lambda samples: [[time_s] for time_s in samples])


def test_a_ratio_is_the_median_over_the_rounds(session: Session, few: list[Product]) -> None:
    result = sampled(session, few[0], {LIBRARY: [1.0, 1.1, 1.2], LOOP: [2.0, 2.0, 2.0], OURS: [0.8, 1.0, 1.0]})
    assert result.ratios(OURS, LIBRARY) == pytest.approx([1.25, 1.1, 1.2])
    found = row(result, OURS)
    assert found.cells == ("1", "0.5", "1.25", "1.2", "2", "1.100 to 1.250", "128x256x64")
    assert (found.verdict, found.note) == (Verdict.INFO, "")
    assert row(result._replace(sides={**result.sides, TUNED: result.sides[OURS]}), TUNED).name.endswith(", tuned")


def test_a_side_that_is_not_here_leaves_a_dash_and_its_reason(session: Session, few: list[Product], monkeypatch: Any) -> None:
    monkeypatch.setattr(grouped_gemm, "is_absent", lambda measured: True)
    result = sampled(session, few[0], {LIBRARY: [], LOOP: [2.0], OURS: [1.0]})
    found = row(result, OURS)
    assert found.cells[0] == found.cells[3] == found.cells[5] == "-"
    assert (found.cells[4], found.note) == ("2", "unsupported: not here")


def test_a_side_that_failed_fails_the_row(session: Session, few: list[Product]) -> None:
    found = row(sampled(session, few[0], {LIBRARY: [1.0], LOOP: [2.0], OURS: []}), OURS)
    assert found.verdict is Verdict.FAILED
    assert "not here" in found.note


def test_means_are_geometric_and_over_what_both_sides_have(session: Session, few: list[Product]) -> None:
    some = [sampled(session, few[0], {LIBRARY: [each], LOOP: [4 * each], OURS: [1.0]}) for each in (0.5, 2.0)]
    lone = sampled(session, few[0], {LIBRARY: [], LOOP: [], OURS: [1.0]})
    found = mean("bf16", [*some, lone])
    assert found.figures == pytest.approx({"over_library": 1.0, "over_loop": 4.0})
    assert found.note == "over 2 of 3 products"
    assert mean("bf16", [lone]).verdict is Verdict.ABSENT


@pytest.mark.parametrize(
    ("ours", "gluon", "verdict", "best"),
    [([1.6], [1.2], Verdict.PASS, "gluon"), ([1.3], [1.4], Verdict.PASS, "triton"), ([1.6], [1.4], Verdict.FAIL, "gluon")],
)
def test_the_faster_kernel_of_blocks_is_held_against_the_limit(
    session: Session, few: list[Product], ours: list[float], gluon: list[float], verdict: Verdict, best: str
) -> None:
    found = judged(sampled(session, few[0], {LOOP: [1.0], OURS: ours, GLUON: gluon}))
    assert (found.verdict, found.cells[-1]) == (verdict, best)
    assert found.figures["ratios"] == pytest.approx({OURS: 1 / ours[0], GLUON: 1 / gluon[0]})


def test_blocks_that_no_kernel_of_ours_takes_here_are_absent(session: Session, few: list[Product], monkeypatch: Any) -> None:
    monkeypatch.setattr(grouped_gemm, "is_absent", lambda measured: True)
    found = judged(sampled(session, few[0], {LOOP: [1.0], OURS: [], GLUON: []}))
    assert (found.verdict, found.note) == (Verdict.ABSENT, "unsupported: not here")


def test_without_time_nothing_is_begun(session: Session, few: list[Product]) -> None:
    late = session._replace(deadline=Deadline(0.0), bench=Bench(DEVICE))
    result = grouped_gemm.measured(late, few[0], (LIBRARY,), 1.0)
    assert row(result, OURS).verdict is Verdict.ABSENT
    assert "no time was left" in row(result, OURS).note


def test_it_runs_on_a_cpu_and_prints_its_table_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = list(products(tiny=True))[:1]
    monkeypatch.undo()
    monkeypatch.setattr(grouped_gemm, "products", lambda tiny: chosen)
    status = main(grouped_gemm.PART, ["--out", str(tmp_path), "--backend", "cpu", "--tiny", "--seconds", "60"])
    printed = capsys.readouterr().out
    assert status == 0, printed
    first, *body = printed.strip().splitlines()
    assert first.startswith("grouped_gemm: ")
    assert first.endswith("(tiny: the figures mean nothing)")
    bf16 = next(line for line in body if line.startswith("bf16 3x16, 64x128"))
    library, loop, ours, *_ = bf16.removeprefix("bf16 3x16, 64x128").split()
    assert float(library) > 0 < float(loop)
    assert ours == "-"
    assert any("runs on GPUs; the device here is a CPU" in line for line in body)
