"""Telemetry of one AMD device: which of the driver's readings fill which channel, and how often."""

from functools import partial

from backends.telemetry.amdsmi import DIE_RESIDENCY, RESIDENCY, AmdsmiDevice
from backends.telemetry.energy import EnergyMeter
from backends.telemetry.gauges import Gauge, Missing, ReadingLost
from backends.telemetry.limits import ActiveLimits, HeldDown
from backends.telemetry.others import count_others
from backends.telemetry.polled import NO_DEVICE_CLOCK, PERIOD_S, PolledTelemetry
from backends.telemetry.reasons import AMD, by_reason

# How often the accumulator moves is told nowhere; the firmware samples its limits every 100 ms.
ENERGY_STEP_S = 0.1
ENERGY_WINDOW_S = 2.0
MEAN = "W, mean by the firmware"
ONE_WAY = "the driver counts both directions together, and its call that tells them apart takes a second"


def amdsmi_telemetry(device: AmdsmiDevice, period_s: float = PERIOD_S, no_clock: str = NO_DEVICE_CLOCK) -> PolledTelemetry:
    """Telemetry of one AMD device; a channel it does not offer is unavailable with the driver's reason.

    Clocks, power, throttling and the energy counter are read every ``period_s``, from one look at the firmware's table;
    temperatures, memory and violation times more slowly.  ``no_clock`` is why the device's own clock is not read, where
    it is not.
    """
    active = ActiveLimits(device.residency)
    gauges: dict[str, Gauge | Missing] = {
        "sm_clock": Gauge(device.sm_clock_hz),
        "sm_clock_spread": Gauge(device.sm_clock_spread_hz),
        "memory_clock": Gauge(device.memory_clock_hz),
        "power": _power(device),
        "throttle": Gauge(active.read, begin=active.begin),
        "temperature": Gauge(device.temperature_c, slow=True),
        "hotspot_temperature": Gauge(device.hotspot_temperature_c, slow=True),
        "memory_temperature": Gauge(device.memory_temperature_c, slow=True),
        "memory_used": Gauge(device.memory_used_bytes, slow=True),
        "pcie_tx": Missing(ONE_WAY),
        "pcie_rx": Missing(ONE_WAY),
        **{f"violation.{reason}": _violation(device, reason) for reason in (*RESIDENCY, *DIE_RESIDENCY)},
    }
    energy = EnergyMeter(device.energy_j, ENERGY_WINDOW_S, ENERGY_STEP_S, device.energy_wrap_j())
    others = partial(count_others, device.process_ids)
    return PolledTelemetry(gauges, energy, others, period_s, derive=by_reason(AMD), no_clock=no_clock)


def _violation(device: AmdsmiDevice, reason: str) -> Gauge:
    held = HeldDown(partial(device.residency, reason))
    return Gauge(held.read, slow=True, closing=True, begin=held.begin)


def _power(device: AmdsmiDevice) -> Gauge | Missing:
    """Power of the moment, else the firmware's mean, and then the unit says so."""
    try:
        device.power_w()
    except ReadingLost as current:
        try:
            device.average_power_w()
        except ReadingLost:
            return Missing(str(current))
        return Gauge(device.average_power_w, unit=MEAN)
    return Gauge(device.power_w)
