"""A report says what a search for the maximum found, in words that cannot be read as markup."""

from dataclasses import replace

from suite.report.document import ReportDocument, build
from suite.report.html import render_html
from suite.report.markdown import render_markdown
from tests.report.builders import FakeReader, result

LINE = "peak bf16 sustained 696 TFLOP/s by 8192x1024x16384 (of 63 shapes looked at in 10 s), sets <b>no</b> roof: contended"


def documents(*peaks: str) -> ReportDocument:
    document = build(FakeReader((result(),)), ["latest"])
    (run,) = document.runs
    return replace(document, runs=(replace(run, devices=tuple(replace(each, peaks=peaks) for each in run.devices)),))


def test_what_a_search_found_is_in_both_forms_of_a_report() -> None:
    page, text = render_html(documents(LINE)), render_markdown(documents(LINE))
    assert "Search for the maximum of" in page
    assert "8192x1024x16384 (of 63 shapes looked at in 10 s), sets &lt;b&gt;no&lt;/b&gt; roof: contended" in page
    assert "Search for the maximum of" in text
    assert "<b>no" not in text
    assert "8192x1024x16384" in text


def test_a_run_without_a_search_says_nothing_of_one() -> None:
    assert "Search for the maximum" not in render_html(documents()) + render_markdown(documents())
