"""Coverage and cost of the interval in use, and of others, on made-up processes and on recordings: a table on stdout.

    python -m tests.recordings.compare [FOLDER]

A cell says of how many in 100 replays the interval held the median, and how long the rule sampled in the median.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from tests.measure.processes import HELD_MORE, HIDDEN, PROMISED, UNSEEN
from tests.measure.replays import REPLAYS, Settings, Tape, replays
from tests.recordings.constructions import CONSTRUCTIONS, Construction
from tests.recordings.recording import FOLDER, Recording


def rows(folder: Path) -> Iterator[tuple[str, Callable[[], Tape]]]:
    for group in (PROMISED, HELD_MORE, HIDDEN, UNSEEN):
        yield from group.items()
    for path in sorted(folder.glob("*.json")):
        yield path.stem, lambda path=path: Recording.read(path).tape()


def cell(tape: Tape, settings: Settings, construction: Construction) -> str:
    with mock.patch("suite.measure.stopping.median_interval", construction):
        tally = replays(tape, settings)
    return f"{100 * tally.covered / REPLAYS:.0f} at {tally.wall_s:.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.recordings.compare", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--min-time", type=float, default=Settings().min_time_s, help="measure.min_time_s")
    parser.add_argument("--only", nargs="*", default=list(CONSTRUCTIONS), help="constructions")
    given = parser.parse_args()
    print("| |", " | ".join(given.only), "|\n|---|" + "---|" * len(given.only))
    for name, make in rows(given.folder):
        tape = make()
        cells = [cell(tape, Settings(min_time_s=given.min_time), CONSTRUCTIONS[each]) for each in given.only]
        print(f"| {name} |", " | ".join(cells), "|")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
