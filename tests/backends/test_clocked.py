"""The device's own clock beside the driver's readings."""

from typing import NamedTuple

from backends.telemetry.clocked import ClockedTelemetry
from suite.telemetry import NoTelemetry


class Stretch(NamedTuple):
    hz: float


class Counters:
    """Gives 1 GHz for the first pair of marks, 2 GHz for the second, and so on."""

    def __init__(self) -> None:
        self.marks = 0

    def mark(self) -> None:
        self.marks += 1

    def windows(self) -> list[Stretch]:
        pairs, self.marks = self.marks // 2, 0
        return [Stretch((index + 1) * 1e9) for index in range(pairs)]


def test_each_stretch_of_work_has_a_clock_and_a_time() -> None:
    telemetry = ClockedTelemetry(NoTelemetry("no driver"), Counters())
    telemetry.start()
    for _ in range(4):
        telemetry.mark()
    channels = telemetry.stop()
    assert channels["device_clock"].values == (1e9, 2e9)
    assert len(channels["device_clock"].times_s) == 2
    assert channels["power"].unavailable == "no driver"


def test_marks_of_an_abandoned_window_are_forgotten() -> None:
    telemetry = ClockedTelemetry(NoTelemetry("no driver"), Counters())
    telemetry.start()
    telemetry.mark()
    telemetry.mark()
    telemetry.start()
    assert telemetry.stop()["device_clock"].unavailable == "no stretch of work was marked"
