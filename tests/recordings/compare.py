"""Coverage and cost of the interval in use, and of others, on made-up processes and on recordings: tables on stdout.

    python -m tests.recordings.compare [FOLDER]

A cell says of how many in 100 replays the interval held the median, and how long the rule sampled in the median.  Of a
recording it also says how often the median of the stretch twice as long around the samples was held.
"""

import argparse
from pathlib import Path
from unittest import mock

from tests.measure.processes import HELD_MORE, HIDDEN, PROMISED, UNSEEN
from tests.measure.replays import REPLAYS, Settings, Tape, held_around, settings_for, tally, wander
from tests.recordings.constructions import CONSTRUCTIONS
from tests.recordings.recording import FOLDER, Recording


def made_up(names: list[str], min_time_s: float) -> None:
    _head("process", names)
    for group in (PROMISED, HELD_MORE, HIDDEN, UNSEEN):
        for process, make in group.items():
            tape = make()
            _row(process, [_cell(tape, Settings(min_time_s=min_time_s), name) for name in names])


def recorded(names: list[str], folder: Path) -> None:
    _head("recording: whole, around", names)
    for path in sorted(folder.glob("*.json")):
        recording = Recording.read(path)
        tape = recording.tape()
        title = f"{recording.name}, wander {wander(tape):.2%}"
        _row(title, [_cell(tape, settings_for(tape), name, around=True) for name in names])


def _cell(tape: Tape, settings: Settings, name: str, around: bool = False) -> str:
    with mock.patch("suite.measure.stopping.median_interval", CONSTRUCTIONS[name]):
        got = tally(tape, settings)
        also = f", {100 * held_around(tape, settings) / REPLAYS:.0f}" if around else ""
        in_cycles = f", cycles {100 * got.covered_cycles / REPLAYS:.0f}" if tape.cycles else ""
    return f"{100 * got.covered / REPLAYS:.0f}{also}{in_cycles} at {got.wall_s:.2f} s"


def _head(first: str, names: list[str]) -> None:
    print()
    _row(first, names)
    print("|---" * (len(names) + 1) + "|")


def _row(first: str, cells: list[str]) -> None:
    print("|", " | ".join([first, *cells]), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.recordings.compare", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--min-time", type=float, default=Settings().min_time_s, help="measure.min_time_s of the made-up ones")
    parser.add_argument("--only", action="append", choices=list(CONSTRUCTIONS), help="a construction; may be repeated")
    given = parser.parse_args()
    names = given.only or list(CONSTRUCTIONS)
    made_up(names, given.min_time)
    recorded(names, given.folder)


if __name__ == "__main__":
    main()
