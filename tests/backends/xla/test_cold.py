"""A rotation that stays in the cache is not called cold (tritonbench 519): XLA on a GPU has no flush to fall back on.

A plan allocates at most 4,096 sets: of a 64-cubed bf16 product they are 96 MiB, under the 180 MiB that three caches of an
H200 ask for.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from backends.jax import kernel as kernels
from backends.jax.kernel import XlaKernel
from backends.jax.program import compile_loop
from backends.jax.slope import QueueTurns
from backends.jax.target import Target
from backends.xla import XlaBackend
from suite.backend import DeviceInfo
from suite.measure.spine import Order, Trial
from suite.outcome import Outcome
from suite.settings import MeasureSettings
from suite.telemetry import NoTelemetry
from tests.backends.cases import COLD, calibration_case, gemm_case, tolerance_of


class OnAGpu(XlaBackend):
    """JAX's CPU under the facts of a GPU with a last-level cache of 60 MiB."""

    llc_bytes = 60 * 2**20

    def _describe(self, index: int, device: Any) -> DeviceInfo:
        return DeviceInfo("xla", index, "NVIDIA H200", "u" * 16, 2**37, llc_bytes=self.llc_bytes)

    def telemetry(self) -> NoTelemetry:
        return NoTelemetry("none")


def test_a_rotation_that_fits_in_the_cache_is_refused() -> None:
    backend = OnAGpu({"platform": "cpu"})
    backend.select(0)
    backend._target = Target("cuda", (9, 0))
    case = gemm_case("bf16", 64, 64, 64, backend="xla", regime=COLD)
    trial = Trial(backend, case, Order(40, tolerance_of(case), 5, 1), MeasureSettings(), lambda phase: None)
    with pytest.raises(NotImplementedError, match="40 input sets of 24576 bytes fit in 3 caches of 62914560") as refused:
        trial.prepare()
    assert backend.classify(refused.value).outcome is Outcome.UNSUPPORTED


SETS = 3


@pytest.fixture
def rotating(monkeypatch: pytest.MonkeyPatch) -> OnAGpu:
    """A cache that three small sets overflow."""
    backend = OnAGpu({"platform": "cpu"})
    backend.llc_bytes = 4096
    backend.select(0)
    backend._target = Target("cuda", (9, 0))
    monkeypatch.setattr(QueueTurns, "host_share", lambda turns, count: 0.1)
    return backend


def test_sets_rotate_inside_one_program_that_copies_none_of_them(rotating: OnAGpu) -> None:
    """Every set's product stands in a turn, in buffers that the program takes over and hands back."""
    case = gemm_case("fp32", 64, 64, 64, backend="xla", regime=COLD)
    kernel = rotating.prepare(case, SETS, 3)
    assert isinstance(kernel, XlaKernel)
    sampler = rotating.sampler(kernel, case, 1e-4)
    assert (sampler.method, sampler.details["sets"]) == ("loop", SETS)
    assert sampler.details["products_in_a_turn"] == SETS * sampler.details["rotations_in_a_turn"]
    loop = kernel.loop(4)
    assert (loop.audit.copied_bytes, loop.audit.doubled, loop.audit.hoisted) == (0, "", ())


def test_a_rotation_that_adds_copies_is_not_the_one_that_is_timed(rotating: OnAGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls rotate over the sets in its place, and the samples say why."""

    def copying(compute: Any, operands: Any, *more: Any) -> Any:
        return compile_loop(lambda *given: jnp.asarray(np.asarray(operands[0][0])), operands, *more)

    monkeypatch.setattr(kernels, "compile_loop", copying)
    case = calibration_case("triad", 3 * 4 * 64 * 64, backend="xla", regime=COLD)
    sampler = rotating.sampler(rotating.prepare(case, SETS, 3), case, 1e-4)
    assert sampler.method == "queue"
    assert "XLA copies" in sampler.details["why_queue"]
    assert "bytes in every turn of the loop" in sampler.details["why_queue"]
    assert sampler.launches == SETS * sampler.details["turns"]
