"""How long a run that goes on may still take: by the pace of its last cases, not by what came before the first."""

import pytest

from dashboard.progress import _words, left_s
from suite.report.progress import progress_of

START, NOW = "2031-05-06T07:00:00.000Z", "2031-05-06T07:00:25.000Z"


def after(*seconds):
    return [f"2031-05-06T07:00:{second:02}.000Z" for second in seconds]


def test_the_start_of_workers_is_no_pace():
    found = progress_of(33, {"ok": 2}, START, NOW)
    assert left_s(found, after(25, 20), NOW) == pytest.approx(31 * 5)  # by the start, 12.5 s a case: 6 min 28 s
    assert _words(found, 155.0) == "2 of 33 cases, about 2 min 35 s left at the pace of the last cases"


def test_one_case_has_no_pace_and_nothing_is_said():
    found = progress_of(33, {"ok": 1}, START, NOW)
    assert left_s(found, after(19), NOW) is None
    assert _words(found, None) == "1 of 33 cases"


def test_what_has_passed_since_the_last_case_counts_down_to_the_next():
    found = progress_of(33, {"ok": 2}, START, NOW)
    assert left_s(found, after(22, 17), NOW) == pytest.approx(31 * 5 - 3)
    assert left_s(found, after(15, 10), NOW) == pytest.approx(30 * 5)


@pytest.mark.parametrize("ended", [[], ["nothing", "no time"], after(20, 20)])
def test_times_that_tell_nothing_are_no_error(ended):
    assert left_s(progress_of(33, {"ok": 2}, START, NOW), ended, NOW) is None
