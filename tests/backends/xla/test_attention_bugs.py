"""Attention through XLA with a known bug: a check that passes any of them is worth nothing."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backends.jax.attention.kernel import RowwiseKernel
from backends.jax.attention.layout import HEADS_FIRST, ROWS_FIRST, Layout
from backends.jax.attention.naive import Naive
from backends.xla import XlaBackend
from suite.case import Case
from suite.jobs.attention import Sizes, sizes_of
from tests.backends.attention_cases import attention_case, fresh_verdict

TAIL = 16
WRONG_SCALE = 1.1


class Off(Naive):
    """Attention that is wrong in one place: its bounds, the scale of its scores, or the last keys."""

    def __init__(self, sizes: Sizes, last: int = 0, first: int = 0, scale: float = 1.0, keys: int = 0) -> None:
        super().__init__(sizes)
        self._scale *= scale
        self._last, self._first, self._dropped = last, first, keys

    def _masked(self, scores: jax.Array) -> jax.Array:
        first, last = self._sizes.bounds
        query, key = (jax.lax.broadcasted_iota(jnp.int32, scores.shape, axis) for axis in (2, 3))
        apart = key - query % self._sizes.q_len
        seen = key < self._sizes.kv_len - self._dropped
        if last is not None:
            seen &= apart <= last + self._last
        if first is not None:
            seen &= apart >= first + self._first
        return jnp.where(seen | (key == 0), scores, -jnp.inf)  # no query is left without a key


class Planted(NamedTuple):
    """A kernel that is right, and where its results lie."""

    kernel: RowwiseKernel
    case: Case
    layout: Layout

    @property
    def sizes(self) -> Sizes:
        return sizes_of(self.case.workload)

    def output(self) -> np.ndarray:
        """What stands in the first set's output, to be changed."""
        return np.asarray(self.kernel.outputs[0]).copy()

    def put(self, output: np.ndarray) -> None:
        self.kernel.outputs[0] = jnp.asarray(output)

    def arguments(self) -> list[jax.Array]:
        return [each.data for each in self.kernel.inputs[0]]

    def by_head(self, output: np.ndarray) -> np.ndarray:
        """O as (batch, heads, rows, columns), a view."""
        sizes = self.sizes
        shape = self.layout.shape(sizes.batch, sizes.num_q_heads, sizes.q_len, sizes.v_head_dim)
        found = output.reshape(shape)
        return found if self.layout is HEADS_FIRST else found.swapaxes(1, 2)


Bug = Callable[[Planted], None]


@pytest.fixture(scope="module")
def backend() -> XlaBackend:
    made = XlaBackend({"platform": "cpu"})
    made.select(0)
    return made


@pytest.fixture(scope="module")
def planted(backend: XlaBackend) -> Callable[..., Planted]:
    """Kernels by mask, direction and implementation; each is compiled once."""
    made: dict[tuple[str, str, str], Planted] = {}

    def of(mask: str = "causal", direction: str = "forward", implementation: str = "naive") -> Planted:
        key = (mask, direction, implementation)
        if key not in made:
            case = attention_case(implementation, length=200, mask=mask, direction=direction, backend="xla")
            kernel = backend.prepare(case, 1, seed=3)
            assert isinstance(kernel, RowwiseKernel)
            made[key] = Planted(kernel, case, HEADS_FIRST if implementation == "naive" else ROWS_FIRST)
        return made[key]

    return of


def computed(**changes: Any) -> Bug:
    """Write what attention with a change computes."""

    def bug(planted: Planted) -> None:
        wrong = Off(planted.sizes, **changes)
        results = jax.jit(wrong.backward if planted.sizes.is_backward else wrong.forward)(*planted.arguments())
        columns = planted.kernel.output_shape[1]
        planted.put(np.concatenate([np.asarray(each).reshape(-1, columns) for each in results]))

    return bug


def swapped_heads(planted: Planted) -> None:
    planted.kernel.enqueue(0)
    output = planted.output()
    heads = planted.by_head(output)
    heads[:, [0, 1]] = heads[:, [1, 0]]
    planted.put(output)


def wrong_scale(planted: Planted) -> None:
    planted.kernel.enqueue(0)
    planted.kernel.outputs[0] = planted.kernel.outputs[0] * WRONG_SCALE


def unwritten_tail(planted: Planted) -> None:
    before = planted.by_head(planted.output())[:, :, -TAIL:].copy()
    planted.kernel.enqueue(0)
    output = planted.output()
    planted.by_head(output)[:, :, -TAIL:] = before
    planted.put(output)


def values_of_another_head(planted: Planted) -> None:
    q, k, v = planted.arguments()
    axis = planted.layout.heads_axis
    rolled = [jnp.roll(each, 1, axis) for each in (k, v)]
    columns = planted.kernel.output_shape[1]
    planted.kernel.outputs[0] = planted.kernel._plan.compute(q, *rolled).reshape(-1, columns)


def not_a_number(planted: Planted) -> None:
    planted.kernel.enqueue(0)
    rows, columns = planted.kernel.output_shape
    planted.kernel.outputs[0] = planted.kernel.outputs[0].at[rows // 2, columns // 3].set(jnp.nan)


OFF = {
    "mask off by one": computed(last=1),
    "mask one short": computed(last=-1),
    "wrong scale of the scores": computed(scale=WRONG_SCALE),
    "dropped tail of keys": computed(keys=TAIL),
}
WINDOW = {"window off by one": computed(first=-1), "window one short": computed(first=1)}
BROKEN = {
    "swapped heads": swapped_heads,
    "wrong scale of the result": wrong_scale,
    "unwritten tail": unwritten_tail,
    "K and V of another head": values_of_another_head,
    "NaN": not_a_number,
}


def assert_found(planted: Planted, bug: Bug) -> None:
    assert not fresh_verdict(planted.kernel, planted.case, 4, lambda: bug(planted)).passed
    assert fresh_verdict(planted.kernel, planted.case, 5).passed


@pytest.mark.parametrize("name", OFF)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_wrong_computation_is_incorrect(planted: Callable[..., Planted], name: str, direction: str) -> None:
    assert_found(planted(direction=direction), OFF[name])


@pytest.mark.parametrize("name", WINDOW)
def test_a_wrong_window_is_incorrect(planted: Callable[..., Planted], name: str) -> None:
    assert_found(planted("sliding_window"), WINDOW[name])


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("implementation", ["naive", "library_math"])
def test_a_wrong_launch_is_incorrect(planted: Callable[..., Planted], name: str, implementation: str) -> None:
    assert_found(planted(implementation=implementation), BROKEN[name])


def test_what_is_planted_is_right_without_its_bug(planted: Callable[..., Planted]) -> None:
    """The wrong computations differ from the right one by their change alone."""
    for direction in ("forward", "backward"):
        given = planted(direction=direction)
        assert fresh_verdict(given.kernel, given.case, 4, partial(computed(), given)).passed


def test_results_of_other_data_are_incorrect(planted: Callable[..., Planted]) -> None:
    given = planted()
    given.kernel.enqueue(0)
    stale = given.output()
    assert not fresh_verdict(given.kernel, given.case, 6, lambda: given.put(stale)).passed
