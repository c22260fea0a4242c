"""A store made to do harm is refused with a word, or shown as the text that it is."""

import io
import json
import os
import random
import re
import sqlite3
from dataclasses import replace

import pandas as pd
import pyarrow.parquet as pq
import pytest
from markdown_it import MarkdownIt

from dashboard.downloads import as_csv, as_parquet, lines_as_csv, lines_as_parquet
from dashboard.figure import page_of
from dashboard.frames import records_of
from dashboard.text import plain
from suite.report.figures import roofline_figure
from suite.report.roofs import RoofSet
from tests.dashboard.opened import charts, opened, turn_to, words
from tests.report.builders import device, failed, result, run_info
from tests.report.stores import write_store

EVIL = "<script>alert(1)</script> ![x](http://evil.example/p.png) :red[x] $x$ `a` <img src=x onerror=alert(1)>"
HUGE = "x" * 500_000
PAGES = (
    "",
    "roofline",
    "gemm",
    "grouped_gemm",
    "attention",
    "decode",
    "decode_step",
    "collectives",
    "compare",
    "run",
    "hardware",
)
MARKUP = re.compile(r"<(script|img|a|code|em|strong)\b")


def evil_rows(text):
    named = {"implementation": text, "device": text, "bound": "compute", "throttle": text[:2000]}
    params = {"m": 16, "n": 16, "k": 16, text: text}
    heads = {"num_q_heads": text, "num_kv_heads": 1, "head_dim": 8, "v_head_dim": 8, "mask": text, "direction": text}
    lengths = {"batch": text, "q_len": "1", "kv_len": 1024, "page_size": text, "page_order": text, "lengths": text}
    return [
        result(format=text, params=params, semantics={"scaling": text}, **named),
        result(job="attention", params={**heads, **lengths}, **named),
        result(job="decode", params={**heads, **lengths}, **named),
        result(job=text, params={text: text}, **named),
        result(job="decode_step", params={"batch": text, "q_len": text}, **named),
        failed("error", text, m=99, format=text),
    ]


def evil_store(path, text):
    evil = device(info=replace(device().info, name=text, uid=text[:150]), match_reason=text[:2000], hardware=None, spec=None)
    write_store(path, evil_rows(text), devices=(evil,), info=run_info(note=text, experiment=text))
    return path


def shown_as_markdown(app):
    drawn = [*app.markdown, *app.caption, *app.header, *app.subheader, *app.title, *app.warning, *app.error, *app.info]
    cells = [cell for table in app.table for cell in (*table.value.columns, *table.value.to_numpy().ravel())]
    return [element.value for element in drawn] + [metric.label for metric in app.metric] + cells


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    path = tmp_path_factory.mktemp("evil") / "<b>evil.db"
    return evil_store(evil_store(path, EVIL), EVIL)  # two runs, to compare


@pytest.mark.parametrize("page", PAGES)
def test_text_of_a_store_is_never_markup(monkeypatch, evil, page):
    app = opened(monkeypatch, evil, page=page)
    assert not app.exception
    texts = [text.replace("`roofbench selftest`", "") for text in shown_as_markdown(app)]  # which the page itself says
    assert not [text for text in texts if ":red[" in text.replace("\\:", "")]
    assert not [text for text in texts if MARKUP.search(MarkdownIt().render(text)) and "evil" in text]
    for chart in charts(app):
        assert "<script" not in chart.proto.spec
        assert "<img" not in chart.proto.spec
        texts = json.dumps([trace.get("hovertext") for trace in json.loads(chart.proto.spec)["data"]])
        assert not re.findall(r"<(?!br>|b>|/b>)", texts)


def test_a_case_of_it_is_text_too(monkeypatch, evil):
    from suite.store.browsing import Browser

    row = next(row for row in Browser.open(str(evil)).results() if row.outcome == "ok" and row.job == "gemm")
    app = opened(monkeypatch, evil, page="run", case=f"{row.run} {row.case_key}@0")
    assert not app.exception
    assert "alert(1)" in words(app)
    assert not [text for text in shown_as_markdown(app) if MARKUP.search(MarkdownIt().render(text))]


def test_names_of_megabytes_are_cut_wherever_they_are_shown(monkeypatch, tmp_path):
    path = evil_store(tmp_path / "huge.db", HUGE)
    app = opened(monkeypatch, path)
    for page in ("roofline", "gemm", "decode", "run"):
        assert not app.exception
        assert max(map(len, shown_as_markdown(app)), default=0) < 10_000
        assert sum(len(chart.proto.spec) for chart in charts(app)) < 200_000
        assert sum(len(str(frame.value)) for frame in app.dataframe) < 100_000
        assert sum(len(option) for box in (*app.multiselect, *app.selectbox) for option in box.options) < 20_000
        turn_to(app, page)


def changed(tmp_path, *statements):
    path = tmp_path / "s.db"
    write_store(path, [result(), result(m=1)], info=run_info())
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE summary SET flop_s = 9e999", "3 results in 1 run"),  # rows without figures, which say why
        ("UPDATE summary SET fraction_spec = 'NaN'", "is damaged: its results: 'NaN' is not a finite number"),
        ("UPDATE result SET outcome = 'splendid'", "3 results in 1 run"),
        ("UPDATE result SET finished_at = 'tomorrow'", "is damaged"),
        ("UPDATE workload SET params = '[1, 2'", "is damaged: its calibrations"),
        ("UPDATE workload SET params = '{\"m\": NaN}'", "is damaged: its calibrations"),
        ("UPDATE device SET info = '{}'", "is damaged: device"),
        ("UPDATE device SET spec = '{\"peaks\": 7}'", "is damaged: device"),
        ("UPDATE run SET started_at = 'yesterday'", "is damaged"),
        ("DELETE FROM device", "are of no device"),
        ("CREATE TABLE theirs (secret TEXT)", "3 results in 1 run"),  # what is not ours is not looked at
    ],
)
def test_what_no_writer_puts_there_is_one_line_and_no_traceback(monkeypatch, tmp_path, statement, said):
    app = opened(monkeypatch, changed(tmp_path, statement))
    assert not app.exception
    assert said in words(app), words(app)
    assert "No results" not in words(app)


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (("UPDATE alembic_version SET version_num = '9999'",), "newer"),
        (("DROP TABLE summary",), "is no store of this version"),
        (("CREATE VIEW lure AS SELECT 1",), "views, triggers or virtual tables"),
        (("ALTER TABLE run RENAME TO elsewhere", "CREATE VIEW run AS SELECT * FROM elsewhere"), "another program's"),
    ],
    ids=["newer schema", "a table is missing", "a view", "a view for a table"],
)
def test_a_schema_that_is_not_ours_is_refused(monkeypatch, tmp_path, statements, said):
    app = opened(monkeypatch, changed(tmp_path, *statements))
    assert not app.exception
    assert app.error
    assert said in words(app)
    assert not app.dataframe


def test_what_takes_the_place_of_an_open_store_is_refused_as_it_would_have_been(monkeypatch, tmp_path):
    path = changed(tmp_path)
    app = opened(monkeypatch, path)
    assert not app.error
    good = path.read_bytes()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE VIEW lure AS SELECT 1")
    connection.close()
    app.run()
    assert "views, triggers or virtual tables" in words(app)
    assert not app.dataframe
    path.unlink()
    os.mkfifo(path)  # opening it would wait for somebody to write into it
    app.run()
    assert "is not a regular file: choose another with roofbench dashboard PATH" in words(app)
    path.unlink()
    app.run()
    assert "s.db" in words(app)
    assert app.error
    path.write_bytes(good)
    app.run()
    assert not app.error
    assert app.dataframe


def test_a_database_of_somebody_else_is_refused(monkeypatch, tmp_path):
    with sqlite3.connect(tmp_path / "theirs.db") as connection:
        connection.execute("CREATE TABLE run (id INTEGER, secret TEXT)")
    connection.close()
    app = opened(monkeypatch, tmp_path / "theirs.db")
    assert not app.exception
    assert app.error
    assert "theirs.db" in words(app)


@pytest.mark.parametrize("seed", [0, 3])
def test_broken_pages_are_a_word(monkeypatch, tmp_path, seed):
    path = changed(tmp_path)
    content, draw = bytearray(path.read_bytes()), random.Random(seed)
    for _ in range(200):
        at = draw.randrange(100, len(content))
        content[at : at + 8] = draw.randbytes(8)
    path.write_bytes(content)
    app = opened(monkeypatch, path)
    assert not app.exception
    assert app.error or app.dataframe or "No results" in words(app)


def test_a_link_with_megabytes_of_choices_is_cut(monkeypatch, one_store):
    app = opened(monkeypatch, one_store, page="run", device=[HUGE[:100_000], *map(str, range(1000))], image=EVIL, one=EVIL)
    assert not app.exception
    assert app.selectbox(key="image").value == "PNG"


def test_a_download_runs_as_no_formula_in_a_spreadsheet():
    rows = [result(implementation=text) for text in ("=cmd|'/c calc'!A1", "+1", "@SUM(A1)", "-2+3", "plain")]
    lines = as_csv(rows).decode().splitlines()
    column = lines[0].split(",").index("implementation")
    assert [line.split(",")[column].strip('"') for line in lines[1:]] == [
        "'=cmd|'/c calc'!A1",
        "'+1",
        "'@SUM(A1)",
        "'-2+3",
        "plain",
    ]
    counted = result(job="decode_step", params={"batch": "x", "q_len": None})
    assert b"decode_step" in as_csv([counted])
    assert as_parquet([result(implementation="\ud800", flops=10**40)])[:4] == b"PAR1"


def test_a_small_table_runs_as_no_formula_either_and_its_empty_cells_stay_empty():
    frame = pd.DataFrame([{"Device": "=cmd|'/c calc'!A1", "Of spec": 0.5}, {"Device": "T1", "Of spec": None}])
    assert lines_as_csv(records_of(frame)).decode() == "Device,Of spec\r\n'=cmd|'/c calc'!A1,0.5\r\nT1,\r\n"
    again = pq.read_table(io.BytesIO(lines_as_parquet(records_of(frame)))).to_pylist()
    assert again == [{"Device": "=cmd|'/c calc'!A1", "Of spec": 0.5}, {"Device": "T1", "Of spec": None}]


def test_a_figure_as_a_file_runs_nothing_of_a_store():
    row = result(implementation="</script><script>alert(1)</script>", format="</script><script>alert(2)")
    page = page_of(roofline_figure([row], RoofSet((), ("</script><script>alert(3)",))))
    assert not re.search(r"<script>\s*alert", page)
    assert "alert(1)" in page  # it is there, as text


def test_plain_escapes_all_that_streamlit_reads_and_ends():
    assert plain("a\n<b>") == "a \\<b\\>"
    assert plain(":red[x]") == "\\:red\\[x\\]"
    assert plain("http://a.b www.c.d e@f.g") == "http\u200b\\:\\/\\/a\\.b www\u200b\\.c\\.d e\u200b\\@f\\.g"
    assert plain("y" * 10_000) == "y" * 397 + "\\.\\.\\."
