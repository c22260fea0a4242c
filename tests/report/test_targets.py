"""What was compiled in reports: only where it is asked for, apart from what was measured, and as text."""

import json

import pytest

from suite import cli
from suite.report.targets_figure import targets_figure
from suite.report.targets_matrix import matrices, ordered
from suite.report.targets_table import cell_lines
from suite.store.writer import Store
from tests.report.builders import result
from tests.report.stores import write_store
from tests.targets.cells import cell, estimated, failed
from tests.targets.scripted import facts

EVIL = "<script>alert(1)</script>|*x*"


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_store(tmp_path / "roofbench.db", [result()])
    return tmp_path / "roofbench.db"


def compiled(path, *cells):
    with Store.open(str(path)) as opened:
        for each in cells:
            opened.record_compiled(each)


def report(path, *arguments):
    assert cli.main(["report", "latest", "--output", path.name, "--force", *arguments]) == 0
    return path.read_text()


@pytest.mark.parametrize("ending", [".html", ".md"])
def test_a_report_has_the_matrix_where_it_is_asked_for(store, tmp_path, ending):
    path = tmp_path / f"report{ending}"
    before = report(path)
    compiled(store, cell(), failed("unsupported", "no unit for it", target="gfx1100"), estimated())
    assert report(path) == before
    found = report(path, "--targets")
    for text in ("Compiled for hardware", "Our kernels, by Triton", "Our jobs, by XLA", "sm_90", "gfx1100", "no unit for it"):
        assert text in found.replace("\\", "")
    assert found.count("native: multiplies in the format itself") == 1


def test_programs_get_the_cells_apart_from_the_results(store, tmp_path):
    compiled(store, cell())
    text = report(tmp_path / "report.html", "--targets")
    data = json.loads(text.partition('id="roofbench-data">')[2].partition("</script>")[0])
    assert [each["evidence"] for each in data["compiled"]] == ["compiled"]
    assert {row["evidence"] for row in data["results"]} == {"measured"}


@pytest.mark.parametrize("ending", [".html", ".md"])
def test_a_report_says_under_which_variables_and_names_no_folder(store, tmp_path, ending):
    versions = {"jax": "0.10", "XLA_FLAGS": "--xla_dump_to=/home/ada/dumps"}
    compiled(store, cell("xla_gemm.bf16", "cpu", versions=versions), cell())
    text = report(tmp_path / f"report{ending}", "--targets").replace("\\", "")
    assert "xla_gemm.bf16 on cpu: compiled under XLA_FLAGS=--xla_dump_to=" in text
    assert "/home/ada" not in text


def test_text_of_a_store_stays_text(store, tmp_path):
    compiled(store, failed("error", EVIL, EVIL))
    assert "<script>alert" not in report(tmp_path / "report.html", "--targets")
    markdown = report(tmp_path / "report.md", "--targets")
    assert "<script>" not in markdown
    assert "\\|\\*x\\*" in markdown


def test_nothing_compiled_is_said_with_the_remedy(store, tmp_path, capsys):
    assert cli.main(["report", "latest", "--output", "a.html", "--targets"]) == 2
    assert "nothing was compiled into store" in capsys.readouterr().err
    assert not (tmp_path / "a.html").exists()


def test_cells_are_in_the_order_of_the_targets_and_unknown_ones_are_left_out():
    cells = ordered([cell(target="gfx942"), cell(target="sm_80"), cell(target="sm_75"), cell("decode.bf16")])
    assert [(each.program, each.target) for each in cells] == [
        ("decode.bf16", "sm_90"),
        ("gemm.bf16", "sm_80"),
        ("gemm.bf16", "gfx942"),
    ]
    (matrix,) = matrices(cells)
    assert matrix.targets == ("sm_80", "sm_90", "gfx942")
    assert [[bool(each) for each in row] for _, row in matrix.rows] == [[False, True, False], [True, False, True]]


def test_a_figure_has_a_mark_for_each_cell_and_colour_for_what_compiled():
    cells = [cell(), cell(target="gfx942", facts=facts(execution="upcast")), failed("crashed", "SIGABRT", target="sm_80")]
    figure = targets_figure(cells, ["sm_80", "sm_90", "gfx942"])
    colours, marks = figure.data
    assert [list(row) for row in colours.z] == [[None, 1.0, 0.2]]
    assert list(marks.text) == ["N", "U", "C"]
    assert "SIGABRT" in marks.hovertext[2]


def test_a_line_has_what_is_known_and_nothing_for_what_is_not():
    (line,) = cell_lines([failed("timeout", "not compiled within 300 s")])
    assert (line["Outcome"], line["Reason"]) == ("timeout", "not compiled within 300 s")
    assert {line[name] for name in ("Registers", "Occupancy", "Multiplies", "Instructions", "Configuration")} == {None}
