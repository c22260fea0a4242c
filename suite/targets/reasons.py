"""Why cells did not compile: each reason once, with the programs and targets that have it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from suite.targets.record import Compiled

NAMED = 3  # programs, before the rest is counted
HERE = "this target"


class Reason(NamedTuple):
    """``where`` is for people: ``gemm.bf16, gemm.fp16, gemm.tf32 and 43 more on gfx1100``."""

    where: str
    why: str
    is_failure: bool


def reasons(cells: Iterable[Compiled]) -> list[Reason]:
    """Those that should have compiled first."""
    grouped: dict[tuple[bool, str], list[Compiled]] = {}
    for cell in cells:
        if cell.reason:
            why = cell.reason.replace(cell.target, HERE)  # so that what is said of several targets alike stands once
            grouped.setdefault((not cell.failed, why), []).append(cell)
    return [
        Reason(where(found), why, not offered) for (offered, why), found in sorted(grouped.items(), key=lambda each: each[0][0])
    ]


def where(cells: Sequence[Compiled]) -> str:
    """Programs and targets for people, of many programs the first."""
    programs, targets = (list(dict.fromkeys(getattr(cell, name) for cell in cells)) for name in ("program", "target"))
    more = f" and {len(programs) - NAMED} more" if len(programs) > NAMED else ""
    return f"{', '.join(programs[:NAMED])}{more} on {', '.join(targets)}"
