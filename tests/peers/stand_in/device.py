"""A scripted device that calls itself CUDA and counts its own cycles."""

from collections.abc import Mapping

from suite.backend import Channel
from suite.case import Case, Regime, Workload, items
from tests.fake.backend import FakeBackend, FakeTelemetry


class CountingTelemetry(FakeTelemetry):
    """Clock, power and energy of a window of two seconds."""

    def stop(self) -> Mapping[str, Channel]:
        return {
            **super().stop(),
            "device_clock": Channel("Hz", (0.0,), (self.CLOCK_HZ,)),
            "power": Channel("W", (0.0, 1.0, 2.0), (self.POWER_W,) * 3),
            "energy": Channel("J", (0.0, 2.0), (0.0, 2.02 * self.POWER_W)),
        }


class CudaStandIn(FakeBackend):
    """``FakeBackend`` under the name of the real one, so that the parts look for its peers."""

    def __init__(self, options: Mapping[str, object]) -> None:
        super().__init__({**options, "name": "cuda", "noise": 1e-5})

    def telemetry(self) -> CountingTelemetry:
        return CountingTelemetry(self._clock)


def gemm_case(side: int, cache: str = "warm") -> Case:
    """A product of two squares, as a peer's own process is told of it."""
    params = items({"m": side, "n": side, "k": side, "layout": "nt"})
    return Case(Workload("gemm", "bf16", params), "library", "cuda", Regime(cache, "sustained", "device"))  # type: ignore[arg-type]
