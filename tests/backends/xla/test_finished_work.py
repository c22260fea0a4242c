"""JAX returns before the work is done: a sample ends when it is, in every way to take one.

Without a wait inside the timed part, milliseconds of work read as microseconds (coreax#470, jaxsim#344), and
every batch size takes the same time (transformers#5441).
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import pytest

from backends.jax.flush import Flush
from backends.jax.kernel import XlaKernel
from backends.jax.program import Loop
from backends.jax.slope import LoopTurns, QueueTurns, SlopeSampler
from backends.xla import XlaBackend
from suite.backend import Sampler
from suite.case import Regime
from tests.backends.cases import CALL, COLD, WARM, gemm_case

LAUNCH_NS = 1_000_000
FLUSH_NS = 400_000_000
PROGRAM_NS = 50_000


@pytest.fixture(scope="module")
def backend() -> XlaBackend:
    made = XlaBackend({"platform": "cpu"})
    made.select(0)
    made.__dict__["_flush"] = Flush(1 << 20)  # nothing here asks whether it empties a cache, and a large one takes long
    return made


class Device:
    """A device beside a clock: work that is asked for passes on the clock only once somebody waits for it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now_ns = self.queued_ns = 0
        enqueue, run, flush, wait = XlaKernel.enqueue, XlaKernel.run, Flush.__call__, jax.block_until_ready

        def waits(result: Any) -> Any:
            self.now_ns += self.queued_ns
            self.queued_ns = 0
            return wait(result)

        patch.setattr(XlaKernel, "enqueue", lambda kernel, index: (self.queue(LAUNCH_NS), enqueue(kernel, index))[1])
        patch.setattr(
            XlaKernel,
            "run",
            lambda kernel, loop, turn=1: (self.queue(self.lasts(kernel, loop, turn)), run(kernel, loop, turn))[1],
        )
        patch.setattr(Flush, "__call__", lambda each: (self.queue(FLUSH_NS), flush(each))[1])
        patch.setattr(jax, "block_until_ready", waits)
        patch.setattr(time, "perf_counter_ns", self.read)
        patch.setattr(time, "perf_counter", lambda: self.read() / 1e9)

    def queue(self, lasts_ns: int) -> None:
        self.queued_ns += lasts_ns

    def read(self) -> int:
        self.now_ns += 1  # a clock that stood still would have no resolution
        return self.now_ns

    @staticmethod
    def lasts(kernel: XlaKernel, loop: Loop, rotations: int) -> int:
        return PROGRAM_NS + loop.turns * rotations * kernel.sets * LAUNCH_NS


def in_regime(regime: Regime) -> Callable[[XlaBackend, XlaKernel], Sampler]:
    case = gemm_case("fp32", 32, 32, 32, backend="xla", regime=regime)
    return lambda backend, kernel: backend.sampler(kernel, case, 0.004)


def by_slope(turns: Callable[[XlaKernel], Any]) -> Callable[[XlaBackend, XlaKernel], Sampler]:
    return lambda backend, kernel: SlopeSampler(turns(kernel), kernel.sets, 0.004, 1e-9)


SAMPLERS = {
    **{regime.label: in_regime(regime) for regime in (COLD, WARM, CALL)},
    "loop": by_slope(LoopTurns),
    "queue": by_slope(lambda kernel: QueueTurns(kernel, "tried")),
}


@pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)
def test_a_sample_holds_all_of_its_launches_and_nothing_else(
    backend: XlaBackend, monkeypatch: pytest.MonkeyPatch, make: Callable[[XlaBackend, XlaKernel], Sampler]
) -> None:
    """What a flush or a program's start costs is waited for too, and is in no sample."""
    kernel = backend.prepare(gemm_case("fp32", 32, 32, 32, backend="xla"), 1, seed=3)
    assert isinstance(kernel, XlaKernel)
    Device(monkeypatch)
    sampler = make(backend, kernel)
    assert sampler.sample(4) == pytest.approx([sampler.launches * LAUNCH_NS] * 4, abs=2)


@pytest.mark.parametrize("regime", [COLD, WARM, CALL], ids=lambda regime: regime.label)
def test_times_grow_with_the_work(backend: XlaBackend, regime: Regime) -> None:
    def per_launch_ns(size: int) -> float:
        case = gemm_case("fp32", size, size, size, backend="xla", regime=regime)
        sampler = backend.sampler(backend.prepare(case, 1, seed=3), case, sample_s=0.002)
        return min(sampler.sample(20)) / sampler.launches

    assert per_launch_ns(1024) > 3 * per_launch_ns(64)  # 4,096 times the work: other load cannot hide it
