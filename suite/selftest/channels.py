"""Telemetry: what can be read beside a measurement on this device, and why the rest cannot."""

from collections import Counter
from collections.abc import Sequence

from suite.backend import DeviceInfo
from suite.hardware.makers import is_cpu
from suite.selftest.record import Finding, Status
from suite.selftest.taken import Passes, Taken
from suite.telemetry import NOT_OF_A_CPU, UNITS, named

NAME = "telemetry"
# What results are explained with; the others tell more where a device has them.
NEEDED = ("sm_clock", "device_clock", "power", "energy", "temperature", "throttle")


def finding(passes: Passes, info: DeviceInfo) -> Finding:
    """Warns where a channel is missing that results are explained with; names only what is missing, with the reason."""
    measured = [taken for taken in passes if taken.measurement.telemetry]
    if not measured:
        return Finding(NAME, Status.UNAVAILABLE, "nothing was read beside any measurement")
    wanted = [channel for channel in UNITS if not (is_cpu(info) and channel in NOT_OF_A_CPU)]
    missing = {channel: why for channel in wanted if (why := why_missing(measured, channel))}
    told = _by_reason({_plain(channel, info): why for channel, why in missing.items()})
    if len(missing) == len(wanted):
        return Finding(NAME, Status.UNAVAILABLE, f"not read: {told}", dict(missing))
    lacking = [channel for channel in NEEDED if channel in missing]
    says = f"not read: {told}" if missing else f"all {len(wanted)} channels are read"
    return Finding(NAME, Status.WARN if lacking else Status.OK, says, dict(missing))


def why_missing(taken: Sequence[Taken], channel: str) -> str:
    """The most frequent reason why no measurement has this channel; empty where one has it."""
    found = [each.measurement.telemetry.get(channel) for each in taken if each.measurement.telemetry]
    if any(each is not None and each.values for each in found):
        return ""
    reasons = Counter(each.unavailable for each in found if each is not None and each.unavailable)
    return reasons.most_common(1)[0][0] if reasons else "the backend reports no such channel"


def _by_reason(missing: dict[str, str]) -> str:
    """``power and energy (no RAPL here); throttle (...)``."""
    reasons = dict.fromkeys(missing.values())
    names = {reason: [channel for channel, why in missing.items() if why == reason] for reason in reasons}
    return "; ".join(f"{' and '.join(channels)} ({reason})" for reason, channels in names.items())


def _plain(channel: str, info: DeviceInfo) -> str:
    return named(channel, is_cpu(info))
