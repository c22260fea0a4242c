"""The contracts between the benchmark and the machines it measures.

``suite`` owns policy (what to run, how long, when to stop, whether to believe it); a backend owns the
mechanism (memory, launches, clocks).  Nothing here imports a framework.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

from suite.case import Case
from suite.outcome import Evidence, Outcome

if TYPE_CHECKING:  # plan and the command line load this file, and numpy costs them a tenth of a second
    import numpy as np
    from numpy.typing import NDArray


class Fact(NamedTuple):
    """One field of a system description: its value and how it is known.

    ``status`` is ``measured`` (read from the machine), ``declared`` (from a spec sheet or the user) or
    ``unavailable``; an unavailable fact has value ``None`` and says why in ``reason``.
    """

    value: str | int | float | bool | None
    status: str
    reason: str = ""

    @classmethod
    def measured(cls, value: str | int | float | bool) -> Fact:
        return cls(value, "measured")

    @classmethod
    def unavailable(cls, reason: str) -> Fact:
        return cls(None, "unavailable", reason)


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """One device as its runtime reports it.  ``None`` means that the runtime does not say; nothing is filled in.

    ``name`` is the exact runtime string, matched against the hardware table.  ``uid`` is a stable hash of the
    device's UUID (or of host and index where it has none), so that results of one chip are recognised without
    publishing its serial.  ``partition`` is set when the device is a part of an accelerator (``MIG 1g.18gb``, ``CPX``,
    ``GCD``); ``visible_units`` then counts the part's units.  ``cold_by`` is how this backend makes the cache cold:
    ``rotation`` over input sets that together exceed it, or ``flush`` between launches.  ``places`` is at how many places in
    memory this backend measures a case where where its buffers lie shows in its time.
    """

    backend: str
    index: int
    name: str
    uid: str
    memory_bytes: int
    architecture: str | None = None
    visible_units: int | None = None
    max_clock_hz: float | None = None
    max_memory_clock_hz: float | None = None
    llc_bytes: int | None = None
    power_limit_w: float | None = None
    pci_bus_id: str | None = None
    driver: str | None = None
    partition: str | None = None
    isa: tuple[str, ...] = ()
    details: dict[str, str] = field(default_factory=dict)
    cold_by: str = "rotation"
    places: int = 1

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{**data, "isa": tuple(data.get("isa", ()))})


# Of fewer elements a check asks how large they are meant to be: by chance all of them may be near 0.
FEW_ELEMENTS = 64


class Probe(NamedTuple):
    """What a check looks at: one input set, and tiles of its output given as (row, column, rows, columns)."""

    set_index: int
    tiles: tuple[tuple[int, int, int, int], ...]
    seed: int


class Observed(NamedTuple):
    """An output as it stands on the device, reduced to what a check needs.

    ``tiles`` are float64 copies of the probed tiles; ``unwritten`` counts elements that still hold the poison,
    ``nonfinite`` those that are NaN or infinite (both over the whole output); ``projection`` is the output times
    a random +-1 vector drawn from the probe's seed, one value a row, accumulated in float64: it sees every element, so that a
    wrong tile outside the sampled ones still shows.  A kernel without rows leaves it empty.
    """

    tiles: tuple[NDArray[np.float64], ...]
    unwritten: int
    nonfinite: int
    projection: NDArray[np.float64]


class Reference(NamedTuple):
    """The same tiles and projection from a higher-precision computation on the same inputs.

    ``row_norms`` are given where rows differ much in size: what each row's projection is meant to be over all random vectors,
    root mean square.  ``expected_size`` is given of outputs of fewer than ``FEW_ELEMENTS``: the root mean square of an element,
    over all signs that the terms of its sum could have.
    """

    tiles: tuple[NDArray[np.float64], ...]
    projection: NDArray[np.float64]
    row_norms: NDArray[np.float64] | None = None
    expected_size: float = 0.0


class Kernel(Protocol):
    """A case made ready: buffers allocated and filled, code compiled, nothing launched yet."""

    execution: str  # "native" or "emulated"
    sets: int

    @property
    def set_bytes(self) -> int:
        """Bytes that one launch touches, operands and output: what must be displaced from a cache for the next to be cold."""
        ...

    @property
    def output_shape(self) -> tuple[int, int]:
        """Rows and columns of one set's output, for choosing tiles."""
        ...

    def enqueue(self, set_index: int) -> None:
        """Launch once on one rotating input set; asynchronous where the device is."""
        ...

    def refill(self, seed: int) -> None:
        """Write fresh data of the case's distribution into every set's existing input buffers."""
        ...

    def poison(self) -> None:
        """Overwrite every set's output with a value that no correct result holds."""
        ...

    def observe(self, probe: Probe) -> Observed:
        """Read back what the check needs; waits for the device."""
        ...

    def reference(self, probe: Probe) -> Reference:
        """Compute what ``observe`` should have seen, in float64 unless ``describe`` says otherwise."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Library and kernel names, math mode, autotune choice and cost, tiles: JSON values only."""
        ...

    def close(self) -> None:
        """Free the buffers."""
        ...


class Sampler(Protocol):
    """Times one kernel in one cache and dispatch regime, by whatever is honest on this backend."""

    method: str  # "graph", "events", "spin", "host", "loop": stored with the samples
    launches: int  # launches in one sample
    resolution_s: float  # the timer's resolution: the noise floor of one sample
    details: Mapping[str, Any]  # sets, flush bytes, graph nodes: what a reader needs to repeat it

    def sample(self, count: int) -> Sequence[int]:
        """Take ``count`` samples back to back and return each one's duration in nanoseconds.

        A sample covers ``launches`` launches; flushes and refills between launches are outside it.
        """
        ...

    def replay(self) -> None:
        """Run every input set once through the path that is timed, and wait: for the check after timing."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Counting(Protocol):
    """A sampler that has the device count its own clock around each sample."""

    def clocks_khz(self) -> Sequence[int]:
        """The clock over each sample of the latest call of ``sample``, in its order; empty where one was not counted."""
        ...


class Channel(NamedTuple):
    """One telemetry series: seconds since the window's start against values in ``unit``; or why there is none."""

    unit: str
    times_s: tuple[float, ...]
    values: tuple[float, ...]
    unavailable: str = ""


class Telemetry(Protocol):
    """Reads the device's state off the launching thread."""

    def start(self) -> None:
        """Begin a window."""
        ...

    def mark(self) -> None:
        """Read the device's own clock in order with the work enqueued: odd marks open a stretch of work, even ones close it."""
        ...

    def stop(self) -> Mapping[str, Channel]:
        """End the window and return the channels of ``suite.telemetry``; one that is not offered says why.

        ``throttle.<reason>`` channels hold 1 where a reading named the reason, else 0.
        """
        ...

    def now(self, channel: str) -> float | None:
        """The latest reading of one channel, for the steady-state detector; ``None`` where it is not offered."""
        ...

    def other_processes(self) -> int | None:
        """Processes on this device that do not belong to this run; ``None`` where that cannot be told."""
        ...


@runtime_checkable
class Spanning(Protocol):
    """Telemetry that finds others by what they use meanwhile, and not in a list: that takes time."""

    others_span_s: float  # of windows, from the first one's start, before ``other_processes`` can tell; 0: at once


class Failure(NamedTuple):
    """What an exception means: the outcome it stands for, a one-line reason, and whether this process can go on."""

    outcome: Outcome
    reason: str
    fatal: bool


class Backend(Protocol):
    """One runtime (CUDA, ROCm, XLA, CPU).  Loaded inside worker processes only."""

    name: str
    evidence: Evidence

    def devices(self) -> Sequence[DeviceInfo]:
        """Every device this runtime offers, in its own order; empty when there is none."""
        ...

    def select(self, index: int) -> DeviceInfo:
        """Bind this process to one device, before anything else is asked of it."""
        ...

    def environment(self) -> Mapping[str, Fact]:
        """Versions of the framework and libraries as loaded, and the device's own settings (ECC, MIG, power cap)."""
        ...

    def supports(self, case: Case) -> str | None:
        """``None`` when the case can run here, else the reason why not."""
        ...

    def prepare(self, case: Case, sets: int, seed: int) -> Kernel:
        """Allocate ``sets`` input sets, fill them from ``seed``, and compile."""
        ...

    def sampler(self, kernel: Kernel, case: Case, sample_s: float) -> Sampler:
        """Make the sampler for the case's regime; a sample should last about ``sample_s`` seconds or one launch."""
        ...

    def telemetry(self) -> Telemetry: ...

    def memory_free(self) -> int:
        """Bytes that can still be allocated on the selected device."""
        ...

    def peak_memory_bytes(self) -> int | None:
        """Most device memory held since the last call; ``None`` where that is not counted."""
        ...

    def synchronize(self) -> None:
        """Wait until everything enqueued has finished."""
        ...

    def classify(self, error: BaseException) -> Failure:
        """Say what an exception raised by this backend means."""
        ...
