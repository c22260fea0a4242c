"""The two times that are promised: 10,000 results stored in 10 s, and a store of 100,000 answering in 2 s.

What is held to the limit is processor time at the pace of a stated machine; the clock is what people see, and on an idle
machine the two differ by the few writes that reach the disk.
"""

import random
import sys
import time
from collections.abc import Callable, Sized
from itertools import count, islice
from pathlib import Path

import pytest

from suite.measurement import Measurement, SampleSet
from suite.outcome import Evidence
from suite.store.queries import Reader
from suite.store.writer import Record, Store
from tests.pace import at_reference_pace_s, child_s
from tests.store import material
from tests.store.big import build
from tests.store.steps import QUESTION_STEPS, ROW_STEPS, counted_steps

pytestmark = pytest.mark.paced

PROMISED_RECORD_S = 10 / 10_000
PROMISED_SHOW_S = 2.0
RESULTS, DEVICES, RUNS = 100_000, 10, 20


def noisy(draw: random.Random) -> Measurement:
    """200 samples that do not compress away, five channels of 100 readings."""
    times = tuple(int(draw.gauss(20_000, 150)) for _ in range(200))
    samples = SampleSet(times, 10, "graph", 1e-9, 200, sum(times), min(times), 1, tuple(range(0, 200, 10)), {"sets": 3})
    return material.measurement(samples=samples)


def test_a_result_is_stored_in_a_millisecond(tmp_path: Path) -> None:
    draw, numbers, rounds, of_a_round = random.Random(5), count(), 5, 300
    measured = [noisy(draw) for _ in range(20)]
    with Store.open(str(tmp_path / "s.db")) as store, store.start_run(material.run_start()) as run:

        def stored_s() -> float:
            spent_s = 0.0
            for number in islice(numbers, of_a_round):
                record: Record = material.record(material.planned(material.case(number)), measured[number % 20])
                began_s = time.process_time()
                run.record(record)
                spent_s += time.process_time() - began_s
            return spent_s

        assert at_reference_pace_s(stored_s, rounds) / of_a_round < PROMISED_RECORD_S
    assert len(Reader.open(str(tmp_path / "s.db")).results()) == rounds * of_a_round


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("big") / "big.db", RESULTS, devices=DEVICES, runs=RUNS, evidence=Evidence.MEASURED)


SHOW = """
import sys
from suite.store.queries import Reader
with Reader.open(sys.argv[1]) as reader:
    run = reader.resolve()
    rows, counts = reader.results(run.run), reader.counts(run.run)
    assert len(rows) == counts["ok"] == 5000
    assert all(row.fractions.empirical is not None for row in rows)
"""


def test_a_run_in_a_store_of_100_000_is_shown_in_two_seconds_with_pythons_start(big: Path) -> None:
    assert at_reference_pace_s(lambda: child_s([sys.executable, "-c", SHOW, str(big)]), runs=3) < PROMISED_SHOW_S


ENTRY_STEPS = 35  # looking at one entry of an index, or at one row that is passed over: about 22 were counted with 3.40


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    return counted_steps(monkeypatch)


def test_no_question_of_a_command_reads_the_whole_store(big: Path, steps: Callable[[], int]) -> None:
    """What a command asks at once, over all 100,000 results: it looks at what it must, and puts together what it returns.

    Fractions of what a device has been seen to do rest on an index with an entry for each result of the device.
    """
    reader = Reader.open(str(big))
    first = reader.results(limit=1)[0]
    of_run, of_device = RESULTS // RUNS, RESULTS // DEVICES
    questions: dict[str, tuple[Callable[[], Sized], int]] = {
        "runs": (reader.runs, RESULTS),  # each with the number of its finished cases
        "roofs": (reader.empirical_roofs, RESULTS),
        "calibration": (lambda: [reader.calibration("uid0003", "cuda")], 0),
        "latest rows": (lambda: reader.results(newest_first=True, limit=100), of_device),
        "rows of a format": (lambda: reader.results(format="bf16", limit=100), of_device),
        "rows of a device": (lambda: reader.results(device_uid="uid0003", limit=100), 3 * of_run + of_device),
        "rows of a workload": (lambda: reader.results(workload_key=first.workload_key), RESULTS),  # on every device
        "rows of a case": (lambda: reader.results("latest", case_key=first.case_key), of_device),
        "detail": (lambda: [reader.detail(77_777)], of_device),
        "a run": (lambda: [reader.resolve()], of_run),
        "a run's outcomes": (reader.counts, of_run),
        "selftests": (reader.selftests, 0),
    }
    steps()
    for name, (ask, looked_at) in questions.items():
        rows = len(ask())
        assert 0 < steps() <= QUESTION_STEPS + ROW_STEPS * rows + ENTRY_STEPS * looked_at, name
