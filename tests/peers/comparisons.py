"""Comparisons of kernels one after another while there is time: compiled ahead, their rows shown as they come."""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

import torch

from tests.peers.bench import NO_TIME
from tests.peers.compiler import Compilation, Compiler
from tests.peers.part import Part, Session
from tests.peers.record import Row, Verdict


class Comparison(NamedTuple):
    """What is measured in turns; ``compilations`` run ahead of ``measured``, in processes of their own."""

    compilations: Mapping[Hashable, Compilation]
    measured: Callable[[], Sequence[Row]]


class Shown(NamedTuple):
    """Where rows of a part go; ``width`` is that of their names on the terminal."""

    session: Session
    part: Part
    width: int

    def show(self, row: Row) -> None:
        """Into the record, and at once onto the terminal: a run that is killed has shown what it had."""
        self.session.record.add(row)
        cells = (f"{cell:>9}" for cell in row.cells)
        print("  ".join([f"{row.name:<{self.width}}", *cells, row.verdict.value, row.note]), flush=True)


def one_by_one(shown: Shown, todo: Sequence[Comparison], fewest_seconds: float) -> None:
    """Those that ``fewest_seconds`` are left for; all are given to the compiler first."""
    compiler = Compiler()
    for comparison in todo:
        compiler.ask(comparison.compilations)
    try:
        for comparison in todo:
            if shown.session.deadline.left_s() < fewest_seconds:
                shown.show(shown.part.without("the rest", NO_TIME, Verdict.ABSENT))
                break
            began_s = time.monotonic()
            compiler.wait(comparison.compilations)
            waited_s = time.monotonic() - began_s
            for row in comparison.measured():
                shown.show(row)
            torch.cuda.empty_cache()
            print(f"    {time.monotonic() - began_s:.1f} s, {waited_s:.1f} of them for the compiler", flush=True)
    finally:
        compiler.close()
