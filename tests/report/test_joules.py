"""Energy that was asked for and is not there is missed in words, with the reason that the cases were stored with."""

from dataclasses import replace

import pytest

from suite.backend import Channel
from suite.errors import StoreUnusable
from suite.report.document import build
from suite.report.html import render_html
from suite.report.joules import lacks_joules, why_no_joules, without_joules
from suite.report.markdown import render_markdown
from tests.report.builders import FakeReader, failed, result, run_info
from tests.report.recordings import sustained

ASKED = run_info(config={"measure": {"energy": True}})
WHY = "no RAPL energy counter: a guest is not shown its host's"
LINE = f"no joules: measure.energy=true is set, and no energy was read: {WHY}"


def without_counter(row):
    measured = sustained(row.p50_s, 40 * row.p50_s)
    return replace(measured, telemetry={**measured.telemetry, "energy": Channel("J", (), (), WHY)})


def reader_of(*rows, info=ASKED, measured=without_counter):
    return FakeReader(rows, infos=(info,), measured=measured)


@pytest.mark.parametrize("with_cases", [True, False])
def test_a_report_says_once_of_a_device_that_joules_are_absent_and_why(with_cases):
    document = build(reader_of(result(), result(512), failed("unsupported", "no unit", format="tf32")), ["latest"], with_cases)
    assert [device.joules for device in document.runs[0].devices] == [LINE]
    assert render_markdown(document).count("Note: no joules: measure.energy=true is set") == 1
    assert "No joules: measure.energy=true is set, and no energy was read: no RAPL" in render_html(document)


@pytest.mark.parametrize(
    ("rows", "info"),
    [
        ((result(), result(512, energy_j=1.0)), ASKED),
        ((result(),), run_info()),
        ((result(),), run_info(config={"measure": "energy"})),
        ((failed("crashed", "gone"),), ASKED),
        ((), ASKED),
    ],
)
def test_nothing_is_said_where_energy_was_read_was_not_asked_for_or_nothing_was_timed(rows, info):
    assert lacks_joules(info, rows) is False
    assert [device.joules for device in build(reader_of(*rows, info=info), ["latest"]).runs[0].devices] == [""]


def test_bursts_alone_have_no_window_for_it_and_a_case_without_a_reason_says_so():
    assert why_no_joules(reader_of(), ASKED, [result(regime="cold/burst/device")]) == (
        "it is of sustained windows, and no sustained load was timed"
    )
    row = result()
    silent = reader_of(row, measured=lambda row: replace(without_counter(row), telemetry={}))
    assert why_no_joules(silent, ASKED, [row]) == "the cases were stored with no reason"


def test_a_case_that_cannot_be_read_leaves_the_word_to_the_next():
    rows = result(1), result(2)

    def damaged(row):
        if row is rows[0]:
            raise StoreUnusable("results.db is damaged")
        return without_counter(row)

    assert without_joules(reader_of(*rows, measured=damaged), ASKED, rows) == {0: WHY}
