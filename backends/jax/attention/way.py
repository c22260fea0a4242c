"""How attention goes through XLA or a library: what computes it, and why it cannot."""

from collections.abc import Callable
from typing import NamedTuple

import jax

from backends.jax.attention.layout import Layout
from backends.jax.target import Target
from suite.case import Workload
from suite.jobs.attention import Sizes

# Q, K and V, backward also the gradient of O, to O or to the gradients of Q, K and V.
Results = tuple[jax.Array, ...]
Compute = Callable[..., Results]


class Way(NamedTuple):
    """One implementation.

    ``refuses`` says why a workload cannot be computed on a device.  ``products`` is how many matrix products XLA sees in a
    launch: none where a library has them.  ``compute`` is made for a workload's sizes.
    """

    layout: Layout
    refuses: Callable[[Workload, Target], str | None]
    compute: Callable[[Sizes], Compute]
    products: Callable[[Sizes], int]
    call: str


def products_of(sizes: Sizes) -> int:
    """Forward the scores and O; backward the scores again, the gradients of weights, and of Q, K and V."""
    return 5 if sizes.is_backward else 2
