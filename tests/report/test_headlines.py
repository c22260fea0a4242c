"""The best of each format: the truth of a device's table, one load a device, and nobody passed over without a word."""

from dataclasses import replace

import pytest

from suite.report.document import build
from suite.report.headlines import about, headlines, rate
from suite.report.html import render_html
from suite.report.markdown import render_markdown
from suite.rows import NO_FRACTIONS, Fractions
from tests.report.builders import FakeReader, failed, result
from tests.report.pages import Page


def shares(spec):
    return Fractions(spec, None, None, None)


def throttled(**fields):
    """What a large product is on a device at its power limit."""
    return result(8192, 8192, 8192, steady=False, converged=False, throttle="sw_power_cap 100%", **fields)


def test_a_device_at_its_power_limit_loses_no_headline_to_a_lighter_case_without_marks():
    """On an H200 the card of tf32 said 66.2 %, 25.2 TFLOP/s of 16x4096x4096; the table had 71.3 %, 353 TFLOP/s."""
    best = throttled(format="tf32", share=0.713)
    light = result(16, 4096, 4096, format="tf32", share=0.662)
    small = result(1024, 1024, 1024, format="tf32", share=0.374)
    assert headlines([light, small, best])[0].best is best


def test_what_arithmetic_bounds_comes_before_what_memory_or_launching_does():
    thin, square = result(16, 4096, 4096, share=0.95), result(share=0.6)
    assert (thin.bound, square.bound) == ("memory", "compute")
    assert headlines([thin, square])[0].best is square
    assert headlines([thin])[0].best is thin


def weights(batch, bytes_s, **fields):
    """A decode step on a CPU without a sheet: each weight is read once, however many sequences it is multiplied with."""
    bound = {"bound": "memory", "fractions": NO_FRACTIONS, "job": "decode_step", **fields}
    return result(bytes_s=bytes_s, flop_s=batch * bytes_s, **bound)


@pytest.mark.parametrize("doubt", [{}, {"contended": True}], ids=["clean", "contended"])
def test_of_what_memory_bounds_the_most_bytes_are_the_best_and_not_the_most_operations(doubt):
    """Of decode steps the card showed batch 4 at 5.35 GB/s, 21.4 GFLOP/s, beside batch 1 at 20.1 GB/s."""
    slow, fast = weights(4, 5.35e9, **doubt), weights(1, 20.1e9, **doubt)
    (found,) = headlines([fast, slow])
    assert found.best is fast
    document = build(FakeReader((fast, slow)), ["latest"])
    page = Page(render_html(document))
    (cards,) = page.find("ul", **{"class": "cards"})
    assert page.text(cards).split("share of spec")[0].rstrip().endswith("20.1 GB/s")
    assert "| bf16 | n/a | 20.1 GB/s | memory |" in render_markdown(document)
    assert "bound by memory the one of most bytes per second" in about((found,))


def test_with_a_sheet_the_most_bytes_are_the_largest_share_of_bandwidth():
    slow, fast = weights(4, 1.5e12, fractions=shares(0.33)), weights(1, 3e12, fractions=shares(0.67))
    assert headlines([slow, fast])[0].best is fast
    passed = weights(1, 4.6e12)  # more than a bandwidth that is only derived: no share is told
    assert headlines([passed, fast])[0].best is passed


def test_what_arithmetic_bounds_stays_the_headline_of_operations_beside_what_memory_does():
    square = result(share=0.2, fractions=NO_FRACTIONS)
    (found,) = headlines([weights(1, 4e12), square])
    assert found.best is square
    assert rate(square).endswith("FLOP/s")
    assert found.chosen_as == "best of 1 sustained; passed over: 1 not bound by compute"


def test_what_memory_bounds_comes_before_caches_and_launches_whatever_their_rates():
    others = [weights(8, 90e9, bound=bound) for bound in ("cache", "launch", "unknown")]
    memory = weights(1, 20e9)
    assert headlines([*others, memory])[0].best is memory
    assert headlines(others)[0].best in others


def test_without_shares_formats_stand_by_operations_then_by_bytes_each_among_its_like():
    rows = [
        weights(1, 20e9, format="bf16"), weights(64, 10e9, format="fp16"), weights(1, 5e9, format="fp32", bound="compute"),
    ]  # fmt: skip
    assert [each.format for each in headlines(rows)] == ["fp32", "bf16", "fp16"]


def test_only_measured_and_verified_results_count_best_share_first():
    rows = [
        result(fractions=shares(0.70), m=1000),
        result(fractions=shares(0.81)),
        result(fractions=shares(0.9), format="fp16"),
        result(fractions=shares(2.0), evidence="simulated"),
        failed("impossible", "faster than light", fractions=shares(1.5)),
    ]
    found = headlines(rows)
    assert [(each.format, each.best.fractions.spec, each.of) for each in found] == [("fp16", 0.9, 1), ("bf16", 0.81, 2)]


def test_all_formats_of_a_device_are_told_under_one_load():
    """A burst of bf16 stood beside sustained tf32 and above it."""
    sustained, burst = throttled(share=0.68), result(8192, 8192, 8192, share=0.81, regime="cold/burst/device")
    tf32 = throttled(format="tf32", share=0.71)
    first, second = headlines([burst, sustained, tf32])
    assert (first.best, second.best) == (tf32, sustained)
    assert (first.burst, second.burst) == (None, burst)
    assert second.second == "in a burst: 81.0 %, 778 TFLOP/s, cold/burst/device"
    assert second.chosen_as == "best of 1 sustained"
    assert "under sustained load" in about((first, second))


def test_a_burst_of_another_implementation_or_switch_is_not_told_as_the_same_case():
    for differs, said in (
        ({"implementation": "triton"}, "by triton"),
        ({"switches": {"fp8_fast_accum": True}}, "fp8_fast_accum=True"),
    ):
        burst = result(8192, 8192, 8192, share=0.81, regime="cold/burst/device", **differs)
        (found,) = headlines([burst, throttled(share=0.68)])
        assert said in found.second


def test_a_format_of_bursts_alone_comes_last_where_others_were_sustained():
    burst = result(format="int8", share=0.99, regime="cold/burst/device")
    known, other = headlines([burst, result(share=0.2)])
    assert (known.format, known.best.load) == ("bf16", "sustained")
    assert (other.best, other.burst, other.chosen_as) == (None, burst, "")
    text = other.second
    assert text.startswith("in a burst: 99.0 %, ")
    assert "gemm 4096x4096x4096, compute bound" in text
    document = build(FakeReader((burst, result(share=0.2))), ["latest"])
    (cards,) = Page(render_html(document)).find("ul", **{"class": "cards"})
    for said in (Page(render_html(document)).text(cards), render_markdown(document)):
        assert "no sustained result" in said
        assert "in a burst: 99.0 %" in said


def test_where_nothing_was_sustained_bursts_are_ranked():
    burst = result(regime="warm/burst/call")
    (found,) = headlines([burst])
    assert (found.best, found.burst, found.load) == (burst, None, "burst")
    assert "bursts" in about((found,))


@pytest.mark.parametrize(
    "doubt",
    [{"contended": True}, {"interval_s": None, "count": 1}, {"interval_s": (1e-9, 1.0)}],
    ids=["contended", "one", "wide"],
)
def test_only_contended_and_unresolved_results_are_passed_over_and_that_is_said(doubt):
    doubtful, sure = result(share=0.9, **doubt), throttled(share=0.3)
    (found,) = headlines([doubtful, sure])
    assert found.best is sure
    assert found.chosen_as == "best of 1 sustained; passed over: 1 contended or not resolved"
    (alone,) = headlines([doubtful])
    said = "contended" if "contended" in doubt else "not resolved"
    assert (alone.best, alone.chosen_as) == (doubtful, f"best of 1 sustained, {said}")
    (several,) = headlines([doubtful, replace(doubtful, p50_s=(doubtful.p50_s or 0.0) * 2)])
    assert several.chosen_as == f"best of 2 sustained, all {said}"
    document = build(FakeReader((doubtful, sure)), ["latest"])
    page = Page(render_html(document))
    (cards,) = page.find("ul", **{"class": "cards"})
    for said in (page.text(cards), render_markdown(document)):
        assert "best of 1 sustained; passed over: 1 contended or not resolved" in said


def test_a_card_is_the_best_of_those_that_it_counts_and_says_how_many_it_does_not():
    """int8 was the best of 4 with 86.3 GOP/s, and a run had 468 GOP/s, not resolved."""
    thin = {"bound": "memory", "contended": True}
    rows = [
        result(share=0.95, interval_s=(1e-9, 1.0)),
        result(share=0.99, **thin),
        *(result(m, share=share, contended=True) for m, share in ((512, 0.2), (1024, 0.3))),
    ]
    (found,) = headlines(rows)
    assert found.best is rows[3]
    assert (found.of, found.passed_over, found.other_bound) == (2, 1, 1)
    assert found.chosen_as == "best of 2 sustained, all contended; passed over: 1 not resolved, 1 not bound by compute"
    (memory,) = headlines([rows[1], result(share=0.5, **thin)])
    assert memory.chosen_as == "best of 2 sustained, all contended"
    (clean,) = headlines([*rows, result(share=0.1)])
    assert clean.chosen_as == "best of 1 sustained; passed over: 4 contended or not resolved"


def test_a_wide_interval_that_is_resolved_passes_nobody_over():
    wide = result(share=0.795, converged=False)
    wide = result(share=0.795, converged=False, interval_s=(wide.p50_s * 0.94, wide.p50_s * 1.06))
    assert headlines([wide, result(share=0.7)])[0].best is wide


def test_cards_name_the_case_its_regime_and_its_marks():
    row = throttled(share=0.7, switches={"fp8_fast_accum": True})
    document = build(FakeReader((row,)), ["latest"])
    page = Page(render_html(document))
    (cards,) = page.find("ul", **{"class": "cards"})
    line = next(line for line in render_markdown(document).splitlines() if line.startswith("| bf16 |")).replace("\\", "")
    for said in (page.text(cards), line):
        for word in ("gemm 8192x8192x8192 fp8_fast_accum=True", "cold/sustained/device", "throttled: sw_power_cap 100 %"):
            assert word in said
    assert "where a format has nothing else, the card shows the best of them and says so" in page.text(
        page.find("p", **{"class": "small"})[0]
    )


def test_what_passed_a_peak_that_is_only_derived_is_the_best_though_its_share_is_not_told():
    passed = result(fractions=NO_FRACTIONS, share=1.2)
    assert headlines([result(share=0.95), passed])[0].best is passed
    cached = result(fractions=NO_FRACTIONS, share=0.9, bound="cache")
    thin = result(share=0.4, bound="memory")
    assert headlines([cached, thin])[0].best is thin


def test_without_a_spec_the_fastest_is_the_headline():
    rows = [result(share=share, fractions=NO_FRACTIONS, bound="unknown") for share in (0.2, 0.6)]
    assert headlines(rows)[0].best is rows[1]


def test_what_is_known_comes_first_and_what_is_not_resolved_last():
    """On a busy CPU fp32 stood first with 81.1 %, whose interval reached from 118.5 µs to 35.84 ms."""
    wide = result(64, share=0.811, format="fp32", contended=True, interval_s=(1e-9, 1.0))
    contended = result(share=0.166, format="fp32", contended=True)
    assert headlines([wide, contended])[0].best is contended
    clean = result(share=0.1, format="fp16")
    lone = result(share=0.99, format="bf16", interval_s=(1e-9, 1.0))
    assert [each.best for each in headlines([lone, contended, wide, clean])] == [clean, contended, lone]
