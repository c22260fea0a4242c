"""XLA on an NVIDIA GPU: what it multiplies, how it is timed, and that it is the same chip as torch's."""

from statistics import median
from typing import Any

import pytest

from backends.cuda import CudaBackend
from backends.jax.kernel import XlaKernel
from backends.xla import XlaBackend
from suite.errors import DeviceNotFound
from suite.measure.spine import Order, Trial
from suite.outcome import Outcome
from suite.settings import MeasureSettings
from tests.backends.cases import CALL, COLD, EVERY_FORMAT, WARM, calibration_case, fresh_verdict, gemm_case, tolerance_of
from tests.backends.cuda.helpers import NEEDS_DEVICE

pytestmark = NEEDS_DEVICE
SHORT = MeasureSettings(min_time_s=0.05, max_time_s=1.0, steady_timeout_s=0.5, steady_window_s=0.1)


@pytest.fixture(scope="module")
def backend() -> XlaBackend:
    made = XlaBackend({"platform": "cuda"})
    try:
        made.select(0)
    except DeviceNotFound as error:
        pytest.skip(str(error))
    return made


def on_xla(format_name: str, size: int, **given: Any) -> Any:
    return gemm_case(format_name, size, size, size, backend="xla", **given)


def prepared(backend: XlaBackend, case: Any, sets: int = 1) -> XlaKernel:
    kernel = backend.prepare(case, sets, seed=3)
    assert isinstance(kernel, XlaKernel)
    return kernel


def per_launch_s(sampler: Any) -> float:
    sampler.sample(3)
    return float(median(sampler.sample(20))) / sampler.launches / 1e9


def test_it_is_the_chip_that_torch_sees(backend: XlaBackend) -> None:
    ours, theirs = backend.devices()[0], CudaBackend().devices()[0]
    for name in ("name", "uid", "memory_bytes", "architecture", "visible_units", "llc_bytes", "pci_bus_id", "cold_by"):
        assert getattr(ours, name) == getattr(theirs, name), name


@pytest.mark.parametrize("format_name", EVERY_FORMAT)
def test_every_format_is_native_and_right(backend: XlaBackend, format_name: str) -> None:
    case = on_xla(format_name, 512)
    kernel = prepared(backend, case)
    assert kernel.execution == "native", kernel.describe()
    assert fresh_verdict(kernel, case, seed=5).passed


@pytest.mark.alone
@pytest.mark.parametrize("regime", [WARM, COLD], ids=lambda regime: regime.label)
def test_a_large_product_is_timed_by_a_loop_that_torch_agrees_with(backend: XlaBackend, regime: Any) -> None:
    """Both may choose another kernel: within a third of each other, not a launch or a copy apart."""
    case = on_xla("bf16", 4096, regime=regime)
    sampler = backend.sampler(prepared(backend, case, 3), case, 0.002)
    assert sampler.method == "loop", dict(sampler.details)
    torch_case = gemm_case("bf16", 4096, 4096, 4096, backend="cuda", regime=regime)
    cuda = CudaBackend()
    cuda.select(0)
    other = cuda.sampler(cuda.prepare(torch_case, 3, 1), torch_case, 0.002)
    assert per_launch_s(sampler) == pytest.approx(per_launch_s(other), rel=0.33)


@pytest.mark.alone
def test_launches_of_a_few_microseconds_are_not_the_hosts(backend: XlaBackend) -> None:
    """A single call costs the host over 10 us; a launch inside a program far less."""
    case = on_xla("bf16", 512, regime=WARM)
    kernel = prepared(backend, case)
    device_s = per_launch_s(backend.sampler(kernel, case, 0.002))
    call_s = per_launch_s(backend.sampler(kernel, on_xla("bf16", 512, regime=CALL), 0.002))
    print(f"512: {device_s * 1e6:.2f} us in a loop, {call_s * 1e6:.2f} us a call")
    assert device_s < 0.6 * call_s


@pytest.mark.alone
@pytest.mark.parametrize(
    "case", [on_xla("fp8_e4m3", 2048, regime=WARM), calibration_case("empty", 0, backend="xla", regime=WARM)]
)
def test_the_measuring_spine_takes_it(backend: XlaBackend, case: Any) -> None:
    trial = Trial(backend, case, Order(1, tolerance_of(case), 5, 1), SHORT, lambda phase: None)
    assert trial.prepare() is None
    trial.measure(0)
    measurement = trial.finish()
    trial.close()
    assert measurement.outcome is Outcome.OK, measurement.reason
    assert measurement.telemetry["power"].values, measurement.telemetry["power"].unavailable


def test_memory_that_runs_out_is_told_as_such(backend: XlaBackend) -> None:
    case = calibration_case("copy", 4 * backend.devices()[0].memory_bytes, backend="xla")
    with pytest.raises(Exception, match=r".") as lost:  # JAX's own kind of error
        prepared(backend, case)
    assert backend.classify(lost.value).outcome is Outcome.OUT_OF_MEMORY, lost.value
