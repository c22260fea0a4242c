"""One recording: a long run of samples of one case on one device, and how it is kept in a file."""

import base64
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from suite.measure.samples import cycles, decode, encode
from tests.measure.replays import Tape

FOLDER = Path(__file__).parent
PACKED = ("durations_ns", "clocks_khz")  # kept as ``suite.measure.samples`` keeps them, in base64


@dataclass(frozen=True)
class Recording:
    """``durations_ns`` in the order taken, each over ``launches`` launches; ``wall_s`` is what a sample cost in wall time.

    ``others`` is how many cores of the host were busy with anything else on average, ``details`` what the sampler said of
    itself.  ``clocks_khz`` is the device's clock over each sample, where it was counted.
    """

    name: str
    device: str
    case: str
    method: str
    launches: int
    resolution_s: float
    wall_s: float
    steady: bool
    others: float
    details: dict[str, Any]
    durations_ns: tuple[int, ...]
    clocks_khz: tuple[int, ...] = ()

    def write(self, folder: Path) -> Path:
        """Write ``<name>.json``: durations and clocks packed."""
        path = folder / f"{self.name}.json"
        packed = {name: base64.b64encode(encode(getattr(self, name))).decode() for name in PACKED}
        path.write_text(json.dumps({**asdict(self), **packed}, indent=1) + "\n")
        return path

    @classmethod
    def read(cls, path: Path) -> "Recording":
        data = json.loads(path.read_text())
        unpacked = {name: tuple(decode(base64.b64decode(data[name]))) for name in PACKED if name in data}
        return cls(**{**data, **unpacked})

    def tape(self) -> Tape:
        """For replays: its own median is what they should find."""
        durations_s = [duration * 1e-9 for duration in self.durations_ns]
        tape = Tape(durations_s, median(durations_s), self.resolution_s, self.wall_s)
        if not self.clocks_khz:
            return tape
        counted = [cycles(*each) for each in zip(self.durations_ns, self.clocks_khz, strict=True)]
        return tape._replace(cycles=counted, truth_cycles=median(counted))


def every_recording() -> list[Path]:
    """The files beside this one."""
    return sorted(FOLDER.glob("*.json"))
