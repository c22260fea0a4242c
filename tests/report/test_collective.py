"""Collectives in terminal, Markdown and HTML: curves, fits beside them, crossings; nothing modelled looks measured."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
import yaml

from suite.collectives.cores import Host, described
from suite.collectives.model.alpha_beta import LEAST_SIZES
from suite.collectives.study import Study, studies
from suite.measurement import Measurement
from suite.outcome import Outcome
from suite.report.collective_figure import FADED, curves_figure, worlds_figure
from suite.report.collective_html import collective_figures, collective_sections
from suite.report.collective_markdown import collective_blocks
from suite.report.collective_words import NO_LINK, crossover_row, fit_row, held_out_words, signed
from suite.report.document import build
from suite.report.html import render_html
from suite.report.markdown import render_markdown
from suite.report.palette import DOUBTFUL_OPACITY
from suite.report.words import message_size
from suite.rows import ResultRow
from suite.show.collective import study_lines
from suite.show.screen import Screen
from tests.collectives.rows import collective, curve
from tests.report.builders import FakeReader, sweep
from tests.report.pages import Page

SIZES = [2**power for power in range(3, 27, 2)]
CONFIGS = Path(__file__).parents[2] / "configs"
EVIL = "<img src=x onerror=alert(1)>"


def rows(worlds: tuple[int, ...] = (2, 4, 8)) -> list[ResultRow]:
    """Ring of 20 us a step and 1 GB/s, tree of 25 us and 0.8 GB/s, and a library that follows no formula."""
    return [
        *curve("all_reduce", "ring", [*worlds], SIZES, lambda n, s: 2 * (n - 1) * (20e-6 + s / n / 1e9)),
        *curve("all_reduce", "tree", [*worlds], SIZES, lambda n, s: 2 * math.log2(n) * 25e-6 + min(2, n / 2) * s / 0.8e9),
        *curve("all_reduce", "library", [*worlds], SIZES, lambda n, s: 1e-3),
    ]


@pytest.fixture(scope="module")
def study() -> Study:
    (found,) = studies(rows())
    return found


@pytest.fixture(scope="module")
def document():
    return build(FakeReader(rows=tuple(rows())), ["latest"])


def test_a_stored_mark_of_shared_cores_is_on_the_points_and_fits_of_every_page():
    def measured(row: ResultRow) -> Measurement:
        return Measurement(Outcome.ERROR, "unread", description=described([Host(row.params["world_size"], 3)]))

    given = rows()
    report = build(FakeReader(rows=tuple(given), measured=measured), ["latest"])
    (device,) = report.runs[0].devices
    for page in (render_html(report), render_markdown(report)):
        assert page.count("ranks share cores") > 24  # of the ring alone
        assert "36; 24 of ranks that share cores" in page
    told = [line for line in study_lines(given, Screen(), device.shared_cores) if "own ring" in line]
    assert told[0].endswith("36; 24 of ranks that share cores")


def drawn(study: Study, ranks: int) -> go.Figure:
    figure = curves_figure(study, ranks)
    assert figure is not None
    return figure


def test_points_of_ranks_that_share_cores_say_so_in_figure_and_table() -> None:
    given = rows()
    shared = {row.result_id for row in given if row.params["world_size"] == 4}
    for found, is_marked in ((studies(given, shared)[0], True), (studies(given)[0], False)):
        for trace in drawn(found, 4).data:
            if trace.meta == "measured":
                assert set(trace.marker.opacity) == {DOUBTFUL_OPACITY if is_marked else 1.0}
                assert all(text.endswith("<br>ranks share cores") is is_marked for text in trace.hovertext)
    figures = [str(list(collective_figures(given, 0, each))) for each in (shared, ())]
    sections = ["".join(collective_sections(given, "host", 0, each)) for each in (shared, ())]
    tables = [
        "\n".join(collective_blocks(given, "host", lambda titles, cells: str(list(cells)), str, each)) for each in (shared, ())
    ]
    for marked, plain in (figures, tables):
        assert marked.count("ranks share cores") >= len(shared) > 0
        assert "ranks share cores" not in plain
    fits = "36; 12 of ranks that share cores"
    assert [fits in page for page in (*sections, *tables)] == [True, False, True, False]


def test_cells_of_a_fit_and_the_reason_of_a_refused_one(study: Study) -> None:
    ring, _, library = (fit_row(model) for model in study.models)
    assert ring.cells[:3] == ("own ring", "2, 4, 8", "2(n-1) alpha + 2(n-1)/n S/B")
    alpha, bandwidth, *others = ring.cells[3:7]
    assert (alpha.split(" ±")[0], bandwidth.split(" ±")[0]) == ("20.00 µs", "1.00 GB/s")
    assert all(0 < float(told.split(" ± ")[1].removesuffix(" %")) < 1 for told in (alpha, bandwidth))  # times within 1 %
    assert others == ["1.000", "99.5 %"]  # 58.72 of 59.00 ms: 32 MiB over 8 ranks
    assert ring.cells[8] == "36"
    assert ring.cells[7].startswith("8 ranks: off by 0.0 % in the median, +0.0 % at worst (")
    assert ring.cells[7].endswith("+0.0 % at 32 MiB")
    assert library.cells[2].endswith("taken for a ring")
    assert library.reason.startswith("no fit: ")
    assert library.cells[3:] == ("",) * 6


def test_a_crossing_is_told_as_measured_and_as_predicted(study: Study) -> None:
    two, _, eight = (crossover_row(each) for each in study.crossovers)
    assert eight[:2] == ("8", "own ring and own tree")
    assert eight[2].startswith("tree below, ring above about")
    assert eight[2].endswith("(128 KiB to 512 KiB)")
    at, between = eight[3].split(" (")
    assert at == "tree below, ring above 169.3 KiB"  # 130 us over 0.75 ns a byte
    assert between == "167.3 KiB to 171.3 KiB), modelled"
    assert two[2].startswith("none")
    assert "one is faster at every size that both are of" in two[3]


def test_measured_points_and_modelled_lines_cannot_be_mistaken(study: Study) -> None:
    figure = drawn(study, 8)
    measured = [trace for trace in figure.data if trace.meta == "measured"]
    modelled = [trace for trace in figure.data if trace.meta == "modelled"]
    assert {len(trace.x) for trace in measured} == {len(SIZES)}
    assert len(measured) == 6  # three ways, busbw and time
    assert len(modelled) == 4  # the library has no fit
    assert all("markers" in trace.mode and trace.line.dash is None for trace in measured)
    assert all(trace.mode == "lines" and trace.line.dash == "dash" and trace.name.endswith(", modelled") for trace in modelled)
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type, figure.layout.yaxis2.type) == ("log", "log", "log")


def test_curves_hold_the_times_and_bus_bandwidths_of_the_rows(study: Study) -> None:
    busbw, times = (trace for trace in drawn(study, 4).data if trace.name == "own ring")
    assert list(times.y) == pytest.approx([6 * (20e-6 + size / 4 / 1e9) for size in SIZES])
    assert list(busbw.y) == pytest.approx([1.5 * size / (6 * (20e-6 + size / 4 / 1e9)) for size in SIZES])
    assert list(times.error_y.array) == pytest.approx([0.01 * time for time in times.y])
    assert list(busbw.error_y.array) == pytest.approx([rate * (1 / 0.99 - 1) for rate in busbw.y])


def test_the_crossing_is_drawn_where_it_was_measured_and_where_it_is_predicted(study: Study) -> None:
    figure = drawn(study, 8)
    (found,) = next(each for each in study.crossovers if each.ranks == 8).measured
    assert [shape.x0 for shape in figure.layout.shapes] == pytest.approx([found.at_bytes, 130e-6 / 0.75e-9])
    notes = [note.text for note in figure.layout.annotations if note.text.endswith(("faster", "modelled"))]
    assert "ring faster" in notes
    assert "ring faster, modelled" in notes
    assert not drawn(study, 2).layout.shapes


def test_worlds_beyond_the_measured_are_modelled_in_a_band_that_widens(study: Study) -> None:
    figure = worlds_figure(study)
    assert figure is not None
    high, low = (trace for trace in figure.data if trace.meta == "band" and trace.legendgroup == "own ring, modelled")
    ratios = [above / below for above, below in zip(high.y, low.y, strict=True)]
    assert list(high.x) == [16, 64, 256, 1024, 4096, 16384]
    assert ratios == pytest.approx([(1 + 0.15 * (1 + doublings)) ** 2 for doublings in (1, 3, 5, 7, 9, 11)])


def test_nothing_that_is_fitted_has_no_figure_of_worlds() -> None:
    (found,) = studies(curve("all_reduce", "library", [2], SIZES, lambda n, s: 1e-3))
    assert worlds_figure(found) is None
    assert curves_figure(found, 4) is None


def test_the_page_draws_a_figure_a_world_and_says_what_is_modelled(document) -> None:
    page = Page(render_html(document))
    places = [f"collective-0-0-{world}" for world in (2, 4, 8, "worlds")]
    assert all(len(page.find("div", id=place)) == 1 for place in places)
    assert len(page.figures) == 1 + len(places)
    text = " ".join(page.texts.values())
    assert "Collectives of Testium T1" in text
    assert "Fits to all_reduce fp32 over host, modelled" in text
    assert "no fit: " in text


def test_markdown_has_measured_and_modelled_in_columns_of_their_own(document) -> None:
    text = render_markdown(document)
    assert "| Message | own ring | own ring, modelled | own tree | own tree, modelled | library |" in text
    assert "| 8 B | 40.01 µs, 200 kB/s | 40.01 µs |" in text  # 2 ranks: 40 us and 8 ns, busbw 8 B over that


def test_the_terminal_has_the_same_cells(study: Study) -> None:
    text = "\n".join(study_lines(rows(), Screen()))
    assert "fits to all_reduce fp32 over host, modelled" in text
    for row in (*map(crossover_row, study.crossovers), *(fit_row(model).cells for model in study.models)):
        assert all(cell in text for cell in row)
    assert "modelled: own ring of 32 MiB: 16 ranks" in text


def in_doubt(**fields: Any) -> list[ResultRow]:
    """The rows with these fields on every size but the largest four."""
    return [replace(row, **fields) if row.params["message_bytes"] in SIZES[:-4] else row for row in rows()]


def key_of(figure: go.Figure) -> str:
    """Its lines without the breaks and the spaces that hold words together."""
    return " ".join(" ".join(note.text for note in figure.layout.annotations).replace("<br>", " ").split())


def test_what_others_disturbed_is_drawn_faded_and_named_and_in_no_fit() -> None:
    found = in_doubt(contended=True, converged=False)
    (study,) = studies(found)
    figure = drawn(study, 8)
    trace = next(each for each in figure.data if each.name == "own ring")
    assert list(trace.x) == SIZES
    assert list(trace.marker.opacity) == [DOUBTFUL_OPACITY] * (len(SIZES) - 4) + [1.0] * 4
    assert trace.hovertext[0].endswith("<br>not converged, contended")
    assert "contended" not in trace.hovertext[-1]
    assert FADED in key_of(figure)
    assert fit_row(study.models[0]).cells[8] == "12 of 36: 24 contended left out"
    assert crossover_row(study.crossovers[2])[2].endswith("; left out: 16 contended")
    text = render_markdown(build(FakeReader(rows=tuple(found)), ["latest"]))
    assert "| 8 B | 40.01 µs, 200 kB/s (not converged, contended) |" in text


def test_a_clean_figure_has_nothing_faded(study: Study) -> None:
    assert FADED not in key_of(drawn(study, 8))


def test_no_prediction_is_made_of_disturbed_times_and_the_reason_is_said() -> None:
    lines = "\n".join(study_lines([replace(row, contended=True) for row in rows() if row.implementation == "own"], Screen()))
    assert lines.count("no fit: 0 message sizes; a fit takes 4 or more; left out: 36 contended") == 2
    assert "modelled: own ring of" not in lines


def test_a_fit_of_times_that_did_not_converge_says_so_wherever_it_stands() -> None:
    found = [replace(row, converged=False, steady=False) for row in rows()]
    (study,) = studies(found)
    assert fit_row(study.models[0]).cells[8] == "36; 36 not converged; 36 not steady"
    assert "(128 KiB to 512 KiB, not converged)" in crossover_row(study.crossovers[2])[2]
    lines = "\n".join(study_lines(found, Screen()))
    assert "modelled: own ring of 32 MiB (of 36 points, 36 not converged, 36 not steady): 16 ranks" in lines


def test_what_a_log_gives_no_interval_of_is_fitted_and_said_to_have_none() -> None:
    imported = [replace(row, evidence="imported", interval_s=None, converged=None, contended=None) for row in rows()]
    (study,) = studies(imported)
    assert fit_row(study.models[0]).cells[8] == "36; 36 without an interval"


def test_a_crossing_of_fits_that_are_hardly_known_is_not_predicted() -> None:
    vague = [replace(row, interval_s=(row.p50_s * 0.2, row.p50_s * 1.8)) for row in rows((8,)) if row.p50_s]
    (study,) = studies(vague)
    (found,) = study.crossovers
    assert found.are_fitted
    assert crossover_row(found)[3] == "none: their fits are not known well enough to tell which is faster where, modelled"
    assert not drawn(study, 8).layout.shapes


def test_a_reason_that_keeps_many_series_from_a_fit_is_said_once() -> None:
    few = [
        row
        for op in ("all_reduce", "all_gather", "reduce_scatter", "broadcast")
        for row in curve(op, "library", [2, 4], [8, 65536, 2**22], lambda ranks, size: 1e-4 + size / 1e9)
    ]
    lines = list(study_lines(few, Screen(80)))
    assert [line for line in lines if line] == ["no fit of 4 series: 3 message sizes; a fit takes 4 or more"]
    alone = [row for row in few if row.params["op"] == "broadcast"]
    assert [line for line in study_lines(alone, Screen(80)) if "fits to broadcast" in line]


def test_the_experiment_has_as_many_sizes_as_a_fit_takes() -> None:
    config = yaml.safe_load((CONFIGS / "experiment" / "collectives.yaml").read_text())
    assert len(config["jobs"]["collective"]["sizes"]) > LEAST_SIZES


def test_runs_without_collectives_have_nothing_of_it() -> None:
    document = build(FakeReader(rows=tuple(sweep())), ["latest"])
    assert "Collectives of" not in render_html(document) + render_markdown(document)
    assert list(study_lines(list(sweep()), Screen())) == []


def test_hostile_text_is_never_markup() -> None:
    rows = [collective("all_reduce", 2, s, 2 * (20e-6 + s / 2e9), implementation=EVIL, switches={"proto": EVIL}) for s in SIZES]
    document = build(FakeReader(rows=tuple(rows)), ["latest"])
    (found,) = studies(rows)
    assert "<img" not in str(drawn(found, 2).data)
    assert "<img src=x" not in render_html(document)
    assert "<img" not in render_markdown(document).replace("\\<img", "")


def test_a_size_is_written_as_settings_write_it() -> None:
    assert [message_size(each) for each in (8, 1024, 1536, 2**20, 2**33)] == ["8 B", "1 KiB", "1.5 KiB", "1 MiB", "8 GiB"]
    assert (signed(-1e-9), signed(0.126)) == ("+0.0 %", "+12.6 %")


def test_a_world_that_was_not_held_out_says_why() -> None:
    (found,) = studies(rows((4,)))
    assert held_out_words(found.models[0].held_out) == "none: 1 world size; holding one out takes 2 or more"


def test_ranks_that_share_a_device_are_told_of_where_their_curves_would_be():
    shared = [replace(row, switches={**row.switches, "transport": "shared_gpu"}) for row in rows((2,))]
    html = "".join(str(each) for each in collective_sections(shared, "a device", 0))
    markdown = "\n".join(collective_blocks(shared, "a device", lambda *_: "", str))
    terminal = " ".join(study_lines(shared, Screen(120, False)))
    for page in (html, markdown, terminal):
        assert NO_LINK in page
    failed = [replace(row, outcome=Outcome.INCORRECT) for row in shared]
    assert not list(collective_sections(failed, "a device", 0))
    assert NO_LINK not in "".join(str(each) for each in collective_sections(rows((2,)), "a device", 0))
