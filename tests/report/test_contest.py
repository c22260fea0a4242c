"""Implementations side by side: what stands beside what, who is called fastest, and who is not."""

from dataclasses import replace

import pytest

from suite.report.contest import Contest, contests
from suite.report.document import build
from suite.report.html import render_html
from suite.report.markdown import render_markdown
from suite.report.speed import Speed, speed, times_words
from suite.rows import ResultRow
from suite.show.contests import MOST_LINES, contest_lines
from suite.show.screen import Screen
from tests.report.builders import FakeReader, failed, result
from tests.report.pages import Page

EVIL = "<script>alert(1)</script>"


def timed(p50_s: float, by: str = "library", backend: str = "cuda", half: float = 0.001, **fields) -> ResultRow:
    row = result(**{name: fields.pop(name) for name in ("m", "regime", "format") if name in fields})
    interval = (p50_s * (1 - half), p50_s * (1 + half))
    return replace(row, implementation=by, backend=backend, p50_s=p50_s, interval_s=interval, **fields)


def one(*rows: ResultRow) -> Contest:
    (found,) = contests(rows)
    return found


def test_one_way_alone_is_no_contest() -> None:
    assert contests([timed(1.0), timed(1.0, m=512), timed(2.0, regime="warm/sustained/device")]) == ()
    assert contests([timed(1.0), failed("error", "it broke", implementation="triton")]) == ()


def test_the_fastest_leads_with_how_much_and_its_interval() -> None:
    found = one(timed(1.2, "library", "xla"), timed(1.0, "triton"), timed(1.1))
    assert [way.name for way in found.ways] == ["triton (cuda)", "library (cuda)", "library (xla)"]
    assert [way.speed.times for way in found.ways] == [1.0, pytest.approx(1 / 1.1), pytest.approx(1 / 1.2)]
    assert found.alike == 1
    assert found.verdict == "triton (cuda) is fastest, 1.1 (1.1 to 1.1) times as fast as library (cuda)"


def test_the_interval_of_the_lead_is_that_of_two_medians() -> None:
    """Of half widths of 1 % and 2 % the root of the sum of their squares is 2.24 %."""
    found = one(timed(1.0, "triton", half=0.01), timed(1.1, half=0.02))
    low, high = found.ways[1].speed.interval or (0, 0)
    assert low == pytest.approx(1 / 1.1 / 1.0224, rel=1e-3)
    assert high == pytest.approx(1 / 1.1 * 1.0224, rel=1e-3)


@pytest.mark.parametrize(("slower", "half", "alike"), [(1.005, 0.0001, 2), (1.02, 0.02, 2), (1.02, 0.001, 1)])
def test_under_one_per_cent_or_within_the_interval_ways_are_alike(slower: float, half: float, alike: int) -> None:
    found = one(timed(1.0, "triton", half=half), timed(slower, half=half))
    assert found.alike == alike
    assert ("alike" in found.verdict) == (alike == 2)


def test_three_alike_lead_before_a_fourth() -> None:
    found = one(timed(1.0), timed(1.001, "triton"), timed(1.002, backend="xla"), timed(1.5, "compiled"))
    assert found.alike == 3
    assert found.leaders == "library (cuda), triton (cuda), library (xla)"
    assert found.verdict == (
        "library (cuda), triton (cuda) and library (xla) are alike, each 1.49 to 1.5 times as fast as compiled (cuda)"
    )


def test_the_interval_behind_several_that_lead_holds_for_each_of_them() -> None:
    """That of the first alone would be 1.8 to 1.84 times, while the other's 1.72 to 1.86 is not within it."""
    rows = timed(1.0, half=0.001), timed(1.02, "triton", half=0.03), timed(1.82, backend="xla", half=0.01)
    found = one(*rows)
    assert found.alike == 2
    assert found.verdict.endswith("are alike, each 1.73 to 1.84 times as fast as library (xla)")
    assert found.lead is not None
    for row in rows[:2]:
        own = speed(row, rows[2])
        assert own is not None
        assert own.interval is not None
        assert found.lead.interval is not None
        assert found.lead.interval[0] <= own.interval[0]
        assert own.interval[1] <= found.lead.interval[1]
    assert found.lead.times == pytest.approx(1.82)


def test_of_several_that_lead_one_may_not_be_told_apart_from_the_next() -> None:
    found = one(timed(1.0, half=0.01), timed(1.02, "triton", half=0.04), timed(1.05, backend="xla", half=0.01))
    assert found.verdict.endswith("are alike, each 0.989 to 1.07 times as fast as library (xla)")


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1.002, 1.11, "1.06 (1.002 to 1.11)"),
        (0.998, 1.11, "1.06 (0.998 to 1.11)"),
        (0.9997, 1.0004, "1.06 (0.9997 to 1.0004)"),
        (1.01, 1.11, "1.06 (1.01 to 1.11)"),
        (1.0, 1.11, "1.06 (1 to 1.11)"),
    ],
)
def test_an_end_near_one_says_on_which_side_of_it_it_lies(low: float, high: float, words: str) -> None:
    """Whether it is told apart from 1 is what an interval is read for."""
    assert Speed(1.06, (low, high)).words == words


@pytest.mark.parametrize(("times", "told"), [(1.002, "1.002"), (0.9996, "0.9996"), (1.0, "1"), (1.5, "1.5"), (12.346, "12.3")])
def test_a_factor_near_one_does_too(times: float, told: str) -> None:
    assert times_words(times) == told
    assert Speed(times, None).words == f"{told} ± not resolved"


def test_one_in_doubt_that_reads_a_little_faster_is_not_said_to_be_once_as_fast() -> None:
    found = one(timed(1.002), timed(1.0, "triton", contended=True))
    assert found.verdict.startswith("in doubt: triton (cuda) reads 1.002 times as fast as library (cuda), although contended")


DOUBTS = [
    ({"contended": True}, "although contended", "contended"),
    ({"interval_s": None}, "no interval from 400 samples", "no interval from 400 samples"),
    ({"interval_s": (1e-9, 9.0), "contended": True}, "not resolved, contended", "not resolved, contended"),
]


@pytest.mark.parametrize(("doubt", "faster", "slower"), DOUBTS, ids=["contended", "no interval", "wide"])
def test_one_in_doubt_stands_behind_and_where_it_reads_faster_so_is_who_is_fastest(doubt, faster, slower) -> None:
    """ "naive is fastest; library_flash reads 1.42 times as fast, contended" said two things that exclude each other."""
    found = one(timed(1.0), replace(timed(0.5, "triton"), **doubt))
    assert [way.name for way in found.ways] == ["library (cuda)", "triton (cuda)"]
    assert found.verdict == (
        f"in doubt: triton (cuda) reads 2 times as fast as library (cuda), {faster}; "
        "library (cuda) is fastest of those not in doubt"
    )
    assert found.leaders == "in doubt: triton (cuda), library (cuda)"
    behind = one(timed(1.0), replace(timed(2.0, "triton"), **doubt))
    assert behind.verdict == (
        f"library (cuda) is fastest of those not in doubt; triton (cuda) reads 0.5 times as fast, {slower}"
    )
    assert behind.leaders == "library (cuda)"


def test_one_in_doubt_that_reads_faster_is_said_before_how_the_others_stand() -> None:
    found = one(
        timed(1.0),
        timed(1.001, "triton"),
        timed(1.5, backend="xla"),
        timed(0.8, "compiled", contended=True),
        timed(3.0, "flex", contended=True),
    )
    assert found.verdict == (
        "in doubt: compiled (cuda) reads 1.25 times as fast as library (cuda), although contended; library (cuda) and triton "
        "(cuda) are alike, each 1.5 times as fast as library (xla); flex (cuda) reads 0.333 times as fast, contended"
    )
    assert found.leaders == "in doubt: compiled (cuda), library (cuda), triton (cuda)"


@pytest.mark.parametrize("mark", [{"converged": False}, {"steady": False}])
def test_one_whose_interval_is_wide_or_load_moved_is_told_by_its_interval(mark) -> None:
    """A product that read 4.19 times as fast, known to 2.4 %, once stood behind because it had not converged."""
    found = one(timed(1.0), replace(timed(0.25, "triton", half=0.024), **mark))
    assert found.verdict == "triton (cuda) is fastest, 4 (3.91 to 4.1) times as fast as library (cuda)"
    unsure = one(timed(1.0, half=0.05), replace(timed(0.97, "triton", half=0.05), **mark))
    assert unsure.alike == 2


def test_where_all_are_in_doubt_the_verdict_says_so() -> None:
    found = one(timed(1.0, contended=True), timed(2.0, "triton", contended=True))
    assert found.verdict == (
        "library (cuda) reads fastest, and is in doubt: contended; triton (cuda) reads 0.5 times as fast, contended"
    )
    assert found.leaders == "in doubt: library (cuda)"


def test_what_was_not_verified_or_not_measured_never_stands_beside_what_was() -> None:
    wrong = replace(timed(0.1, "triton"), outcome="incorrect")
    modelled = timed(0.1, "compiled", evidence="simulated")
    assert contests([timed(1.0), wrong, modelled]) == ()
    found = one(timed(1.0), timed(1.1, backend="xla"), wrong)
    assert found.untimed == ("triton (cuda): incorrect",)


@pytest.mark.parametrize(
    "other",
    [
        {"device_uid": "another"},
        {"workload_key": "another"},
        {"distribution": "zeros"},
        {"regime": "warm/sustained/device"},
        {"job": "attention"},
        {"evidence": "imported"},
    ],
)
def test_another_device_case_data_regime_or_evidence_is_another_contest(other) -> None:
    assert contests([timed(1.0), timed(1.1, "triton", **other)]) == ()


def test_runs_of_two_backends_meet_and_of_two_results_the_trusted_newer_one_counts() -> None:
    old, new, doubtful = (
        timed(time_s, finished_at=f"2031-05-0{day}T00:00:00Z") for time_s, day in ((1.3, 1), (1.2, 2), (0.9, 3))
    )
    found = one(old, new, replace(doubtful, contended=True), timed(1.0, backend="xla"))
    assert [way.row.p50_s for way in found.ways] == [1.0, 1.2]


def test_switches_name_ways_that_nothing_else_tells_apart() -> None:
    found = one(
        timed(1.0, switches={"fp8_fast_accum": True}), timed(1.2, switches={"fp8_fast_accum": False}), timed(1.4, "triton")
    )
    assert [way.name for way in found.ways] == [
        "library (cuda) fp8_fast_accum=True", "library (cuda) fp8_fast_accum=False", "triton (cuda)",
    ]  # fmt: skip
    assert contests([timed(1.0, switches={"a": True}), timed(1.2, switches={"a": False})]) == ()


def test_calibration_and_collectives_have_no_contest() -> None:
    for job in ("calibration", "collective"):
        assert contests([timed(1.0, job=job), timed(1.1, "own", job=job)]) == ()


def test_the_largest_case_comes_first() -> None:
    rows = [timed(1.0, by, m=m) for m in (512, 8192, 4096) for by in ("library", "triton")]
    assert [contest.first.params["m"] for contest in contests(rows)] == [8192, 4096, 512]


def test_the_report_has_verdict_and_table_and_text_stays_text() -> None:
    rows = (
        timed(1.0, "triton"),
        timed(1.1, EVIL),
        timed(1.2, backend="xla"),
        failed("unsupported", "no", implementation="flex"),
    )
    document = build(FakeReader(rows), ["latest"])
    page = Page(render_html(document))
    assert "triton (cuda) is fastest" in " ".join(page.texts.values())
    assert "Not timed: flex (cuda): unsupported." in " ".join(page.texts.values())
    assert EVIL not in render_html(document)
    text = render_markdown(document)
    assert "## Implementations side by side" in text
    assert "| triton \\(cuda\\) | 1 |" in text or "| triton (cuda) | 1 |" in text
    assert EVIL not in text


def test_a_report_of_one_way_has_no_such_section() -> None:
    document = build(FakeReader((timed(1.0), timed(1.0, m=512))), ["latest"])
    assert "side by side" not in render_html(document)
    assert "side by side" not in render_markdown(document)


def test_the_terminal_has_a_line_a_case_and_says_what_it_leaves_out() -> None:
    rows = [timed(1.0 + m / 1e4, by, m=m) for m in range(1, MOST_LINES + 4) for by in ("library", "triton")]
    lines = list(contest_lines(rows, Screen()))
    assert lines[1] == "implementations side by side"
    assert len(lines) == 3 + MOST_LINES
    assert lines[-1] == "  and 3 smaller cases: `roofbench report` has them"
    assert list(contest_lines(rows[:1], Screen())) == []
