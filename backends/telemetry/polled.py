"""Telemetry by polling: a thread reads every gauge at a fixed period while a window is open."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from suite.backend import Channel
from suite.telemetry import POLLED

PERIOD_S = 0.02

NO_DEVICE_CLOCK = "nothing here counts the device's own cycles"


class ReadingLost(Exception):
    """A gauge that was offered cannot be read; the message says why in one line."""


class Gauge(NamedTuple):
    """How to read one channel, in the channel's unit.  ``read`` returns ``None`` while there is no reading yet."""

    read: Callable[[], float | None]


class Missing(NamedTuple):
    """A channel that this device does not offer."""

    reason: str


class EnergyMeter(NamedTuple):
    """A counter of joules and the shortest window over which its steps are fine enough."""

    read_j: Callable[[], float]
    shortest_window_s: float


class Series:
    """The readings of one gauge in one window."""

    def __init__(self, gauge: Gauge | Missing) -> None:
        self.gauge = gauge
        self.unavailable = gauge.reason if isinstance(gauge, Missing) else ""
        self.times_s: list[float] = []
        self.values: list[float] = []

    def take(self, began_s: float) -> None:
        """Read once; a gauge that fails is dropped, with its reason, and what it gave before is kept out."""
        if self.unavailable or isinstance(self.gauge, Missing):
            return
        at_s = time.perf_counter() - began_s
        try:
            value = self.gauge.read()
        except ReadingLost as error:
            self.unavailable = str(error)
            return
        if value is not None:
            self.times_s.append(at_s)
            self.values.append(value)

    def channel(self, unit: str) -> Channel:
        if not self.unavailable and not self.values:
            return Channel(unit, (), (), "the window ended before the first reading")
        if self.unavailable:
            return Channel(unit, (), (), self.unavailable)
        return Channel(unit, tuple(self.times_s), tuple(self.values))


class PolledTelemetry:
    """Reads gauges every ``period_s`` off the launching thread.

    ``gauges`` may leave channels out; those are unavailable with ``absent`` as the reason.  ``others`` counts
    processes of other runs on the device; ``on_start`` is called as a window opens; ``derive`` adds channels that follow
    from the others.
    """

    def __init__(
        self,
        gauges: Mapping[str, Gauge | Missing],
        energy: EnergyMeter | Missing,
        others: Callable[[], int | None],
        period_s: float = PERIOD_S,
        on_start: Callable[[], None] | None = None,
        absent: str = "not offered by this device",
        derive: Callable[[Mapping[str, Channel]], Mapping[str, Channel]] = dict,
        no_clock: str = NO_DEVICE_CLOCK,
    ) -> None:
        self._gauges: dict[str, Gauge | Missing] = {name: gauges.get(name, Missing(absent)) for name in POLLED}
        self._energy = energy
        self._others = others
        self._period_s = period_s
        self._on_start = on_start
        self._derive = derive
        self._no_clock = no_clock
        self._series: dict[str, Series] = {}
        self._began_s = 0.0
        self._energy_before: float | str = ""
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread is not None:
            self.stop()
        self._series = {name: Series(gauge) for name, gauge in self._gauges.items()}
        if self._on_start is not None:
            self._on_start()
        self._energy_before = self._joules()
        self._began_s = time.perf_counter()
        self._closing.clear()
        self._thread = threading.Thread(target=self._poll, name="telemetry", daemon=True)
        self._thread.start()

    def stop(self) -> Mapping[str, Channel]:
        if self._thread is not None:
            self._closing.set()
            self._thread.join()
            self._thread = None
        channels = {name: series.channel(POLLED[name]) for name, series in self._series.items()}
        clock = Channel("Hz", (), (), self._no_clock)
        return self._derive({**channels, "energy": self._energy_channel(), "device_clock": clock})

    def mark(self) -> None:
        """Polling counts no cycles; see ``backends.telemetry.clocked``."""

    def now(self, channel: str) -> float | None:
        series = self._series.get(channel)
        if self._thread is not None and series is not None and series.values:
            return series.values[-1]
        gauge = self._gauges.get(channel)
        if not isinstance(gauge, Gauge):
            return None
        try:
            return gauge.read()
        except ReadingLost:
            return None

    def other_processes(self) -> int | None:
        return self._others()

    def _poll(self) -> None:
        due_s = self._began_s
        while True:
            for series in self._series.values():
                series.take(self._began_s)
            due_s = max(due_s + self._period_s, time.perf_counter())
            if self._closing.wait(due_s - time.perf_counter()):
                return

    def _joules(self) -> float | str:
        """The counter's value, or why there is none."""
        if isinstance(self._energy, Missing):
            return self._energy.reason
        try:
            return self._energy.read_j()
        except ReadingLost as error:
            return str(error)

    def _energy_channel(self) -> Channel:
        """Joules since the window's start, at its two ends."""
        before, after = self._energy_before, self._joules()
        window_s = time.perf_counter() - self._began_s
        if isinstance(before, str) or isinstance(after, str):
            return Channel("J", (), (), str(before if isinstance(before, str) else after))
        shortest_s = self._energy.shortest_window_s if isinstance(self._energy, EnergyMeter) else 0.0
        if window_s < shortest_s:
            reason = f"the window of {window_s:.3g} s is under the {shortest_s:g} s that the counter's steps need"
            return Channel("J", (), (), reason)
        return Channel("J", (0.0, window_s), (0.0, after - before))
