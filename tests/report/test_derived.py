"""A share above 100 % says of which peak it is: a derived one may be passed, a sheet's is a limit."""

from dataclasses import replace

import pytest

from suite.compare.comparison import compare
from suite.compare.pairing import pair
from suite.compare.repeats import Known
from suite.compare.words import doubts
from suite.events import CaseFinished
from suite.progress.tally import result_words
from suite.report.comparison_figure import comparison_hover
from suite.report.derived import ABOVE_DERIVED, roof_name
from suite.report.document import build
from suite.report.hover import hover_text
from suite.report.html import render_html
from suite.report.markdown import render_markdown
from suite.report.words import marks
from suite.show.results import run_lines
from suite.show.screen import Screen
from tests.compare.builders import entry, looked, side
from tests.report.builders import FakeReader, device, result, run_info

ON_CPU = {"hardware": None, "backend": "cpu"}


@pytest.mark.parametrize(
    ("share", "hardware", "marked"), [(1.01, None, True), (1.0, None, False), (0.7, None, False), (1.01, "testium-t1", False)]
)
def test_only_a_share_above_that_of_a_derived_peak_is_marked(share: float, hardware: str | None, marked: bool) -> None:
    """101.0 % of a peak that no maker declared is not what 101.0 % of a sheet's is."""
    row = result(share=1.0, hardware=hardware)
    row = replace(row, fractions=row.fractions._replace(spec=share))
    assert (ABOVE_DERIVED in marks(row)) == marked
    assert roof_name(row) == ("the spec roof" if hardware else "the derived roof")


def test_terminal_progress_report_and_hover_tell_it() -> None:
    row = result(share=1.01, **ON_CPU)
    document = build(FakeReader((row,)), ["latest"])
    assert result_words(CaseFinished(row, 1, 1, None).row).endswith(
        f"101.0 % of the derived roof, compute bound ({ABOVE_DERIVED})"
    )
    assert ABOVE_DERIVED in "\n".join(run_lines(run_info(), [device()], [row], Screen(width=200)))
    assert "of the derived roof" in render_html(document)
    for shown in (render_html(document), render_markdown(document), hover_text(row)):
        assert ABOVE_DERIVED in shown


def test_a_comparison_is_of_no_peak_and_leaves_it_out() -> None:
    a, b = side(entry(share=1.01, hardware=None)), side(entry(share=1.01, hardware=None))
    (case,) = compare(a, b, pair(a, b), (looked(a), looked(b)), Known({}, {}), 0.01).cases
    assert doubts(case) == ()
    assert ABOVE_DERIVED not in comparison_hover(case, with_backend=False)
