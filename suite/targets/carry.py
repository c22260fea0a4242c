"""A matrix carried out: what the store knows is taken from there, the rest is compiled and stored cell by cell."""

import os
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from suite.outcome import Outcome
from suite.targets.listing import Listing
from suite.targets.names import Program, Target
from suite.targets.pool import Asked, Pool
from suite.targets.record import LIMIT_S, Compiled, Place, key_of


class Cell(NamedTuple):
    """What is wanted: a program on a target."""

    place: Place
    kind: str
    missing: str


class Ended(NamedTuple):
    """A cell as it came, and whether it was in the store already."""

    compiled: Compiled
    is_cached: bool


def cells(listing: Listing, programs: Sequence[Program], targets: Sequence[Target]) -> list[Cell]:
    """Every program on every target of its kind, target by target."""
    return [
        Cell(_place(listing, program, target), program.kind, listing.missing_for(target))
        for target in targets
        for program in programs
        if program.kind == target.kind
    ]


def _place(listing: Listing, program: Program, target: Target) -> Place:
    versions = listing.versions_for(target)
    return Place(key_of(program.digest, target.name, versions), program.kernel, program.name, target.name, versions)


def serves(known: Compiled, limit_s: float) -> bool:
    """Whether a stored cell answers: one that ran out of time does not where more is given now, nor does one that failed, as it
    may have for want of memory or disk.
    """
    if known.outcome in (Outcome.CRASHED, Outcome.ERROR):
        return False
    return known.outcome is not Outcome.TIMEOUT or float(known.facts.get(LIMIT_S, 0.0)) >= limit_s


def is_open(cell: Cell, known: Mapping[str, Compiled], limit_s: float) -> bool:
    """Whether a cell has to be compiled, and can be."""
    found = known.get(cell.place.key)
    return not cell.missing and (found is None or not serves(found, limit_s))


def carry_out(
    wanted: Sequence[Cell],
    known: Mapping[str, Compiled],
    keep: Callable[[Compiled], None],
    *,
    jobs: int,
    limit_s: float,
    make_pool: Callable[..., Any] = Pool,
) -> Generator[Ended, None, None]:
    """Every cell once: those that are known first.  ``keep`` is called with each that was compiled, before it is given.

    What could not be tried, for want of a tool, is given and not kept: nothing was found out.
    """
    open_cells = []
    for cell in wanted:
        found = known.get(cell.place.key)
        if found is not None and serves(found, limit_s):
            yield Ended(found, is_cached=True)
        elif cell.missing:
            yield Ended(Compiled.answered(cell.place, _missing(cell.missing), datetime.now(UTC)), is_cached=False)
        else:
            open_cells.append(cell)
    if open_cells:
        yield from _compiled(open_cells, keep, jobs, limit_s, make_pool)


def _compiled(
    wanted: Sequence[Cell], keep: Callable[[Compiled], None], jobs: int, limit_s: float, make_pool: Callable[..., Any]
) -> Iterator[Ended]:
    """In Triton's own cache of an empty folder, so that what is stored as compiled was."""
    places = {(cell.place.program, cell.place.target): cell.place for cell in wanted}
    with tempfile.TemporaryDirectory(prefix="roofbench-targets-") as cache:
        environment = {**os.environ, "PYTHONSAFEPATH": "1", "TRITON_CACHE_DIR": cache}
        pool = make_pool(jobs, limit_s, environment)
        for asked, answer in pool.run([Asked(cell.place.program, cell.place.target, cell.kind) for cell in wanted]):
            ended = Compiled.answered(places[asked.program, asked.target], answer, datetime.now(UTC))
            keep(ended)
            yield Ended(ended, is_cached=False)


def _missing(reason: str) -> dict[str, Any]:
    return {"outcome": Outcome.UNSUPPORTED, "reason": reason, "configuration": "", "facts": {}, "seconds": 0.0}
