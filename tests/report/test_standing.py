"""Whose ceilings a report of a run shows: those that its own fractions are of, whatever was measured since."""

from dataclasses import replace

import pytest

from suite.report.document import build
from suite.report.standing import standing_of
from suite.rows import Calibration
from tests.report.builders import CALIBRATION, RUN, FakeReader, base_row, device, result, run_info

LATER, EARLIER = "2031-05-07T07:08:09Z", "2031-05-05T07:08:09Z"
OWN = "2031-05-06T07:08:30Z"
OTHER = run_info(run="2031-05-07T07-08-09-fff999", started_at=LATER, status="running", finished_at=None)


def told(reader):
    ceilings = build(reader, [RUN], with_cases=False).runs[0].devices[0].system[1]
    assert ceilings.title == "Ceilings"
    return {field.name: (field.value, field.reason) for field in ceilings.fields}


def reader_of(*rows, **fields):
    return FakeReader((result(), *rows), **{"infos": (run_info(), OTHER), "base": Calibration(), **fields})


@pytest.mark.parametrize("contended", [True, False])
@pytest.mark.parametrize("status", ["running", "complete"])
def test_what_was_measured_after_a_run_is_no_ceiling_of_it(contended, status):
    infos = (run_info(), replace(OTHER, status=status))
    own = [base_row(name, value, finished_at=OWN) for name, value in (("read_bytes_s", 4e12), ("empty_call_s", 1e-5))]
    later = [
        base_row(name, value, run=OTHER.run, finished_at=LATER, contended=contended)
        for name, value in (("read_bytes_s", 1e12), ("copy_bytes_s", 2e12), ("empty_call_s", 9e-5))
    ]
    alone, beside = told(reader_of(*own)), told(reader_of(*own, *later, infos=infos))
    bases = [name for name in alone if "bandwidth" in name or "kernel" in name]
    assert {name: alone[name] for name in bases} == {name: beside[name] for name in bases}
    assert beside["read bandwidth"] == ("4.00 TB/s", "read by library, cuda, of this run")
    assert beside["empty kernel, call"][0] == "10.00 µs"
    assert beside["copy bandwidth"][0] == ""


def test_a_run_in_progress_gives_no_other_its_ceilings():
    row = base_row("read_bytes_s", 4e12, run="earlier", finished_at=EARLIER)
    assert standing_of([row], device().info, run_info()).calibration.read_bytes_s == 4e12
    assert standing_of([row], device().info, run_info(), {"earlier"}).calibration.read_bytes_s is None
    own = replace(row, run=RUN)  # of the run itself they are
    assert standing_of([own], device().info, run_info(), {RUN}).calibration.read_bytes_s == 4e12


@pytest.mark.parametrize("doubt", [{"contended": True}, {"interval_s": None}])
def test_a_contended_figure_of_its_own_stands_in_for_no_clean_one_that_the_run_knew(doubt):
    clean = base_row("read_bytes_s", 4e12, run="earlier", finished_at=EARLIER)
    own = base_row("read_bytes_s", 5e12, finished_at=OWN, **doubt)
    assert told(reader_of(clean, own))["read bandwidth"] == ("4.00 TB/s", "read by library, cuda, of run earlier")
    value, reason = told(reader_of(own))["read bandwidth"]
    assert value == "5.00 TB/s"
    assert reason.startswith("read by library, cuda, of this run; while other work ran, or not resolved")


def test_failed_calibrations_and_those_of_other_operations_are_passed_over():
    own = base_row("read_bytes_s", 4e12, finished_at=OWN)
    failed = replace(base_row("copy_bytes_s", 4e12, finished_at=OWN), outcome="out_of_memory")
    strange = replace(own, params={"op": "scatter"})
    found = standing_of([own, failed, strange], device().info, run_info())
    assert found.calibration == Calibration(read_bytes_s=4e12)
    assert found.set_by == {"read_bytes_s": own}


def test_the_empirical_roofs_that_fractions_are_of_are_named_with_their_case_and_run():
    best = replace(result(8192, share=0.9), run=OTHER.run, finished_at=LATER)
    found = told(reader_of(best, base=CALIBRATION))
    assert found["empirical bf16 roof, sustained"][1] == (
        f"gemm 8192x4096x4096 by library, of run {OTHER.run}, which is in progress"
    )
    assert found["empirical memory roof"] == ("4.20 TB/s", "a read by library, of run 2031-05-05T07-08-09-def456")
