"""Why it is not known whether others were at work on the device beside a measurement, and what would tell."""

from typing import NamedTuple

from suite.measurement import Measurement, SampleSet
from suite.telemetry import LOAD_SPAN_S, UNITS

TELEMETRY_OFF = "measure.telemetry is off"
LISTED_ELSEWHERE = "the driver lists no processes here, or by the numbers of another process namespace"


class Unknown(NamedTuple):
    """One clause each: the reason, and what to do; the latter is empty where nothing helps."""

    why: str
    remedy: str


def unknown(load: str, measurement: Measurement, is_cpu: bool) -> Unknown:
    """Of a measurement whose ``contended`` is ``None``; ``is_cpu`` says that others are found by the CPUs they use."""
    if unread := _unread(measurement):
        is_off = unread == TELEMETRY_OFF
        return Unknown(unread, "give measure.telemetry=true" if is_off else "")
    if not is_cpu:
        return Unknown(LISTED_ELSEWHERE, "start roofbench in the host's process namespace (docker run --pid=host)")
    if _span_s(measurement.samples) >= LOAD_SPAN_S:  # as versions stored it that watched each window by itself
        return Unknown("its last window alone was watched, which is too short to count the work of others", "measure it anew")
    longer = "more or longer measure.burst_windows" if load == "burst" else f"a measure.max_time_s of {LOAD_SPAN_S:g} or more"
    why = f"it was sampled for under {LOAD_SPAN_S:g} s, too short to count the work of others"
    return Unknown(why, f"measure it anew with {longer}")


def _unread(measurement: Measurement) -> str:
    """The one reason why no channel was read; empty where any was, or they have reasons of their own."""
    reasons = {channel.unavailable for name in UNITS if (channel := measurement.telemetry.get(name)) is not None}
    if not reasons:
        return "nothing was read beside it"
    return reasons.pop() if len(reasons) == 1 else ""


def _span_s(samples: SampleSet | None) -> float:
    """From the first sample to the last, idle times between windows included; 0 where nothing says when they were taken."""
    return samples.spans[-1].ended_s - samples.spans[0].began_s if samples is not None and samples.spans else 0.0
