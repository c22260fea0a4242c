"""``roofbench run`` in every process of a launch: rank 0 measures, the others keep a rank each."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from suite.errors import UsageError
from suite.interrupts import was_told_to_end
from suite.ranks.again import LAUNCHERS, Launch
from suite.ranks.launched import Launched, Part, launched, part

if TYPE_CHECKING:
    from suite.jobs.collective.settings import CollectiveSettings
    from suite.settings import RunConfig

JOB = "collective"
WORLD_SIZES, JOINED = f"jobs.{JOB}.world_sizes", f"jobs.{JOB}.joined"
SET_BY_THE_RUN = (JOINED, f"{JOINED}_by", f"{JOINED}_per_host")
EXIT_LOST = 1
# For the line of rank 0, which a launcher that ends all ranks when one fails would keep it from writing.
QUIET_S = 10.0
# For the launcher to end the run itself where a rank is gone, as torchrun and mpirun do: a second signal would cut it short.
ENDED_BY_LAUNCHER_S = 5.0
LOOK_EVERY_S = 0.05

Measure = Callable[["RunConfig", Sequence[str]], int]


def taking_part(config: "RunConfig", overrides: Sequence[str], measure: Measure) -> int:
    """What this process does for a run: all of it unless a launcher started several of them for collectives.

    What a run that goes on measures stands in its store, which rank 0 alone opens: the others keep a rank for whatever it is.
    """
    own = part(os.environ)
    with told_by_rank_0(own):
        config = placed(config, overrides, own)
    found = launched(os.environ) if config.resume or JOB in config.jobs else None
    if found is None:
        return measure(config, overrides)
    return _measure(config, overrides, measure, found) if found.rank == 0 else _keep(config, found)


def is_first() -> bool:
    """Whether this process opens the store and prints: the other ranks' host may have no such folder."""
    own = part(os.environ)
    return own is None or own.rank == 0


@contextmanager
def told_by_rank_0(own: Part | None) -> Iterator[None]:
    """What all ranks are refused for alike is one line for the launch: the others wait to be ended, then leave as rank 0 does.

    Where the variables are merely set, nobody else may be there to say it.
    """
    try:
        yield
    except UsageError as error:
        if own is None or own.rank == 0 or not own.watched:
            raise
        time.sleep(QUIET_S)
        raise SystemExit(error.exit_status) from error


def placed(config: "RunConfig", overrides: Sequence[str], own: Part | None) -> "RunConfig":
    """The configuration over the ranks of this launch; one that goes on has its own, for which see ``refuse_elsewhere``.

    ``UsageError`` for a launch whose ranks would measure the same devices, each in a run of its own, and for settings of
    another launch.  One rank a host is a sweep of every host.
    """
    refuse_joined_by_hand(overrides)
    if config.resume:
        return config
    ranks = joined_ranks(config)
    if ranks:  # of a file that repeats a launched run: it says which worlds there are
        if own is None or own.world != ranks:
            raise UsageError(
                f"{JOINED}={ranks} is of a run of {ranks} ranks that {LAUNCHERS} started, and {_started(own)}; "
                f"{start_again(ranks)}, or set it to 0 for a run that starts its ranks itself"
            )
        return joined_by(config, own)
    if own is None:
        return config
    if JOB not in config.jobs:
        if own.alone:
            return config
        raise UsageError(
            f"{own.launcher} started {own.world} ranks, and there are no collectives for them ({', '.join(config.jobs)}): each "
            f"would be a run of its own; start it once, without {own.launcher}, or with one rank a host{_unset(own)}"
        )
    return joined_by(joined(config, overrides, own.world), own)


def refuse_elsewhere(config: "RunConfig", run: str, own: Part | None, command: str) -> None:
    """``UsageError`` where a stored run of that configuration cannot go on with the ranks that there are.

    It would store what it has left as cases that cannot run.  ``command`` is the one that goes on.
    """
    ranks = joined_ranks(config)
    if ranks and (own is None or own.world != ranks):
        settings = _settings(config)
        line = Launch(ranks, settings.joined_by, settings.joined_per_host).under(command)
        line = line if line != command else f"torchrun --nproc-per-node {ranks} --no-python {command}"
        raise UsageError(
            f"run {run} was started under {LAUNCHERS} with {ranks} ranks, and {_started(own)}; {start_again(ranks)}, "
            f"for instance {line}"
        )
    if not ranks and own is not None:
        raise UsageError(
            f"run {run} was started without a launcher, and {_started(own)}; start it once, without {own.launcher}"
            f"{_unset(own)}: {command}"
        )


def refuse_joined_by_hand(overrides: Sequence[str]) -> None:
    """``UsageError`` for a number of joined ranks that somebody gives: joined is who was started, not who was asked for."""
    for override in overrides:
        if override.lstrip("+~").partition("=")[0] in SET_BY_THE_RUN:
            raise UsageError(
                f"{override} cannot be set: {JOINED} is how many ranks {LAUNCHERS} started, which the run finds out; leave it "
                "out, and start the run under one of them"
            )


def joined_ranks(config: "RunConfig") -> int:
    """How many ranks of a launcher a run has; 0 for one that no launcher started."""
    return _settings(config).joined if JOB in config.jobs else 0


def start_again(ranks: int) -> str:
    """What to do to measure with as many ranks of a launcher."""
    return Launch(ranks).start_again


def _settings(config: "RunConfig") -> "CollectiveSettings":
    from suite.jobs.collective.settings import CollectiveSettings

    settings = config.jobs[JOB]
    assert isinstance(settings, CollectiveSettings), "the job's own"
    return settings


def _started(own: Part | None) -> str:
    return "none of them started this" if own is None else f"{own.launcher} started {own.world}"


def _unset(own: Part) -> str:
    """Variables outlive a launch, in a shell or in a container."""
    return "" if own.watched else " (unset its variables, such as RANK and WORLD_SIZE, where none of it is running)"


def joined(config: "RunConfig", overrides: Sequence[str], world: int) -> "RunConfig":
    """The configuration over the launch's ranks: all of them, or the first so many, where world sizes are named by hand."""
    from suite.jobs.collective.settings import check_settings

    settings = _settings(config)
    named = any(each.partition("=")[0].lstrip("+") == WORLD_SIZES for each in overrides)
    sizes = list(settings.world_sizes) if named else [world]
    if max(sizes) > world:
        raise UsageError(f"{WORLD_SIZES} has {max(sizes)}, and the launcher started {world} ranks; start more, or take fewer")
    settings = replace(settings, world_sizes=sizes, joined=world)
    check_settings(settings)
    return replace(config, jobs={**config.jobs, JOB: settings})


def joined_by(config: "RunConfig", own: Part) -> "RunConfig":
    """The configuration with the launcher of the ranks, for whoever starts them again."""
    settings = replace(_settings(config), joined_by=own.launcher, joined_per_host=own.per_host)
    return replace(config, jobs={**config.jobs, JOB: settings})


def record_path(store: str, rank: int) -> Path:
    """The file of one rank, beside the store's; on another host it is there on its own."""
    path = Path(os.path.expanduser(store.removeprefix("sqlite:///")))  # noqa: PTH111  # rank 0 refuses an unknown user's
    return path.with_name(f"{path.name}.rank-{rank}.jsonl")


def _measure(config: "RunConfig", overrides: Sequence[str], measure: Measure, found: Launched) -> int:
    from suite.commands.output import say
    from suite.ranks.hub import Hub

    with Hub(found, lambda rank: end_without(rank, found.world)) as hub:
        places = hub.wait(config.measure.deadlines.start_s, socket.gethostname(), say)
        if places.hosts > 1:  # no store keeps a host's name
            say(places.hosts_words)
        with places.telling(str(record_path(config.store.url, 0).absolute())):
            return measure(config, overrides)


def end_without(rank: int, world: int) -> None:
    """Interrupt this process's run, which wants a rank that is gone, unless its launcher does so first."""
    from suite.commands.output import say

    until = time.monotonic() + ENDED_BY_LAUNCHER_S
    while time.monotonic() < until:
        if was_told_to_end():
            return
        time.sleep(LOOK_EVERY_S)
    say(f"rank {rank} of {world} is gone, and the cases that are left want it: the run ends here")
    os.kill(os.getpid(), signal.SIGTERM)


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
