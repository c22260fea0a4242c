"""Every setting of a run, as plain dataclasses: what the rest of the code sees once Hydra has composed it.

Fields named ``*_s`` are seconds, ``*_bytes`` bytes; fractions are 0 to 1.  Values are checked by ``check()``, which
raises ``UsageError`` naming the field, the value and the limit.
"""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from suite.errors import UsageError

# ``auto`` stands for the first of the others that finds a device.
OWN_BACKENDS = ("auto", "cpu", "cuda", "rocm", "xla")


class Limits(NamedTuple):
    """The smallest and the largest value that a setting may have."""

    least: float
    most: float


# Wide enough for every measurement that makes sense; what is outside would never end, or exhaust the memory.
LIMITS = {
    "target": Limits(1e-6, 0.999),
    "min_batches": Limits(1, 100_000),
    "min_time_s": Limits(1e-6, 3600),
    "max_time_s": Limits(1e-6, 3600),
    "sample_s": Limits(1e-6, 10),
    "cold_margin": Limits(1, 16),
    "interleave": Limits(1, 1000),
    "max_burst_cases": Limits(0, 1_000_000),
    "burst_windows": Limits(1, 1000),
    "burst_window_s": Limits(1e-6, 10),
    "burst_first_idle_s": Limits(0, 600),
    "burst_idle_s": Limits(0, 600),
    "steady_window_s": Limits(0.001, 60),  # shorter ones hold one sample of most launches, and two of those agree by chance
    "steady_tolerance": Limits(1e-6, 0.1),  # a load that moves by more between two windows is not steady
    "steady_timeout_s": Limits(0, 3600),
    "verify_tiles": Limits(1, 4096),
}
SEARCH_LIMITS = {
    "m": Limits(1, 2**31 - 1),
    "n": Limits(1, 2**31 - 1),
    "k": Limits(1, 2**31 - 1),
    "step": Limits(16, 2**31 - 1),
    "budget_s": Limits(0.001, 86400),
    "warm_up_s": Limits(0, 3600),
    "finalists": Limits(1, 64),
}
LARGEST_GRID = 1_000_000  # shapes: the model looks at each before any is launched
DEADLINE_LIMITS = dict.fromkeys(("start_s", "compile_s", "verify_s", "measure_s"), Limits(0.001, 7 * 86400))


@dataclass
class DeadlineSettings:
    """How long each phase of a case may take before its worker is killed and the case recorded as ``timeout``."""

    start_s: float = 120.0
    compile_s: float = 300.0
    verify_s: float = 120.0
    measure_s: float = 120.0


@dataclass
class MeasureSettings:
    """How cases are measured.

    ``target`` is the relative half-width of the 95 % interval of the median at which sampling stops; it never stops
    before ``min_batches`` and ``min_time_s``, and always at ``max_time_s``.  A sample lasts about ``sample_s`` or one
    launch.  ``interleave`` > 1 prepares the cases of one workload together and measures them in that many alternating
    rounds, each of which lasts ``min_time_s`` by its samples' own durations and at most ``max_time_s`` by the clock.
    ``energy`` makes each sustained window, and each of those rounds, as long as an energy counter needs (2.1 s), whatever
    ``max_time_s`` says; bursts stay short, and where there is no counter the windows are only longer.
    ``cold_margin`` multiplies the bytes of rotating inputs that displace the cache between two uses of a set; displacing
    twice as much must change no number, which the selftest tries by doubling this and the backends' ``flush_factor``.
    ``regimes`` is ``standard`` (cold + device + sustained for each workload, burst and warm beside it where they
    tell something) or a list of ``cache/load/dispatch`` labels.  ``max_burst_cases`` bounds how many workloads get a burst
    case beside the sustained one.
    """

    target: float = 0.005
    min_batches: int = 20
    min_time_s: float = 0.1
    max_time_s: float = 10.0
    sample_s: float = 0.002
    cold_margin: float = 1.0
    interleave: int = 1
    regimes: list[str] = field(default_factory=lambda: ["standard"])
    max_burst_cases: int = 8
    burst_windows: int = 5
    burst_window_s: float = 0.02
    burst_first_idle_s: float = 5.0
    burst_idle_s: float = 1.0
    steady_window_s: float = 0.5
    steady_tolerance: float = 0.01
    steady_timeout_s: float = 10.0
    verify_tiles: int = 4
    telemetry: bool = True
    energy: bool = False
    deadlines: DeadlineSettings = field(default_factory=DeadlineSettings)

    def check(self) -> None:
        """Refuse values that cannot be measured with."""
        if not self.regimes:
            raise UsageError("measure.regimes is empty; write [standard], or labels such as [cold/sustained/device]")
        _within("measure", self, LIMITS)
        _within("measure.deadlines", self.deadlines, DEADLINE_LIMITS)
        if self.max_time_s < self.min_time_s:
            raise UsageError(f"measure.max_time_s={self.max_time_s} is below measure.min_time_s={self.min_time_s}")
        self._refuse_never_met()
        if self.energy and not self.telemetry:
            raise UsageError("measure.energy=true reads a counter that measure.telemetry=false leaves unread; drop one of them")

    def _refuse_never_met(self) -> None:
        """Refuse pairs of which one keeps the other from ever being met."""
        if self.sample_s > self.max_time_s:
            raise UsageError(
                f"measure.sample_s={self.sample_s} is above measure.max_time_s={self.max_time_s}: time would be up within the "
                "first sample; take shorter samples or more time"
            )
        if not self.steady_timeout_s:  # no waiting was asked for: every sustained case is then `not steady`
            return
        if self.sample_s > self.steady_timeout_s:
            raise UsageError(
                f"measure.sample_s={self.sample_s} is above measure.steady_timeout_s={self.steady_timeout_s}: time to settle "
                "would be up within the first sample; take shorter samples or a longer timeout"
            )
        if self.steady_timeout_s <= self.steady_window_s:
            raise UsageError(
                f"measure.steady_timeout_s={self.steady_timeout_s} is not above "
                f"measure.steady_window_s={self.steady_window_s}: steady is what two windows in a row agree on; take a shorter "
                "window or a longer timeout"
            )


@dataclass
class SearchSettings:
    """A search for the fastest matrix product, in place of the shapes that a job names; those are looked at besides.

    ``m``, ``n`` and ``k`` are the largest sizes and ``step`` the distance between two, halved where a device is too slow for
    most.  Each format (and layout, distribution, implementation, set of switches) has ``budget_s`` seconds of looking after
    ``warm_up_s`` of load.  The best ``finalists`` are then measured as any other case, on other data.
    """

    m: int = 20480
    n: int = 16384
    k: int = 16384
    step: int = 1024
    budget_s: float = 10.0
    warm_up_s: float = 5.0
    finalists: int = 3

    def check(self) -> None:
        """Refuse sizes, steps and times that nothing can be found with."""
        _within("search", self, SEARCH_LIMITS, "; leave it out for what experiment=peak takes")
        for name in ("m", "n", "k"):
            if getattr(self, name) < self.step:
                value = getattr(self, name)
                raise UsageError(
                    f"search.{name}={value} is below search.step={self.step}: no size is left; take a smaller step"
                )
        shapes = (self.m // self.step) * (self.n // self.step) * (self.k // self.step)
        if shapes > LARGEST_GRID:
            raise UsageError(f"search.step={self.step} makes {shapes} shapes, above {LARGEST_GRID}; take a larger step")


@dataclass
class BackendSettings:
    """Which runtime measures.  ``target`` is ``module:Class``, which a plugin's entry point gives where no file does; ``auto``
    is resolved by a probe in a child process.
    """

    name: str = "auto"
    target: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class StoreSettings:
    """Where results go: an SQLAlchemy URL or a plain path of an SQLite file."""

    url: str = "roofbench.db"


@dataclass
class JobSettings:
    """Base of every job's settings; each job adds its axes as lists that plan expands."""

    name: str = ""


@dataclass
class RunConfig:
    """One run.  ``jobs`` and ``backends`` map a name to its settings; ``device`` is an index, a list of them or ``all``.

    ``hardware`` overrides the spec sheet a device is matched to; ``hardware_folders`` hold sheets of the user's own.
    ``oversize`` says what happens to a case that cannot fit in the device's memory: ``refuse`` ends the command before
    anything runs, ``record`` stores it as ``out_of_memory`` without running it. More than ``max_cases`` planned cases on
    a device are refused; workloads whose single launch takes longer than ``max_kernel_s`` even at the device's peak are
    left out of the plan, which says so; the sweep stops after ``max_time_s`` and can be resumed.  Devices that another run
    holds are waited for ``wait_s``, all of them together.  With ``search`` shapes are sought instead of given.  ``plugins``
    says which distribution each job and backend is of that is not roofbench's: ``jobs.NAME`` and ``backends.NAME`` by owner.
    """

    jobs: dict[str, JobSettings] = field(default_factory=dict)
    backends: dict[str, BackendSettings] = field(default_factory=dict)
    measure: MeasureSettings = field(default_factory=MeasureSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    search: SearchSettings | None = None
    experiment: str = ""
    device: Any = 0
    hardware: str | None = None
    hardware_folders: list[str] = field(default_factory=list)
    plugins: dict[str, str] = field(default_factory=dict)
    oversize: str = "refuse"
    max_cases: int | None = None
    max_kernel_s: float | None = None
    max_time_s: float | None = None
    wait_s: float = 0.0
    seed: int = 0
    resume: str | None = None
    note: str = ""


def _within(where: str, settings: object, limits: dict[str, Limits], remedy: str = "") -> None:
    for name, (least, most) in limits.items():
        value = getattr(settings, name)
        if not math.isfinite(value):
            raise UsageError(f"{where}.{name}={value} is not finite; choose from {least:.15g} to {most:.15g}")
        if not least <= value <= most:
            raise UsageError(f"{where}.{name}={value} is not between {least:.15g} and {most:.15g}{remedy}")
