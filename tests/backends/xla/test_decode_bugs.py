"""Decoding through XLA with a known bug: a check that passes any of them is worth nothing."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backends.jax.decode.kernel import DecodeKernel
from backends.xla import XlaBackend
from suite.case import Case
from suite.jobs.decode import Sizes, sizes_of
from tests.backends.decode_cases import decode_case, fresh_verdict

WRONG_SCALE = 1.1
TABLE, LENGTHS, QUERIES, KEYS, VALUES = range(5)


class Planted(NamedTuple):
    """A kernel that is right."""

    kernel: DecodeKernel
    case: Case

    @property
    def sizes(self) -> Sizes:
        return sizes_of(self.case.workload)

    def arguments(self) -> list[jax.Array]:
        return list(self.kernel._arguments[0])

    def launch(self, arguments: list[jax.Array]) -> None:
        """The right launch on arguments that are not."""
        self.kernel.outputs[0] = self.kernel._launch.run(tuple(arguments), self.kernel.outputs[0])

    def by_head(self, output: np.ndarray) -> np.ndarray:
        sizes = self.sizes
        return output.reshape(sizes.batch, sizes.q_len, sizes.num_q_heads, -1)


Bug = Callable[[Planted], None]


@pytest.fixture(scope="module")
def backend() -> XlaBackend:
    made = XlaBackend({"platform": "cpu"})
    made.select(0)
    return made


@pytest.fixture(scope="module")
def planted(backend: XlaBackend) -> Callable[[str], Planted]:
    """Kernels by format; each is compiled once."""
    made: dict[str, Planted] = {}

    def of(format_name: str) -> Planted:
        if format_name not in made:
            scaling = "token" if format_name == "int8" else None
            case = decode_case("naive", format_name, lengths="skewed", batch=4, scaling=scaling, backend="xla")
            kernel = backend.prepare(case, 1, seed=3)
            assert isinstance(kernel, DecodeKernel)
            made[format_name] = Planted(kernel, case)
        return made[format_name]

    return of


def changed(place: int, change: Callable[[np.ndarray, Planted], np.ndarray]) -> Bug:
    """The right launch while an operand is wrong."""

    def bug(planted: Planted) -> None:
        arguments = planted.arguments()
        arguments[place] = jnp.asarray(change(np.asarray(arguments[place]).copy(), planted))
        planted.launch(arguments)

    return bug


def stale_page(table: np.ndarray, planted: Planted) -> np.ndarray:
    """The first sequence reads a page of the last one."""
    table[0, 0] = table[-1, 0]
    return table


def dropped_page(lengths: np.ndarray, planted: Planted) -> np.ndarray:
    """A length is divided by a page's and rounded down: what is left of it falls away, or a whole page."""
    size = planted.sizes.page_size
    kept: np.ndarray = np.maximum(1, (lengths - 1) // size * size).astype(lengths.dtype)
    return kept


def without_last_keys(values: np.ndarray, planted: Planted) -> np.ndarray:
    """Tokens of whole pages at the end of the longest sequence are zeros."""
    sequence = int(np.argmax(planted.sizes.tokens))
    pages = np.asarray(planted.arguments()[TABLE])[sequence, : planted.sizes.paging.counts[sequence]]
    values[:, pages[-2:]] = 0
    return values


def larger_queries(queries: np.ndarray, planted: Planted) -> np.ndarray:
    return (queries.astype(np.float32) * WRONG_SCALE).astype(queries.dtype)


def swapped_heads(planted: Planted) -> None:
    planted.kernel.enqueue(0)
    output = np.asarray(planted.kernel.outputs[0]).copy()
    heads = planted.by_head(output)
    heads[:, :, [0, 1]] = heads[:, :, [1, 0]]
    planted.kernel.outputs[0] = jnp.asarray(output)


def unwritten_sequence(planted: Planted) -> None:
    before = planted.by_head(np.asarray(planted.kernel.outputs[0]).copy())[-1:].copy()
    planted.kernel.enqueue(0)
    output = np.asarray(planted.kernel.outputs[0]).copy()
    planted.by_head(output)[-1:] = before
    planted.kernel.outputs[0] = jnp.asarray(output)


def not_a_number(planted: Planted) -> None:
    planted.kernel.enqueue(0)
    rows, columns = planted.kernel.output_shape
    planted.kernel.outputs[0] = planted.kernel.outputs[0].at[rows // 2, columns // 3].set(jnp.nan)


BUGS: dict[str, Bug] = {
    "one key too many": changed(LENGTHS, lambda lengths, _: lengths + 1),
    "one key too few": changed(LENGTHS, lambda lengths, _: np.maximum(1, lengths - 1)),
    "dropped tail page": changed(LENGTHS, dropped_page),
    "dropped tail of values": changed(VALUES, without_last_keys),
    "stale page": changed(TABLE, stale_page),
    "wrong scale of the scores": changed(QUERIES, larger_queries),
    "K and V of another head": lambda planted: planted.launch(
        [jnp.roll(each, 1, 0) if place in (KEYS, VALUES) else each for place, each in enumerate(planted.arguments())]
    ),
    "swapped heads": swapped_heads,
    "unwritten sequence": unwritten_sequence,
    "NaN": not_a_number,
}
OF_SCALES: dict[str, Bug] = {
    "wrong scale of keys": changed(-2, lambda scales, _: scales * np.float32(WRONG_SCALE)),
    "wrong scale of values": changed(-1, lambda scales, _: scales * np.float32(WRONG_SCALE)),
    "scales of another head": changed(-1, lambda scales, _: np.roll(scales, 1, 0)),
}


def assert_found(planted: Planted, bug: Bug) -> None:
    assert not fresh_verdict(planted.kernel, planted.case, 4, lambda: bug(planted)).passed
    assert fresh_verdict(planted.kernel, planted.case, 5).passed


@pytest.mark.parametrize("name", BUGS)
@pytest.mark.parametrize("format_name", ["bf16", "int8"])
def test_each_is_incorrect(planted: Callable[[str], Planted], name: str, format_name: str) -> None:
    assert_found(planted(format_name), BUGS[name])


@pytest.mark.parametrize("name", OF_SCALES)
def test_a_wrong_scale_is_incorrect(planted: Callable[[str], Planted], name: str) -> None:
    assert_found(planted("int8"), OF_SCALES[name])


def test_the_page_table_of_other_data_is_incorrect(planted: Callable[[str], Planted]) -> None:
    given = planted("bf16")
    given.kernel.refill(3)
    old = given.arguments()[TABLE]
    assert not fresh_verdict(given.kernel, given.case, 6, changed_to(given, old)).passed


def test_results_of_other_data_are_incorrect(planted: Callable[[str], Planted]) -> None:
    given = planted("bf16")
    given.kernel.refill(3)
    given.kernel.enqueue(0)
    stale = np.asarray(given.kernel.outputs[0]).copy()

    def keep() -> None:
        given.kernel.outputs[0] = jnp.asarray(stale)

    assert not fresh_verdict(given.kernel, given.case, 6, keep).passed


def changed_to(planted: Planted, table: jax.Array) -> Callable[[], None]:
    def run() -> None:
        planted.launch([table, *planted.arguments()[1:]])

    return run
