"""nvbench as a peer, through its Python package cuda-bench (0.3.0): one process, one state a case.

Its defaults: a launch at a time with the cache flushed and the launch hidden behind a blocking kernel ("cold"), until the
relative standard deviation is under 0.5 % or has settled, after at least 10 samples and 0.5 s of samples, at most 15 s;
samples below 75 % of the default clock are thrown away and 0.05 s waited after each; then one batch of back-to-back launches
of 0.5 s.  Both walltimes leave its warm-up out.  One process can run its benchmarks only once, and writes its results at
the end.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from suite.case import Case
from suite.reason import one_line
from tests.peers.child import PeerFailed, TurnTaker

START_LIMIT_S = 90.0  # loading torch from a cold disk
TURN_LIMIT_S = 45.0  # nvbench's own limit in each of its two measurements, and making the case ready
END_LIMIT_S = 30.0
READY, DONE = "ready", "done"


class State(NamedTuple):
    """One case as nvbench measured it, times in seconds of one launch.

    ``cold_wall_s`` and ``batch_wall_s`` are what sampling took.  ``skipped`` says why there are no figures, where there are
    none; a figure that nvbench did not report is ``None``.
    """

    case_index: int
    skipped: str
    cold_samples: int | None
    cold_mean_s: float | None
    cold_median_s: float | None
    cold_wall_s: float | None
    cold_clock_hz: float | None
    batch_samples: int | None
    batch_mean_s: float | None
    batch_wall_s: float | None

    @property
    def sampling_s(self) -> float | None:
        """Both measurements together."""
        if self.cold_wall_s is None or self.batch_wall_s is None:
            return None
        return self.cold_wall_s + self.batch_wall_s


def why_absent(backend: str) -> str:
    """Why nvbench cannot be asked here; empty when it can."""
    if backend != "cuda":
        return f"nvbench measures CUDA devices, not backend {backend}"
    try:
        found = find_spec("cuda.bench")
    except ModuleNotFoundError:
        found = None
    return "" if found else "nvbench's package cuda-bench is not installed"


class Nvbench:
    """A process in which nvbench goes through ``cases``, each when its turn is given."""

    def __init__(self, process: TurnTaker, path: Path) -> None:
        self._process, self._path = process, path
        self._next = 0
        self._is_ready = False

    def get_ready(self, limit_s: float) -> None:
        """Wait until the next case can have its turn: the process is started, the one before is over."""
        if not self._is_ready:
            self._process.wait(f"{READY} {self._next}", limit_s)
        self._is_ready = True

    def take_turn(self, limit_s: float) -> None:
        """Let the next case be measured, and wait for its end."""
        self.get_ready(limit_s)
        self._process.send("go")
        self._process.wait(f"{DONE} {self._next}", limit_s)
        self._next, self._is_ready = self._next + 1, False

    def results(self, limit_s: float) -> tuple[list[State], dict[str, Any]]:
        """The states in the order of cases, skipped where they had no turn, and nvbench's own file."""
        self._process.finish(limit_s)
        try:
            content = json.loads(self._path.read_text())
        except (OSError, ValueError) as error:
            raise PeerFailed(one_line(f"nvbench left no results: {error}")) from error
        return parse(content), content


@contextmanager
def started(cases: Sequence[Case], target: str, settle_s: float = 0.0, options: Sequence[str] = ()) -> Iterator[Nvbench]:
    """Start the process; ``settle_s`` is how long a case runs before nvbench begins, ``options`` are nvbench's own."""
    with tempfile.TemporaryDirectory() as folder:
        asked, path = Path(folder) / "cases.json", Path(folder) / "nvbench.json"
        asked.write_text(json.dumps([case.to_json() for case in cases]))
        with TurnTaker("nvbench", command(asked, path, target, settle_s, options)) as process:
            yield Nvbench(process, path)


def command(cases: Path, path: Path, target: str, settle_s: float, options: Sequence[str]) -> list[str]:
    ours = ["--backend", target, "--cases", str(cases), "--json", str(path), "--settle", f"{settle_s:g}"]
    return [sys.executable, "-m", "tests.peers.nvbench_target", *ours, "--", *options]


def parse(content: Mapping[str, Any]) -> list[State]:
    """Read a results file (version 1): the states of its first benchmark.  ``PeerFailed`` for anything else."""
    try:
        major = content["meta"]["version"]["json"]["major"]
        if major != 1:
            raise PeerFailed(f"nvbench's results are of version {major}, not 1")
        states = content["benchmarks"][0]["states"]
        return [_state(position, state) for position, state in enumerate(states)]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise PeerFailed(f"nvbench's results cannot be read: {type(error).__name__} {error}") from error


def _state(position: int, state: Mapping[str, Any]) -> State:
    values = {
        summary["tag"]: field["value"]
        for summary in state["summaries"] or ()
        for field in summary["data"]
        if field["name"] == "value"
    }
    axes = {axis["name"]: axis["value"] for axis in state["axis_values"] or ()}

    def value(tag: str, kind: Callable[[str], Any] = float) -> Any:
        return kind(values[tag]) if tag in values else None

    return State(
        case_index=int(axes.get("case", position)),
        skipped=one_line(state.get("skip_reason", "skipped")) if state["is_skipped"] else "",
        cold_samples=value("nv/cold/sample_size", int),
        cold_mean_s=value("nv/cold/time/gpu/mean"),
        cold_median_s=value("nv/cold/time/gpu/median"),
        cold_wall_s=value("nv/cold/walltime"),
        cold_clock_hz=value("nv/cold/sm_clock_rate/mean"),
        batch_samples=value("nv/batch/sample_size", int),
        batch_mean_s=value("nv/batch/time/gpu/mean"),
        batch_wall_s=value("nv/batch/walltime"),
    )
