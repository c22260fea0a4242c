"""Lines of a table that are of one case are told apart by what stands beside it; no text is cut for want of room."""

import json

import pandas as pd
import pytest

from dashboard.frames import PINNED_PX, TEXT_PX, wide_enough
from dashboard.narrow import heads_words
from dashboard.text import plain, sentence
from tests.dashboard.builders import attention, collective, decode, other_device
from tests.dashboard.opened import labels, opened, table, words
from tests.report.builders import failed, result, run_info
from tests.report.stores import write_store


def columns_of(monkeypatch, tmp_path, *rows, page="decode"):
    write_store(tmp_path / "s.db", rows, info=run_info())
    return list(table(opened(monkeypatch, tmp_path / "s.db", page=page)))


def test_what_lines_of_one_case_differ_in_stands_beside_its_name(monkeypatch, tmp_path):
    rows = [decode(1024, implementation=by) for by in ("naive", "triton")]
    assert columns_of(monkeypatch, tmp_path, *rows)[:2] == ["Case", "Implementation"]


def test_evidence_and_formats_and_regimes_do_so_too(monkeypatch, tmp_path):
    write_store(tmp_path / "s.db", [decode(1024, evidence="simulated")], info=run_info())
    rows = [decode(1024), decode(1024, format="fp16", regime="warm/sustained/device")]
    assert columns_of(monkeypatch, tmp_path, *rows)[:5] == ["Case", "Marks", "Evidence", "Format", "Regime"]
    alone = tmp_path / "alone"
    alone.mkdir()
    columns = columns_of(monkeypatch, alone, decode(1024))
    assert columns[1].startswith("Time")
    assert "Evidence" not in columns


def test_two_chips_of_one_name_are_told_apart_in_the_table(monkeypatch, tmp_path):
    from dataclasses import replace

    from tests.report.builders import device

    twin = replace(other_device(), info=replace(other_device().info, name=device().info.name))
    write_store(tmp_path / "a.db", [result()], info=run_info())
    write_store(tmp_path / "b.db", [result(share=0.4)], devices=(twin,), info=run_info())
    shown = table(opened(monkeypatch, tmp_path / "a.db", tmp_path / "b.db", page="gemm"))
    assert list(shown.columns[:2]) == ["Case", "Device"]
    assert len(set(shown["Device"])) == 2


def widths(app, number):
    return {name: each.get("width") for name, each in json.loads(app.dataframe[number].proto.columns).items()}


def test_a_column_is_as_wide_as_what_it_holds(monkeypatch, tmp_path):
    write_store(tmp_path / "s.db", [result(), failed("out_of_memory", "too large", m=16)], info=run_info())
    app = opened(monkeypatch, tmp_path / "s.db", page="gemm")
    assert widths(app, -1)["Outcome"] >= 6.5 * len("out of memory")
    app = opened(monkeypatch, tmp_path / "s.db", page="hardware")
    fits = next(n for n, each in enumerate(app.dataframe) if "Longest context" in each.value)
    told = app.dataframe[fits].value["32k"]
    assert widths(app, fits)["32k"] >= 6.5 * max(map(len, told))


def test_widths_have_ends_and_numbers_none():
    frame = pd.DataFrame({"Why": ["x" * 1000], "Case": ["y" * 1000], "Count": [1], "Short": ["a"]})
    found = wide_enough(frame, {"Case": {"pinned": True}, "Short": {"width": 7}})
    assert found["Why"]["width"] == TEXT_PX
    assert found["Case"] == {"pinned": True, "width": PINNED_PX}
    assert "Count" not in found
    assert found["Short"] == {"width": 7}


def test_a_column_of_numbers_without_a_format_writes_out_no_zeros_and_counts_stay_whole():
    frame = pd.DataFrame({"Error": [6e-16, None], "Count": [12_345_678, None], "Share": [1e-9, 2.0]})
    found = wide_enough(frame, {"Share": {"type_config": {"format": "%.1e"}}})
    assert found["Error"]["type_config"]["format"] == "%.4g"
    assert "Count" not in found
    assert found["Share"] == {"type_config": {"format": "%.1e"}}


def test_heads_are_called_by_the_models_that_have_them(monkeypatch, tmp_path):
    assert heads_words("64/8x128").startswith("64/8x128: Llama-3.3-70B")
    assert heads_words("7x64") == "7x64"
    rows = [decode(1024), decode(1024, params={"num_q_heads": 64})]
    write_store(tmp_path / "s.db", rows, info=run_info())
    app = opened(monkeypatch, tmp_path / "s.db", page="decode")
    assert any("Llama-3.3-70B" in option for option in labels(app)["Heads"])


@pytest.mark.parametrize(("page", "row"), [("decode", decode(1024)), ("attention", attention(1024))])
def test_what_nothing_differs_in_is_said(monkeypatch, tmp_path, page, row):
    write_store(tmp_path / "s.db", [row], info=run_info())
    app = opened(monkeypatch, tmp_path / "s.db", page=page)
    assert "All of them: heads 32/8x128: Llama-3-8B" in words(app)


def test_a_long_name_is_whole_and_a_short_one_stays_in_sight(monkeypatch, tmp_path):
    write_store(tmp_path / "short.db", [result()], info=run_info())
    case = json.loads(opened(monkeypatch, tmp_path / "short.db", page="gemm").dataframe[-1].proto.columns)["Case"]
    assert case["pinned"]
    rows = [collective(size, algo, p50_s=1e-3) for size in (2**10, 2**23) for algo in ("ring", "tree")]
    write_store(tmp_path / "long.db", rows, info=run_info())
    app = opened(monkeypatch, tmp_path / "long.db", page="collectives")
    case = json.loads(app.dataframe[-1].proto.columns)["Case"]
    assert not case["pinned"]
    assert case["width"] >= 6.5 * table(app)["Case"].str.len().max()


def test_a_command_in_a_sentence_is_code_and_nothing_else_is():
    assert sentence("x_y: `roofbench store check` tells") == "x\\_y\\: `roofbench store check` tells"
    assert sentence("`roofbench show 2026-a --keys` lists") == "`roofbench show 2026-a --keys` lists"
    assert sentence("`a` `roofbench <b>`") == plain("`a` `roofbench <b>`")
