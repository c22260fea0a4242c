"""The empirical roof is the best that a device has been seen to do, and only of what was resolved."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from suite.outcome import Evidence
from suite.rows import ResultRow
from suite.store.queries import Reader
from suite.store.writer import Record, Store
from tests.store import material

NO_INTERVAL: dict[str, Any] = {"interval_low_s": None, "interval_high_s": None}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def memory(
    op: str,
    bytes_s: float,
    later_s: float = 0,
    evidence: Evidence = Evidence.MEASURED,
    contended: bool | None = None,
    **summary: Any,
) -> Record:
    """A calibration whose median is a millisecond, and its rate what is asked for."""
    return material.record(
        material.planned(material.calibration_case(op)),
        material.measurement(contended=contended),
        summary=material.summary(flop_s=0.0, bytes_s=bytes_s, p50_s=1e-3, bound="memory", **summary),
        finished_at=material.START + timedelta(seconds=later_s),
        evidence=evidence,
    )


def product(number: int, flop_s: float, contended: bool | None = None, **summary: Any) -> Record:
    planned, measured = material.planned(material.case(number)), material.measurement(contended=contended)
    return material.record(planned, measured, summary=material.summary(flop_s=flop_s, **summary))


def run_of(path: str, *records: Record) -> None:
    with Store.open(path) as store, store.start_run(material.run_start()) as run:
        for record in records:
            run.record(record)
        run.finish("complete")


def shares(path: str, job: str) -> list[float | None]:
    with Reader.open(path) as reader:
        rows: list[ResultRow] = reader.results(job=job)
    return [row.fractions.empirical for row in rows]


def test_a_slower_calibration_later_leaves_the_roof_where_it_was(path: str) -> None:
    """A selftest on a busy machine: against the latest, the first run's read, copy and triad were 142, 178 and 264 %."""
    run_of(path, memory("read", 5.4e9), memory("copy", 6.7e9), memory("triad", 10e9))
    before = shares(path, "calibration")
    run_of(path, memory("read", 3.1e9, 60), memory("copy", 3.0e9, 60), memory("triad", 3.8e9, 60))
    assert before == [pytest.approx(share) for share in (0.54, 0.67, 1.0)]
    assert shares(path, "calibration")[:3] == before
    assert max(share or 0.0 for share in shares(path, "calibration")) == 1.0
    with Reader.open(path) as reader:
        assert reader.empirical_bandwidth("a1b2") == 10e9
        assert reader.calibration("a1b2", "cuda").best_bytes_s == 3.8e9  # what bounds the results that come now


def test_a_faster_one_raises_it_for_all(path: str) -> None:
    run_of(path, memory("copy", 3e9))
    run_of(path, memory("copy", 6e9, 60))
    assert shares(path, "calibration") == [0.5, 1.0]


def test_each_kind_of_evidence_and_each_chip_has_its_own_bandwidth(path: str) -> None:
    run_of(path, memory("copy", 3e9))
    run_of(path, memory("copy", 9e9, evidence=Evidence.SIMULATED))
    with Reader.open(path) as reader:
        assert reader.empirical_bandwidth("a1b2") == 3e9
        assert reader.empirical_bandwidth("a1b2", Evidence.SIMULATED) == 9e9
        assert reader.empirical_bandwidth("ffff") is None


@pytest.mark.parametrize(
    ("interval", "is_roof"),
    [
        (NO_INTERVAL, False),
        ({"interval_low_s": 0.1e-3, "interval_high_s": 2.11e-3}, False),
        ({"interval_low_s": 0.1e-3, "interval_high_s": 2.09e-3}, True),
    ],
    ids=["one sample", "wider than twice the median", "as wide as that"],
)
def test_a_time_that_is_not_resolved_is_no_roof_and_no_share_of_one(path: str, interval: dict[str, Any], is_roof: bool) -> None:
    run_of(
        path,
        memory("copy", 4e9),
        memory("triad", 8e9, **interval),
        product(0, 2e14, p50_s=1e-3),
        product(1, 4e14, p50_s=1e-3, **interval),
    )
    with Reader.open(path) as reader:
        assert reader.empirical_bandwidth("a1b2") == (8e9 if is_roof else 4e9)
        assert list(reader.empirical_roofs().values()) == [4e14 if is_roof else 2e14]
        assert reader.calibration("a1b2", "cuda").triad_bytes_s == 8e9
    assert shares(path, "calibration") == ([0.5, 1.0] if is_roof else [1.0, None])
    assert (shares(path, "gemm")[1] is None) is not is_roof


def test_where_nothing_is_resolved_there_is_no_roof(path: str) -> None:
    run_of(path, memory("copy", 4e9, **NO_INTERVAL), product(0, 2e14, **NO_INTERVAL))
    with Reader.open(path) as reader:
        assert (reader.empirical_bandwidth("a1b2"), reader.empirical_roofs()) == (None, {})
    assert [*shares(path, "calibration"), *shares(path, "gemm")] == [None, None]


@pytest.mark.parametrize(("contended", "is_roof"), [(True, False), (False, True), (None, True)])
def test_what_was_contended_is_no_roof_and_has_no_share_above_one(path: str, contended: bool | None, is_roof: bool) -> None:
    run_of(
        path,
        memory("copy", 4e9),
        memory("triad", 8e9, contended=contended),
        memory("read", 2e9, contended=contended),
        product(0, 2e14, p50_s=1e-3),
        product(1, 4e14, p50_s=1e-3, contended=contended),
    )
    with Reader.open(path) as reader:
        assert reader.empirical_bandwidth("a1b2") == (8e9 if is_roof else 4e9)
        assert list(reader.empirical_roofs().values()) == [4e14 if is_roof else 2e14]
        assert reader.calibration("a1b2", "cuda").triad_bytes_s == 8e9  # what bounds results, as nothing else is known
    assert shares(path, "calibration") == ([0.5, 1.0, 0.25] if is_roof else [1.0, None, 0.5])
    assert (shares(path, "gemm")[1] is None) is not is_roof


def test_other_than_normal_data_is_no_roof_but_has_its_share_of_one(path: str) -> None:
    """A product of zeros takes less power, and is faster under a limit of it."""
    of_zeros = material.case(1)
    of_zeros = replace(of_zeros, workload=replace(of_zeros.workload, distribution="zeros"))
    summary = material.summary(flop_s=4e14, p50_s=1e-3)
    zeros = material.record(material.planned(of_zeros), material.measurement(), summary=summary)
    run_of(path, memory("copy", 4e12), product(0, 2e14, p50_s=1e-3), zeros)
    with Reader.open(path) as reader:
        assert list(reader.empirical_roofs().values()) == [2e14]
    assert shares(path, "gemm") == [1.0, 2.0]


def by_method(version: int, flop_s: float, job: str = "gemm", number: int = 0) -> Record:
    case = replace(material.case(number), method_version=version)
    case = replace(case, workload=replace(case.workload, job=job))
    summary = material.summary(flop_s=flop_s, p50_s=1e-3)
    return material.record(material.planned(case, work=material.planned().work), material.measurement(), summary=summary)


def test_a_rate_by_an_older_method_sets_no_roof_for_a_newer_one(path: str) -> None:
    """A formula or a timing method changed since: the older rate would not be reached by the newer."""
    run_of(path, memory("copy", 4e12), by_method(1, 4e14))
    with Reader.open(path) as reader:
        assert list(reader.empirical_roofs().values()) == [4e14]  # nothing newer is there that it could mislead
    assert shares(path, "gemm") == [1.0]
    run_of(path, by_method(2, 2e14), by_method(2, 1e14, number=1))
    with Reader.open(path) as reader:
        assert list(reader.empirical_roofs().values()) == [2e14]
        assert reader.empirical_bandwidth("a1b2") == 4e12
    assert shares(path, "gemm") == [None, 1.0, 0.5]


def test_what_an_older_method_gave_below_the_roof_keeps_its_share(path: str) -> None:
    run_of(path, memory("copy", 4e12), by_method(1, 1e14), by_method(2, 2e14))
    assert shares(path, "gemm") == [0.5, 1.0]


def test_each_job_has_a_newest_method_of_its_own(path: str) -> None:
    run_of(path, memory("copy", 4e12), by_method(1, 3e14, job="another"), by_method(5, 2e14))
    with Reader.open(path) as reader:
        assert list(reader.empirical_roofs().values()) == [3e14]
