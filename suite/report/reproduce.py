"""The command that runs a run again, as it must work in a clean clone."""

import shlex
from typing import NamedTuple

from suite.report.privacy import Scrubber, without_place_overrides
from suite.rows import RunInfo

_CONFIG_FLAGS = ("--config-dir", "-cd", "--config-path", "-cp", "--config-name", "-cn")


class Command(NamedTuple):
    """A shell line, and what a reader must know before trusting that it repeats the run."""

    line: str
    cautions: tuple[str, ...]


def rerun_command(info: RunInfo, scrubber: Scrubber) -> Command:
    """``roofbench run`` with the run's own overrides, less those that say where results go."""
    given = without_place_overrides(info.overrides)
    kept = [scrubber.text(override) for override in given]
    return Command(shlex.join(["roofbench", "run", *kept]), tuple(_cautions(info, tuple(kept) != given)))


def _cautions(info: RunInfo, scrubbed: bool) -> list[str]:
    found = (
        ("the working tree had changes that are not in the commit", bool(info.dirty)),
        ("the run read a configuration folder of its own; the resolved configuration below holds what it said", _local(info)),
        ("an override held a private name or path, which is masked here", scrubbed),
        (f"the run is {info.status}: {info.finished} of {info.planned} planned cases have a result", info.status != "complete"),
    )
    return [text for text, holds in found if holds]


def _local(info: RunInfo) -> bool:
    return any(word.split("=", 1)[0] in _CONFIG_FLAGS for word in info.argv)
