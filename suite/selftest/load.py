"""Load: how far a sustained load falls under a burst from idle, and what holds it down."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from suite.backend import DeviceInfo
from suite.measurement import Measurement
from suite.roofline import POWER_CAP_SHARE, POWER_CAPS, mean
from suite.selftest.record import Finding, Status
from suite.selftest.taken import Passes, Taken, change, products
from suite.selftest.words import per_cent
from suite.telemetry import THROTTLE_PREFIX

NAME = "load"
WORTH_SAYING = 0.02
FAR = 0.10  # over burst no load stays by itself; nor does a comparison whose noise is as large tell anything
LASTING = 0.05  # of the readings: a reason named by fewer comes and goes
# What the driver's own governor never does: the board, its cooling or its supply is at fault.
HARDWARE = ("hw_slowdown", "hw_thermal", "hw_power_brake", "prochot")


class Load(NamedTuple):
    """The same product in a burst and sustained; ``cause`` is what held the sustained one down, as far as it is reported."""

    burst: Taken
    sustained: Taken
    cause: str

    @property
    def format(self) -> str:
        return self.sustained.row.format

    @property
    def under(self) -> float:
        """How far the sustained rate lies under the burst's, of the burst's."""
        return -change(self.sustained, self.burst, cycles=False)

    @property
    def differs(self) -> bool:
        """Whether that is more than the two intervals and worth a line."""
        return self.under > max(WORTH_SAYING, self.noise)

    @property
    def is_odd(self) -> bool:
        """Whether sustained is so far over burst that the burst cannot have been one."""
        return -self.under > max(FAR, self.noise)

    @property
    def tells_nothing(self) -> bool:
        """Whether the intervals would hide any difference that matters, and hide this one."""
        return self.noise > FAR and not self.differs and not self.is_odd

    @property
    def noise(self) -> float:
        return self.burst.half_width + self.sustained.half_width

    @property
    def faults(self) -> list[str]:
        reasons = reason_shares(self.sustained.measurement)
        return [name for name in HARDWARE if reasons.get(name, 0.0) >= LASTING]

    def says(self, where: str = "") -> str:
        far = f"sustained is {per_cent(abs(self.under))} {'under' if self.under >= 0 else 'over'} burst{where}"
        if self.is_odd:
            odd = f"{far}: the burst was disturbed, or the clock had not risen in it; {_REPEAT}"
            return f"{odd}; {self.cause}" if self.faults else odd
        if self.differs or self.faults:
            return f"{far}: {self.cause}"
        if self.tells_nothing:
            return f"{far}, which tells nothing beside intervals of {per_cent(self.noise)}: {_REPEAT}"
        return far if abs(self.under) <= WORTH_SAYING else f"{far}{self._unsure}"

    @property
    def _unsure(self) -> str:
        return f", within their intervals of {per_cent(self.noise)}" if abs(self.under) <= self.noise else ""


_REPEAT = "repeat the selftest on a quiet device, with a longer measure.burst_window_s"


def finding(passes: Passes, info: DeviceInfo) -> Finding:
    """Warns where sustained is clearly under burst, so far over that the burst was none, or hidden by intervals, and where
    other work was there; fails where the hardware holds the clock down.
    """
    loads = _loads(passes, info)
    if not loads:
        return Finding(NAME, Status.UNAVAILABLE, "no product was timed both in a burst and sustained")
    contended = any(taken.row.contended for load in loads for taken in (load.burst, load.sustained))
    doubted = any(load.differs or load.is_odd or load.tells_nothing for load in loads)
    status = Status.WARN if contended or doubted else Status.OK
    says = _together(loads)
    if any(load.faults for load in loads):
        status = Status.FAIL
        says += "; look at this device's cooling and power supply"
    if contended:
        says += "; other work was on the device, so that this may be its doing"
    figures: dict[str, float | str | None] = {"power_limit_w": info.power_limit_w}
    for load in loads:
        figures |= _figures(load)
    return Finding(NAME, status, says, figures)


def _loads(passes: Passes, info: DeviceInfo) -> list[Load]:
    """The most reduced format first."""
    taken = products(passes.load)
    sustained = {each.row.workload_key: each for each in taken if each.row.load == "sustained"}
    pairs = [(each, sustained.get(each.row.workload_key)) for each in taken if each.row.load == "burst"]
    loads = [Load(burst, steady, cause(steady, info)) for burst, steady in pairs if steady is not None]
    return sorted(loads, key=lambda load: -load.under)


def cause(sustained: Taken, info: DeviceInfo) -> str:
    """Why the clock was where it was.  The driver's bit for the cap alone is not believed: it was set at 58 % of the limit."""
    power_w, limit_w = sustained.row.power_w, info.power_limit_w
    reasons = {name: share for name, share in reason_shares(sustained.measurement).items() if share > 0}
    named = [f"{name} {per_cent(share)} of the time" for name, share in reasons.items()]
    is_capped = any(cap in (sustained.row.throttle or "") for cap in POWER_CAPS)
    if limit_w and (is_capped or (power_w is not None and power_w >= POWER_CAP_SHARE * limit_w)):
        return ", ".join([f"power limit {limit_w:g} W reached", *named])
    if named:
        return ", ".join(named)
    if not _are_read(sustained.measurement):
        mask = sustained.measurement.telemetry.get("throttle")
        return f"reasons are not read ({mask.unavailable if mask and mask.unavailable else 'no such telemetry'})"
    drawn = f", at {power_w:.0f} of {limit_w:g} W" if power_w is not None and limit_w else ""
    return f"no reason reported{drawn}"


def reason_shares(measurement: Measurement) -> dict[str, float]:
    """Share of the readings that named each throttle reason, the most frequent first, without the power cap."""
    shares = {
        name.removeprefix(THROTTLE_PREFIX): mean(channel)
        for name, channel in measurement.telemetry.items()
        if name.startswith(THROTTLE_PREFIX) and name.removeprefix(THROTTLE_PREFIX) not in POWER_CAPS
    }
    known = [(name, share) for name, share in shares.items() if share is not None]
    return dict(sorted(known, key=lambda item: -item[1]))


def _are_read(measurement: Measurement) -> bool:
    return any(name.startswith(THROTTLE_PREFIX) and channel.values for name, channel in measurement.telemetry.items())


def _together(loads: Sequence[Load]) -> str:
    """One clause where all formats do the same, else one for each."""
    alike = {load.says() for load in loads}
    return alike.pop() if len(alike) == 1 else "; ".join(load.says(f" in {load.format}") for load in loads)


def _figures(load: Load) -> Mapping[str, float | str | None]:
    sustained, name = load.sustained.row, load.format
    return {
        f"{name}_sustained_under_burst_rel": load.under,
        f"{name}_noise_rel": load.noise,
        f"{name}_burst_flop_s": load.burst.row.flop_s,
        f"{name}_sustained_flop_s": sustained.flop_s,
        f"{name}_burst_clock_hz": load.burst.row.clock_hz,
        f"{name}_sustained_clock_hz": sustained.clock_hz,
        f"{name}_sustained_power_w": sustained.power_w,
        f"{name}_cause": load.cause,
    }
