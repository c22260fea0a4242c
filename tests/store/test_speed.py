"""The two times that are promised: 10,000 results stored in 10 s, and a store of 100,000 answering in 2 s.

What is held to the limit is processor time, which a busy machine stretches little; the clock is what people see, and on an
idle machine the two differ by the few writes that reach the disk.
"""

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from suite.measurement import Measurement, SampleSet
from suite.outcome import Evidence
from suite.store.queries import Reader
from suite.store.writer import Record, Store
from tests.store import material
from tests.store.big import build

PROMISED_RECORD_S = 10 / 10_000
PROMISED_SHOW_S = 2.0


def noisy(draw: random.Random) -> Measurement:
    """200 samples that do not compress away, five channels of 100 readings."""
    times = tuple(int(draw.gauss(20_000, 150)) for _ in range(200))
    samples = SampleSet(times, 10, "graph", 1e-9, 200, sum(times), min(times), 1, tuple(range(0, 200, 10)), {"sets": 3})
    return material.measurement(samples=samples)


def test_a_result_is_stored_in_a_millisecond(tmp_path: Path) -> None:
    draw, count = random.Random(5), 1500
    measured = [noisy(draw) for _ in range(20)]
    spent_s = 0.0
    with Store.open(str(tmp_path / "s.db")) as store, store.start_run(material.run_start()) as run:
        for number in range(count):
            record: Record = material.record(material.planned(material.case(number)), measured[number % 20])
            began_s = time.process_time()
            run.record(record)
            spent_s += time.process_time() - began_s
    assert len(Reader.open(str(tmp_path / "s.db")).results()) == count
    assert spent_s / count < PROMISED_RECORD_S


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("big") / "big.db", 100_000, devices=10, runs=20, evidence=Evidence.MEASURED)


SHOW = """
import resource, sys
from suite.store.queries import Reader
with Reader.open(sys.argv[1]) as reader:
    run = reader.resolve()
    rows, counts = reader.results(run.run), reader.counts(run.run)
    assert all(row.fractions.empirical is not None for row in rows)
used = resource.getrusage(resource.RUSAGE_SELF)
print(len(rows), counts, used.ru_utime + used.ru_stime)
"""


def test_a_run_in_a_store_of_100_000_is_shown_in_two_seconds_with_pythons_start(big: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SHOW, str(big)], capture_output=True, text=True, check=True)
    count, counts, spent_s = done.stdout.strip().partition(" ")[0], "'ok': 5000", float(done.stdout.split()[-1])
    assert int(count) == 5000
    assert counts in done.stdout
    assert spent_s < PROMISED_SHOW_S


def test_no_question_of_a_command_reads_the_whole_store(big: Path) -> None:
    """What a command asks at once, over all 100,000 results: fractions of a second each."""
    reader = Reader.open(str(big))
    workload_key = reader.results(limit=1)[0].workload_key
    questions: dict[str, Callable[[], object]] = {
        "runs": reader.runs,
        "roofs": reader.empirical_roofs,
        "calibration": lambda: reader.calibration("uid0003"),
        "latest rows": lambda: reader.results(newest_first=True, limit=100),
        "rows of a format": lambda: reader.results(format="bf16", limit=100),
        "rows of a device": lambda: reader.results(device_uid="uid0003", limit=100),
        "rows of a workload": lambda: reader.results(workload_key=workload_key),
        "detail": lambda: reader.detail(77_777),
    }
    for name, ask in questions.items():
        began_s = time.process_time()
        assert ask() or name == "calibration"
        assert time.process_time() - began_s < 0.5, name
