"""Telemetry by polling: threads read gauges at fixed periods while a window is open.

The launching thread reads nothing and waits for no lock while a window is open: ``now`` gives the last value that a thread
left.  The vendors' libraries are called through ctypes, which gives the interpreter's lock back for the time of a call, so
that a driver that takes long does not stop the launches.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from backends.telemetry.energy import EnergyMeter, EnergyTrace
from backends.telemetry.gauges import CLOCK_S, Gauge, Missing, ReadingLost, Series
from suite.backend import Channel
from suite.telemetry import POLLED, unit_of

PERIOD_S = 0.02
SLOW_PERIOD_S = 0.1

NO_DEVICE_CLOCK = "nothing here counts the device's own cycles"


class Source(Protocol):
    """Something that is read in turn with others."""

    def take(self) -> None: ...

    def close(self) -> None:
        """Take what is wanted as the window closes, if anything."""
        ...


class Poll:
    """A thread that reads every source once a period until it is closed.

    It looks between two readings whether it was closed: closing waits for the one under way and for the closing ones, no
    more.  ``whole`` finishes the first round all the same, so that a window shorter than a round has a reading of each.
    It reads nothing before ``opened`` is set.
    """

    def __init__(self, sources: Sequence[Source], period_s: float, whole: bool, opened: threading.Event) -> None:
        self._opened = opened
        self._sources = sources
        self._period_s = period_s
        self._whole = whole
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closing.set()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        self._opened.wait()
        due_s = CLOCK_S()
        self._round(self._whole)
        while not self._closing.is_set():
            due_s = max(due_s + self._period_s, CLOCK_S())
            if not self._closing.wait(due_s - CLOCK_S()):
                self._round(whole=False)
        for source in self._sources:
            source.close()

    def _round(self, whole: bool) -> None:
        for source in self._sources:
            if self._closing.is_set() and not whole:
                return
            source.take()


class PolledTelemetry:
    """Reads gauges every ``period_s`` off the launching thread, those that may block on a thread of their own.

    ``gauges`` may leave channels out; those are unavailable with ``absent`` as the reason.  ``others`` counts processes of
    other runs on the device, and can tell once windows lasted ``others_span_s`` seconds; ``on_start`` is called as a window
    opens; ``derive`` adds channels that follow from the others.  ``parts`` are meters of what the channel ``energy`` leaves
    out, by their channels' names.
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
        parts: Mapping[str, EnergyMeter | Missing] | None = None,
        slow_period_s: float = SLOW_PERIOD_S,
        others_span_s: float = 0.0,
    ) -> None:
        self._gauges: dict[str, Gauge | Missing] = {**dict.fromkeys(POLLED, Missing(absent)), **gauges}
        self._meters = {"energy": energy, **(parts or {})}
        self._others = others
        self.others_span_s = others_span_s
        self._period_s, self._slow_period_s = period_s, slow_period_s
        self._on_start = on_start
        self._derive = derive
        self._no_clock = no_clock
        self._series: dict[str, Series] = {}
        self._traces: dict[str, EnergyTrace] = {}
        self._polls: tuple[Poll, ...] = ()
        self._began_s = self._ended_s = 0.0

    def start(self) -> None:
        self._close()
        if self._on_start is not None:
            self._on_start()
        for gauge in self._gauges.values():
            if isinstance(gauge, Gauge):
                gauge.begin()
        self._series = {name: self._open(name, gauge) for name, gauge in self._gauges.items()}
        self._traces = {n: EnergyTrace(meter) for n, meter in self._meters.items() if isinstance(meter, EnergyMeter)}
        opened = threading.Event()
        fast: list[Source] = [*self._traces.values(), *self._of(slow=False)]
        slow = self._of(slow=True)
        self._polls = (
            Poll(fast, self._period_s, whole=True, opened=opened),
            *([Poll(slow, self._slow_period_s, whole=False, opened=opened)] if slow else []),
        )
        for poll in self._polls:
            poll.start()
        # A busy host takes milliseconds to start a thread.  The window opens as this returns, so that whoever counts from
        # then and whoever reads count alike.
        self._began_s = self._ended_s = CLOCK_S()
        for series in self._series.values():
            series.began_s = self._began_s
        for trace in self._traces.values():
            trace.began_s = self._began_s
        opened.set()

    def stop(self) -> Mapping[str, Channel]:
        assert self._series, "start() comes first"
        self._close()
        channels = {name: series.channel() for name, series in self._series.items()}
        energy = {name: self._energy(name, meter) for name, meter in self._meters.items()}
        return self._derive({**channels, **energy, "device_clock": Channel("Hz", (), (), self._no_clock)})

    def mark(self) -> None:
        """Polling counts no cycles; see ``backends.telemetry.clocked``."""

    def now(self, channel: str) -> float | None:
        """The last polled value; outside a window the gauge is read here and now."""
        if self._polls:
            series = self._series.get(channel)
            return series.latest if series is not None else None
        gauge = self._gauges.get(channel)
        if not isinstance(gauge, Gauge):
            return None
        try:
            return gauge.read()
        except ReadingLost:
            return None

    def other_processes(self) -> int | None:
        return self._others()

    def _close(self) -> None:
        if not self._polls:
            return
        self._ended_s = CLOCK_S()
        for poll in self._polls:
            poll.close()
        for poll in self._polls:
            poll.join()
        self._polls = ()

    def _open(self, name: str, gauge: Gauge | Missing) -> Series:
        unit = gauge.unit if isinstance(gauge, Gauge) and gauge.unit else unit_of(name)
        return Series(gauge, unit)

    def _of(self, *, slow: bool) -> list[Source]:
        return [self._series[n] for n, gauge in self._gauges.items() if isinstance(gauge, Gauge) and gauge.slow == slow]

    def _energy(self, name: str, meter: EnergyMeter | Missing) -> Channel:
        if isinstance(meter, Missing):
            return Channel(unit_of(name), (), (), meter.reason)
        return self._traces[name].channel(self._ended_s - self._began_s)
