"""A launch that does nothing while its inputs are the ones it has already seen (gpu-mode/reference-kernels 104).

A kernel that keeps an answer for ever is caught after timing, on fresh data.  One that notices the fresh data (a cache by
the inputs' version, as of prepacked or quantised weights) computes for that check and is idle in every timed launch.
"""

from collections.abc import Sequence

from backends.cpu import CpuBackend
from backends.torch import jobs
from backends.torch.kernel import InputSet, TorchKernel
from suite.case import Case
from suite.measure.spine import Order, Trial
from suite.outcome import Outcome
from suite.settings import MeasureSettings
from tests.backends.cases import WARM, gemm_case, tolerance_of
from tests.backends.planted_bugs import BuggyKernel


def only_new_data(kernel: TorchKernel) -> BuggyKernel:
    """Launches once for each version of a set's inputs; the output stands in its buffer already, so nothing is copied."""
    seen: dict[int, Sequence[int]] = {}

    def versions(each: InputSet) -> Sequence[int]:
        return [operand.data._version for operand in each.operands]

    def launch(real: TorchKernel, set_index: int) -> None:
        now = versions(real.input_sets[set_index])
        if seen.get(set_index) != now:
            real.enqueue(set_index)
            seen[set_index] = now

    return BuggyKernel(kernel, launch)


class Caching(CpuBackend):
    def prepare(self, case: Case, sets: int, seed: int) -> BuggyKernel:  # type: ignore[override]
        return only_new_data(jobs.prepare(case, self._selected(), sets, seed))


def test_a_kernel_that_is_idle_in_the_timed_launches_is_refused() -> None:
    backend = Caching({"threads": 1})
    backend.select(0)
    case = gemm_case("fp32", 512, 512, 512, regime=WARM)
    settings = MeasureSettings(min_time_s=0.01, max_time_s=0.2, steady_timeout_s=0.05, steady_window_s=0.02)
    trial = Trial(backend, case, Order(1, tolerance_of(case), 5, 1), settings, lambda phase: None)
    assert trial.prepare() is None
    trial.measure(0)
    ended = trial.finish()
    assert ended.outcome is Outcome.INCORRECT
    assert ended.reason.startswith("after timing, on the data that was timed")
    assert ended.samples is None
