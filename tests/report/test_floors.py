"""The floors of a case, as suite.roofline has them, and by how much each is missed."""

from dataclasses import replace

import pytest

from suite.case import Regime
from suite.hardware.figure import NOT_FOUND
from suite.report.floors import Ground, floors, missed_by, times_over, verdict
from suite.report.panels import Panel
from suite.report.roofs import RoofSet
from suite.report.words import bytes_rate
from suite.roofline import Ceilings, floors_s
from suite.rows import Calibration, CalibrationHistory
from suite.work import Work
from tests.report.builders import BANDWIDTH, CALIBRATION, PEAKS, SPEC, device, result

GROUND = Ground(Ceilings(device().info, SPEC), CALIBRATION)
PER_CLOCK = replace(SPEC, units=replace(NOT_FOUND, value=132.0), ops_per_clock={"bf16": replace(NOT_FOUND, value=4096.0)})
COUNTED = Ground(Ceilings(device().info, PER_CLOCK), CALIBRATION)


def named(found):
    return {floor.name: floor for floor in found}


def test_the_floors_are_those_of_the_roofline():
    row = result(8192, 8192, 8192)
    below = named(floors(row, GROUND))
    work = Work(row.flops, row.compulsory_bytes, row.pipe)
    compute_s, memory_s = floors_s(work, Regime("cold", "sustained", "device"), *GROUND)
    assert (below["compute"].time_s, below["memory"].time_s) == (compute_s, memory_s)
    assert below["launch"].time_s == CALIBRATION.empty_device_s
    assert missed_by(row, below["compute"]) == pytest.approx(row.flop_s and PEAKS["bf16"] / row.flop_s)


def test_the_floor_at_the_measured_clock_stands_beside_the_sheets_and_is_the_roof():
    row = result(8192, 8192, 8192, clock_hz=1.41e9)
    below = named(floors(row, COUNTED))
    assert below["compute at clock"].time_s == pytest.approx(row.flops / (132 * 4096 * 1.41e9))
    assert [floor.name for floor in below.values() if floor.applies] == ["compute at clock"]
    assert below["compute"].time_s == row.flops / PEAKS["bf16"]
    assert verdict(row, tuple(below.values())).startswith("compute bound: the median is 1.13x the compute at clock floor")


@pytest.mark.parametrize(
    ("fields", "roof"),
    [({"m": 16}, "memory"), ({"bound": "launch", "regime": "warm/sustained/call"}, "launch"), ({"bound": "unknown"}, None)],
)
def test_the_bound_names_the_floor_that_is_the_roof(fields, roof):
    found = floors(result(**fields), GROUND)
    assert [floor.name for floor in found if floor.applies] == ([roof] if roof else [])
    assert (f"the {roof} floor" in verdict(result(**fields), found)) is bool(roof)


def test_calls_are_held_against_an_empty_call():
    assert named(floors(result(regime="warm/sustained/call"), GROUND))["launch"].time_s == CALIBRATION.empty_call_s


def test_a_floor_measured_beside_other_work_says_so():
    bare, doubtful = (Ceilings(device().info, None), replace(CALIBRATION, disturbed=frozenset({"read_bytes_s"})))
    fastest = max(("read_bytes_s", "copy_bytes_s", "triad_bytes_s"), key=lambda name: getattr(CALIBRATION, name) or 0.0)
    said = [
        named(floors(result(m=16), Ground(bare, replace(doubtful, disturbed=frozenset(names)))))["memory"].basis
        for names in ((), (fastest,))
    ]
    assert said[0].endswith("measured on this device")
    assert said[1].endswith("measured on this device, while other work ran or not resolved")


def test_data_that_stay_in_the_cache_have_no_memory_floor():
    memory = named(floors(result(512, 512, 512, regime="warm/sustained/device"), GROUND))["memory"]
    assert memory.time_s is None
    assert "last-level cache" in memory.basis


def test_what_is_not_known_says_so_and_is_no_number():
    bare = Ground(Ceilings(device().info, None), Calibration())
    for row in (result(), result(pipe="a pipe of tomorrow")):
        found = floors(row, bare)
        assert [floor.time_s for floor in found] == [None, None, None]
        assert all("no " in floor.basis for floor in found)
        assert {times_over(missed_by(row, floor)) for floor in found} == {""}


def test_a_bandwidth_without_a_sheet_is_said_to_be_measured():
    memory = named(floors(result(), Ground(Ceilings(device().info, None), CALIBRATION)))["memory"]
    assert memory.basis == "4.20 TB/s, measured on this device"
    assert named(floors(result(), GROUND))["memory"].basis == f"{BANDWIDTH / 1e12:.2f} TB/s, spec sheet"


def test_an_empty_kernel_has_a_launch_floor_alone():
    row = result(flops=0, compulsory_bytes=0, pipe=None, bound="launch", job="calibration", params={"op": "empty"})
    assert [(floor.name, floor.time_s) for floor in floors(row, GROUND)] == [("memory", None), ("launch", 1e-6)]


@pytest.mark.parametrize(("times", "text"), [(1.084, "1.08x"), (18.29, "18.3x"), (1636.2, "1,636x"), (None, "")])
def test_how_many_times_a_floor_is_short(times, text):
    assert times_over(times) == text


def test_a_case_is_held_against_the_calibration_that_stood_when_it_finished():
    """A device calibrated anew since has another launch floor, which did not decide that the case was launch bound."""
    row = result(bound="launch", p50_s=2.8e-6, finished_at="2031-05-06T07:09:00.000Z")
    steps = [
        ("2031-05-06T07:08:00.000Z", replace(CALIBRATION, empty_device_s=1e-6)),
        ("2031-05-07T00:00:00.000Z", replace(CALIBRATION, empty_device_s=0.5e-6)),
    ]
    found = Panel(device(), (row,), SPEC, CalibrationHistory(steps), RoofSet((), ()))
    assert verdict(row, floors(row, Ground.of(found, row))).startswith("launch bound: the median is 2.80x the launch floor")
    before = replace(row, finished_at="2031-05-06T07:07:59.999Z")
    launch = named(floors(before, Ground.of(found, before)))["launch"]
    assert (launch.time_s, launch.basis) == (None, "no empty kernel was measured here by then")


def test_an_emulated_product_has_the_floor_of_the_products_that_it_takes():
    row = result(format="fp32", pipe="bf16x9", switches={"emulation": "bf16x9"}, clock_hz=1.41e9)
    below = named(floors(row, COUNTED))
    assert below["compute"].time_s == pytest.approx(9 * row.flops / PEAKS["bf16"])
    assert below["compute"].basis == "107 TFLOP/s, bf16x9 spec sheet"
    assert below["compute at clock"].time_s == pytest.approx(9 * row.flops / (132 * 4096 * 1.41e9))


def test_a_peak_that_stands_in_is_called_by_its_own_name():
    listed = replace(SPEC, peak_variants={"fp16_acc_fp16": replace(NOT_FOUND, value=2 * PEAKS["fp16"])})
    row = result(format="fp16", pipe="fp16_acc_fp16")
    basis = [named(floors(row, Ground(Ceilings(device().info, spec), CALIBRATION)))["compute"].basis for spec in (SPEC, listed)]
    assert basis == ["960 TFLOP/s, fp16 in place of fp16_acc_fp16 spec sheet", "1.92 PFLOP/s, fp16_acc_fp16 spec sheet"]


def test_what_crosses_a_link_is_held_against_the_link_and_not_against_memory():
    row = result(pipe="host", flops=0, flop_s=0.0, bound="link", compulsory_bytes=2**20, bytes_s=1e9)
    below = named(floors(row, GROUND))
    assert "memory" not in below
    assert (below["link"].time_s, below["link"].applies) == (None, True)
    assert below["link"].basis == "no sheet says how fast host is"
    assert bytes_rate(row) == "1.00 GB/s busbw"
    assert bytes_rate(result(bound="memory", bytes_s=1e9)) == "1.00 GB/s"
