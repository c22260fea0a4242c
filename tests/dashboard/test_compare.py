"""The page that compares two runs, and its figure."""

import json
from dataclasses import replace
from shutil import copy

import pytest

from dashboard.opposite import NONE_ANYWHERE, NONE_BEFORE, NONE_SHARED
from dashboard.text import plain
from dashboard.views.compare import nothing_compared
from suite.compare.noise import Noise
from suite.compare.pairing import Uncompared
from suite.compare.runs import Place, compare_runs
from suite.compare.verdict import Verdict
from suite.report.comparison_figure import MOST_CASES, _tick_words, comparison_figure, shown
from suite.report.palette import INKS
from suite.store.comparing import ComparisonReader
from suite.store.writer import Store
from tests.dashboard.builders import measured
from tests.dashboard.opened import addressed, charts, opened, words
from tests.report.builders import failed, result, run_info
from tests.report.stores import write_store
from tests.store.material import run_start

SIZES = (1024, 2048, 4096)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A run, and the same again in another store with one case a tenth slower and one that fails."""
    folder = tmp_path_factory.mktemp("pair")
    rows = [result(m, m, m) for m in SIZES]
    before = write_store(folder / "a.db", [*rows, result(64)], info=run_info(experiment="before"), measured=measured)
    slower = [result(m, m, m, p50_s=row.p50_s * (1.1 if m == 2048 else 1)) for m, row in zip(SIZES, rows, strict=True)]
    slower = [again(row) for row in slower]
    gone = failed("timeout", "over 120 s", m=64)
    after = write_store(folder / "b.db", [*slower, gone], info=run_info(experiment="after"), measured=measured)
    return (folder / "a.db", before), (folder / "b.db", after)


def again(row):
    return result(
        **row.params,
        p50_s=row.p50_s,
        interval_s=(row.p50_s * 0.998, row.p50_s * 1.002),
        flop_s=row.flops / row.p50_s,
        bytes_s=row.compulsory_bytes / row.p50_s,
    )


@pytest.fixture(scope="module")
def comparison(pair):
    return compare_runs(*(Place(ComparisonReader.open(str(path)), run) for path, run in pair))


def test_a_slower_case_is_on_top_with_its_ratio_and_what_was_lost_is_said(monkeypatch, pair):
    (a, _), (b, _) = pair
    app = opened(monkeypatch, a, b, page="compare")
    assert not app.exception
    cases = app.dataframe[0].value
    assert list(cases["Verdict"]) == ["SLOWER", *["SAME"] * (len(cases) - 1)]
    assert cases["Case"][0].startswith("gemm 2048x2048x2048")
    assert cases["B/A"][0] == pytest.approx(1.1, rel=2e-3)
    counts = {metric.label: metric.value for metric in app.metric}
    assert (counts["SLOWER"], counts["FASTER"], counts["not compared"]) == ("1", "0", "1")
    lost = app.table[-1].value
    assert plain("lost, as it is ok in A alone") in lost["Why"][0]
    assert "`roofbench selftest` measures it" in words(app)


def test_the_address_says_which_runs_and_what_least_difference(monkeypatch, pair):
    (a, before), (b, after) = pair
    app = opened(monkeypatch, a, b, page="compare", a=f"1 in {after}", b=f"0 in {before}", effect="20")
    cases = app.dataframe[0].value
    assert set(cases["Verdict"]) == {"SAME"}  # a tenth is less than a fifth
    assert min(cases["B/A"]) == pytest.approx(1 / 1.1, rel=2e-3)
    app.number_input(key="least-effect").set_value(1.0).run()
    assert "FASTER" in set(app.dataframe[0].value["Verdict"])
    assert (addressed(app, "effect"), addressed(app, "a")) == ([], [f"1 in {after}"])
    app.query_params["effect"] = "20"  # a step back
    app.run()
    assert set(app.dataframe[0].value["Verdict"]) == {"SAME"}
    assert (addressed(app, "effect"), app.number_input(key="least-effect").value) == (["20"], 20.0)


def test_a_run_with_itself_and_a_single_run_are_words(monkeypatch, pair):
    (a, before), (b, _) = pair
    app = opened(monkeypatch, a, b, page="compare", a=f"0 in {before}", b=f"0 in {before}")
    assert "the same run" in words(app)
    assert "There is one run only." in words(opened(monkeypatch, a, page="compare"))


def test_a_copy_of_a_run_in_another_store_is_no_run_to_compare_it_with(monkeypatch, tmp_path, pair):
    (a, before), (b, after) = pair
    copied = copy(b, tmp_path / "copy.db")
    app = opened(monkeypatch, a, b, copied, page="compare")
    assert addressed(app, "a") == [f"0 in {before}"]
    assert addressed(app, "b")[0].endswith(after)
    assert not app.error
    app = opened(monkeypatch, b, copied, page="compare")
    assert "There is one run only." in words(app)
    assert not app.exception
    app = opened(monkeypatch, a, b, copied, page="compare", a=f"1 in {after}", b=f"2 in {after}")
    assert "the same run" in words(app)
    assert not app.error


def test_runs_of_too_many_results_are_left_to_the_command_line(monkeypatch, pair):
    (a, before), (b, after) = pair
    monkeypatch.setattr("dashboard.views.compare.MOST_RESULTS", 5)
    app = opened(monkeypatch, a, b, page="compare")
    assert f"roofbench compare {before} {after}" in words(app)
    assert not charts(app)


def test_every_case_is_a_point_by_verdict_with_its_interval(comparison):
    figure = comparison_figure(comparison)
    by_verdict = {trace.name: trace for trace in figure.data}
    slower = by_verdict["SLOWER"]
    assert list(slower.x) == [comparison.cases[0].ratio]
    low, high = comparison.cases[0].judgement.interval
    assert slower.x[0] - slower.error_x.arrayminus[0] == pytest.approx(low)
    assert slower.x[0] + slower.error_x.array[0] == pytest.approx(high)
    assert sum(len(trace.x) for trace in figure.data) == len(comparison.cases)
    assert len({trace.marker.symbol for trace in figure.data}) == len(figure.data)
    assert "SLOWER: +10" in slower.hovertext[0]
    assert figure.layout.xaxis.range[1] > 0.041 > 0 > figure.layout.xaxis.range[0]  # of 1.1, in decades


def test_the_axis_has_one_unit_and_every_row_its_name(comparison):
    figure = comparison_figure(comparison)
    names = [note.text for note in figure.layout.annotations if note.font.size == 11]
    assert len(names) == len(comparison.cases)
    assert names[0].startswith("gemm 2048x2048x2048")
    assert "cold/sustained/device" not in names[0]  # all of them are
    assert [note.y for note in figure.layout.annotations if note.font.size == 11] == [
        place - 0.42 for place in range(len(names))
    ]


@pytest.mark.parametrize("theme", INKS)
def test_no_interval_runs_through_a_name_and_no_line_of_the_grid(comparison, theme):
    figure = comparison_figure(comparison, theme)
    layout, (low, high) = figure.layout, sorted(figure.layout.yaxis.range)
    row_px = (layout.height - layout.margin.t - layout.margin.b) / (high - low)
    names = [note for note in layout.annotations if note.font.size == 11]
    for name in names:
        for place in range(len(names)):
            assert abs(name.y - place) * row_px >= 8 + 9 / 2 + 3  # half a name's height, half a marker and a gap
        assert name.bgcolor == layout.paper_bgcolor


@pytest.mark.parametrize(
    ("ticks", "words"),
    [([1e-4, 1.0, 1e4], ["0.0001x", "1x", "10,000x"]), ([1 / 1.05, 1.0, 1.05], ["-4.8 %", "0 %", "+5 %"])],
)
def test_ticks_are_all_factors_or_all_percentages(ticks, words):
    assert _tick_words(ticks) == words


def test_of_too_many_cases_those_that_changed_most_are_drawn(comparison):
    cases = [*(comparison.cases[1]._replace() for _ in range(100)), comparison.cases[0]]
    kept = shown(cases)
    assert len(kept) == MOST_CASES
    assert comparison.cases[0] in kept


@pytest.mark.parametrize("theme", INKS)
def test_a_case_without_an_interval_has_no_bar_and_nothing_compared_no_figure(comparison, theme):

    case = comparison.cases[0]
    unknown = case._replace(gap=case.gap._replace(noise=(Noise(float("inf"), float("inf"), 1),) * 2))
    figure = comparison_figure(replace(comparison, cases=(unknown,)), theme)
    assert figure.data[0].error_x.array == (0.0,) or list(figure.data[0].error_x.array) == [0.0]
    assert json.loads(figure.to_json())
    assert comparison_figure(replace(comparison, cases=()), theme) is None
    assert Verdict.SLOWER.value == figure.data[0].name


def test_it_opens_with_the_newest_runs_that_are_no_passes_of_a_selftest(monkeypatch, tmp_path):
    path = tmp_path / "s.db"
    runs = [write_store(path, [result()], info=run_info(experiment="quick")) for _ in range(2)]
    passes = [write_store(path, [result()], info=run_info(experiment="selftest", note=note)) for note in ("doubled", "again")]
    app = opened(monkeypatch, path, page="compare")
    assert [app.selectbox(key=name).value for name in ("a", "b")] == [f"0 in {run}" for run in runs]
    link = {"a": f"0 in {passes[0]}", "b": f"0 in {passes[1]}"}
    app = opened(monkeypatch, path, page="compare", **link)
    assert {name: app.selectbox(key=name).value for name in link} == link


def test_two_passes_of_a_selftest_are_compared_where_there_is_nothing_else(monkeypatch, tmp_path):
    path = tmp_path / "s.db"
    passes = [write_store(path, [result()], info=run_info(experiment="selftest")) for _ in range(2)]
    app = opened(monkeypatch, path, page="compare")
    assert [app.selectbox(key=name).value for name in ("a", "b")] == [f"0 in {run}" for run in passes]


def clocked(m, clock_hz, **fields):
    return result(m, m, m, clock_hz=clock_hz, **fields)


def test_what_the_clock_did_is_said_where_verdicts_in_cycles_do_not_tell(monkeypatch, tmp_path):
    rows = [clocked(m, 1.5e9) for m in SIZES]
    slower = [clocked(m, 1.2e9, p50_s=row.p50_s / 0.8) for m, row in zip(SIZES, rows, strict=True)]
    slower = [replace(row, interval_s=(row.p50_s * 0.998, row.p50_s * 1.002)) for row in slower]
    write_store(tmp_path / "a.db", rows, info=run_info(), measured=measured)
    write_store(tmp_path / "b.db", slower, info=run_info(), measured=measured)
    said = words(opened(monkeypatch, tmp_path / "a.db", tmp_path / "b.db", page="compare"))
    assert "3 of 3 cases compared in cycles took longer in B by the clock" in said
    assert "is +25.0 %, with the clock at -20.0 %" in said
    write_store(tmp_path / "c.db", rows, info=run_info(), measured=measured)
    assert "by the clock" not in words(opened(monkeypatch, tmp_path / "a.db", tmp_path / "c.db", page="compare"))


def test_why_nothing_was_compared_is_the_reason_that_results_have(pair):
    (a, before), (b, after) = pair
    both = compare_runs(Place(ComparisonReader.open(str(a)), before), Place(ComparisonReader.open(str(b)), after))
    assert nothing_compared(replace(both, cases=(), pairing=both.pairing._replace(uncompared=()))).endswith(
        "a counterpart in B"
    )
    refused = tuple(Uncompared(each.a, each.b, "A is measured, B simulated") for each in both.pairing.pairs)
    alone = Uncompared(both.pairing.pairs[0].a, None, "not in B")
    found = replace(both, cases=(), pairing=both.pairing._replace(uncompared=(alone, *refused)))
    assert nothing_compared(found) == "A is measured, B simulated"


def test_a_run_is_first_held_against_the_one_most_like_it(monkeypatch, tmp_path):
    """In kind of evidence, and in what it computed, before it is the one just before it."""
    path = tmp_path / "s.db"
    like = write_store(path, [result(512)], info=run_info())
    other_work = write_store(path, [result(64, format="fp16")], info=run_info())
    simulated = write_store(path, [result(512, evidence="simulated")], info=run_info())
    newest = write_store(path, [result(512)], info=run_info())
    app = opened(monkeypatch, path, page="compare")
    assert [app.selectbox(key=name).value for name in ("a", "b")] == [f"0 in {like}", f"0 in {newest}"]
    app.selectbox(key="b").select(f"0 in {other_work}").run()
    assert app.selectbox(key="a").value != f"0 in {simulated}"
    app = opened(monkeypatch, path, page="compare", a=f"0 in {simulated}", b=f"0 in {newest}")
    assert app.selectbox(key="a").value == f"0 in {simulated}"


def chosen(app):
    return [app.selectbox(key=name).value for name in ("a", "b")]


def test_a_run_in_progress_is_neither_side_at_first(monkeypatch, tmp_path):
    """A ladder was held against a run that had just begun: nothing was compared."""
    path = tmp_path / "s.db"
    runs = [write_store(path, [result(512)], info=run_info()) for _ in range(2)]
    with Store.open(str(path)) as store, store.start_run(run_start(planned=1)) as growing:
        app = opened(monkeypatch, path, page="compare")
        assert chosen(app) == [f"0 in {run}" for run in runs]
        assert addressed(opened(monkeypatch, path, page="run"), "one") == [growing.run]  # there its progress is what is asked
        growing.finish("complete")


def test_of_runs_before_the_one_with_the_most_cases_in_common_is_taken_and_never_a_later_one(monkeypatch, tmp_path):
    path = tmp_path / "s.db"
    most = write_store(path, [result(m) for m in (16, 32, 64)], info=run_info())
    write_store(path, [result(16), *(result(m) for m in range(1000, 1010))], info=run_info())
    newest = write_store(path, [result(m) for m in (16, 32, 64, 128)], info=run_info())
    write_store(path, [result(m) for m in (16, 32, 64, 128)], info=run_info(experiment="selftest"))
    app = opened(monkeypatch, path, page="compare")
    assert chosen(app) == [f"0 in {most}", f"0 in {newest}"]
    assert not [each for each in app.info if "common" in each.value]


def test_it_opens_with_the_newest_pair_that_shares_a_case_where_the_newest_run_shares_none(monkeypatch, tmp_path):
    path = tmp_path / "s.db"
    first, second = (write_store(path, [result(512), result(m)], info=run_info(note=f"of {m} rows")) for m in (16, 32))
    write_store(path, [result(64, format="fp16")], info=run_info())
    newest = write_store(path, [result(64, format="fp8_e4m3")], info=run_info())
    app = opened(monkeypatch, path, page="compare")
    assert chosen(app) == [f"0 in {first}", f"0 in {second}"]
    assert NONE_SHARED not in words(app)
    assert "SAME" in set(app.dataframe[0].value["Verdict"])
    app.number_input(key="least-effect").set_value(2.0).run()
    assert chosen(app) == [f"0 in {first}", f"0 in {second}"]
    app = opened(monkeypatch, path, page="compare", b=f"0 in {newest}")
    said = words(app)
    assert NONE_SHARED in said
    assert "The newest that share any: A " in said
    assert "of 16 rows; B " in said
    assert "of 32 rows." in said
    assert NONE_ANYWHERE not in said


def test_runs_without_a_case_in_common_are_told_as_such(monkeypatch, tmp_path):
    path = tmp_path / "s.db"
    first = write_store(path, [result(512)], info=run_info())
    regime = write_store(path, [result(512, regime="warm/sustained/call")], info=run_info())
    app = opened(monkeypatch, path, page="compare")
    assert chosen(app) == [f"0 in {first}", f"0 in {regime}"]
    assert f"{NONE_SHARED} {NONE_ANYWHERE}" in words(app)
    app = opened(monkeypatch, path, page="compare", b=f"0 in {first}")
    assert chosen(app) == [f"0 in {regime}", f"0 in {first}"]
    assert NONE_BEFORE in words(app)


def test_a_link_shows_the_same_runs_when_newer_ones_have_come(monkeypatch, tmp_path):
    path = tmp_path / "s.db"
    runs = [write_store(path, [result()], info=run_info()) for _ in range(2)]
    app = opened(monkeypatch, path, page="compare")
    link = {name: addressed(app, name) for name in ("a", "b")}
    assert link == {"a": [f"0 in {runs[0]}"], "b": [f"0 in {runs[1]}"]}
    one = addressed(opened(monkeypatch, path, page="run"), "one")
    assert one == [runs[1]]
    write_store(path, [result()], info=run_info())
    again = opened(monkeypatch, path, page="compare", **link)
    assert {name: [again.selectbox(key=name).value] for name in link} == link
    assert opened(monkeypatch, path, page="run", one=one).selectbox(key="one").value == runs[1]
