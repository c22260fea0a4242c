"""A GPU that falls off the bus in the middle of a window: what it read before is no reading of what came after."""

import csv
from pathlib import Path
from typing import Any

from backends.telemetry.nvidia import nvml_telemetry
from suite.backend import Channel
from tests.backends.fake_nvml import FakeNvml, NVMLError, device_of
from tests.patience import until

LOOP = Path(__file__).parent.parent / "data" / "nvidia-smi" / "loop_unknown_error.csv"


def test_one_good_sample_and_then_errors_are_no_series() -> None:
    """A loop over a GPU with a fault: 0, 0, 0, then [Unknown Error]; neither the 0 again nor any other number."""
    good, *lost = csv.reader(LOOP.read_text().splitlines(), skipinitialspace=True)
    assert all("Unknown Error" in cell for row in lost for cell in row)
    asked: list[str] = []

    def clock(_handle: Any, _kind: Any) -> int:
        cell = (good, *lost, lost[-1])[min(len(asked), 3)][0]
        asked.append(cell)
        if not cell.isdigit():
            raise NVMLError(999)
        return int(cell)

    library = FakeNvml(nvmlDeviceGetClockInfo=clock)
    telemetry = nvml_telemetry(device_of(library), period_s=0.001)
    telemetry.start()
    until(lambda: "[Unknown Error]" in asked)
    rounds = len(library.calls)
    until(lambda: len(library.calls) > rounds + 100)  # the round in which it was lost is over
    assert telemetry.now("sm_clock") is None
    channels = telemetry.stop()
    assert asked[0] == "0"
    assert channels["sm_clock"] == Channel("Hz", (), (), "nvmlDeviceGetClockInfo: Unknown Error")
    assert channels["power"].values  # a reading of its own is not lost with it
