"""Sizes of a grouped product, and how they are written."""

import re
from itertools import accumulate
from typing import Any, NamedTuple

from suite.case import Items, Workload, items
from suite.errors import UsageError
from suite.jobs.grouped_gemm.rows import UNIFORM, rows_of

LARGEST_GROUPS = 1024
LARGEST_ROWS = 1 << 20  # of all groups together
LARGEST_TOKENS = 1 << 15  # of a mixture: each one's choice is drawn
LARGEST_SIDE = 1 << 17
LARGEST_ALIGNMENT = 1024
PRODUCTS = ("gate_up", "down")  # of an expert: hidden to twice the intermediate, and the intermediate to hidden


class Sizes(NamedTuple):
    """C[row] = A[row] B[group of the row]: ``m`` rows in all groups together, each B n x k (as a Linear layer's weight).

    ``spread`` says how many of the rows each group has (``rows.SPREADS``), with ``top_k`` groups for each token.  Each group's
    rows are followed by as many more as fill a multiple of ``alignment``: those are multiplied like any other, and count for
    nothing.
    """

    groups: int
    m: int
    n: int
    k: int
    spread: str = UNIFORM
    top_k: int = 1
    alignment: int = 1

    @property
    def rows(self) -> tuple[int, ...]:
        """Of each group, without those that fill up."""
        return rows_of(self.groups, self.m, self.spread, self.top_k)

    @property
    def stored_rows(self) -> tuple[int, ...]:
        """Of each group, with those that fill up."""
        return tuple(-(-count // self.alignment) * self.alignment for count in self.rows)

    @property
    def ends(self) -> tuple[int, ...]:
        """Where each group's stored rows end: what libraries call offsets."""
        return tuple(accumulate(self.stored_rows))

    @property
    def height(self) -> int:
        """Rows of A and of C as they are stored."""
        return sum(self.stored_rows)

    @property
    def busy(self) -> int:
        """Groups that have rows: those whose B is read."""
        return sum(count > 0 for count in self.rows)


def params_of(sizes: Sizes) -> Items:
    """As a workload has them; ``top_k`` and ``alignment`` only where they are not 1."""
    return items({name: value for name, value in sizes._asdict().items() if name not in ("top_k", "alignment") or value > 1})


def sizes_of(workload: Workload) -> Sizes:
    """Of a workload of the grouped_gemm job."""
    params: dict[str, Any] = dict(workload.params)
    return Sizes(**{name: params[name] for name in Sizes._fields if name in params})


class Groups(NamedTuple):
    """``4x8192``: groups, and rows of each in the mean."""

    groups: int
    rows: int


class Weight(NamedTuple):
    """``6144x7168``: N and K."""

    n: int
    k: int


class Experts(NamedTuple):
    """``256/8x7168x2048``: experts / of which each token takes, hidden, intermediate."""

    experts: int
    top_k: int
    hidden: int
    intermediate: int

    def weight(self, product: str) -> Weight:
        """The B of one of ``PRODUCTS``."""
        return Weight(2 * self.intermediate, self.hidden) if product == "gate_up" else Weight(self.hidden, self.intermediate)


def parse_groups(text: str) -> Groups:
    """Raises ``UsageError`` for a text of another form, and for sizes that are too large."""
    groups = Groups(*_numbers(text, r"(\d+)x(\d+)", "groups", "GROUPSxROWS; write for instance 4x8192"))
    _within(text, "groups", groups.groups, LARGEST_GROUPS, "groups")
    _within(text, "groups", groups.groups * groups.rows, LARGEST_ROWS, "rows together")
    return groups


def parse_weight(text: str) -> Weight:
    """Likewise."""
    weight = Weight(*_numbers(text, r"(\d+)x(\d+)", "shape", "NxK; write for instance 6144x7168"))
    for name, size in weight._asdict().items():
        _within(text, "shape", size, LARGEST_SIDE, f"as {name}")
    return weight


def parse_experts(text: str) -> Experts:
    """Likewise."""
    how = "EXPERTS/TOP_KxHIDDENxINTERMEDIATE; write for instance 256/8x7168x2048"
    experts = Experts(*_numbers(text, r"(\d+)/(\d+)x(\d+)x(\d+)", "mixture", how))
    _within(text, "mixture", experts.experts, LARGEST_GROUPS, "experts")
    _within(text, "mixture", experts.top_k, experts.experts, "experts for each token")
    for name in ("hidden", "intermediate"):
        _within(text, "mixture", getattr(experts, name), LARGEST_SIDE // 2, f"as {name}")
    return experts


def _numbers(text: str, pattern: str, what: str, how: str) -> list[int]:
    found = re.fullmatch(pattern, str(text).strip())
    if found is None:
        raise UsageError(f"{what} '{text}' is not {how}")
    return [int(part) for part in found.groups()]


def _within(text: str, what: str, given: int, most: int, named: str) -> None:
    if not 1 <= given <= most:
        raise UsageError(f"{what} '{text}' has {given} {named}; it goes from 1 to {most}")
