"""What a ledger enters: calibrations count by chip and backend, emulated products as they were carried out."""

from dataclasses import replace
from typing import Any

import pytest

from suite.hardware.catalogue import load
from suite.launcher.happenings import CaseEnded
from suite.ledger import Ledger, Place
from suite.outcome import Evidence
from suite.roofline import Ceilings
from suite.rows import BaseKey, DeviceRow, Figures
from suite.store.recorder import Record
from suite.work import Work
from tests.store import material

SHEET = load("nvidia-h200-sxm5-141gb")
WARM = material.COLD._replace(cache="warm")


class Writer:
    """Keeps what it is asked to record."""

    run = "a run"

    def __init__(self) -> None:
        self.attempts: dict[tuple[int, str], int] = {}
        self.records: list[Record] = []

    def record(self, record: Record) -> Any:
        self.records.append(record)


def place(backend: str) -> Place:
    row = material.device(backend=backend)
    return Place(DeviceRow(0, row.info, row.hardware, "", None), Ceilings(row.info, SHEET), Evidence.MEASURED)


def ended(case: Any, work: Work, **fields: Any) -> CaseEnded:
    return CaseEnded(material.planned(case, work=work), material.measurement(**fields), None, 1.0)


EMPTY = ended(material.calibration_case("empty", WARM), Work(0, 0, None))
PRODUCT = ended(material.case(0), Work(2**20, 2**20, "bf16"))  # 2 us a launch, as long as the empty kernel


@pytest.mark.parametrize(("known_to", "bound"), [("cuda", "launch"), ("xla", "memory")])
def test_only_the_frameworks_own_empty_kernel_makes_a_case_launch_bound(known_to: str, bound: str) -> None:
    writer: Any = Writer()
    Ledger(writer, {0: place("cuda")}, Figures({BaseKey("a1b2", known_to, "empty_device_s"): 2e-6})).enter(PRODUCT)
    assert writer.records[-1].summary.bound == bound


def test_what_a_run_calibrates_counts_for_the_cases_after_it() -> None:
    writer: Any = Writer()
    ledger = Ledger(writer, {0: place("cuda")}, Figures())
    for each in (PRODUCT, EMPTY, PRODUCT):
        ledger.enter(each)
    assert [record.summary.bound for record in writer.records] == ["memory", "launch", "launch"]


def test_an_emulated_product_is_stored_with_the_products_that_it_took() -> None:
    """Planned by the 28 that fp64 takes at least; cuBLAS kept 79 bits, which are 55."""
    writer: Any = Writer()
    planned = Work(2 * 8192**3, 3 * 8 * 8192**2, "int8x28")
    told = ended(material.case(0, format="fp64"), planned, description={"retained_mantissa_bits": 79})
    slow = replace(told.measurement, samples=material.sample_set(base_ns=10**9))
    Ledger(writer, {0: place("cuda")}, Figures()).enter(told._replace(measurement=slow))
    (record,) = writer.records
    assert record.planned.work == replace(planned, pipe="int8x55")
    assert record.summary.fraction_spec == pytest.approx(55 * record.summary.flop_s / SHEET.peak_flop_s("int8"))
