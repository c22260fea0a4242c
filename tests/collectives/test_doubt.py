"""What of a curve in doubt decides anything: every point stays in sight, and fits and crossings rest on those that count."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from suite.collectives.model.alpha_beta import Fit, Refusal
from suite.collectives.series import Doubt, left_out_words, series
from suite.collectives.study import Modelled, studies
from suite.report.collective_words import beyond_words, crossover_row, fit_row, setting_title
from suite.rows import ResultRow
from tests.collectives.rows import collective, curve
from tests.collectives.test_study import ring, run_of_both

SIZES = [2**18, 2**20, 2**22, 2**24]
OF_TWO = ring(1e-3, 1e8)


def rows(**fields: Any) -> list[ResultRow]:
    """A ring of two ranks that follows the formula."""
    return curve("all_reduce", "ring", [2], SIZES, OF_TWO, **fields)


def both(times: dict[tuple[str, int], float], disturbed: Collection[tuple[str, int]]) -> list[ResultRow]:
    """Ring and tree of eight ranks at these times by algorithm and size, some of them contended."""
    return [
        collective(
            "all_reduce", 8, size, time_s, implementation="own", switches={"algo": algo}, contended=(algo, size) in disturbed
        )
        for (algo, size), time_s in times.items()
    ]


def model(given: list[ResultRow]) -> Modelled:
    ((found,),) = (study.models for study in studies(given))
    return found


@pytest.mark.parametrize(
    ("fields", "doubts", "counts"),
    [
        ({}, (), True),
        ({"contended": None}, (), True),  # too short to tell is no sign of others
        ({"contended": True}, (Doubt.CONTENDED,), False),
        ({"converged": False}, (Doubt.NOT_CONVERGED,), True),
        ({"steady": False}, (Doubt.NOT_STEADY,), True),
        ({"interval_s": None}, (Doubt.NOT_RESOLVED,), False),
        ({"interval_s": (1e-4, 2.2e-3)}, (Doubt.NOT_RESOLVED,), False),
        ({"interval_s": (1e-4, 2.0e-3)}, (), True),
        ({"interval_s": None, "evidence": "imported", "contended": None, "converged": None}, (), True),
    ],
)
def test_a_point_carries_the_marks_of_its_result(fields: dict[str, Any], doubts: tuple[Doubt, ...], counts: bool) -> None:
    (found,) = series([collective("all_reduce", 2, 1024, 1e-3, **fields)])
    assert (found.points[0].doubts, found.points[0].counts) == (doubts, counts)
    assert len(found.timings()) == len(found.measured(2)) == counts


def test_times_that_others_disturbed_are_in_sight_and_make_no_fit() -> None:
    found = model(rows(contended=True))
    assert len(found.curve.points) == 4
    assert found.fit == Refusal("0 message sizes; a fit takes 4 or more; left out: 4 contended")
    assert isinstance(found.held_out, Refusal)
    assert "left out: 4 contended" in found.held_out.reason
    assert (found.beyond(SIZES[-1]), found.fitted) == ((), ())


def test_a_fit_is_of_what_is_left() -> None:
    disturbed = curve("all_reduce", "ring", [2], [2**17], lambda ranks, size: 1.0, contended=True)
    found = model([*rows(), *disturbed])
    assert isinstance(found.fit, Fit)
    assert found.fit.bandwidth_bytes_s == pytest.approx(1e8)
    assert [point.message_bytes for point in found.fitted] == SIZES


def test_times_that_did_not_converge_are_fitted_and_widen_what_is_known() -> None:
    """Two cores that ranks share: nothing converges, and nobody else is at work."""
    known = model(rows())
    vague = model(
        [
            collective("all_reduce", 2, size, time_s, switches={"algo": "ring"}, converged=False,
                       interval_s=(0.4 * time_s, 1.6 * time_s))
            for size in SIZES
            for time_s in [OF_TWO(2, size)]
        ]
    )  # fmt: skip
    assert isinstance(known.fit, Fit)
    assert isinstance(vague.fit, Fit)
    assert vague.fit.bandwidth_bytes_s == pytest.approx(known.fit.bandwidth_bytes_s)
    assert vague.fit.bandwidth_error == pytest.approx(60 * known.fit.bandwidth_error, rel=1e-6)
    four, wider = (found.beyond(SIZES[-1])[0] for found in (known, vague))
    assert four.high_s / four.time_s == pytest.approx(1.3)  # 15 %, and as much again for the doubling
    assert wider.high_s / wider.time_s == pytest.approx(1 + 2 * vague.fit.error(2, SIZES[-1]))
    assert vague.fit.error(2, SIZES[-1]) > 0.3


def test_a_crossing_rests_on_no_time_that_others_disturbed() -> None:
    times = {(row.switches["algo"], row.params["message_bytes"]): row.p50_s or 0.0 for row in run_of_both([8])}
    (clean,) = studies(both(times, ()))[0].crossovers
    (crossing,) = clean.measured
    (without,) = studies(both(times, [("ring", crossing.between[0])]))[0].crossovers
    assert [(each.between[0] < crossing.between[0], each.between[1]) for each in without.measured] == [
        (True, crossing.between[1])
    ]
    assert (left_out_words(clean.left_out), left_out_words(without.left_out)) == ("", "1 contended")
    (none,) = studies(both(times, times))[0].crossovers
    assert (none.measured, none.predicted, none.are_fitted) == ((), None, False)


def test_a_crossing_between_times_that_did_not_converge_says_so() -> None:
    (clean,) = studies(run_of_both([8]))[0].crossovers
    (vague,) = studies([replace(row, converged=False) for row in run_of_both([8])])[0].crossovers
    assert [found.rests_on(found.measured[0], Doubt.NOT_CONVERGED) for found in (clean, vague)] == [False, True]


def test_a_point_that_is_left_out_for_two_reasons_is_counted_once() -> None:
    (found,) = series([collective("all_reduce", 2, 1024, 1e-3, contended=True, interval_s=None)])
    assert left_out_words(found.points) == "1 contended"


def test_what_is_made_of_ranks_that_share_cores_says_so_everywhere() -> None:
    """Where every world shares them a fit of nothing would be no use."""
    given = run_of_both([2, 4, 8])
    shared = [row.result_id for row in given if row.params["world_size"] > 2]
    (clean,), (marked,) = studies(given), studies(given, shared)
    assert [model.fit for model in marked.models] == [model.fit for model in clean.models]
    points = marked.models[0].curve.points
    assert {point.ranks for point in points if Doubt.SHARED_CORES in point.doubts} == {4, 8}
    assert all(point.counts for point in points)
    assert fit_row(marked.models[0]).cells[-1] == "36; 24 of ranks that share cores"
    assert fit_row(clean.models[0]).cells[-1] == "36"
    told = {study: [row for each in study.crossovers for row in [crossover_row(each)]] for study in (clean, marked)}
    assert not any("share cores" in cell for row in told[clean] for cell in row)
    two, *more = told[marked]
    assert not any("share cores" in cell for cell in two)
    assert all(", ranks share cores)" in row[2] and "), ranks share cores, modelled" in row[3] for row in more)
    (beyond, *_) = beyond_words(marked)
    assert "(of 36 points, 24 of ranks that share cores)" in beyond


@pytest.mark.parametrize(
    ("other", "title"),
    [
        ({"load": "burst"}, "all_reduce fp32 over host, warm/burst/call"),
        ({"switches": {"joined": True}}, "all_reduce fp32 over host, ranks of a launcher"),
        ({"semantics": {"redop": "max"}}, "all_reduce fp32 over host, redop=max"),
        ({"evidence": "simulated"}, "all_reduce fp32 over host, simulated"),
        ({"switches": {"transport": "device_link"}}, "all_reduce fp32 over device_link"),
    ],
)
def test_times_of_another_kind_are_on_a_curve_of_their_own(other: dict[str, Any], title: str) -> None:
    usual, apart = studies([collective("all_reduce", 2, 1024, 1e-3), collective("all_reduce", 2, 1024, 2e-3, **other)])
    assert [point.time_s for study in (usual, apart) for point in study.models[0].curve.points] == [1e-3, 2e-3]
    assert [setting_title(study.setting) for study in (usual, apart)] == ["all_reduce fp32 over host", title]


def test_a_size_that_was_measured_twice_has_both_its_times() -> None:
    (found,) = series([collective("all_reduce", 2, 1024, time_s) for time_s in (2e-3, 1e-3)])
    assert [point.time_s for point in found.points] == [2e-3, 1e-3]


def test_a_message_of_no_bytes_is_on_no_curve() -> None:
    assert series([collective("all_reduce", 2, 0, 1e-3)]) == ()
