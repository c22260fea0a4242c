"""Why an NVIDIA driver holds a clock down: its bit mask, reason by reason."""

from collections.abc import Mapping

from suite.backend import Channel

# nvmlClocksEventReasons in nvml.h.  Idle and the clocks that a user set are no throttling.
REASONS = {
    0x04: "sw_power_cap",
    0x08: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
}


def by_reason(channels: Mapping[str, Channel]) -> dict[str, Channel]:
    """The channels with ``throttle.<reason>`` beside the mask: 1 where a reading named the reason, else 0."""
    mask = channels["throttle"]
    if mask.unavailable:
        return dict(channels)
    readings = {
        f"throttle.{name}": Channel("", mask.times_s, tuple(float(bool(int(value) & bit)) for value in mask.values))
        for bit, name in REASONS.items()
    }
    return {**channels, **readings}
