"""Telemetry of one NVIDIA device: which of the driver's readings fill which channel, and how often."""

from functools import partial

from backends.telemetry.energy import EnergyMeter
from backends.telemetry.gauges import Gauge, Missing, Rate, ReadingLost, Since
from backends.telemetry.nvml import POLICIES, NvmlDevice
from backends.telemetry.others import count_others
from backends.telemetry.polled import NO_DEVICE_CLOCK, PERIOD_S, PolledTelemetry
from backends.telemetry.reasons import NVIDIA, by_reason

# The energy counter moves every 100 ms; two seconds of it are good to about 1 %.
ENERGY_STEP_S = 0.1
ENERGY_WINDOW_S = 2.0
# The default power reading is a mean over a second: it shows a burst's load only when the burst is over.
MEAN_OF_A_SECOND = "W, mean of 1 s"
OF_PROCESSES = "bytes of the compute processes"
WITH_RESERVED = "bytes, the driver's own among them"


def nvml_telemetry(device: NvmlDevice, period_s: float = PERIOD_S, no_clock: str = NO_DEVICE_CLOCK) -> PolledTelemetry:
    """Telemetry of one NVIDIA device; a channel it does not offer is unavailable with the driver's reason.

    Clocks, power, throttling and the energy counter are read every ``period_s``.  What may block or moves slowly
    (temperatures, memory, PCIe traffic, violation times) has a thread of its own and a longer period.  ``no_clock`` is why
    the device's own clock is not read, where it is not.
    """
    gauges: dict[str, Gauge | Missing] = {
        "sm_clock": Gauge(device.sm_clock_hz),
        "sm_clock_spread": Missing("the driver reports one clock for all multiprocessors"),
        "memory_clock": Gauge(device.memory_clock_hz),
        "power": _power(device),
        "throttle": Gauge(device.throttle_mask),
        "temperature": Gauge(device.temperature_c, slow=True),
        "hotspot_temperature": Missing("NVML offers no hotspot sensor"),
        "memory_temperature": Gauge(device.memory_temperature_c, slow=True),
        "memory_used": _memory_used(device),
        "pcie_tx": _pcie(device, "tx"),
        "pcie_rx": _pcie(device, "rx"),
        **{f"violation.{policy}": _violation(device, policy) for policy in POLICIES},
    }
    energy = EnergyMeter(device.energy_j, ENERGY_WINDOW_S, ENERGY_STEP_S)
    others = partial(count_others, device.process_ids)
    return PolledTelemetry(gauges, energy, others, period_s, derive=by_reason(NVIDIA), no_clock=no_clock)


def _power(device: NvmlDevice) -> Gauge | Missing:
    """The instantaneous reading, else the usual one, and then the unit says whether it is a mean."""
    try:
        device.power_w()
    except ReadingLost as instant:
        try:
            device.usual_power_w()
        except ReadingLost as usual:
            return Missing(str(instant) if str(instant) == str(usual) else f"{instant}; {usual}")
        return Gauge(device.usual_power_w, unit="W" if device.usual_power_is_instant() else MEAN_OF_A_SECOND)
    return Gauge(device.power_w)


def _memory_used(device: NvmlDevice) -> Gauge | Missing:
    """What is allocated on the device, else with what the driver reserves; of a device without memory of its own, what its
    compute processes hold of the host's.  The unit says which.
    """
    readers = {
        "": device.memory_used_bytes,
        WITH_RESERVED: device.memory_taken_bytes,
        OF_PROCESSES: device.processes_used_bytes,
    }
    why: list[str] = []
    for unit, read in readers.items():
        try:
            read()
        except ReadingLost as lost:
            why.append(str(lost))
        else:
            return Gauge(read, unit=unit, slow=True)
    return Missing(why[1])  # what every driver is asked in the same way


def _pcie(device: NvmlDevice, way: str) -> Gauge:
    """From the byte counters, which newer drivers have; else by the call that watches the bus for 20 ms, and blocks."""
    try:
        device.pcie_total_bytes(way)
    except ReadingLost:
        return Gauge(partial(device.pcie_bytes_s, way), slow=True)
    rate = Rate(partial(device.pcie_total_bytes, way))
    return Gauge(rate.read, slow=True, begin=rate.begin)


def _violation(device: NvmlDevice, policy: str) -> Gauge:
    since = Since(partial(device.violation_s, policy))
    return Gauge(since.read, slow=True, closing=True, begin=since.begin)
