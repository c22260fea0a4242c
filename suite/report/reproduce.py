"""The command that runs a run again, as it must work in a clean clone."""

import shlex
from typing import NamedTuple

from suite.experiment_file import PLACE, command_of, experiment_file, missing_elsewhere, own_folder
from suite.importers.origin import imported_file, was_imported
from suite.ranks.again import under_launcher
from suite.report.privacy import Scrubber, without_place_overrides
from suite.rows import RunInfo


class Command(NamedTuple):
    """A shell line, what a reader must know before trusting that it repeats the run, and the run as an experiment file.

    ``needs_file`` says that the line reads that file, because the run was composed from a folder which the reader lacks.
    """

    line: str
    cautions: tuple[str, ...]
    file: str
    needs_file: bool


def rerun_command(info: RunInfo, scrubber: Scrubber) -> Command:
    """``roofbench run`` with the run's own overrides, less those that say where results go; or with its experiment file."""
    if was_imported(info):
        line = shlex.join(["roofbench", "import", scrubber.text(imported_file(info))])
        return Command(line, ("another tool measured this; the command reads its log again",), "", needs_file=False)
    what, needed = f"run {info.run}", own_folder(info)
    config = scrubber.json(info.config)
    file = experiment_file(config, what)
    given = without_place_overrides(info.overrides)
    kept = [scrubber.text(override) for override in given]
    line = command_of(config) if needed else under_launcher(config, shlex.join(["roofbench", "run", *kept]))
    masked = file != experiment_file(info.config, what) if needed else tuple(kept) != given
    return Command(line, tuple(_cautions(info, scrubber, needed, masked)), file, needed)


def _cautions(info: RunInfo, scrubber: Scrubber, needs_file: bool, masked: bool) -> list[str]:
    found = (
        ("the working tree had changes that are not in the commit", bool(info.dirty)),
        (f"the run read a configuration folder of its own; save the settings below as {PLACE} first", needs_file),
        ("a setting held a private name or path, which is masked here", masked),
        (f"the run is {info.status}: {info.finished} of {info.planned} planned cases have a result", info.status != "complete"),
    )
    return [*(text for text, holds in found if holds), *missing_elsewhere(scrubber.json(info.config))]
