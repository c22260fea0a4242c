"""A scripted-clock backend: kernels advance a virtual clock instead of running, so that nothing waits for a device.

Its numbers follow from the options alone: ``flop_s`` (by format), ``bytes_s``, ``launch_s``, ``noise`` and the seed.  What
it yields is evidence ``simulated``.  ``faults`` (see ``faults.py``) plants what can go wrong in cases, ``start`` what can
go wrong when the worker starts, ``select`` the same by device index; ``struck`` spares every implementation but one;
``sleep_s`` makes a case take real time.  Behind ``let_through`` cases the next waits until the file ``gate`` is there, where
one is named, and takes ``held_s`` of real time: what a test does meanwhile it does in mid-run, however slow the host.
"""

import os
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suite.backend import Channel, DeviceInfo, Fact, Failure, Observed, Probe, Reference
from suite.case import Case
from suite.jobs.registry import find
from suite.outcome import Evidence, Outcome
from tests.fake.faults import NO_FAULT, FakeFatal, FakeOutOfMemory, Fault, fault_of, parse, strike

FLOP_S = {"fp64": 50e12, "fp32": 60e12, "tf32": 400e12, "bf16": 800e12, "fp16": 800e12, "int8": 1600e12, "fp8_e4m3": 1600e12}
NAME = "Simulated Accelerator"


class Clock:
    """The device's time, in nanoseconds; only launches move it."""

    def __init__(self) -> None:
        self.now_ns = 0


class FakeBackend:
    """See the module.  ``options``: ``devices`` (how many), ``device`` (fields of ``DeviceInfo`` to change), and the above."""

    evidence = Evidence.SIMULATED

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.name: str = options.get("name", "fake")
        self._options = options
        self._clock = Clock()
        self._alive = 0
        self._prepared = 0
        if options.get("start"):
            strike(parse(options["start"]), "compile")

    def devices(self) -> Sequence[DeviceInfo]:
        return [self._device(index) for index in range(self._options.get("devices", 1))]

    def select(self, index: int) -> DeviceInfo:
        fault = self._options.get("select", {}).get(str(index))
        if fault:
            strike(parse(fault), "compile")
        return self.devices()[index]

    def environment(self) -> Mapping[str, Fact]:
        return {"fake": Fact.measured("1.0"), "library": Fact.unavailable("simulated")}

    def supports(self, case: Case) -> str | None:
        return "planted: unsupported" if self._fault(case).kind == "unsupported" else None

    def prepare(self, case: Case, sets: int, seed: int) -> "FakeKernel":
        time.sleep(self._options.get("sleep_s", 0.0))
        self._hold_up()
        fault = self._fault(case)
        strike(fault, "compile")
        if fault.kind == "oom_in_company" and self._alive:
            raise FakeOutOfMemory("no room beside the others")
        self._alive += 1
        return FakeKernel(self, case, sets, seed, fault)

    def _hold_up(self) -> None:
        self._prepared += 1
        if self._prepared <= self._options.get("let_through", self._prepared):
            return
        while "gate" in self._options and not Path(self._options["gate"]).exists():
            time.sleep(0.01)
        if self._prepared == self._options["let_through"] + 1:
            time.sleep(self._options.get("held_s", 0.0))

    def sampler(self, kernel: "FakeKernel", case: Case, sample_s: float) -> "FakeSampler":
        return FakeSampler(kernel, self._clock, self._launch_s(case), self._options.get("noise", 0.001))

    def telemetry(self) -> "FakeTelemetry":
        return FakeTelemetry(self._clock)

    def memory_free(self) -> int:
        return 60 * 2**30

    def peak_memory_bytes(self) -> int | None:
        return None

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    def classify(self, error: BaseException) -> Failure:
        reason = str(error).partition("\n")[0]
        if isinstance(error, FakeOutOfMemory):
            return Failure(Outcome.OUT_OF_MEMORY, reason, fatal=False)
        if isinstance(error, FakeFatal):
            return Failure(Outcome.CRASHED, reason, fatal=True)
        return Failure(Outcome.ERROR, f"{type(error).__name__}: {reason}", fatal=False)

    def released(self) -> None:
        self._alive -= 1

    def _fault(self, case: Case) -> Fault:
        if self._options.get("struck", case.implementation) != case.implementation:
            return NO_FAULT
        return fault_of(case, self._options.get("faults", {}))

    def _device(self, index: int) -> DeviceInfo:
        fields: dict[str, Any] = {
            "backend": self.name,
            "index": index,
            "name": NAME,
            "uid": f"simulated{index}",
            "memory_bytes": 64 * 2**30,
            "visible_units": 100,
            "max_clock_hz": 1.5e9,
            "llc_bytes": 32 * 2**20,
            "pci_bus_id": f"0000:{index + 1:02x}:00.0",
            "driver": "1.0",
        }
        return DeviceInfo(**{**fields, **self._options.get("device", {})})

    def _launch_s(self, case: Case) -> float:
        work = find(case.workload.job).work(case.workload)
        rate: float = self._options.get("flop_s", {}).get(case.workload.format, FLOP_S[case.workload.format])
        launch_s = self._options.get("launch_s", 2e-6) * (5 if case.regime.dispatch == "call" else 1)
        return float(max(work.flops / rate, work.compulsory_bytes / self._options.get("bytes_s", 4e12), launch_s))


class FakeKernel:
    """Outputs are a function of place and data seed; each set remembers which data its output was made from."""

    execution = "native"

    def __init__(self, backend: FakeBackend, case: Case, sets: int, seed: int, fault: Fault = NO_FAULT) -> None:
        self.sets = sets
        self.fault = fault
        self._backend = backend
        self._case = case
        self._seed = self._first_seed = seed
        self._made_from: list[int | None] = [None] * sets
        self.set_bytes = 1 << 20

    @property
    def output_shape(self) -> tuple[int, int]:
        params = dict(self._case.workload.params)
        return (int(params["m"]), int(params["n"])) if "m" in params else (1, 4096)

    def enqueue(self, set_index: int) -> None:
        self._made_from[set_index] = self._first_seed if self.fault.kind == "stale" else self._seed

    def refill(self, seed: int) -> None:
        self._seed = seed

    def poison(self) -> None:
        self._made_from = [None] * self.sets

    def observe(self, probe: Probe) -> Observed:
        strike(self.fault, "verify")
        rows, columns = self.output_shape
        made_from = self._made_from[probe.set_index]
        if made_from is None or self.fault.kind == "unwritten":
            return Observed((), rows * columns if made_from is None else 1, 0, np.zeros(rows))
        if self.fault.kind == "nan":
            return Observed((), 0, 1, np.zeros(rows))
        fresh = self._seed != self._first_seed
        bias = 1.0 if self.fault.kind == "wrong" or (self.fault.kind == "wrong_after" and fresh) else 0.0
        tiles = tuple(tile + bias for tile in _tiles(probe, made_from))
        return Observed(tiles, 0, 0, _projection(rows, probe, made_from) + bias)

    def reference(self, probe: Probe) -> Reference:
        return Reference(_tiles(probe, self._seed), _projection(self.output_shape[0], probe, self._seed))

    def describe(self) -> Mapping[str, Any]:
        return {"library": "fake", "kernel": f"fake_{self._case.workload.format}", "pid": os.getpid()}

    def close(self) -> None:
        self._backend.released()


class FakeSampler:
    """One launch a sample; durations are the scripted one with a seeded relative noise."""

    method = "scripted"
    launches = 1
    resolution_s = 1e-9
    details: Mapping[str, Any]

    def __init__(self, kernel: FakeKernel, clock: Clock, launch_s: float, noise: float) -> None:
        self._kernel, self._clock = kernel, clock
        self._launch_s, self._noise = launch_s, noise
        self._draw = random.Random(0)
        self.details = {"sets": kernel.sets}

    def sample(self, count: int) -> Sequence[int]:
        strike(self._kernel.fault, "measure")
        taken = [max(1, round(self._launch_s * 1e9 * (1 + self._noise * self._draw.gauss(0, 1)))) for _ in range(count)]
        self._clock.now_ns += sum(taken)
        return taken

    def replay(self) -> None:
        for index in range(self._kernel.sets):
            self._kernel.enqueue(index)

    def close(self) -> None:
        """It holds nothing."""


class FakeTelemetry:
    """A steady clock and power over the scripted time; no energy counter."""

    CLOCK_HZ = 1.4e9
    POWER_W = 500.0

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_ns = 0

    def start(self) -> None:
        self._began_ns = self._clock.now_ns

    def mark(self) -> None:
        """A scripted clock needs no reading."""

    def stop(self) -> Mapping[str, Channel]:
        ends_s = (self._clock.now_ns - self._began_ns) * 1e-9
        return {
            "sm_clock": Channel("Hz", (0.0, ends_s), (self.CLOCK_HZ, self.CLOCK_HZ)),
            "power": Channel("W", (0.0, ends_s), (self.POWER_W, self.POWER_W)),
            "energy": Channel("J", (), (), "simulated devices have no energy counter"),
        }

    def now(self, channel: str) -> float | None:
        return {"sm_clock": self.CLOCK_HZ, "power": self.POWER_W}.get(channel)

    def other_processes(self) -> int | None:
        return 0


def _tiles(probe: Probe, seed: int) -> tuple[NDArray[np.float64], ...]:
    def tile(row: int, column: int, rows: int, columns: int) -> NDArray[np.float64]:
        places = np.add.outer(np.arange(row, row + rows) * 12.9898, np.arange(column, column + columns) * 78.233)
        values: NDArray[np.float64] = np.sin(places + seed + 31 * probe.set_index)
        return values

    return tuple(tile(*place) for place in probe.tiles)


def _projection(rows: int, probe: Probe, seed: int) -> NDArray[np.float64]:
    return np.random.default_rng([probe.seed, seed, probe.set_index]).standard_normal(rows)
