from suite.report.headlines import headlines
from suite.report.heat import FAILED, heat_figure
from suite.report.standings import Column, best_groups, best_rate, in_order, label_of, standings_map
from suite.report.values import SHARES
from suite.rows import NO_FRACTIONS
from suite.store.browsing import Browser
from suite.store.scopes import Group
from tests.report.builders import failed, result, sweep
from tests.report.stores import write_store

GROUP = Group(
    "run", "uid", "T1", "gemm", "bf16", "{}", "library", "cold", "sustained", "device", "measured", "ok", "compute", True, True,
    True, 3, 0.7, 1,
)  # fmt: skip
PLACE = ("T1", "measured", Column("gemm", "bf16"))


def best(*groups):
    return best_groups(("T1", group) for group in groups)


def test_the_best_of_a_format_is_chosen_as_headlines_choose_it(tmp_path):
    more = [result(m, share=0.99, contended=True) for m in (80, 4000)] + [result(4032, share=0.95, regime="cold/burst/device")]
    write_store(tmp_path / "s.db", [*sweep(), *more])
    browser = Browser.open(str(tmp_path / "s.db"))
    (run,) = browser.entries()
    chosen = best_groups(("T1", group) for group in browser.groups(run.run))
    rows = [row for row in browser.results() if row.job == "gemm"]
    expected = {headline.format: headline.best.result_id for headline in headlines(rows)}
    assert {column.format: group.best for (_, _, column), group in chosen.items()} == expected
    assert len(expected) == 7


def test_sustained_trusted_and_computing_come_before_a_higher_share():
    for worse in (
        {"load": "burst"},
        {"is_trusted": False},
        {"is_trusted": False, "is_resolved": False},
        {"bound": "memory"},
        {"standing": 0.69},
        {"outcome": "incorrect", "bound": None, "results": 99},
    ):
        other = GROUP._replace(**{"standing": 0.99, **worse}, best=2)
        assert best(other, GROUP)[PLACE] == best(GROUP, other)[PLACE] == GROUP, worse


def test_what_is_not_resolved_comes_after_what_is_contended():
    """A median of 153.8 µs with an interval up to 35.84 ms was the best of fp32, 81.1 %, over a resolved 16.6 %."""
    contended = GROUP._replace(is_trusted=False, standing=0.166)
    unresolved = GROUP._replace(is_trusted=False, is_resolved=False, standing=0.811, best=2)
    assert best(contended, unresolved)[PLACE] == best(unresolved, contended)[PLACE] == contended


def test_groups_and_headlines_agree_on_a_device_that_others_used(tmp_path):
    wide = result(64, share=0.95, contended=True, interval_s=(1e-9, 1.0))
    write_store(tmp_path / "s.db", [wide, result(4032, share=0.2, contended=True)])
    browser = Browser.open(str(tmp_path / "s.db"))
    (run,) = browser.entries()
    (group,) = best_groups(("T1", group) for group in browser.groups(run.run)).values()
    (headline,) = headlines([row for row in browser.results() if row.job == "gemm"])
    assert group.best == headline.best.result_id
    assert headline.best.params["m"] == 4032


def test_groups_and_headlines_agree_on_what_memory_bounds_without_a_share(tmp_path):
    """Many sequences do most operations, few use memory best: by operations the slowest use of memory stood there."""
    unknown = {"bound": "memory", "fractions": NO_FRACTIONS}
    rows = [result(m, **unknown, flop_s=flop_s, bytes_s=bytes_s) for m, flop_s, bytes_s in ((8, 1e12, 1e12), (64, 4e12, 5e11))]
    write_store(tmp_path / "s.db", rows)
    browser = Browser.open(str(tmp_path / "s.db"))
    (run,) = browser.entries()
    (group,) = best_groups(("T1", group) for group in browser.groups(run.run)).values()
    (headline,) = headlines(list(browser.results()))
    assert group.best == headline.best.result_id
    assert headline.best.params["m"] == 8


def test_what_memory_bounds_comes_before_what_a_cache_bounds():
    memory, cached = GROUP._replace(bound="memory", standing=0.3), GROUP._replace(bound="cache", standing=0.9, best=2)
    assert best(cached, memory)[PLACE] == best(memory, cached)[PLACE] == memory
    rows = [result(share=0.3, bound="memory"), result(share=0.9, bound="cache")]
    (found,) = headlines(rows)
    assert found.best is rows[0]
    assert (found.of, found.chosen_as) == (1, "best of 1 sustained; passed over: 1 not bound by memory")


def test_a_rate_that_passed_a_derived_peak_has_no_share_and_is_the_best():
    passed = GROUP._replace(has_share=False, standing=2e-16, best=2)
    assert best(GROUP, passed)[PLACE] == passed


def test_where_nothing_was_timed_the_most_common_ending_stands():
    untimed = GROUP._replace(bound=None, standing=0.0)
    endings = [untimed._replace(outcome=name, results=n) for name, n in (("timeout", 1), ("unsupported", 4))]
    assert best(*endings)[PLACE].outcome == "unsupported"


def test_kinds_of_evidence_and_devices_stand_apart_and_calibrations_nowhere():
    groups = [GROUP, GROUP._replace(evidence="simulated"), GROUP._replace(job="calibration")]
    found = best_groups([*(("T1", group) for group in groups), ("T2", GROUP)])
    assert list(found) == [PLACE, ("T1", "simulated", PLACE[2]), ("T2", "measured", PLACE[2])]


def test_labels_come_from_semantics_whatever_a_file_holds_there():
    assert label_of(GROUP._replace(format="fp8_e4m3", semantics='{"scaling":"row"}')) == "fp8_e4m3 row"
    for text in ("[1]", "{", "NaN", "null", "[" * 100_000):
        assert label_of(GROUP._replace(semantics=text)) == "bf16"


def test_jobs_stand_as_their_pages_do_and_others_follow():
    columns = [Column("zeta", "a"), Column("decode", "int8"), Column("gemm", "fp16"), Column("gemm", "bf16")]
    assert in_order(columns) == [Column("gemm", "bf16"), Column("gemm", "fp16"), Column("decode", "int8"), Column("zeta", "a")]


def test_the_rate_is_of_what_bounds_a_result():
    assert best_rate(result(flop_s=6.66e14, bytes_s=1e12, bound="compute", format="bf16")) == "666 TFLOP/s"
    assert best_rate(result(flop_s=9.1e12, bytes_s=4.2e12, bound="memory", format="bf16")) == "4.20 TB/s"


def test_a_cell_says_the_share_or_else_the_rate_or_that_there_is_none():
    rows = {
        (0, 0): result(share=0.713),
        (0, 1): result(fractions=NO_FRACTIONS, flop_s=6.66e14),
        (0, 2): result(fractions=NO_FRACTIONS, flops=0, flop_s=0.0, bytes_s=2.5e11, bound="link"),
        (0, 3): failed("unsupported", "no unit"),
    }
    heat = standings_map(["T1"], [Column("gemm", name) for name in "abcd"], rows, SHARES["of spec"])
    assert [cell.text for cell in heat.cells.values()] == ["71.3 %", "666 TFLOP/s", "250 GB/s busbw", FAILED]
    assert [cell.level for cell in heat.cells.values()] == [0.713, None, None, None]
    assert "the rate: in B/s where memory or a link bounds it" in heat.note
    assert standings_map(["T1"], [Column("gemm", "a")], {(0, 0): rows[0, 0]}, SHARES["of spec"]).note == ""


def test_every_cell_of_a_row_says_what_it_is_of():
    """int8 read ``253 M`` in bytes per second, beside ``446 G`` in operations and ``13.9`` in percent."""
    rows = {
        (0, 0): result(format="fp32", share=0.139),
        (0, 1): result(format="int8", fractions=NO_FRACTIONS, flop_s=4.46e11, bound="compute"),
        (0, 2): result(format="int8", fractions=NO_FRACTIONS, flop_s=8.63e10, bytes_s=2.529e8, bound="memory"),
        (0, 3): result(fractions=NO_FRACTIONS, flop_s=7.81e9, bytes_s=1.229e8, bound="launch"),
    }
    heat = standings_map(["T1"], [Column("gemm", name) for name in "abcd"], rows, SHARES["of spec"])
    assert [cell.text for cell in heat.cells.values()] == ["13.9 %", "446 GOP/s", "253 MB/s", "7.81 GFLOP/s"]
    cells = next(trace for trace in heat_figure(heat).data if trace.meta == "cells")
    for (place, row), hover in zip(rows.items(), cells.hovertext, strict=True):
        said = hover.replace("<br>", " ")
        assert heat.cells[place].text in said
        assert f"{row.bound} bound" in said
