import base64
import hashlib
import json
import re
from dataclasses import replace
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest

from suite.backend import Channel
from suite.outcome import Outcome
from suite.report.cases import DIGITS, POINTS
from suite.report.document import build
from suite.report.html import render_html
from suite.report.markdown import render_markdown
from suite.report.method import OUTCOMES
from suite.report.tags import script_json, tag
from tests.collectives.rows import collective
from tests.report.builders import FakeReader, device, failed, result, run_info, sweep
from tests.report.pages import Page
from tests.report.recordings import sustained

EVIL = "</script><script>alert(1)</script><img src=http://evil.example/x onerror=alert(2)>\"'&\u2028"


def render(**reader):
    return render_html(build(FakeReader(**reader), ["latest"]))


@pytest.fixture(scope="module")
def swept():
    rows = tuple(sweep())
    return rows, Page(render(rows=rows))


def test_the_embedded_data_are_the_rows(swept):
    rows, page = swept
    assert page.data["results"] == [json.loads(json.dumps(row.to_json())) for row in rows]


def test_the_figure_has_a_point_for_each_verified_row(swept):
    rows, page = swept
    drawn = sum(len(trace["x"]) for trace in page.figures[0]["data"] if trace["meta"] == "points")
    assert drawn == sum(row.outcome == "ok" for row in rows)


def test_the_table_has_a_line_for_every_row_and_reasons_for_those_that_failed(swept):
    rows, page = swept
    (table,) = page.find("table", id="results-0")
    text = page.text(table)
    names = page.find("th", scope="row")
    lines = [page.text(index) for index in names if "gemm" in page.text(index)]
    assert len(lines) == len(rows)
    for row in rows:
        assert row.reason in text
    assert "not converged" in text


def test_what_is_read_first_stands_first_and_failed_cases_say_why_there(swept):
    _, page = swept
    (table,) = page.find("table", id="results-0")
    headings = [page.text(index) for index in page.find("th", scope="col") if index > table]
    assert headings[:4] == ["Case", "Time", "Of spec", "Bound"]
    reasons = [page.text(index) for index in page.find("td", **{"class": "reason"})]
    assert reasons[1] == "out of memory: needs 171 GB, 139 GB free"
    assert {page.elements[index][1]["colspan"] for index in page.find("td", **{"class": "reason"})} == {"3"}


def test_every_timed_case_and_no_other_can_be_opened(swept):
    rows, page = swept
    buttons = [page.elements[index][1] for index in page.find("button", **{"class": "case"})]
    assert [int(button["data-case"]) for button in buttons] == [row.result_id for row in rows if row.p50_s is not None]
    assert {button["aria-expanded"] for button in buttons} == {"false"}
    assert set(page.cases["cases"]) == {button["data-case"] for button in buttons}


def test_a_case_adds_no_more_than_two_kilobytes_of_data(swept):
    _, page = swept
    written = len(json.dumps(page.cases["cases"], separators=(",", ":")))
    assert written / len(page.cases["cases"]) < 2048


def test_the_words_are_explained(swept):
    _, page = swept
    (glossary,) = page.find("dl", **{"class": "method glossary"})
    for word in (
        "contended",
        "emulated",
        "empirical",
        "steady",
        "converged",
        "bound unknown",
        "cold, warm",
        "2^30",
        "quantisation error",
        "best verified rate of the same load on this device",
        "fractions use the counted one",
    ):
        assert word in page.text(glossary)


def test_a_card_names_the_regime_and_what_puts_its_result_in_doubt():
    page = Page(render(rows=(result(regime="warm/burst/call", contended=True),)))
    (cards,) = page.find("ul", **{"class": "cards"})
    assert "warm/burst/call" in page.text(cards)
    assert "contended" in page.text(cards)


def test_scalings_have_cards_and_lines_of_their_own():
    semantics = ({"scaling": "tensor"}, {"scaling": "row"})
    page = Page(render(rows=tuple(result(format="fp8_e4m3", semantics=each, quantisation_error=0.03) for each in semantics)))
    assert [page.text(index) for index in page.find("span", **{"class": "format"})] == ["fp8_e4m3", "fp8_e4m3 row"]
    (table,) = page.find("table", id="results-0")
    assert "fp8_e4m3 row" in page.text(table)
    assert "3.0e-02" in page.text(table)


def test_the_error_of_quantisation_is_a_column_only_where_a_run_has_it(swept):
    _, page = swept
    (table,) = page.find("table", id="results-0")
    assert "Quantisation" not in page.text(table)


def test_nothing_leads_out_of_the_page(swept):
    _, page = swept
    assert page.links == []
    (policy,) = (given["content"] for name, given in page.elements if name == "meta" and "http-equiv" in given)
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_only_the_pages_own_scripts_may_run(swept):
    _, page = swept
    (policy,) = (given["content"] for name, given in page.elements if name == "meta" and "http-equiv" in given)
    scripts = [page.text(index) for index in page.find("script") if "type" not in page.elements[index][1]]
    digests = {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts}
    assert digests == set(re.findall(r"'sha256-([^']+)'", policy))
    assert "'unsafe-inline'" not in policy.split("style-src")[0]


def test_the_script_is_told_how_series_are_packed_and_has_no_figure_of_its_own(swept):
    _, page = swept
    assert (page.cases["digits"], page.cases["points"]) == (DIGITS, POINTS)
    script = files("suite.report").joinpath("assets", "cases.js").read_text(encoding="utf-8")
    assert DIGITS not in script
    assert "at most ${points} a series" in script


def test_hostile_text_stays_text():
    rows = (
        result(device=EVIL, implementation=EVIL, params={EVIL: EVIL}, switches={EVIL: EVIL}, throttle=EVIL, bound=EVIL),
        failed("error", EVIL, format=EVIL),
    )
    evil_device = device(info=device().info.__class__(**{**device().info.to_json(), "name": EVIL, "driver": EVIL}))
    measured = sustained(1e-3, 0.1)
    hostile = replace(measured, telemetry={**measured.telemetry, f"throttle.{EVIL}": Channel("", (0.0,), (1.0,))})
    info = run_info(note=EVIL, experiment=EVIL, overrides=(f"note={EVIL}",), config={EVIL: EVIL})
    html = render(rows=rows, device_rows=(evil_device,), infos=(info,), measured=lambda row: hostile)
    page = Page(html)
    plain = Page(render(rows=(result(),)))
    assert [name for name, _ in page.elements if name in ("script", "img")] == [
        name for name, _ in plain.elements if name in ("script", "img")
    ]
    assert not [name for _, given in page.elements for name in given if name.startswith("on")]
    assert page.links == []
    assert page.data["results"][0]["device"] == EVIL


def test_json_in_a_script_reads_back_the_same():
    value = {"a": EVIL, "b": ["<!--", "]]>", "\u2029", 1.5, None]}
    written = script_json(value)
    assert json.loads(written) == value
    assert not set("<>&\u2028\u2029") & set(written)
    with pytest.raises(ValueError, match="JSON"):
        script_json({"a": float("nan")})


def test_tags_escape_text_and_attributes():
    assert tag("p", "<b>", title='"&', hidden=False, data_x=1) == '<p title="&quot;&amp;" data-x="1">&lt;b&gt;</p>'
    assert tag("p", tag("b", "x")) == "<p><b>x</b></p>"


def test_the_same_run_gives_the_same_bytes():
    rows = tuple(sweep())
    assert render(rows=rows) == render(rows=rows)


def test_private_names_and_places_are_left_out():
    info = run_info(note="on lovelace-node7 for ada, see /home/ada/notes.txt")
    html = render(rows=(failed("error", "cannot read /home/ada/secret.bin on lovelace-node7"),), infos=(info,))
    for private in ("lovelace", "/home/ada", "results.db", "/opt/venv"):
        assert private not in html, private
    assert "left out of published reports" in html
    assert "~/secret.bin" in html


def test_headings_descend_without_gaps_and_tables_have_scopes(swept):
    _, page = swept
    levels = [int(name[1]) for name, _ in page.elements if re.fullmatch("h[1-6]", name)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all("scope" in given for name, given in page.elements if name == "th")
    assert len(page.find("caption")) == len(page.find("table"))


def test_a_simulated_run_makes_no_headline_and_says_so():
    page = Page(render(rows=(result(evidence="simulated"),)))
    notices = " ".join(page.text(i) for i in page.find("p", **{"class": "notice"}) + page.find("p", role="note"))
    assert "simulated" in notices
    assert page.find("ul", **{"class": "cards"}) == []


def test_a_run_with_nothing_to_place_on_a_roofline_is_no_failure():
    rows = (collective("all_reduce", 2, 4096, 20e-6),)
    assert "reached the roofline" not in render(rows=rows)
    assert "reached the roofline" in render(rows=(failed("crashed", "gone"),))


def test_a_device_without_a_spec_sheet_says_so():
    unknown = device(hardware=None, spec=None, match_reason="no sheet has the runtime name 'Testium T1'")
    html = render(rows=(result(),), device_rows=(unknown,))
    assert "no spec sheet for this device" in html
    assert "no sheet has the runtime name" in html


def test_each_device_of_a_run_has_its_own_roofline():
    rows = (result(), result(device_slot=1, device_uid="beef"), result(device_slot=1, device_uid="beef"))
    second = device(slot=1, info=device().info.__class__(**{**device().info.to_json(), "uid": "beef", "index": 1}))
    page = Page(render(rows=rows, device_rows=(device(), second)))
    assert [sum(len(t["x"]) for t in figure["data"] if t["meta"] == "points") for figure in page.figures] == [1, 2]
    assert len(page.find("table", id="results-1")) == 1


def test_cards_carry_every_mark():
    row = result(interval_s=None, count=1, execution="emulated", throttle="power cap 60 %")
    document = build(FakeReader((row,)), ["latest"])
    page = Page(render_html(document))
    (cards,) = page.find("ul", **{"class": "cards"})
    for mark in ("one sample: no interval", "emulated", "throttled: power cap 60 %"):
        assert mark in page.text(cards)
    best = next(line for line in render_markdown(document).splitlines() if line.startswith("| bf16 |"))
    assert "| one sample: no interval; throttled: power cap 60 %; emulated |" in best


def test_what_is_not_known_of_other_work_and_of_references_is_said(swept):
    _, page = swept
    text = page.text(page.find("main")[0])
    assert "Without the mark that was either looked for and not seen, or not known" in text
    assert "compared with a float64 reference" in text
    for word in ("layout nt", "library", "slot", "pipe", "compulsory bytes", "one sample"):
        assert any(page.text(index).startswith(word) for index in page.find("dt"))


def test_readme_and_report_name_the_same_endings():
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    listed = readme[readme.index("A case that gives no number says why") :].split("A sweep goes on")[0]
    assert set(re.findall("`([a-z_]+)`", listed)) == set(OUTCOMES) - {"ok"} == {each.value for each in Outcome} - {"ok"}
