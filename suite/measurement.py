"""What a worker hands back for one case: raw facts, no derived numbers.  It crosses the process boundary as JSON."""

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from suite.backend import Channel
from suite.measure.samples import decode, encode
from suite.outcome import Outcome

UNREAD = "telemetry"  # the one channel of a measurement whose telemetry cannot be read; its reason says why
TIMED = (Outcome.OK, Outcome.IMPOSSIBLE, Outcome.UNCHECKED)  # the outcomes that have samples


class Span(NamedTuple):
    """Samples taken by one call, back to back: the first one's index among all taken, and when the call began and returned.

    Seconds since the first telemetry window of the case opened, on which the readings of its channels count too.
    """

    first: int
    began_s: float
    ended_s: float


@dataclass(frozen=True, slots=True)
class SampleSet:
    """Raw samples in the order they were taken; each of ``durations_ns`` covers ``launches`` launches.

    ``boundaries`` are the indices at which a new batch (a round or a window) starts, 0 first.  At most 4,096 samples
    are kept: every ``stride``-th of the ``count`` taken; ``sum_ns``, ``min_ns`` and ``median_ns`` are exact over all of them.
    ``spans`` say when they were taken.  A set from before they were kept has no spans and no median.
    ``clocks_khz`` is the device's own clock over each sample that is kept, where it was counted over every one, and
    ``median_cycles`` the median over all samples of the cycles that each took.
    """

    durations_ns: tuple[int, ...]
    launches: int
    method: str
    resolution_s: float
    count: int
    sum_ns: int
    min_ns: int
    stride: int = 1
    boundaries: tuple[int, ...] = (0,)
    details: Mapping[str, Any] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()
    median_ns: float | None = None
    clocks_khz: tuple[int, ...] = ()
    median_cycles: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "durations": base64.b64encode(encode(self.durations_ns)).decode(),
            "launches": self.launches,
            "method": self.method,
            "resolution_s": self.resolution_s,
            "count": self.count,
            "sum_ns": self.sum_ns,
            "min_ns": self.min_ns,
            "stride": self.stride,
            "boundaries": list(self.boundaries),
            "details": dict(self.details),
            "spans": [list(span) for span in self.spans],
            "median_ns": self.median_ns,
            "clocks": base64.b64encode(encode(self.clocks_khz)).decode(),
            "median_cycles": self.median_cycles,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            durations_ns=tuple(decode(base64.b64decode(data["durations"]))),
            boundaries=tuple(data["boundaries"]),
            spans=tuple(Span(*span) for span in data.get("spans", ())),
            median_ns=data.get("median_ns"),
            clocks_khz=tuple(decode(base64.b64decode(data["clocks"]))) if data.get("clocks") else (),
            median_cycles=data.get("median_cycles"),
            **{
                name: data[name]
                for name in ("launches", "method", "resolution_s", "count", "sum_ns", "min_ns", "stride", "details")
            },
        )


def as_read(channel: Channel) -> Channel:
    """The readings of a series that there are, each with its time; the reason that it has none where all were missing.

    A reading, or a time, that is no finite number (NaN, an infinity) was missing: nothing is computed from it.
    """
    if len(channel.times_s) == len(channel.values) and all(map(math.isfinite, (*channel.times_s, *channel.values))):
        return channel  # as nearly every series is: each result that is stored comes by here
    pairs = [pair for pair in zip(channel.times_s, channel.values, strict=False) if all(map(math.isfinite, pair))]
    times_s, values = (tuple(each) for each in zip(*pairs, strict=True)) if pairs else ((), ())
    why = channel.unavailable or ("" if pairs or not channel.values else "every reading was missing")
    return Channel(channel.unit, times_s, values, why)


def channel_json(channel: Channel) -> dict[str, Any]:
    """JSON values of a series; ``null`` stands for a reading that was missing."""
    return {**channel._asdict(), "times_s": _known(channel.times_s), "values": _known(channel.values)}


def channel_from_json(data: Mapping[str, Any]) -> Channel:
    """Undo ``channel_json``; what was missing is NaN."""
    times_s, values = (tuple(math.nan if each is None else each for each in data[name]) for name in ("times_s", "values"))
    return Channel(data["unit"], times_s, values, data["unavailable"])


def _known(numbers: Sequence[float]) -> list[float | None]:
    return [number if math.isfinite(number) else None for number in numbers]


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison with the reference: ``error_rel`` is norm(out - ref) / norm(ref) over the probed tiles.

    ``projection_error`` is the largest relative error of a row's random projection over the whole output.
    """

    passed: bool
    error_rel: float | None
    tolerance: float
    projection_error: float | None
    unwritten: int
    nonfinite: int
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Measurement:
    """The end of one case in a worker.  Samples are present if and only if the case was timed.

    ``interval_s`` is the 95 % interval of the median of one launch, as the stopping rule left it; ``interval_cycles`` that of
    the median of its cycles, where the device's clock was counted over each sample; ``converged`` says that one of the two is
    as narrow as was asked.  ``steady`` is whether the sustained regime settled (``None`` for burst).  ``phases_s`` says how
    long each phase took: ``compile``, ``verify``, ``settle`` (bringing the device into its state, idle times of a burst
    included) and ``measure``.
    """

    outcome: Outcome
    reason: str = ""
    execution: str = "native"
    samples: SampleSet | None = None
    interval_s: tuple[float, float] | None = None
    interval_cycles: tuple[float, float] | None = None
    converged: bool | None = None
    steady: bool | None = None
    contended: bool | None = None
    check_before: Check | None = None
    check_after: Check | None = None
    telemetry: Mapping[str, Channel] = field(default_factory=dict)
    description: Mapping[str, Any] = field(default_factory=dict)
    phases_s: Mapping[str, float] = field(default_factory=dict)
    peak_memory_bytes: int | None = None

    def as_read(self) -> "Measurement":
        """The same without the readings of telemetry that were missing: what is computed from or drawn."""
        return replace(self, telemetry={name: as_read(channel) for name, channel in self.telemetry.items()})

    def __post_init__(self) -> None:
        timed = self.outcome in TIMED
        assert not timed or self.samples is not None, "a timed outcome needs its samples"

    def to_json(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome.value,
            "reason": self.reason,
            "execution": self.execution,
            "samples": self.samples.to_json() if self.samples else None,
            "interval_s": list(self.interval_s) if self.interval_s else None,
            "interval_cycles": list(self.interval_cycles) if self.interval_cycles else None,
            "converged": self.converged,
            "steady": self.steady,
            "contended": self.contended,
            "check_before": self.check_before.to_json() if self.check_before else None,
            "check_after": self.check_after.to_json() if self.check_after else None,
            "telemetry": {name: channel_json(channel) for name, channel in self.telemetry.items()},
            "description": dict(self.description),
            "phases_s": dict(self.phases_s),
            "peak_memory_bytes": self.peak_memory_bytes,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            outcome=Outcome(data["outcome"]),
            samples=SampleSet.from_json(data["samples"]) if data["samples"] else None,
            interval_s=tuple(data["interval_s"]) if data["interval_s"] else None,
            interval_cycles=tuple(data["interval_cycles"]) if data.get("interval_cycles") else None,
            check_before=Check.from_json(data["check_before"]) if data["check_before"] else None,
            check_after=Check.from_json(data["check_after"]) if data["check_after"] else None,
            telemetry={name: channel_from_json(channel) for name, channel in data["telemetry"].items()},
            **{
                name: data[name]
                for name in (
                    "reason",
                    "execution",
                    "converged",
                    "steady",
                    "contended",
                    "description",
                    "phases_s",
                    "peak_memory_bytes",
                )
            },
        )


def is_unread(measurement: Measurement) -> bool:
    """Whether there is telemetry of a measurement that cannot be read."""
    return list(measurement.telemetry) == [UNREAD]
