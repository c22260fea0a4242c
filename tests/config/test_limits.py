"""The experiments keep to their limits, on a large accelerator and on a small CPU."""

from collections import Counter

import pytest

from suite.backend import DeviceInfo
from suite.config import compose
from suite.errors import UsageError
from suite.plan import plan
from suite.planned import DeviceSlot

H200 = DeviceSlot(
    0,
    "cuda",
    "backends.cuda:CudaBackend",
    DeviceInfo(
        backend="cuda", index=0, name="NVIDIA H200", uid="a", memory_bytes=150_109_880_320, visible_units=132,
        max_clock_hz=1.98e9, llc_bytes=60 * 2**20,
    ),
)  # fmt: skip
CPU = DeviceSlot(
    0,
    "cpu",
    "backends.cpu:CpuBackend",
    DeviceInfo(
        backend="cpu", index=0, name="Two cores", uid="b", memory_bytes=8 * 2**30, visible_units=2, max_clock_hz=2.6e9,
        llc_bytes=32 * 2**20, isa=("avx2", "fma"), cold_by="flush",
    ),
)  # fmt: skip
BURSTS_AT_MOST = 8


@pytest.mark.parametrize("slot", [H200, CPU], ids=lambda slot: slot.backend)
@pytest.mark.parametrize(("experiment", "most"), [("quick", 60), ("standard", 300)])
def test_an_experiment_stays_under_its_limit(experiment: str, most: int, slot: DeviceSlot) -> None:
    config = compose([f"experiment={experiment}"])
    cases = plan(config, [slot], ())
    assert config.max_cases == most
    assert 20 <= len(cases) <= most
    assert sum(case.case.regime.load == "burst" for case in cases) <= BURSTS_AT_MOST
    assert len({case.case.key for case in cases}) == len(cases)


def test_more_cases_than_the_limit_are_refused_with_the_remedy() -> None:
    config = compose(["experiment=quick", "jobs.gemm.models=[llama-3-8b]"])
    with pytest.raises(
        UsageError,
        match=r"for one device \(5 of calibration\), above max_cases=60; shorten .*jobs.gemm.formats, .*, or write "
        r"max_cases=\d+, or null for no",
    ):
        plan(config, [H200], ())


def test_the_limit_counts_for_each_device_not_for_the_node() -> None:
    eight = [H200._replace(slot=slot) for slot in range(8)]
    assert len(plan(compose(["device=all"]), eight, ())) == 8 * len(plan(compose([]), [H200], ()))


def test_quick_asks_every_format_of_a_large_accelerator_and_fills_it() -> None:
    cases = plan(compose([]), [H200], ())
    formats = {case.case.workload.format for case in cases if case.case.workload.job == "gemm"}
    assert formats == {"fp64", "fp32", "tf32", "bf16", "fp16", "int8", "fp8_e4m3"}
    assert max(case.work.flops for case in cases) == 2 * 8192**3


def test_quick_leaves_out_what_two_cores_would_take_minutes_for() -> None:
    config = compose([])
    cases = plan(config, [CPU], ())
    assert max(case.work.flops for case in cases) == 2 * 1024**3
    assert sum(case.predicted_s for case in cases) < 180


def test_thorough_is_bounded_by_time_and_covers_every_model() -> None:
    config = compose(["experiment=thorough"])
    assert config.max_cases is None
    assert config.max_time_s is not None
    per_format = Counter(case.case.workload.format for case in plan(config, [H200], ()))
    assert per_format["bf16"] > 200
