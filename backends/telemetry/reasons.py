"""Why a driver holds a clock down: bit masks, reason by reason."""

from collections.abc import Callable, Mapping

from suite.backend import Channel

# nvmlClocksEventReasons in nvml.h.  Idle and the clocks that a user set are no throttling.
NVIDIA = {
    0x04: "sw_power_cap",
    0x08: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
}
# A mask of ours, for AMD's firmware counts how long each of its limits was active (amdsmi_get_violation_status).  Package
# power tracking is what NVIDIA calls the software power cap, and has its name.
AMD = {
    0x01: "sw_power_cap",
    0x02: "prochot",
    0x04: "socket_thermal",
    0x08: "vr_thermal",
    0x10: "hbm_thermal",
}


def by_reason(reasons: Mapping[int, str]) -> Callable[[Mapping[str, Channel]], dict[str, Channel]]:
    """Add ``throttle.<reason>`` to channels, beside the mask: 1 where a reading named the reason, else 0."""

    def derive(channels: Mapping[str, Channel]) -> dict[str, Channel]:
        mask = channels["throttle"]
        if mask.unavailable:
            return dict(channels)
        named = {
            f"throttle.{name}": Channel("", mask.times_s, tuple(float(bool(int(value) & bit)) for value in mask.values))
            for bit, name in reasons.items()
        }
        return {**channels, **named}

    return derive
