"""What a timed collective is worth: busbw as its rate, and a share of the vendor's link only between devices."""

import pytest

from suite.backend import DeviceInfo
from suite.case import Regime, items
from suite.hardware.assign import assign
from suite.hardware.spec import LINKS
from suite.jobs.collective import CollectiveJob, CollectiveSettings
from suite.measurement import Measurement, SampleSet
from suite.outcome import Bound, Outcome
from suite.roofline import Ceilings, Summary, judge, summarize
from suite.rows import Calibration

H200 = DeviceInfo("cuda", 0, "NVIDIA H200", "f" * 16, 150_754_820_096, architecture="sm_90", visible_units=132)
CALL = Regime("warm", "sustained", "call")
# all_reduce of 8 GiB over two H200 by NCCL 2.28.9 with NVLS off: 347.0 GB/s of busbw
TIME_NS, BUSBW_BYTES_S = 24_755_000, 347.0e9


def summary(transport: str) -> Summary:
    workload = next(CollectiveJob().workloads(CollectiveSettings(ops=["all_reduce"], sizes=["8GiB"])))
    samples = SampleSet((TIME_NS,) * 3, 1, "slowest rank", 1e-9, 3, 3 * TIME_NS, TIME_NS)
    work, ceilings = CollectiveJob().work(workload, items({"transport": transport})), Ceilings(H200, sheet())
    measured = judge(Measurement(Outcome.OK, samples=samples), work, ceilings, CALL)
    assert measured.outcome is Outcome.OK
    found = summarize(measured, work, CALL, ceilings, Calibration(4.6e12, 4.3e12, 4.4e12, 1e-6, 5e-6))
    assert found is not None
    return found


def sheet():
    return assign(H200, "nvidia-h200-sxm5-141gb", []).spec


def test_between_devices_busbw_is_held_against_one_direction_of_the_link() -> None:
    found = summary("device_link")
    assert found.bytes_s == pytest.approx(BUSBW_BYTES_S, rel=1e-3)
    assert found.fraction_spec == pytest.approx(347 / 450, rel=1e-3)


def test_over_the_host_no_sheet_says_how_fast_and_over_a_shared_device_there_is_no_bandwidth() -> None:
    host, shared = summary("host"), summary("shared_gpu")
    assert host.bytes_s == pytest.approx(BUSBW_BYTES_S, rel=1e-3)
    assert shared.bytes_s == 0
    assert host.fraction_spec is shared.fraction_spec is None


@pytest.mark.parametrize("transport", LINKS)
def test_it_is_the_link_that_bounds(transport: str) -> None:
    assert summary(transport).bound == Bound.LINK
