"""What every reading command, the dashboard and the report see of a store: runs, devices and result rows."""

import math
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any, NamedTuple

from suite.backend import DeviceInfo, Fact
from suite.case import format_label
from suite.measurement import Measurement


class Fractions(NamedTuple):
    """Achieved rate over min(peak, intensity x bandwidth), 0 to 1, for each ceiling; ``None`` where it is not known."""

    spec: float | None
    boost: float | None
    at_clock: float | None
    empirical: float | None


WIDEST = 2  # medians: an interval wider than this says little more than the order of magnitude


def is_resolved(low_s: float | None, high_s: float | None, p50_s: float) -> bool:
    """Whether a median is known to within itself: by an interval no wider than ``WIDEST`` medians; no without one."""
    return low_s is not None and high_s is not None and high_s - low_s <= WIDEST * p50_s


NO_FRACTIONS = Fractions(None, None, None, None)
# Jobs whose launches end in new tokens, and the parameters whose product is how many; a case that lacks one makes none.
TOKENS: Mapping[str, tuple[str, ...]] = MappingProxyType({"decode_step": ("batch", "q_len")})


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One case of one run with its derived numbers.

    ``run`` is the run's id, ``device`` the exact runtime name, ``device_uid`` the hash that recognises one chip, ``hardware``
    the id of the matched spec sheet or ``None``. Times are seconds for one launch; ``flop_s`` operations per second;
    ``p50_cycles`` is the median cycles of one launch by the device's own clock; ``bytes_s`` compulsory bytes per second;
    ``energy_j`` joules per launch; ``quantisation_error`` the relative Frobenius error that rounding the data to the format
    costs the exact product. The fields from ``converged`` on are ``None`` when the case was not timed or the device does not
    offer the reading.
    """

    result_id: int
    run: str
    case_key: str
    workload_key: str
    job: str
    implementation: str
    backend: str
    device: str
    device_uid: str
    device_slot: int
    hardware: str | None
    format: str
    execution: str
    params: dict[str, Any]
    semantics: dict[str, Any]
    distribution: str
    switches: dict[str, Any]
    cache: str
    load: str
    dispatch: str
    evidence: str
    attempt: int
    outcome: str
    reason: str
    finished_at: str
    flops: int
    compulsory_bytes: int
    arithmetic_intensity: float
    pipe: str | None
    converged: bool | None = None
    steady: bool | None = None
    contended: bool | None = None
    bound: str | None = None
    method: str | None = None
    count: int | None = None
    p50_s: float | None = None
    p05_s: float | None = None
    p95_s: float | None = None
    min_s: float | None = None
    interval_s: tuple[float, float] | None = None
    p50_cycles: float | None = None
    interval_cycles: tuple[float, float] | None = None
    flop_s: float | None = None
    bytes_s: float | None = None
    fractions: Fractions = NO_FRACTIONS
    clock_hz: float | None = None
    energy_j: float | None = None
    power_w: float | None = None
    throttle: str | None = None
    error_rel: float | None = None
    tolerance: float | None = None
    quantisation_error: float | None = None

    @property
    def format_label(self) -> str:
        """The format with its scaling, by which cases are told apart."""
        return format_label(self.format, self.semantics)

    @property
    def multiplied(self) -> str:
        """The numbers that its products are of: beside a cache of int8 those of the queries, which it is turned into."""
        return self.pipe or self.format

    @property
    def regime(self) -> str:
        return f"{self.cache}/{self.load}/{self.dispatch}"

    @property
    def tokens_s(self) -> float | None:
        """New tokens of all sequences per second; ``None`` where a launch makes none or was not timed, and where a file holds
        something else where counts should be.
        """
        counted = TOKENS.get(self.job)
        if counted is None or not self.p50_s or not all(name in self.params for name in counted):
            return None
        try:
            return math.prod(float(self.params[name]) for name in counted) / self.p50_s
        except (TypeError, ValueError, OverflowError):
            return None

    def to_json(self) -> dict[str, Any]:
        """The public JSON form: ``regime`` nested, fractions named."""
        row = asdict(self)
        row["regime"] = {name: row.pop(name) for name in ("cache", "load", "dispatch")}
        row["fractions"] = self.fractions._asdict()
        return {**row, "tokens_s": self.tokens_s}


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One run in a list of runs.

    ``status`` is ``running``, ``complete``, ``interrupted`` or ``failed``; times are UTC in ISO 8601.
    """

    run: str
    experiment: str
    status: str
    started_at: str
    finished_at: str | None
    planned: int
    finished: int
    argv: tuple[str, ...]
    overrides: tuple[str, ...]
    note: str
    version: str
    commit: str | None
    dirty: bool | None
    config: dict[str, Any] = field(default_factory=dict)


class Pause(NamedTuple):
    """Seconds of a run in which none of its cases was under way, together and the longest at a stretch."""

    total_s: float
    longest_s: float


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A device slot of a run: what the runtime reported, and the id of the spec sheet it was matched to, if any."""

    slot: int
    info: DeviceInfo
    hardware: str | None
    match_reason: str
    spec: dict[str, Any] | None  # the spec as it was used: scaled to a part, with what the device reports laid over it


@dataclass(frozen=True, slots=True)
class Calibration:
    """Empirical base figures of one device: bytes per second of read, copy and triad, seconds of an empty kernel.

    ``None`` where it was not measured.  Copy counts bytes read plus written; triad three operands.  ``disturbed`` names those
    that were contended or not resolved, and stand because there is nothing better.
    """

    read_bytes_s: float | None = None
    copy_bytes_s: float | None = None
    triad_bytes_s: float | None = None
    empty_device_s: float | None = None
    empty_call_s: float | None = None
    disturbed: frozenset[str] = frozenset()

    @property
    def best_bytes_s(self) -> float | None:
        """The empirical memory roof: the fastest of the three."""
        known = [rate for rate in (self.read_bytes_s, self.copy_bytes_s, self.triad_bytes_s) if rate is not None]
        return max(known, default=None)

    def empty_s(self, dispatch: str) -> float | None:
        """Seconds of an empty kernel as a caller (``call``) or the device (``device``) sees it."""
        return self.empty_call_s if dispatch == "call" else self.empty_device_s

    @property
    def is_memory_disturbed(self) -> bool:
        """Whether the fastest of the three bandwidths is one that was contended or not resolved."""
        best = self.best_bytes_s
        return best is not None and all(name in self.disturbed for name in BANDWIDTHS if getattr(self, name) == best)


BANDWIDTHS = ("read_bytes_s", "copy_bytes_s", "triad_bytes_s")


class BaseKey(NamedTuple):
    """One figure of a calibration: the chip, the backend that measured it, and the field of ``Calibration``."""

    device_uid: str
    backend: str
    name: str


BaseFigures = Mapping[BaseKey, float]


class Figures:
    """Base figures as they come, each the latest; one that was disturbed only until there is one that was not."""

    def __init__(self, known: BaseFigures = MappingProxyType({}), disturbed: Collection[BaseKey] = ()) -> None:
        self.values = dict(known)
        self._disturbed = set(disturbed)

    def enter(self, key: BaseKey, value: float, is_undisturbed: bool) -> bool:
        """Take a figure in; whether it stands now."""
        if not is_undisturbed and key in self.values and key not in self._disturbed:
            return False
        self.values[key] = value
        (self._disturbed.discard if is_undisturbed else self._disturbed.add)(key)
        return True

    def calibration(self, device_uid: str, backend: str) -> "Calibration":
        """What they make of one chip under one backend."""
        return calibration_of(self.values, device_uid, backend, self._disturbed)


def base_name(op: str, dispatch: str) -> str | None:
    """The field of ``Calibration`` that a case of the calibration job measures; ``None`` for an operation that has none."""
    name = f"empty_{dispatch}_s" if op == "empty" else f"{op}_bytes_s"
    return name if name in {each.name for each in fields(Calibration)} else None


def calibration_of(figures: BaseFigures, device_uid: str, backend: str, disturbed: Collection[BaseKey] = ()) -> Calibration:
    """Put a calibration together from the latest figures of each backend.

    Bandwidth is the chip's: of each operation the best over the backends that drive it.  The time of an empty kernel is the
    framework's, and that of another says nothing of this one.
    """
    found: dict[str, float] = {}
    doubtful: set[str] = set()
    for key, value in figures.items():
        if (
            key.device_uid == device_uid
            and (key.name in BANDWIDTHS or key.backend == backend)
            and value >= found.get(key.name, 0.0)
        ):
            found[key.name] = value
            (doubtful.add if key in disturbed else doubtful.discard)(key.name)
    return Calibration(**found, disturbed=frozenset(doubtful))


@dataclass(frozen=True, slots=True)
class CalibrationHistory:
    """The calibrations of one device under one backend: each with the UTC time from which it stood, the earliest first.

    Times are as result rows have them.
    """

    steps: Sequence[tuple[str, Calibration]] = ()

    @property
    def latest(self) -> Calibration:
        """What stands now; every figure ``None`` where nothing was calibrated."""
        return self.steps[-1][1] if self.steps else Calibration()

    def at(self, finished_at: str) -> Calibration:
        """What stood when a result finished: the figures that were there by then."""
        number = bisect_right(self.steps, finished_at, key=lambda step: step[0])
        return self.steps[number - 1][1] if number else Calibration()


@dataclass(frozen=True, slots=True)
class ResultDetail:
    """Everything kept of one result: its row and the raw measurement with samples and telemetry."""

    row: ResultRow
    measurement: Measurement
    environment: Mapping[str, Mapping[str, Fact]]
    log: str
