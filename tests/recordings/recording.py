"""One recording: a long run of samples of one case on one device, and how it is kept in a file."""

import base64
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from suite.measure.samples import decode, encode
from tests.measure.replays import Tape

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Recording:
    """``durations_ns`` in the order taken, each over ``launches`` launches; ``wall_s`` is what a sample cost in wall time.

    ``others`` is how many cores of the host were busy with anything else on average, ``details`` what the sampler said of
    itself.
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

    def write(self, folder: Path) -> Path:
        """Write ``<name>.json``: the durations as ``suite.measure.samples`` keeps them, in base64."""
        path = folder / f"{self.name}.json"
        durations = base64.b64encode(encode(self.durations_ns)).decode()
        path.write_text(json.dumps({**asdict(self), "durations_ns": durations}, indent=1) + "\n")
        return path

    @classmethod
    def read(cls, path: Path) -> "Recording":
        data = json.loads(path.read_text())
        durations = tuple(decode(base64.b64decode(data["durations_ns"])))
        return cls(**{**data, "durations_ns": durations})

    def tape(self) -> Tape:
        """For replays: its own median is what they should find."""
        durations_s = [duration * 1e-9 for duration in self.durations_ns]
        return Tape(durations_s, median(durations_s), self.resolution_s, self.wall_s)


def every_recording() -> list[Path]:
    """The files beside this one."""
    return sorted(FOLDER.glob("*.json"))
