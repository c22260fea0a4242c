"""A product on XLA that says what storing its operands in their format costs it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from backends.jax.data import Operand, Window, windows
from backends.jax.kernel import XlaKernel
from backends.jax.widening import wide
from backends.rounding import EXACT, Sampled, depth, relative_error, strips
from backends.seeds import mixed_seed


class Side(NamedTuple):
    """One operand: K is its first axis where it is ``transposed``, else its last; ``rows`` counts the other."""

    transposed: bool
    rows: int

    def parts(self, depth: int) -> tuple[Window, ...]:
        """What is looked at, as rows and columns of the operand as it is stored."""
        along = (0, depth)
        return tuple((along, span) if self.transposed else (span, along) for span in strips(self.rows))


class RoundedKernel(XlaKernel):
    """An ``XlaKernel`` whose description has ``quantisation_error``, as ``backends.rounding`` defines it, of its data of then.

    ``sides`` are those of A and B, ``k`` the depth of the product.
    """

    def __init__(self, format_name: str, sides: tuple[Side, Side], k: int, *parts: Any) -> None:
        self._format_name, self._sides, self._k, self._seed = format_name, sides, k, 0
        super().__init__(*parts)

    def refill(self, seed: int) -> None:
        super().refill(seed)
        self._seed = seed

    def describe(self) -> Mapping[str, Any]:
        error = self._error() if self.inputs and self._format_name not in EXACT else None
        return {**super().describe(), **({} if error is None else {"quantisation_error": error})}

    def _error(self) -> float | None:
        looked_at = depth(self._k, (side.rows for side in self._sides if side.transposed))
        a, b = (self._sampled(place, side, looked_at) for place, side in enumerate(self._sides))
        return relative_error(self._format_name, a, b)

    def _sampled(self, place: int, side: Side, depth: int) -> Sampled:
        parts, operand = side.parts(depth), self.inputs[0][place]
        rows, columns = operand.data.shape
        drawn = windows((rows, columns), self.distribution, mixed_seed(self._seed, 0, place), parts)
        scale = 1.0 if operand.scale is None else float(operand.scale)
        return Sampled(_joined(side, _stored(operand, parts)) * scale, _joined(side, drawn))


def _joined(side: Side, parts: Sequence[jax.Array]) -> Any:
    numbers = [wide(np.asarray(part)) for part in parts]
    return np.concatenate([each.T if side.transposed else each for each in numbers])


def _stored(operand: Operand, parts: Sequence[Window]) -> list[jax.Array]:
    return [operand.data[first:last, left:right] for (first, last), (left, right) in parts]
