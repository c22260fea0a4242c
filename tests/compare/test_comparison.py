"""A comparison as data, in words, in a terminal, in a comment, and before a gate."""

import json
import math
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from suite.compare import words
from suite.compare.comparison import Comparison, compare
from suite.compare.gate import FailOn, failures
from suite.compare.markdown import render_markdown
from suite.compare.noise import Noise
from suite.compare.pairing import By, pair
from suite.compare.quantity import in_cycles, log_ratio
from suite.compare.repeats import Known
from suite.compare.side import Looked, Side
from suite.compare.verdict import Verdict
from suite.measure.statistics import Interval
from suite.selftest.record import Repeatability, Selftest
from suite.selftest.usable import Standing
from suite.show.comparison import comparison_lines
from suite.show.screen import Screen
from tests.compare.builders import CERTAIN, QUIET, chip, entry, looked, side, slower
from tests.report.builders import UID, failed

CHIP = (UID, "cuda")
NOISY = Noise(0.02, 0.02, CERTAIN)
UNTESTED = Known({}, {})
KNOWN = Repeatability(0.002, 0.06, in_cycles=True, cases=20)


def compared(a: Side, b: Side, by: By | None = None, repeats=None, noise=QUIET, min_effect=0.01, refused=None) -> Comparison:
    return compare(a, b, pair(a, b, by), (looked(a, noise), looked(b, noise)), Known(repeats or {}, refused or {}), min_effect)


def later(*changes: float, **fields) -> Side:
    """Run B: each case of ``four`` so much slower."""
    rows = [each._replace(row=slower(each.row, change)) for each, change in zip(four().entries, changes, strict=True)]
    return side(*rows, run="b", **fields)


def four(**fields) -> Side:
    return side(*(entry(size, size, size, bound="memory") for size in (512, 1024, 2048, 4096)), **fields)


@pytest.fixture(scope="module")
def mixed() -> Comparison:
    """One of each verdict, one lost, one that only B has."""
    b = later(0.05, 0.01, 0.0, -0.2)
    a = four()
    lost = entry(8192)
    crashed = lost._replace(row=failed("crashed", "signal 11 in /home/ada/x.so", case_key=lost.row.case_key, m=8192))
    b = replace(b, entries=(*b.entries, crashed, entry(16)), info=replace(b.info, version="0.2.0"))
    return compared(replace(a, entries=(*a.entries, lost)), b)


def test_cases_come_the_worst_first(mixed):
    assert [case.verdict for case in mixed.cases] == [Verdict.SLOWER, Verdict.UNDECIDED, Verdict.SAME, Verdict.FASTER]
    assert [case.pair.a.row.params["m"] for case in mixed.cases] == [512, 1024, 2048, 4096]
    assert mixed.counts() == {Verdict.SLOWER: 1, Verdict.UNDECIDED: 1, Verdict.SAME: 1, Verdict.FASTER: 1}


def test_of_one_verdict_the_slowest_is_first():
    cases = compared(four(), later(0.05, 0.30, 0.10, 0.20)).cases
    assert [round(case.ratio, 2) for case in cases] == [1.3, 1.2, 1.1, 1.05]


def test_the_json_has_everything_in_plain_numbers(mixed):
    plain = json.loads(json.dumps(mixed.to_json(), allow_nan=False))
    assert (plain["a"]["run"], plain["b"]["run"], plain["by"], plain["min_effect"], plain["level"]) == (
        "a",
        "b",
        "case",
        0.01,
        0.05,
    )
    assert plain["counts"] == {"SLOWER": 1, "UNDECIDED": 1, "SAME": 1, "FASTER": 1}
    first = plain["cases"][0]
    assert first["verdict"] == "SLOWER"
    assert first["quantity"] == "time"
    assert first["ratio"] == pytest.approx(1.05) == first["time_ratio"]
    error = 0.001 * math.sqrt(2)
    assert first["interval"] == pytest.approx([1.05 * math.exp(-1.96 * error), 1.05 * math.exp(1.96 * error)], rel=1e-5)
    assert first["delta"] == 0.01
    assert first["repeatability_rel"] is None
    assert first["a"]["case_key"] == first["b"]["case_key"]
    assert [(each["why"], each["lost"]) for each in plain["not_compared"]] == [("B crashed", True), ("not in A", False)]
    assert plain["not_compared"][1]["a"] is None
    assert plain["without_repeatability"] == [{"device_uid": UID, "backend": "cuda"}]
    assert [each["name"] for each in plain["differing"]] == ["version"]


def test_what_arithmetic_bounds_is_compared_in_cycles_where_both_counted_them():
    a, b = entry().row, replace(slower(entry().row, 0.10), clock_hz=1.41e9 / 1.10)
    assert in_cycles(a, b)
    assert log_ratio(a, b) == pytest.approx(0.0, abs=1e-12)
    (case,) = compared(side(entry()), side(entry()._replace(row=b))).cases
    assert (case.verdict, case.ratio, case.time_ratio) == (Verdict.SAME, pytest.approx(1.0), pytest.approx(1.10))
    assert words.remarks(case) == ("time +10.0 %, as the clock was -9.1 %",)


@pytest.mark.parametrize(
    "fields", [{"bound": "memory"}, {"clock_hz": None}, {"device": "Testium T2"}], ids=["memory", "uncounted", "another kind"]
)
def test_otherwise_in_time(fields):
    b = replace(slower(entry().row, 0.10), **fields)
    assert not in_cycles(entry().row, b)
    assert log_ratio(entry().row, b) == pytest.approx(math.log(1.10))


def test_a_stored_repeatability_is_the_margin_and_is_told():
    known = {CHIP: Repeatability(0.002, 0.06, in_cycles=True, cases=20)}
    found = compared(four(), later(0.05, 0.0, 0.0, -0.2), repeats=known)
    assert [case.gap.delta for case in found.cases] == [0.06] * 4
    assert found.counts()[Verdict.SLOWER] == 0
    assert found.untested == ()
    (told,) = [sentence for sentence in words.meaning(found) if "selftest" in sentence]
    assert told == (
        "Two runs of cuda Testium T1 differ by up to 0.2 % in cycles, 6 % in time where memory bounds it "
        "where nothing changed (selftest)."
    )


LATEST, EARLIER = (Selftest(UID, "Testium T1", "cuda", (), datetime(2031, 5, day, 12, tzinfo=UTC), (), KNOWN) for day in (2, 1))
WHY = "repeatability FAIL (95 % at the 95th percentile), contention FAIL (56 of 59)"


@pytest.mark.parametrize(
    ("used", "instead"), [(EARLIER, "that of 2031-05-01 12:00 UTC is, instead"), (None, "no earlier one can be")]
)
def test_a_selftest_that_is_not_used_is_told_everywhere_with_why_and_what_is_used_instead(used, instead):
    known = {CHIP: KNOWN} if used else {}
    found = compared(four(), later(0.8, 0.0, 0.0, 0.0), repeats=known, refused={CHIP: Standing(used, LATEST, WHY)})
    told = f"The latest selftest of cuda Testium T1, of 2031-05-02 12:00 UTC, is not used: {WHY}; {instead}."
    assert [sentence for sentence in words.meaning(found) if "not used" in sentence] == [told]
    assert told in " ".join(" ".join(lines(found)).split())
    assert told.replace("(", "\\(") in render_markdown(found).replace(")", ")") or told in render_markdown(found)
    (plain,) = found.to_json()["selftests_not_used"]
    assert plain == {
        "device_uid": UID,
        "backend": "cuda",
        "finished_at": "2031-05-02T12:00:00+00:00",
        "why": WHY,
        "used_instead": used and "2031-05-01T12:00:00+00:00",
    }
    assert found.counts()[Verdict.SLOWER] == 1


def test_without_one_it_is_said_what_the_verdicts_hold_for_and_how_far_cases_lie_apart():
    six = side(*(entry(size, bound="memory") for size in range(8, 56, 8)))
    off = side(*(each._replace(row=slower(each.row, 0.3)) for each in six.entries), run="b")
    (told,) = [sentence for sentence in words.meaning(compared(six, off)) if "roofbench selftest" in sentence]
    assert told.startswith("How far two runs of cuda Testium T1 differ where nothing changed is not known")
    assert told.endswith("Half of these cases differ by 30 % or more.")


def test_many_chips_of_one_kind_are_one_sentence():
    entries = [entry(device_slot=slot, device_uid=f"chip{slot}") for slot in range(8)]
    a = side(*entries, devices=[chip(f"chip{slot}") for slot in range(8)])
    found = compared(a, side(*entries, run="b"))
    assert len(found.untested) == 8
    assert sum("is not known" in sentence for sentence in words.meaning(found)) == 1


def test_a_result_without_samples_is_undecided():
    a, b = four(), later(0.5, 0.0, 0.0, 0.0)
    found = compare(a, b, pair(a, b), ({}, {}), UNTESTED, 0.01)
    assert {case.verdict for case in found.cases} == {Verdict.UNDECIDED}
    assert words.interval_of(found.cases[0]) == "not known"
    assert found.to_json()["cases"][0]["interval"] is None


def test_marks_stand_beside_the_verdict_with_whose_they_are():
    a = entry(throttle="sw_power_cap 98%", steady=False)
    b = entry(throttle="sw_power_cap 98%", contended=True)
    (case,) = compared(side(a), side(b)).cases
    assert words.doubts(case) == ("both throttled: sw_power_cap 98 %", "A not steady", "B contended")


def test_a_side_beside_other_work_is_undecided_and_says_so_everywhere():
    """Another process halves a CPU: the same code takes eight times as long there, beyond any noise within the runs."""
    b = later(7.0, 0.05, 0.0, 0.0)
    busy = replace(b.entries[0].row, contended=True)
    b = replace(b, entries=(b.entries[0]._replace(row=busy), *b.entries[1:]))
    found = compared(four(), b)
    beside = next(case for case in found.cases if case.pair.b.row is busy)
    why = "beside other work in B: not tested"
    assert (beside.verdict, beside.judgement.why, beside.ratio) == (Verdict.UNDECIDED, why, pytest.approx(8.0))
    assert words.remarks(beside) == (why,)
    assert words.summary(found) == "1 SLOWER, 1 UNDECIDED, 1 of them beside other work, 2 SAME, 0 FASTER"
    assert why in " ".join(" ".join(lines(found)).split())
    assert why in render_markdown(found)
    assert sum("beside other processes" in sentence for sentence in words.meaning(found)) == 1
    plain = found.to_json()
    assert (plain["beside_other_work"], [case["why"] for case in plain["cases"]]) == (1, ["", why, "", ""])
    alone = compared(side(*four().entries[1:]), side(*b.entries[1:], run="b"))
    assert [case.judgement for case in alone.cases] == [case.judgement for case in found.tested]


def test_work_of_others_alone_fails_no_gate_for_slower():
    sides = [side(*(entry(size, bound="memory", contended=busy) for size in (512, 1024))) for busy in (True, False)]
    off = side(*(each._replace(row=slower(each.row, 7.0)) for each in sides[1].entries), run="b")
    found = compared(sides[0], off)
    assert found.cases[0].judgement.why == "beside other work in A: not tested"
    assert failures(found, [FailOn.SLOWER, FailOn.FASTER, FailOn.DIFFERENT]) == []
    assert failures(found, [FailOn.UNDECIDED]) == ["2 cases UNDECIDED"]


def test_what_one_side_alone_has_a_record_of_is_one_line():
    """Two backends of one chip report other facts of it, each of them against nothing."""
    known = {name: f"value of {name}" for name in ("cache", "guest", "sockets", "libraries")}
    details = {**chip(UID).info.details, **known}
    found = compared(side(entry(), devices=[chip(UID)]), side(entry(), devices=[chip(UID, details=details)], run="b"))
    assert "  recorded in B alone: cache, guest, sockets, libraries" in lines(found)
    assert not any("not recorded" in line for line in lines(found))
    assert sum("value of" in line for line in render_markdown(found).splitlines()) == 0
    few = {"cache": "32 MiB"}
    one = compared(side(entry(), devices=[chip(UID)]), side(entry(), devices=[chip(UID, details=few)], run="b"))
    assert any("not recorded -> 32 MiB" in line for line in lines(one))


def test_simulated_results_are_labelled():
    both = side(entry(evidence="simulated"))
    found = compared(both, side(entry(evidence="simulated"), run="b"))
    assert "Simulated: no device was measured." in words.meaning(found)
    assert words.doubts(found.cases[0]) == ("both simulated",)


def test_another_kernel_is_named_where_the_same_was_asked_for():
    a, b = side(entry(), entry(512, implementation="library")), side(entry(), run="b")
    described = looked(a, kernels=["nvjet_a"]), looked(b, kernels=["nvjet_b"])
    found = compare(a, b, pair(a, b), described, UNTESTED, 0.01)
    assert words.remarks(found.cases[0]) == ("kernels: nvjet_a -> nvjet_b",)
    c = side(entry(implementation="triton"), run="c")
    other = compare(a, c, pair(a, c, By.WORKLOAD), (described[0], looked(c, kernels=["t"])), UNTESTED, 0.01)
    assert other.cases[0].kernel == ()


def test_fp8_in_two_encodings_is_said_whoever_computed():
    a, b = side(entry(format="fp8_e4m3", backend="cuda")), side(entry(format="fp8_e4m3", backend="rocm"), run="b")
    described = looked(a, fp8_encoding="OCP", library="cuBLASLt"), looked(b, fp8_encoding="FNUZ", library="hipBLASLt")
    found = compare(a, b, pair(a, b, By.WORKLOAD), described, UNTESTED, 0.01)
    assert words.remarks(found.cases[0]) == ("fp8 encoding: OCP -> FNUZ",)
    unsaid = compare(a, b, pair(a, b, By.WORKLOAD), (looked(a), described[1]), UNTESTED, 0.01)
    assert words.remarks(unsaid.cases[0]) == ("fp8 encoding: OCP -> FNUZ",), "what does not say is of a device with OCP's alone"
    alike = compare(a, b, pair(a, b, By.WORKLOAD), (described[0], looked(b)), UNTESTED, 0.01)
    assert alike.cases[0].kernel == ()


def test_fp8_in_two_encodings_is_said_once_beside_another_kernel():
    a, b = side(entry(format="fp8_e4m3")), side(entry(format="fp8_e4m3"), run="b")
    described = looked(a, fp8_encoding="OCP", library="x"), looked(b, fp8_encoding="FNUZ", library="y")
    found = compare(a, b, pair(a, b), described, UNTESTED, 0.01)
    assert words.remarks(found.cases[0]) == ("fp8 encoding: OCP -> FNUZ", "library: x -> y")


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.031, "+3.1 %"), (0.5004, "-50.0 %"), (1.0012, "+0.12 %"), (1.0, "0.00 %"), (0.999999, "0.00 %"), (2.35, "2.35x"),
     (0.174, "0.174x"), (1234.5, "1,234x"), (1.9949, "+99.5 %")],
)  # fmt: skip
def test_a_ratio_is_a_percentage_until_it_is_a_factor(ratio, text):
    assert words.change(ratio) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1.0000"), (1.0031, "1.0031"), (0.46834, "0.4683"), (2.70123, "2.7012"), (9.99996, "10.00"), (12.346, "12.35"),
     (123.46, "123.5"), (1234.5, "1,234"), (0.00081, "0.00081")],
)  # fmt: skip
def test_a_table_has_every_ratio_on_one_scale(value, text):
    assert words.ratio(value) == text


def test_small_and_large_differences_stand_beside_each_other_as_ratios():
    found = compared(four(), later(1.7, 0.0051, -0.383, -0.532), noise=Noise(0.2, 0.2, CERTAIN))
    shown = [line.split() for line in lines(found) if line.startswith(tuple(f"  {verdict}" for verdict in Verdict))]
    assert sorted(line[1] for line in shown) == ["0.4680", "0.6170", "1.0051", "2.7000"]
    assert all(re.fullmatch(r"\d\.\d{4} to \d\.\d{4}", " ".join(line[2:5])) for line in shown)
    assert "| 2.7000 |" in render_markdown(found)


def test_intervals_are_in_one_unit():
    assert words.interval(Interval(1.028, 1.034)) == "+2.8 to +3.4 %"
    assert words.interval(Interval(0.743, 4.01)) == "0.743 to 4.01x"


def test_a_title_names_what_differs_on_both_sides():
    a, b = side(entry()), side(entry(implementation="triton"), run="b")
    (case,) = compared(a, b).cases
    assert words.title(case) == "gemm 4096x4096x4096 bf16 library -> triton cold/sustained/device"


def test_a_title_names_backends_that_differ_and_devices_other_than_the_first():
    a = side(entry(), entry(device_slot=1, device_uid="two"))
    b = side(
        entry(backend="xla", implementation="xla"), entry(backend="xla", implementation="xla", device_slot=1, device_uid="two")
    )
    assert [words.title(case).split(" cold/sustained/device")[1] for case in compared(a, b).cases] == [
        " cuda -> xla",
        " cuda -> xla device 1",
    ]


def lines(found: Comparison, width: int | None = None) -> list[str]:
    return list(comparison_lines(found, Screen(width)))


@pytest.mark.parametrize("width", [None, 80, 100])
def test_no_line_is_wider_than_80_columns_or_the_terminal(mixed, width):
    assert max(map(len, lines(mixed, width))) <= (width or 80)


def test_a_terminal_shows_verdict_ratio_interval_and_both_times(mixed):
    shown = lines(mixed)
    head = next(line for line in shown if "95 % interval" in line)
    row = next(line for line in shown if line.startswith("  SLOWER"))
    assert head.split() == ["verdict", "B/A", "95", "%", "interval", "delta", "A", "B", "in"]
    assert row.startswith("  SLOWER     1.0500  1.0471 to 1.0529    1 %  499.3 ns  524.3 ns  ")
    assert row.endswith("time")
    assert shown[shown.index(row) + 1].strip() == "gemm 512x512x512 bf16 library cold/sustained/device"


@pytest.mark.parametrize("width", [50, 80, 120])
def test_however_long_the_remarks_are_all_of_them_stand_below_whole(width):
    a = entry(throttle="sw_power_cap 98%, hw_slowdown 12%, sw_thermal 40%", steady=False, converged=False, contended=True)
    b = entry(interval_s=None, count=1, throttle="hw_thermal 30%, hw_power_brake 20%, sw_power_cap 97%", contended=True)
    found = compared(side(a), side(b, run="b"))
    (case,) = found.cases
    remark = "; ".join([words.title(case), *words.remarks(case)])
    assert len(remark) > 200
    assert "B one sample: no interval" in remark
    assert remark in " ".join(" ".join(lines(found, width)).split())


def test_of_many_kernels_whole_names_are_shown_and_the_others_counted():
    names = [f"nvjet_hsh_{tile}x256_64x4_1x2_coopA" for tile in range(100, 112)]
    a, b = side(entry()), side(entry(), run="b")
    found = compare(a, b, pair(a, b), (looked(a, kernels=names), looked(b, kernels=["x" * 120])), UNTESTED, 0.01)
    assert words.remarks(found.cases[0]) == (f"kernels: {names[0]}, {names[1]} and 10 more -> {'x' * 120}",)


def test_the_last_line_is_the_summary(mixed):
    assert lines(mixed)[-1] == ("1 SLOWER, 1 UNDECIDED, 1 SAME, 1 FASTER; 2 not compared, 1 of them lost")


def test_what_was_not_compared_stands_there_with_why_what_was_lost_first(mixed):
    shown = lines(mixed)
    below = [line.strip() for line in shown[shown.index("not compared") + 1 :]]
    assert below[0] == "lost, as it is ok in A alone: B crashed (signal 11 in /home/ada/x.so):"
    assert below[1].startswith("gemm 8192x4096x4096 bf16")
    assert "not in A:" in below


def test_what_differed_stands_there(mixed):
    shown = lines(mixed)
    assert shown[shown.index("what differed") + 1] == "  version: 0.1.0 -> 0.2.0"


def test_a_long_list_is_cut_in_a_terminal_and_whole_in_json():
    a = side(*(entry(8 * size) for size in range(1, 41)), entry())
    found = compared(a, side(entry(), run="b"))
    assert "    and 30 more" in lines(found)
    assert len(found.to_json()["not_compared"]) == 40


def test_colours_need_a_terminal_that_wants_them(mixed):
    assert not any("\033" in line for line in lines(mixed))
    assert any("\033[31m  SLOWER" in line for line in comparison_lines(mixed, Screen(100, color=True)))


def test_a_comment_is_short_where_nothing_happened_and_escapes_and_masks(mixed):
    text = render_markdown(mixed)
    head, *rest = text.split("\n\n")
    assert head == "### roofbench: 1 SLOWER, 1 UNDECIDED, 1 SAME, 1 FASTER; 2 not compared, 1 of them lost"
    table = next(block for block in rest if block.startswith("| Verdict"))
    assert [line.split(" | ")[0] for line in table.splitlines()[2:]] == ["| SLOWER", "| UNDECIDED", "| FASTER"]
    assert "<details><summary>1 case SAME</summary>" in rest
    assert "/home/ada" not in text
    assert "crashed (signal 11 in \\~/x.so)" in text
    assert "| version | 0.1.0 | 0.2.0 |  |" in text
    hostile = replace(mixed, a=replace(mixed.a, run="<script>|`x`"))
    assert "\\<script\\>\\|\\`x\\`" in render_markdown(hostile)


def test_a_comment_of_a_thousand_cases_still_fits_one():
    a = side(*(entry(8 * size, bound="memory") for size in range(1, 1001)))
    b = side(*(each._replace(row=slower(each.row, 0.05)) for each in a.entries), run="b")
    text = render_markdown(compared(a, b))
    assert "and 900 more" in text
    assert len(text) < 65_536


@pytest.mark.parametrize(
    ("fail_on", "expected"),
    [
        ([], []),
        ([FailOn.SLOWER], ["1 case SLOWER"]),
        ([FailOn.FASTER], ["1 case FASTER"]),
        ([FailOn.DIFFERENT], ["1 case SLOWER", "1 case FASTER"]),
        ([FailOn.UNDECIDED], ["1 case UNDECIDED"]),
        ([FailOn.LOST], ["1 case lost"]),
        ([FailOn.SLOWER, FailOn.LOST], ["1 case SLOWER", "1 case lost"]),
    ],
)
def test_a_gate_fails_on_what_it_was_told_to(mixed, fail_on, expected):
    assert failures(mixed, fail_on) == expected


def test_a_gate_passes_where_there_is_nothing_of_it():
    same = compared(four(), later(0.0, 0.0, 0.0, 0.0))
    assert failures(same, list(FailOn)) == []
    assert words.summary(same) == "0 SLOWER, 0 UNDECIDED, 4 SAME, 0 FASTER"


def test_noise_decides():
    assert compared(four(), later(0.05, 0.0, 0.0, 0.0), noise=NOISY).counts()[Verdict.UNDECIDED] == 4


def test_cycles_have_the_noise_of_cycles_where_both_sides_have_one():
    """Three in a hundred, of a kernel whose times wander by two: known in cycles, and not in times."""
    wandering, quiet = Noise(0.02, 0.02, 8), Noise(0.001, 0.001, 8)
    one, other = side(entry()), side(entry()._replace(row=slower(entry().row, 0.03)), run="b")
    assert in_cycles(one.entries[0].row, other.entries[0].row)
    told = [{each.row.result_id: Looked(wandering, {}, quiet) for each in taken.entries} for taken in (one, other)]
    (counted,) = compare(one, other, pair(one, other), (told[0], told[1]), UNTESTED, 0.01).cases
    assert (counted.verdict, counted.gap.noise) == (Verdict.SLOWER, (quiet, quiet))
    lacking = {each.row.result_id: Looked(wandering, {}) for each in other.entries}
    (uncounted,) = compare(one, other, pair(one, other), (told[0], lacking), UNTESTED, 0.01).cases
    assert (uncounted.verdict, uncounted.gap.noise) == (Verdict.UNDECIDED, (wandering, wandering))
