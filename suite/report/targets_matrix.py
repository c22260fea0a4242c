"""The matrix of programs and targets for a page that does not move: a table a kind, in the order of the catalogue's kernels."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from suite.targets.derived import LEAVES_OUT
from suite.targets.names import BY_NAME, TARGETS, TRITON, XLA
from suite.targets.record import Compiled

TITLE = "Compiled for hardware that need not be there"
ABOUT = (
    "Evidence compiled: no program of these tables has run. That one compiles does not make it native; the marks say what it "
    "multiplies in. Occupancy is what registers, shared memory and blocks leave at most. XLA's estimate of a time "
    f"{LEAVES_OUT}."
)
TITLES = {TRITON: "Our kernels, by Triton", XLA: "Our jobs, by XLA"}


class Matrix(NamedTuple):
    """``rows`` have a program and its cell for each of ``targets``, ``None`` where it was not compiled."""

    title: str
    targets: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Compiled | None, ...]], ...]


def ordered(cells: Iterable[Compiled]) -> list[Compiled]:
    """Those of known targets, by kernel, program and target."""
    places = {target.name: place for place, target in enumerate(TARGETS)}
    known = [cell for cell in cells if cell.target in places]
    return sorted(known, key=lambda cell: (cell.kernel, cell.program, places[cell.target]))


def matrices(cells: Sequence[Compiled]) -> list[Matrix]:
    """One for each kind that has cells."""
    return [matrix for kind in TITLES if (matrix := _matrix(kind, cells)).rows]


def _matrix(kind: str, cells: Sequence[Compiled]) -> Matrix:
    own = [cell for cell in cells if BY_NAME[cell.target].kind == kind]
    targets = tuple(target.name for target in TARGETS if any(cell.target == target.name for cell in own))
    by_place = {(cell.program, cell.target): cell for cell in own}
    programs = dict.fromkeys(cell.program for cell in own)
    rows = tuple((program, tuple(by_place.get((program, target)) for target in targets)) for program in programs)
    return Matrix(TITLES[kind], targets, rows)
