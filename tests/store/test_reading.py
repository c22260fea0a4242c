"""What readers ask of a store."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from suite.case import Regime
from suite.errors import StoreUnusable, UsageError
from suite.outcome import Evidence, Outcome
from suite.planned import PlannedCase
from suite.rows import BaseKey, Calibration, Figures, ResultRow
from suite.store.queries import Reader
from suite.store.writer import Store
from suite.work import Work
from tests.store import material

WARM = Regime("warm", "sustained", "device")
BURST = Regime("cold", "burst", "device")
CALL = Regime("warm", "sustained", "call")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def run_of(path: str, *records: Any, device: Any = None, **start: Any) -> str:
    """Store one complete run and give its id."""
    devices = (device,) if device else ()
    with Store.open(path) as store, store.start_run(material.run_start(*devices, **start)) as run:
        for each in records:
            run.record(each)
        run.finish("complete")
    return run.run


def case(number: int = 0, **fields: Any) -> PlannedCase:
    return material.planned(material.case(number, **fields))


def calibration(op: str, bytes_s: float, later_s: float = 0, regime: Regime = material.COLD, **fields: Any) -> Any:
    planned = material.planned(material.calibration_case(op, regime), work=Work(0, 2**32, None))
    numbers = material.summary(flop_s=0.0, bytes_s=bytes_s, p50_s=fields.pop("p50_s", 1e-3))
    return material.record(planned, summary=numbers, finished_at=material.START + timedelta(seconds=later_s), **fields)


def test_a_run_is_found_by_its_id_the_start_of_it_or_as_the_latest(path: str) -> None:
    first, second = run_of(path), run_of(path)
    reader = Reader.open(path)
    assert reader.resolve().run == reader.resolve("latest").run == second
    assert reader.resolve(first).run == first
    shared = 0
    while first[shared] == second[shared]:
        shared += 1
    assert reader.resolve(first[: shared + 1]).run == first
    with pytest.raises(UsageError, match=f"may be .*{first}"):
        reader.resolve(first[:shared])
    with pytest.raises(UsageError, match="an empty name is no run's"):
        reader.resolve("")
    with pytest.raises(UsageError, match=f"no run '{first[:-1]}!' in store .*; did you mean '{first}'"):
        reader.resolve(f"{first[:-1]}!")
    assert [info.run for info in reader.runs()] == [second, first]


def test_an_empty_store_says_to_run_first(path: str) -> None:
    Store.open(path).close()
    reader = Reader.open(path)
    assert (reader.runs(), reader.results(), reader.empirical_roofs()) == ([], [], {})
    for ask in (reader.resolve, reader.devices, reader.environment, reader.counts, reader.logs):
        with pytest.raises(UsageError, match="holds no runs yet: run `roofbench run` first"):
            ask()


def test_rows_are_chosen_by_run_and_by_any_of_their_names(path: str) -> None:
    first = run_of(
        path,
        material.record(case(0)),
        material.record(case(1, format="fp16")),
        material.record(case(2, implementation="triton"), material.measurement(Outcome.INCORRECT)),
        calibration("copy", 3e12),
    )
    second = run_of(path, material.record(case(0)), device=material.device(uid="ffff"))
    reader = Reader.open(path)

    def chosen(*args: Any, **filters: Any) -> int:
        return len(reader.results(*args, **filters))

    assert (chosen(), chosen(first), chosen(second), chosen([first, second]), chosen([])) == (5, 4, 1, 5, 0)
    assert (chosen(job="gemm"), chosen(job=["gemm", "calibration"]), chosen(first, job="calibration")) == (4, 5, 1)
    assert (chosen(format="fp16"), chosen(implementation="triton"), chosen(outcome=["incorrect"])) == (1, 1, 1)
    assert (chosen(device_uid="ffff"), chosen(device_uid=[]), chosen(backend="rocm")) == (1, 0, 0)
    assert (chosen(case_key=material.case(0).key), chosen(workload_key=material.case(0).workload.key)) == (2, 2)
    assert (chosen(evidence="measured"), chosen(evidence="simulated")) == (5, 0)
    with pytest.raises(UsageError, match="no run 'nope'"):
        chosen([first, "nope"])


def test_rows_come_in_the_order_they_were_stored_or_the_newest_first_and_in_pages(path: str) -> None:
    run_of(path, *(material.record(case(number)) for number in range(7)))
    reader = Reader.open(path)
    sizes = [row.params["m"] for row in reader.results()]
    assert sizes == [128 * (number + 1) for number in range(7)]
    assert [row.params["m"] for row in reader.results(newest_first=True)] == sizes[::-1]
    assert [row.params["m"] for row in reader.results(limit=3, offset=2)] == sizes[2:5]
    assert [row.params["m"] for row in reader.results(limit=3, newest_first=True)] == sizes[:-4:-1]
    assert len(reader.results(offset=5)) == 2


def test_a_rows_owner_may_change_it_without_harm_to_others(path: str) -> None:
    run_of(path, material.record(case(0)), material.record(case(0, regime=WARM)))
    reader = Reader.open(path)
    reader.results()[0].params.clear()
    assert all(row.params["m"] == 128 for row in reader.results())


def test_counts_say_how_a_run_ended(path: str) -> None:
    run = run_of(
        path,
        material.record(case(0)),
        material.record(case(1), material.measurement(Outcome.CRASHED)),
        material.record(case(2), material.measurement(Outcome.UNSUPPORTED)),
        material.record(case(3), material.measurement(Outcome.UNSUPPORTED)),
    )
    run_of(path, material.record(case(0)))
    assert Reader.open(path).counts(run) == {"ok": 1, "crashed": 1, "unsupported": 2}


def empirical(rows: list[ResultRow]) -> dict[int, float | None]:
    return {row.params["m"] // 128 - 1: row.fractions.empirical for row in rows if row.job == "gemm"}


def test_the_empirical_fraction_is_against_the_best_the_device_has_been_seen_to_do(path: str) -> None:
    run_of(path, material.record(case(0), summary=material.summary(flop_s=5e14)))
    reader = Reader.open(path)
    assert empirical(reader.results()) == {0: 1.0}
    run_of(path, material.record(case(20), summary=material.summary(flop_s=8e14)))
    assert empirical(reader.results()) == {0: 5 / 8, 20: 1.0}
    assert reader.empirical_roofs() == {("a1b2", "bf16", "sustained"): 8e14}
    assert reader.detail(1).row.fractions.empirical == 5 / 8


def test_measured_bandwidth_bounds_the_empirical_roof_but_not_for_data_in_cache(path: str) -> None:
    intensity = material.planned().work.arithmetic_intensity
    run_of(
        path,
        calibration("read", 4e12),
        calibration("copy", 3e12),
        material.record(case(0), summary=material.summary(flop_s=1e14)),
        material.record(case(0, regime=WARM), summary=material.summary(flop_s=1e14)),
        material.record(case(30), summary=material.summary(flop_s=8e14)),
    )
    rows = [row for row in Reader.open(path).results() if row.job == "gemm"]
    assert rows[0].fractions.empirical == pytest.approx(1e14 / (intensity * 4e12))
    assert rows[1].fractions.empirical == pytest.approx(1 / 8)  # 36 MB in a cache of 60
    calibrations = Reader.open(path).results(job="calibration")
    assert [row.fractions.empirical for row in calibrations] == [1.0, 3 / 4]


@pytest.mark.parametrize(
    ("better", "counts"),
    [
        ({}, True),
        ({"measured": material.measurement(Outcome.IMPOSSIBLE)}, False),
        ({"evidence": Evidence.SIMULATED}, False),
        ({"evidence": Evidence.IMPORTED}, False),
        ({"evidence": Evidence.COMPILED}, False),
        ({"planned_": case(9, format="fp8_e4m3")}, False),
        ({"planned_": case(9, regime=BURST)}, False),
    ],
)
def test_only_verified_measurements_of_the_same_pipe_and_load_raise_the_roof(path: str, better: Any, counts: bool) -> None:
    run_of(
        path,
        material.record(case(0), summary=material.summary(flop_s=2e14)),
        material.record(**{"planned_": case(9), "summary": material.summary(flop_s=4e14), **better}),
    )
    rows = Reader.open(path).results()
    assert rows[0].fractions.empirical == (0.5 if counts else 1.0)


def test_another_chip_of_the_same_kind_has_its_own_roof(path: str) -> None:
    run_of(path, material.record(case(0), summary=material.summary(flop_s=2e14)))
    run_of(path, material.record(case(1), summary=material.summary(flop_s=4e14)), device=material.device(uid="ffff"))
    assert empirical(Reader.open(path).results()) == {0: 1.0, 1: 1.0}


def test_what_is_simulated_is_compared_among_itself_and_the_rest_with_nothing(path: str) -> None:
    run_of(
        path,
        material.record(case(0), summary=material.summary(flop_s=1e14), evidence=Evidence.SIMULATED),
        material.record(case(1), summary=material.summary(flop_s=4e14), evidence=Evidence.SIMULATED),
        material.record(case(2), summary=material.summary(flop_s=2e14)),
        material.record(case(3), summary=material.summary(flop_s=2e14), evidence=Evidence.IMPORTED),
        material.record(case(4), material.measurement(Outcome.IMPOSSIBLE), summary=material.summary(flop_s=9e14)),
        calibration("copy", 1e9, evidence=Evidence.SIMULATED),
    )
    reader = Reader.open(path)
    simulated = reader.results(evidence="simulated", job="gemm")
    roof = 1e9 * simulated[0].arithmetic_intensity, 1e9 * simulated[1].arithmetic_intensity
    assert [row.fractions.empirical for row in simulated] == [pytest.approx(1e14 / roof[0]), pytest.approx(4e14 / roof[1])]
    assert empirical(reader.results(evidence=["measured", "imported"])) == {2: 1.0, 3: None, 4: None}
    assert reader.empirical_roofs(Evidence.SIMULATED) == {("a1b2", "bf16", "sustained"): 4e14}
    assert reader.calibration("a1b2", "cuda") == Calibration()


def test_the_calibration_is_the_latest_of_the_device(path: str) -> None:
    empty = {"summary": material.summary(flop_s=0.0, bytes_s=0.0, p50_s=2e-6)}
    run_of(
        path,
        calibration("read", 4.6e12, later_s=50),
        calibration("copy", 4.3e12),
        calibration("triad", 4.4e12),
        calibration("empty", 0.0, p50_s=1.3e-6, regime=WARM),
        calibration("empty", 0.0, p50_s=5.1e-6, regime=CALL),
    )
    run_of(path, calibration("read", 4.5e12, later_s=40), calibration("copy", 4.2e12, later_s=100))
    run_of(path, calibration("copy", 1e12, later_s=200), device=material.device(uid="ffff"))
    broken = material.record(
        material.planned(material.calibration_case("triad")), material.measurement(Outcome.INCORRECT), **empty
    )
    run_of(path, broken)
    expected = Calibration(4.6e12, 4.2e12, 4.4e12, empty_device_s=1.3e-6, empty_call_s=5.1e-6)
    assert Reader.open(path).calibration("a1b2", "cuda") == expected
    assert Reader.open(path).calibration("nowhere", "cuda") == Calibration()


def test_on_rocm_the_cache_is_the_sheets_when_that_is_larger(path: str) -> None:
    """The runtime reports one die's 4 MB of L2; 36 MB sit in the Infinity Cache that the sheet declares."""
    device = material.device(backend="rocm")
    small = replace(device, info=replace(device.info, llc_bytes=4 * 2**20), hardware="amd-mi300x")
    run_of(
        path,
        calibration("read", 1e12),
        material.record(case(0, regime=WARM), summary=material.summary(flop_s=5e14)),
        device=small,
    )
    (row,) = Reader.open(path).results(job="gemm")
    assert row.fractions.empirical == 1.0


def test_an_unknown_case_or_result_is_named(path: str) -> None:
    run_of(path, material.record(case(0)), material.record(case(1)))
    reader = Reader.open(path)
    for wrong in ((None, "zzzz"), (None, "%"), (None, f"{material.case(0).key}@7")):
        with pytest.raises(UsageError, match=f"no result for a case '{wrong[1]}'; `roofbench show .* --keys` lists them"):
            reader.detail(wrong)
    with pytest.raises(UsageError, match="ends in no slot number"):
        reader.detail((None, "abc@first"))
    with pytest.raises(UsageError, match="no result 99"):
        reader.detail(99)
    with pytest.raises(UsageError, match="name one of them"):
        reader.detail((None, ""))


def test_a_measurement_alone_is_that_of_the_detail(path: str) -> None:
    run_of(path, material.record(case(0)), material.record(case(1)))
    reader = Reader.open(path)
    for row in reader.results():
        assert reader.measurement(row.result_id) == reader.detail(row.result_id).measurement


BREAKING: dict[str, str] = {
    "params that are no JSON": "update workload set params = '{oops'",
    "params that are NaN": "update workload set params = '{\"m\": NaN}'",
    "params that are a list": "update workload set params = '[1]'",
    "a time that is none": "update result set finished_at = 'yesterday'",
}


@pytest.mark.parametrize("damage", BREAKING.values(), ids=BREAKING)
def test_a_row_that_no_writer_made_is_one_line(path: str, damage: str) -> None:
    run_of(path, material.record(case(0)))
    _change(path, damage)
    with pytest.raises(StoreUnusable) as error:
        Reader.open(path).results()
    assert "\n" not in str(error.value)
    assert "roofbench store check" in str(error.value)


@pytest.mark.parametrize("ask", [Reader.results, Reader.runs, Reader.counts, Reader.empirical_roofs])
@pytest.mark.parametrize("damage", ["alter table result drop column outcome", "drop table summary", "drop table run"])
def test_tables_that_are_not_as_they_should_be_are_one_line(path: str, damage: str, ask: Callable[[Reader], object]) -> None:
    run_of(path, material.record(case(0)))
    reader = Reader.open(path)
    _change(path, damage)
    try:
        ask(reader)
    except StoreUnusable as error:
        assert "is no store of this version" in str(error)  # noqa: PT017 - some questions do not touch the damage


def test_a_damaged_page_is_one_line(path: str) -> None:
    run_of(path, *(material.record(case(number)) for number in range(40)))
    reader = Reader.open(path)
    content = bytearray(Path(path).read_bytes())
    for start in range(4096 * 4, len(content), 4096):
        content[start : start + 200] = b"\xee" * 200
    Path(path).write_bytes(content)
    with pytest.raises(StoreUnusable, match="damaged"):
        reader.results()


def test_readers_hold_nothing_between_questions(path: str) -> None:
    run_of(path, material.record(case(0)))
    reader = Reader.open(path)
    reader.results()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("begin exclusive")  # refused while anyone reads
    connection.execute("rollback")
    connection.close()


def test_a_reader_cannot_write(path: str) -> None:
    run_of(path)
    reader = Reader.open(path)
    with pytest.raises(StoreUnusable, match="read-only"), reader._reading("it") as connection:
        connection.exec_driver_sql("delete from run")
    assert len(reader.runs()) == 1


def _change(path: str, sql: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("pragma foreign_keys=off")
    connection.execute(sql)
    connection.commit()
    connection.close()


def test_calibrations_by_an_older_method_do_not_count(path: str) -> None:
    old = calibration("copy", 9e12, later_s=500)
    older_case = replace(old.planned.case, method_version=old.planned.case.method_version - 1)
    run_of(path, calibration("copy", 4.3e12), replace(old, planned=old.planned._replace(case=older_case)))
    assert Reader.open(path).calibration("a1b2", "cuda").copy_bytes_s == 4.3e12


def test_an_empty_kernel_is_the_frameworks_and_bandwidth_is_the_chips(path: str) -> None:
    """XLA and CUDA drive the same chip: a launch of the one says nothing of a launch of the other."""
    run_of(
        path,
        calibration("read", 4.6e12),
        calibration("copy", 4.3e12),
        calibration("empty", 0.0, p50_s=1e-6, regime=WARM),
        calibration("empty", 0.0, p50_s=5e-6, regime=CALL),
    )
    run_of(
        path,
        calibration("read", 4.4e12, later_s=100),
        calibration("triad", 4.5e12, later_s=100),
        calibration("empty", 0.0, p50_s=90e-6, regime=CALL, later_s=100),
        device=material.device(backend="xla"),
    )
    reader = Reader.open(path)
    bandwidth = (4.6e12, 4.3e12, 4.5e12)
    assert reader.calibration("a1b2", "cuda") == Calibration(*bandwidth, empty_device_s=1e-6, empty_call_s=5e-6)
    assert reader.calibration("a1b2", "xla") == Calibration(*bandwidth, empty_device_s=None, empty_call_s=90e-6)
    assert reader.calibration("a1b2", "rocm") == Calibration(*bandwidth)
    assert reader.base_figures(["a1b2"])["a1b2", "xla", "read_bytes_s"] == 4.4e12
    assert reader.base_figures(["ffff"]) == {}


def test_a_disturbed_figure_stands_only_until_there_is_one_that_was_not():
    """A contended triad of a selftest does not take the place of a clean one, here or in the run that measured it."""
    first, second, other = (BaseKey("a1b2", "cuda", name) for name in ("read_bytes_s", "triad_bytes_s", "copy_bytes_s"))
    figures = Figures({first: 4.0, second: 2.9}, {second})
    figures.enter(first, 1.0, False)
    figures.enter(second, 3.0, False)
    figures.enter(other, 5.0, False)
    assert figures.values == {first: 4.0, second: 3.0, other: 5.0}
    for key, value in ((first, 4.1), (second, 27.0)):
        figures.enter(key, value, True)
        figures.enter(key, 1.0, False)
    assert figures.values == {first: 4.1, second: 27.0, other: 5.0}
    assert figures.calibration("a1b2", "cuda").disturbed == {"copy_bytes_s"}
    assert not figures.calibration("a1b2", "cuda").is_memory_disturbed
    figures.enter(other, 30.0, False)
    assert figures.calibration("a1b2", "cuda").is_memory_disturbed


def test_the_calibration_that_stood_when_a_result_finished_is_found(path: str) -> None:
    run_of(
        path,
        material.record(case(0)),
        calibration("empty", 0.0, p50_s=1e-6, regime=WARM, later_s=10),
        material.record(case(1), finished_at=material.START + timedelta(seconds=10)),
        material.record(case(2), finished_at=material.START + timedelta(seconds=20)),
    )
    run_of(path, calibration("empty", 0.0, p50_s=8e-6, regime=WARM, later_s=30))
    reader = Reader.open(path)
    found = reader.calibrations("a1b2", "cuda")
    stood = [found.at(row.finished_at).empty_device_s for row in reader.results(job="gemm")]
    assert stood == [None, 1e-6, 1e-6]
    assert found.latest.empty_device_s == 8e-6
