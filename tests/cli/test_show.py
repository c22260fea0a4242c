"""Tables and charts as text: complete without a terminal, fitted to a narrow one, coloured only where that is welcome."""

import io
import re
import time
from dataclasses import replace
from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.commands.show import DETAIL, about_passes
from suite.report.contest import TITLE
from suite.report.words import relative_error
from suite.rows import Fractions, Pause, ResultRow
from suite.show.chart import histogram
from suite.show.results import (
    case_hint,
    case_label,
    case_labels,
    counts_line,
    header_lines,
    remark,
    run_lines,
    runs_lines,
    span,
)
from suite.show.screen import Screen, screen_of
from suite.show.table import Column, Row, table
from tests.pace import at_reference_pace_s
from tests.report.builders import device, failed, result, run_info

PLAIN = Screen()
WIDTHS = (66, 80, 100, 132)


def rows() -> list[ResultRow]:
    return [
        result(8192, 8192, 8192),
        result(8192, 8192, 8192, regime="warm/sustained/device"),
        result(16, 4096, 4096, share=0.9, converged=False, throttle="power cap 61%"),
        failed("out_of_memory", "needs 26 GB, 24 GB are free", m=65536, n=65536, k=65536),
        result(format="fp8_e4m3"),
    ]


def shown(screen: Screen, of: list[ResultRow] | None = None) -> list[str]:
    return list(run_lines(run_info(), [device()], rows() if of is None else of, screen))


def test_a_device_is_said_as_it_was_asked_for_where_that_is_not_its_place_in_the_run() -> None:
    second = device()
    second = replace(second, info=replace(second.info, index=1))
    told = [list(header_lines(run_info(), [each], PLAIN))[-1] for each in (device(), second)]
    assert told[0].startswith(f"  device 0: {second.info.backend} ")
    assert told[1] == told[0].replace("device 0:", "device 0 (device=1):")


def line_with(text: str, lines: list[str]) -> str:
    (found,) = [line for line in lines if text in line]
    return found


def test_without_a_terminal_each_case_is_one_whole_line() -> None:
    lines = shown(PLAIN)
    timed = line_with("16x4096x4096", lines)
    for text in ("library", "cold/sustained/device", "not converged; throttled: power cap 61 %"):
        assert text in timed
    lost = line_with("65536x65536x65536", lines)
    assert lost.endswith("out of memory: needs 26 GB, 24 GB are free")


def test_formats_stand_apart_in_the_order_they_ran() -> None:
    lines = shown(PLAIN)
    assert lines.index("gemm bf16") < lines.index("gemm fp8_e4m3")
    assert lines[-1] == "4 ok, 1 out of memory"


def decoding() -> list[ResultRow]:
    params = {"num_q_heads": 32, "num_kv_heads": 8, "head_dim": 128, "v_head_dim": 128, "q_len": 1, "kv_len": 4096, "batch": 4}
    shared = {"lengths": "uniform", "page_order": "random", "page_size": 16}
    return [
        replace(result(), job="decode", params={**params, **shared}, distribution=data, switches=switches)
        for data, switches in (("outliers", {"graph": False}), ("outliers", {"graph": False, "splits": 2}))
    ]


def test_what_no_row_shows_is_said_of_data_and_switches_too_and_what_rows_show_is_not() -> None:
    lines = shown(PLAIN, decoding())
    title = lines.index("decode bf16")
    assert lines[title + 1] == "  lengths=uniform page_order=random page_size=16 data=outliers graph=False"
    assert line_with("splits=2", lines).split()[1:4] == ["32/8x128", "4x1/4096", "splits=2"]


def test_what_rows_share_is_wrapped_between_settings_at_the_width_of_the_screen() -> None:
    lines = shown(Screen(40), decoding())
    first = next(index for index, line in enumerate(lines) if "lengths=uniform" in line)
    beneath = lines[first : first + 2]
    assert " ".join(" ".join(beneath).split()) == ("lengths=uniform page_order=random page_size=16 data=outliers graph=False")
    assert max(map(len, beneath)) <= 40


def test_a_setting_that_some_rows_name_among_their_sizes_is_said_for_those_that_do_not() -> None:
    """A batch stands among the sizes of a step; where weights alone are streamed it does not."""
    heads = {"num_q_heads": 32, "num_kv_heads": 8, "head_dim": 128, "v_head_dim": 128, "batch": 4}
    both = [{**heads, "part": "step", "q_len": 1, "kv_len": 512}, {**heads, "part": "weights"}]
    lines = shown(PLAIN, [replace(result(), job="decode_step", params=params) for params in both])
    assert lines[lines.index("decode_step bf16") + 1] == "  batch=4"


def test_rows_that_hide_nothing_have_no_such_line() -> None:
    lines = shown(PLAIN)
    assert lines[lines.index("gemm bf16") + 1].split()[:2] == ["#", "case"]


def test_what_all_rows_of_a_table_share_stands_once_under_its_title() -> None:
    """A step of two layers would be taken for one of the whole model."""
    heads = {"num_q_heads": 32, "num_kv_heads": 8, "head_dim": 128, "v_head_dim": 128, "q_len": 1, "kv_len": 512}
    sizes = {"part": "step", "layers": 2, "vocabulary": 32000, "page_size": 16}
    steps = [result(job="decode_step", params={**heads, **sizes, "batch": batch}) for batch in (1, 4)]
    lines = shown(PLAIN, steps)
    shared = [line for line in lines if "layers=2" in line]
    assert len(shared) == 1
    assert "vocabulary=32000" in shared[0]
    assert lines.index(shared[0]) == lines.index(line_with("decode_step bf16", lines)) + 1
    assert "batch=" not in shared[0]


def scalings() -> list[ResultRow]:
    return [result(format="fp8_e4m3", semantics={"scaling": name}, quantisation_error=0.0374) for name in ("tensor", "row")]


def test_scalings_of_a_format_stand_apart() -> None:
    lines = shown(PLAIN, scalings())
    assert [line for line in lines if line.startswith("gemm")] == ["gemm fp8_e4m3", "gemm fp8_e4m3 row"]


def test_the_error_of_quantisation_is_a_column_where_a_run_has_it_and_goes_before_the_time() -> None:
    assert line_with("quantisation", shown(PLAIN, scalings()[:1])).endswith("empirical  quantisation")
    assert line_with("4096x4096x4096", shown(PLAIN, scalings()[:1])).endswith("3.7e-02")
    assert not [line for line in shown(PLAIN) if "quantisation" in line]
    narrow = shown(Screen(60), scalings()[:1])
    assert "quantisation" not in line_with("p50  ", narrow)
    assert "quantisation" in " ".join(narrow[narrow.index(line_with("not shown for want of width: ", narrow)) :])


def test_devices_stand_apart_where_there_are_several() -> None:
    two = [replace(row, device_slot=slot) for row in rows()[:2] for slot in (0, 1)]
    lines = list(run_lines(run_info(), [device(), device(slot=1)], two, PLAIN))
    assert "gemm bf16 on device 0" in lines
    assert "gemm bf16 on device 1" in lines


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    screen = Screen(width)
    of = [replace(row, implementation="a-rather-long-implementation") for row in rows()]
    body = shown(screen, of)[4:]
    assert max(map(len, body)) <= width
    assert line_with("8192x8192x8192", [line for line in body if "cold" in line])


def test_a_narrow_terminal_keeps_what_matters_most_and_says_once_what_every_row_has() -> None:
    lines = shown(Screen(75), rows()[:1])
    assert line_with("p50  ", lines).split()[:4] == ["#", "case", "bound", "p50"]
    assert "gemm bf16, by library, regime cold/sustained/device" in lines
    assert line_with(" p50", [line for line in shown(Screen(20), rows()[:1]) if "#" in line]).split() == ["#", "case", "p50"]


@pytest.mark.parametrize("width", [40, 80, 100])
def test_what_tells_two_rows_apart_is_shown_however_narrow(width: int) -> None:
    pair = [result(), result(implementation="compiled"), result(regime="warm/sustained/device")]
    above = takewhile(lambda line: line != TITLE.lower(), shown(Screen(width), pair))  # verdicts on the pair stand beneath
    lines = [line for line in above if "4096x4096x4096" in line]
    assert [("compiled" in line, "warm/sustained/device" in line) for line in lines] == [
        (False, False),
        (True, False),
        (False, True),
    ]


def test_a_column_that_is_not_known_in_any_row_goes_before_one_with_figures() -> None:
    unknown = [replace(row, fractions=Fractions(None, None, None, None)) for row in rows()]
    for width in range(60, 130, 10):
        lines = shown(Screen(width), unknown)
        head = next(line for line in lines if "regime" in line and " p50" in line)
        assert "of spec" not in head or "TFLOP/s" in head
    assert "of spec" not in "".join(line for line in lines if "not shown" in line)


def test_figures_that_are_left_out_are_named_once_with_where_they_are() -> None:
    lines = " ".join(shown(Screen(70)))
    assert lines.count("not shown for want of width: ") == 1
    assert "TFLOP/s" in lines[lines.index("not shown") :]
    assert "a wider terminal or --json has them" in lines
    assert "not shown for want of width" not in " ".join(shown(PLAIN))


def collectives() -> list[ResultRow]:
    params = {"op": "all_reduce", "world_size": 2}
    switches = {"algo": "library", "proto": "library", "transport": "host", "in_place": True}
    none = Fractions(None, None, None, None)
    return [
        replace(
            result(switches=switches, regime="warm/sustained/call"), job="collective", bound="link", bytes_s=1.5e9, flop_s=1e9,
            params={**params, "message_bytes": size}, fractions=none,
        )
        for size in (8, 65536)
    ]  # fmt: skip


@pytest.mark.parametrize("width", [40, 80, 100])
def test_collectives_show_their_bus_bandwidth_however_narrow(width: int) -> None:
    lines = shown(Screen(width), collectives())
    assert "busbw" in line_with("p50  ", lines)
    assert " 1.5" in line_with("all_reduce 64 KiB 2 ranks", lines)


def test_bus_bandwidth_has_its_unit_and_no_roof_of_a_sheet_beside_it() -> None:
    small, large = collectives()
    lines = shown(PLAIN, [replace(small, bytes_s=8683.0, flop_s=None), replace(large, flop_s=None)])
    assert line_with("p50  ", lines).split() == ["#", "case", "by", "regime", "bound", "p50", "±", "of", "p50", "busbw"]
    assert "8.68 kB/s" in line_with("all_reduce 8 B 2 ranks", lines)
    assert "1.50 GB/s" in line_with("all_reduce 64 KiB 2 ranks", lines)


def test_the_number_of_a_case_is_its_place_in_the_run_on_every_device() -> None:
    two = [replace(result(8 * (index + 1)), device_slot=slot) for index, slot in enumerate((0, 1, 0, 1))]
    lines = list(run_lines(run_info(), [device(), device(slot=1)], two, PLAIN))
    assert [line.split()[0] for line in lines if "x4096x4096" in line] == ["1", "3", "2", "4"]


def test_a_resumed_run_says_how_long_it_measured() -> None:
    info = replace(run_info(), started_at="2026-11-30T10:00:00Z", finished_at="2026-11-30T10:13:52Z")
    said = next(iter(header_lines(info, [], PLAIN, Pause(825.0, 824.0))))
    assert said.endswith("over 13 min 52 s, 13 min 45 s of it without a case under way")
    brief = next(iter(header_lines(info, [], PLAIN, Pause(12.0, 3.0))))
    assert brief.endswith("UTC, over 13 min 52 s")


def test_a_share_that_one_row_has_is_n_a_in_the_others() -> None:
    lines = shown(PLAIN, [result(), replace(result(m=16), fractions=Fractions(0.5, None, None, None))])
    assert line_with(" 16x4096x4096", lines).count("n/a") == 2


def test_a_remark_that_does_not_fit_stands_beneath() -> None:
    lines = shown(Screen(90))
    assert "out of memory: needs 26 GB, 24 GB are free" in " ".join(line.strip() for line in lines)


def test_what_is_not_known_is_n_a_and_never_zero() -> None:
    row = replace(result(), fractions=Fractions(None, None, None, None), interval_s=None)
    line = line_with("4096x4096x4096", shown(PLAIN, [row]))
    assert "n/a" in line
    assert not re.search(r"\b0(\.0)? ?%", line)


def test_only_parameters_that_differ_are_shown_beside_the_sizes() -> None:
    same = [result(), result(m=512)]
    assert case_labels(same) == ()
    layouts = [replace(row, params={**row.params, "layout": layout}) for row, layout in zip(same, ("nt", "nn"), strict=True)]
    assert [case_label(row, case_labels(layouts)) for row in layouts] == ["4096x4096x4096 layout=nt", "512x4096x4096 layout=nn"]


def test_data_and_switches_tell_cases_apart() -> None:
    pair = [result(), replace(result(), distribution="zeros")]
    assert case_label(pair[1], case_labels(pair)) == "4096x4096x4096 data=zeros"


def test_a_switch_that_only_one_of_two_cases_names_tells_them_apart() -> None:
    pair = [result(switches={"tf32": False}), result(switches={"tf32": False, "emulation": "bf16x9"})]
    labels = [case_label(row, case_labels(pair)) for row in pair]
    assert labels == ["4096x4096x4096", "4096x4096x4096 emulation=bf16x9"]


def test_a_remark_names_the_outcome_its_reason_and_the_doubts() -> None:
    assert remark(result(steady=True)) == ""
    assert remark(replace(result(), outcome="impossible", reason="110 % of the peak at the clock", converged=False)) == (
        "impossible: 110 % of the peak at the clock; not converged"
    )


def test_counts_come_in_one_order_however_cases_ended() -> None:
    assert counts_line(reversed(rows())) == counts_line(rows()) == "4 ok, 1 out of memory"
    assert counts_line([]) == "no case has finished"


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3599.7, "1 h 00 min")])
def test_wall_times_round_before_they_choose_their_unit(seconds: float, text: str) -> None:
    assert span(seconds) == text


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_colours_need_a_terminal_and_no_objection(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    assert screen_of(Terminal()).color
    assert not screen_of(io.StringIO()).color
    assert screen_of(io.StringIO()).width is None
    monkeypatch.setenv("COLUMNS", "71")
    assert screen_of(Terminal()).width == 71
    monkeypatch.setenv("NO_COLOR", "1")
    assert not screen_of(Terminal()).color
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not screen_of(Terminal()).color


def test_colours_change_no_text() -> None:
    coloured = [re.sub(r"\033\[[0-9;]*m", "", line) for line in shown(Screen(color=True))]
    assert coloured == shown(PLAIN)
    assert any("\033[" in line for line in shown(Screen(color=True)))


@pytest.mark.paced
@pytest.mark.parametrize("screen", [PLAIN, Screen(100)])
def test_ten_thousand_rows_take_no_longer_than_reading_them(screen: Screen) -> None:
    many = [result(8 * (index + 1)) for index in range(10_000)]

    def spent_s() -> float:
        began_s = time.process_time()
        assert len(shown(screen, many)) > 10_000
        return time.process_time() - began_s

    assert at_reference_pace_s(spent_s, runs=1) < 2.0


def test_an_empty_column_is_left_out_and_an_empty_table_is_its_heading() -> None:
    columns = (Column("case"), Column("clock"), Column("time", right=True))
    assert list(table(columns, [Row(("a", "", "1 s"))], PLAIN)) == ["  case  time", "  a      1 s"]
    assert list(table(columns, [], PLAIN)) == ["  case"]


def test_an_interval_wider_than_the_median_has_no_percentage_and_says_why() -> None:
    row = result(p50_s=2e-6, interval_s=(1e-6, 2.4e-5), converged=False, count=5)
    line = line_with("4096x4096x4096", shown(PLAIN, [row]))
    assert "569%" not in line
    assert "not resolved  " in line
    assert "± not resolved: 1.000 µs to 24.00 µs from 5 samples; not converged" in line


def test_after_the_tables_it_is_said_how_to_see_one_case() -> None:
    text = " ".join(case_hint(run_info(), rows(), " --store mine.db"))
    assert f"`roofbench show {run_info().run} {len(rows())} --store mine.db`" in text
    assert f"`roofbench show {run_info().run} --keys --store mine.db`" in text
    assert list(case_hint(run_info(), [], "")) == []


def test_a_long_device_name_leaves_room_for_its_spec_sheet() -> None:
    long = device(info=replace(device().info, name="N" * 200))
    (line,) = [line for line in header_lines(run_info(), [long], PLAIN) if "device 0" in line]
    assert line.endswith("N..., spec sheet testium-t1 (exact name)")


def test_the_help_explains_the_words_of_the_tables() -> None:
    for word in ("cold, warm", "burst, sustained", "device, call", "bound unknown", "empirical", "steady", "converged",
                 "contended", "emulated"):  # fmt: skip
        assert f"  {word}  " in DETAIL
    assert max(map(len, DETAIL.splitlines())) <= 128


TIMES = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=300)


@given(TIMES, st.integers(30, 120), st.booleans())
def test_a_histogram_counts_every_sample_once(times: list[float], width: int, blocks: bool) -> None:
    lines = list(histogram(times, "{:.3g}".format, width, 12, blocks))
    assert sum(int(line.split()[-1]) for line in lines) == len(times)
    bars = [line for line in lines if "|" in line]
    assert len(bars) == (12 if max(times) > min(times) else 1)
    assert len(lines) - len(bars) == sum(line.startswith("beyond the axis") for line in lines) <= 1


def test_one_slow_sample_does_not_press_the_others_into_one_bar() -> None:
    times = [1.0 + 0.001 * index for index in range(100)] + [60.0]
    *bars, beyond = histogram(times, "{:.3g}".format, 80, 12, blocks=False)
    assert min(int(line.split()[-1]) for line in bars) >= 8
    assert beyond == "beyond the axis, from 60 to 60: 1"
    assert len(list(histogram(times[:-1], "{:.3g}".format, 80, 12, blocks=False))) == 12


def test_an_error_of_nought_has_no_digits() -> None:
    assert (relative_error(0.0), relative_error(0.026), relative_error(None)) == ("0", "2.6e-02", "n/a")


def test_marks_keep_out_of_columns_that_their_row_leaves_empty() -> None:
    whole = result(converged=False)
    blank = result(converged=False, fractions=Fractions(None, None, None, None))
    lines = shown(PLAIN, [whole, blank])
    head = line_with("± of p50", lines)
    first, second = (line for line in lines if "not converged" in line)
    assert first.index("not converged") == second.index("not converged") > head.index("empirical")


def test_a_table_of_integers_is_in_operations_and_its_width_column_names_what_it_is_of() -> None:
    heads = [line.split() for line in shown(PLAIN, [result(format="int8"), result()]) if "regime" in line]
    assert ["TOP/s" in head for head in heads] == [True, False]
    assert ["TFLOP/s" in head for head in heads] == [False, True]
    assert all("±" in head and "±95%" not in head for head in heads)


def test_a_pass_of_a_selftest_that_is_shown_for_want_of_a_run_says_so() -> None:
    passes = replace(run_info(), experiment="selftest")
    for asked in (None, "latest"):
        (said,) = about_passes(passes, asked, " --store mine.db", True)
        assert "no run here but the passes of a selftest" in said
        assert "`roofbench selftest --last --store mine.db`" in said
        (said,) = about_passes(passes, asked, "", False)
        assert "ended before it came to a verdict" in said
    assert list(about_passes(passes, passes.run, "", True)) == list(about_passes(run_info(), None, "", False)) == []


def test_the_list_of_runs_tells_backends_apart() -> None:
    """Two runs of one experiment within minutes, and one of another tool."""
    named = [run_info(run=f"run {name}", config={"backends": {name: {}}}) for name in ("cpu", "xla")]
    both, imported = run_info(run="r2", config={"backends": {"cuda": {}, "xla": {}}}), run_info(run="r3", config={})
    heading, *lines = runs_lines([*named, both, imported], Screen(None))
    column = heading.index("backend")
    assert [line[column:].split("  ")[0].strip() for line in lines] == ["cpu", "xla", "cuda, xla", ""]


def test_joules_that_were_asked_for_and_are_absent_are_missed_in_one_line() -> None:
    asked = run_info(config={"measure": {"energy": True}})
    line = "no joules: measure.energy=true is set, and no energy was read: "
    found = list(run_lines(asked, [device()], rows(), PLAIN))
    assert line_with("no joules", found) == f"{line}`roofbench show {asked.run} 1` says why under telemetry"
    found = list(run_lines(asked, [device()], rows(), PLAIN, without_joules={0: "no counter"}))
    assert line_with("no joules", found) == f"{line}no counter"
    both = [*rows(), replace(result(), device_slot=1, energy_j=0.5), replace(result(), device_slot=2)]
    found = list(run_lines(asked, [device()], both, PLAIN, without_joules={0: "no counter", 2: "no counter"}))
    assert line_with("no joules", found) == f"on device 0, 2: {line}no counter"
    for info, of in ((run_info(), rows()), (asked, [result(energy_j=0.5)]), (asked, [])):
        assert "no joules" not in "\n".join(run_lines(info, [device()], of, PLAIN))
