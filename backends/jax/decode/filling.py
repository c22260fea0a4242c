"""The operands of one input set: page table, lengths, queries, keys and values in their pages.

Numbers are drawn for all places, some pages at a time, and rounded as the cache's format has them.  Two kinds of places hold
others.  Where no token is there are numbers that a result shows wherever a kernel reads them.  And each sequence's latest key
begins with the numbers of one of its queries in each group, as many as make it weigh about as much in that query's result as
all other keys together: a key that is left out at the end, or one too many, would else be lost in a long sequence's rounding.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from backends.decode_data import LOUD, meeting_columns
from backends.jax.data import DISTRIBUTIONS, Operand, drawn, viewed, written_as
from backends.jax.decode.stored import DTYPES, Storing
from backends.jax.decode.table import Table, cache_pages, drawn_table
from backends.jax.widening import wide
from backends.seeds import mixed_seed
from suite.jobs.decode import Sizes

CHUNK_NUMBERS = 1 << 22  # drawn, rounded and put into their pages at a time


class Step(NamedTuple):
    """What a decoding step is given: ``columns`` of the page table, and how the cache is stored.

    A tensor of the cache is (kv_heads, pages and a spare one, page_size, columns): in this order a product over the tokens of
    gathered pages finds its axes as they lie, and JAX's kernel for TPUs asks for it.
    """

    sizes: Sizes
    activation: str
    storing: Storing
    columns: int

    @property
    def caches(self) -> tuple[int, ...]:
        """Columns of each tensor of the cache: keys, and values unless they are the first columns of the keys."""
        sizes = self.sizes
        return (sizes.head_dim,) if sizes.has_shared_values else (sizes.head_dim, sizes.v_head_dim)

    @property
    def rows(self) -> tuple[int, int, int]:
        """Sequences, new tokens of each, query heads of each."""
        return self.sizes.batch, self.sizes.q_len, self.sizes.num_q_heads


class Special(NamedTuple):
    """Places of one tensor that hold other numbers: where no token is, and each sequence's latest token."""

    unused: NDArray[np.int64]
    loud: NDArray[np.float32]  # (kv_heads, columns)
    latest: NDArray[np.int64]
    met: NDArray[np.float32]  # (kv_heads, batch, columns of a query); of no columns for values


def filled(step: Step, distribution: str, seed: int) -> tuple[Operand, ...]:
    """Table and lengths in int32, queries, keys and values, the last two with scales where their format has them."""
    sizes = step.sizes
    table = drawn_table(sizes, step.columns, mixed_seed(seed, 0))
    q = drawn((*step.rows, sizes.head_dim), DTYPES[step.activation], distribution, mixed_seed(seed, 1))
    caches = [
        _cache(step, width, special, distribution, mixed_seed(seed, 2 + number))
        for number, (width, special) in enumerate(_specials(step, table, q, distribution, seed))
    ]
    return Operand(_placed(table.entries)), Operand(_placed(np.array(sizes.tokens, dtype=np.int32))), q, *caches


def as_drawn(
    step: Step,
    operands: Sequence[Operand],
    distribution: str,
    seed: int,
    kv_heads: NDArray[np.int64],
    places: NDArray[np.int64],
) -> list[NDArray[np.float32]]:
    """Of each tensor of the cache the tokens of some heads at some places (places x columns), before any rounding.

    ``operands`` are what ``filled`` made of the same seed.
    """
    sizes, q, found = step.sizes, operands[2], []
    table = drawn_table(sizes, step.columns, mixed_seed(seed, 0))
    for number, (width, special) in enumerate(_specials(step, table, q, distribution, seed)):
        numbers = np.zeros((len(places), width), np.float32)
        for start, count, key in _chunks(step, mixed_seed(seed, 2 + number), width):
            here = (places >= start * sizes.page_size) & (places < (start + count) * sizes.page_size)
            if here.any():
                pages = np.asarray(_exact(key, special, start, step, count, width, distribution))
                numbers[here] = pages[kv_heads[here], places[here] - start * sizes.page_size]
        found.append(numbers)
    return found


def _specials(step: Step, table: Table, q: Operand, distribution: str, seed: int) -> Iterator[tuple[int, Special]]:
    """The columns of each tensor of the cache, and the places in it that hold other numbers."""
    sizes, queries = step.sizes, wide(np.asarray(q.data)).astype(np.float32)
    for number, width in enumerate(step.caches):
        place = mixed_seed(seed, 2 + number)
        signs = np.random.default_rng([place, width]).integers(0, 2, (sizes.num_kv_heads, width)).astype(np.float32) * 2 - 1
        met = queries[:, -1, :: sizes.group, : meeting_columns(sizes, distribution) if number == 0 else 0].swapaxes(0, 1)
        loud = LOUD * (_signs_of_sums(sizes, queries, signs) if number == 0 else signs)
        yield width, Special(table.unused, loud, table.latest, met)


def scale_shape(step: Step) -> tuple[int, ...] | None:
    """Of one tensor's scales, float32; ``None`` where numbers have none."""
    return {"tensor": (), "token": cache_shape(step, 1)[:3]}.get(step.storing.scaling)


def cache_shape(step: Step, width: int) -> tuple[int, int, int, int]:
    """Of one tensor of ``width`` columns."""
    sizes = step.sizes
    return sizes.num_kv_heads, cache_pages(sizes), sizes.page_size, width


def _cache(step: Step, width: int, special: Special, distribution: str, seed: int) -> Operand:
    """Every number is drawn twice where all share a scale, which is known only once every number has been seen."""
    scaling = step.storing.scaling
    data = jnp.zeros(cache_shape(step, width), written_as(step.storing.dtype))
    shape = scale_shape(step)
    scale = None if shape is None else jnp.ones(shape, jnp.float32)
    if scaling == "tensor":
        each = [
            _largest(key, special, start, step, count, width, distribution) for start, count, key in _chunks(step, seed, width)
        ]
        scale = step.storing.scales_for(jnp.asarray(np.max(each)))
        special = special._replace(loud=np.sign(special.loud) * np.float32(np.inf))  # cut off at the largest code
    for start, count, key in _chunks(step, seed, width):
        data, scale = _written(data, scale, key, special, start, step, count, width, distribution)
    return Operand(viewed(data, step.storing.dtype), scale)


def _chunks(step: Step, seed: int, width: int) -> Iterator[tuple[int, int, jax.Array]]:
    """First page, pages and key of each lot."""
    pages = cache_pages(step.sizes)
    most = max(1, CHUNK_NUMBERS // (step.sizes.page_size * step.sizes.num_kv_heads * width))
    for start in range(0, pages, most):
        yield start, min(most, pages - start), jax.random.fold_in(jax.random.key(seed), start)


def _numbers(
    key: jax.Array, special: Special, start: jax.Array | int, step: Step, count: int, width: int, distribution: str
) -> jax.Array:
    """Some pages before any rounding (kv_heads, places, columns), the latest tokens among them."""
    sizes = step.sizes
    places = count * sizes.page_size
    numbers = DISTRIBUTIONS[distribution](key, (sizes.num_kv_heads, places, width), jnp.dtype(jnp.float32))
    latest = _within(special.latest, start * sizes.page_size, places)
    return numbers.at[:, latest, : special.met.shape[2]].set(special.met, mode="drop")


@partial(jax.jit, static_argnames=("step", "count", "width", "distribution"))
def _exact(key: jax.Array, special: Special, start: int, step: Step, count: int, width: int, distribution: str) -> jax.Array:
    return _numbers(key, special, start, step, count, width, distribution)


@partial(jax.jit, static_argnames=("step", "count", "width", "distribution"))
def _largest(key: jax.Array, special: Special, start: int, step: Step, count: int, width: int, distribution: str) -> jax.Array:
    return jnp.max(jnp.abs(_numbers(key, special, start, step, count, width, distribution)))


@partial(jax.jit, static_argnames=("step", "count", "width", "distribution"), donate_argnums=(0, 1))
def _written(
    data: jax.Array,
    scale: jax.Array | None,
    key: jax.Array,
    special: Special,
    start: int,
    step: Step,
    count: int,
    width: int,
    distribution: str,
) -> tuple[jax.Array, jax.Array | None]:
    """The cache, or its bits, with some pages written, and its scales where each token has its own."""
    sizes, storing = step.sizes, step.storing
    numbers = _numbers(key, special, start, step, count, width, distribution)
    unused = _within(special.unused, start * sizes.page_size, numbers.shape[1])
    numbers = numbers.at[:, unused].set(special.loud[:, None], mode="drop")
    of_numbers = scale
    if storing.scaling == "token":
        of_tokens = storing.scales_for(jnp.max(jnp.abs(numbers), axis=2))
        of_numbers = of_tokens[..., None]
        assert scale is not None
        scale = lax.dynamic_update_slice(scale, of_tokens.reshape(-1, count, sizes.page_size), (0, start, 0))
    pages = storing.codes(numbers, of_numbers).reshape(-1, count, sizes.page_size, width)
    written = pages if data.dtype == pages.dtype else lax.bitcast_convert_type(pages, data.dtype)
    return lax.dynamic_update_slice(data, written, (0, start, 0, 0)), scale


def _within(places: jax.Array | NDArray[np.int64], start: jax.Array | int, count: int) -> jax.Array:
    """Places from ``start`` on; those outside the ``count`` that follow it are past the end, where nothing is written."""
    moved = places - start
    return jnp.where(moved < 0, count, moved)


def _signs_of_sums(sizes: Sizes, queries: NDArray[np.float32], otherwise: NDArray[np.float32]) -> NDArray[np.float32]:
    """(kv_heads, columns): the signs of the queries' sum in each KV head, which a key scores highest with."""
    sums = queries.sum((0, 1)).reshape(sizes.num_kv_heads, sizes.group, sizes.head_dim).sum(1)
    return np.where(sums == 0, otherwise, np.sign(sums))


def _placed(numbers: NDArray[np.int32]) -> jax.Array:
    """A copy on the device: an array of the host's may be used as it lies, and a program takes over what it is given."""
    return jnp.array(numbers, copy=True)
