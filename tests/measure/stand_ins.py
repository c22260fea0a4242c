"""A kernel, sampler, telemetry and backend that follow a script, for testing the measuring room alone."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from suite.backend import Channel, DeviceInfo, Fact, Failure, Observed, Probe, Reference
from suite.case import Case
from suite.outcome import Evidence, Outcome


class ScriptedKernel:
    """An 8 x 8 output of ones; ``wrong_after_refill`` makes it go stale once new data is asked for."""

    execution = "native"

    def __init__(self, sets: int = 1, wrong_from_start: bool = False, wrong_after_refill: bool = False) -> None:
        self.sets = sets
        self.set_bytes = 3 * 8 * 8 * 8
        self.output_shape = (8, 8)
        self.expected = 1.0
        self.wrong_from_start, self.wrong_after_refill = wrong_from_start, wrong_after_refill
        self.out = [np.full((8, 8), np.nan) for _ in range(sets)]
        self.enqueued: list[int] = []
        self.closed = False

    def enqueue(self, set_index: int) -> None:
        self.enqueued.append(set_index)
        value = 1.0 if self.wrong_after_refill else self.expected
        self.out[set_index][:] = value * (2.0 if self.wrong_from_start else 1.0)

    def refill(self, seed: int) -> None:
        self.expected = 3.0

    def poison(self) -> None:
        for out in self.out:
            out[:] = np.nan

    def observe(self, probe: Probe) -> Observed:
        out = self.out[probe.set_index]
        unwritten = int(np.isnan(out).sum())
        return Observed((np.nan_to_num(out),), unwritten, 0, out.sum(axis=1))

    def reference(self, probe: Probe) -> Reference:
        ref = np.full((8, 8), self.expected)
        return Reference((ref,), ref.sum(axis=1))

    def describe(self) -> Mapping[str, Any]:
        return {"library": "scripted"}

    def close(self) -> None:
        self.closed = True


class ScriptedSampler:
    """Durations from ``duration_ns(i)``; each advances the clock it is given, and so do the ``flush_s`` before each."""

    method = "scripted"
    resolution_s = 1e-9

    def __init__(self, kernel: ScriptedKernel, duration_ns: Callable[[int], int], clock: "Clock", launches: int = 1) -> None:
        self.kernel, self.duration_ns, self.clock, self.launches = kernel, duration_ns, clock, launches
        self.details: Mapping[str, Any] = {"sets": kernel.sets}
        self.taken = 0
        self.calls: list[int] = []
        self.called_at_s: list[tuple[float, float]] = []
        self.flush_s = 0.0
        self.closed = False

    def sample(self, count: int) -> Sequence[int]:
        self.calls.append(count)
        out = [self.duration_ns(self.taken + i) for i in range(count)]
        self.taken += count
        began_s = self.clock.now_s
        self.clock.now_s += sum(out) * 1e-9 + count * self.flush_s
        self.called_at_s.append((began_s, self.clock.now_s))
        return out

    def replay(self) -> None:
        for index in range(self.kernel.sets):
            self.kernel.enqueue(index)

    def close(self) -> None:
        self.closed = True


class CountedSampler(ScriptedSampler):
    """A sampler over whose samples a device's clock is counted: kHz by index."""

    def __init__(self, *given: Any, clock_khz: Callable[[int], int]) -> None:
        super().__init__(*given)
        self.clock_khz = clock_khz

    def clocks_khz(self) -> Sequence[int]:
        count = self.calls[-1]
        return [self.clock_khz(index) for index in range(self.taken - count, self.taken)]


class Clock:
    """A clock that only moves when told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


class ScriptedTelemetry:
    """Clock and power as functions of time; ``others`` is how many foreign processes it sees.

    A window takes ``opening_s`` to open, as where a counter is read first.  The channel ``now`` holds at each mark the
    clock's own time, the channel ``energy`` one joule a second.
    """

    def __init__(self, clock: Clock, sm_clock: Callable[[float], float | None], others: int | None = 0) -> None:
        self.clock, self.sm_clock, self.others = clock, sm_clock, others
        self.windows = 0
        self.marks = 0
        self.opening_s = 0.0
        self.opened_s = 0.0
        self.marked_s: list[float] = []
        self.windows_s: list[float] = []

    def start(self) -> None:
        self.windows += 1
        self.clock.now_s += self.opening_s
        self.opened_s = self.clock.now_s
        self.marked_s = []

    def mark(self) -> None:
        self.marks += 1
        self.marked_s.append(self.clock.now_s)

    def stop(self) -> Mapping[str, Channel]:
        self.windows_s.append(window_s := self.clock.now_s - self.opened_s)
        return {
            "power": Channel("W", (0.0,), (100.0,)),
            "now": Channel("s", tuple(at_s - self.opened_s for at_s in self.marked_s), tuple(self.marked_s)),
            "energy": Channel("J", (0.0, window_s), (0.0, window_s)),
        }

    def now(self, channel: str) -> float | None:
        return self.sm_clock(self.clock.now_s) if channel == "sm_clock" else None

    def other_processes(self) -> int | None:
        return self.others


class ScriptedBackend:
    """Hands out the parts it was made with."""

    name = "scripted"
    evidence = Evidence.SIMULATED

    def __init__(
        self, kernel: ScriptedKernel, sampler: ScriptedSampler, telemetry: ScriptedTelemetry, refuses: str | None = None
    ):
        self.parts = (kernel, sampler, telemetry)
        self.refuses = refuses

    def devices(self) -> Sequence[DeviceInfo]:
        return [DeviceInfo("scripted", 0, "scripted device", "0" * 16, 2**30)]

    def select(self, index: int) -> DeviceInfo:
        return self.devices()[index]

    def environment(self) -> Mapping[str, Fact]:
        return {}

    def supports(self, case: Case) -> str | None:
        return self.refuses

    def prepare(self, case: Case, sets: int, seed: int) -> ScriptedKernel:
        return self.parts[0]

    def sampler(self, kernel: Any, case: Case, sample_s: float) -> ScriptedSampler:
        return self.parts[1]

    def telemetry(self) -> ScriptedTelemetry:
        return self.parts[2]

    def memory_free(self) -> int:
        return 2**30

    def peak_memory_bytes(self) -> int | None:
        return 4096

    def synchronize(self) -> None:
        pass

    def classify(self, error: BaseException) -> Failure:
        return Failure(Outcome.ERROR, str(error), fatal=False)
