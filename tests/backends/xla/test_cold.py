"""A rotation that stays in the cache is not called cold (tritonbench 519): XLA on a GPU has no flush to fall back on.

A plan allocates at most 4,096 sets: of a 64-cubed bf16 product they are 96 MiB, under the 180 MiB that three caches of an
H200 ask for.
"""

from typing import Any

import pytest

from backends.jax.target import Target
from backends.xla import XlaBackend
from suite.backend import DeviceInfo
from suite.measure.spine import Order, Trial
from suite.outcome import Outcome
from suite.settings import MeasureSettings
from suite.telemetry import NoTelemetry
from tests.backends.cases import COLD, gemm_case, tolerance_of


class OnAGpu(XlaBackend):
    """JAX's CPU under the facts of a GPU with a last-level cache of 60 MiB."""

    def _describe(self, index: int, device: Any) -> DeviceInfo:
        return DeviceInfo("xla", index, "NVIDIA H200", "u" * 16, 2**37, llc_bytes=60 * 2**20)

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
