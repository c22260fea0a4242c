"""``roofbench run`` in every process of a launch: rank 0 measures, the others keep a rank each."""

import os
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from suite.errors import UsageError
from suite.ranks.launched import Launched, launched

if TYPE_CHECKING:
    from suite.settings import RunConfig

JOB = "collective"
WORLD_SIZES = f"jobs.{JOB}.world_sizes"
EXIT_LOST = 1

Measure = Callable[["RunConfig", Sequence[str]], int]


def taking_part(config: "RunConfig", overrides: Sequence[str], measure: Measure) -> int:
    """What this process does for a run: all of it unless a launcher started several of them for the collective job."""
    found = launched(os.environ) if JOB in config.jobs else None
    if found is None:
        return measure(config, overrides)
    config = joined(config, overrides, found.world)
    return _measure(config, overrides, measure, found) if found.rank == 0 else _keep(config, found)


def stores_here(config: "RunConfig") -> bool:
    """Whether this process is the one that opens the store of a run: the other ranks' host may have no such folder."""
    found = launched(os.environ) if JOB in config.jobs else None
    return found is None or found.rank == 0


def joined(config: "RunConfig", overrides: Sequence[str], world: int) -> "RunConfig":
    """The configuration over the launch's ranks: all of them, or the first so many, where world sizes are named by hand."""
    from suite.jobs.collective.settings import CollectiveSettings, check_settings

    settings = config.jobs[JOB]
    assert isinstance(settings, CollectiveSettings), "the job's own"
    named = any(each.partition("=")[0].lstrip("+") == WORLD_SIZES for each in overrides)
    sizes = list(settings.world_sizes) if named else [world]
    if max(sizes) > world:
        raise UsageError(f"{WORLD_SIZES} has {max(sizes)}, and the launcher started {world} ranks; start more, or take fewer")
    settings = replace(settings, world_sizes=sizes, joined=world)
    check_settings(settings)
    return replace(config, jobs={**config.jobs, JOB: settings})


def record_path(store: str, rank: int) -> Path:
    """The file of one rank, beside the store's; on another host it is there on its own."""
    path = Path(os.path.expanduser(store.removeprefix("sqlite:///")))  # noqa: PTH111  # rank 0 refuses an unknown user's
    return path.with_name(f"{path.name}.rank-{rank}.jsonl")


def _measure(config: "RunConfig", overrides: Sequence[str], measure: Measure, found: Launched) -> int:
    from suite.commands.output import say
    from suite.ranks.hub import Hub

    with Hub(found) as hub:
        places = hub.wait(config.measure.deadlines.start_s, socket.gethostname(), say)
        with places.telling(str(record_path(config.store.url, 0).absolute())):
            return measure(config, overrides)


def _keep(config: "RunConfig", found: Launched) -> int:
    """Silent on standard output, which is rank 0's."""
    from suite.ranks.keeper import Keeper, find_hub

    path = record_path(config.store.url, found.rank).absolute()
    line = find_hub(found, socket.gethostname(), config.measure.deadlines.start_s)
    keeper = Keeper(line, str(path))
    ended = keeper.serve()
    if not ended:
        sys.stderr.write(f"roofbench: rank {found.rank} lost rank 0\n")
    return 0 if ended else EXIT_LOST
