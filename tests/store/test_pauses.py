"""How long a run stood still, from when its cases began and ended."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from suite.rows import Pause
from suite.store.queries import Reader
from suite.store.writer import Store
from tests.store import material

BEGAN = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


def pause_of(path: Path, *spans_s: tuple[float, float]) -> Pause | None:
    """The pause of a run whose cases took these spans, in seconds after its begin."""
    with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
        for index, (began_s, ended_s) in enumerate(spans_s):
            times = {"started_at": BEGAN + timedelta(seconds=began_s), "finished_at": BEGAN + timedelta(seconds=ended_s)}
            run.record(replace(material.record(material.planned(material.case(index))), **times))
    with Reader.open(str(path)) as reader:
        (info,) = reader.runs()
        return reader.pause(info.run)


def test_what_lies_between_two_cases_is_a_pause_and_the_longest_is_told(tmp_path: Path) -> None:
    found = pause_of(tmp_path / "s.db", (0, 2), (2.5, 4), (824, 826))
    assert found == pytest.approx(Pause(820.5, 820.0), abs=0.01)


def test_cases_of_two_devices_that_overlap_leave_no_pause(tmp_path: Path) -> None:
    assert pause_of(tmp_path / "s.db", (0, 10), (1, 4), (6, 12)) is None
