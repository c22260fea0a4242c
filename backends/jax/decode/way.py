"""How a decoding step goes through XLA or a library: what computes it, and why it cannot."""

from collections.abc import Callable
from typing import NamedTuple

import jax

from backends.jax.decode.filling import Step
from backends.jax.target import Target
from suite.case import Workload
from suite.jobs.decode import Sizes

# Table, lengths, queries and the tensors of the cache, then their scales, to O.
Compute = Callable[..., jax.Array]


class Way(NamedTuple):
    """One implementation.

    ``refuses`` says why a workload cannot be computed on a device.  ``columns`` of the page table are more than the pages of
    the longest sequence.  ``products`` is how many matrix products XLA sees in a launch: none where a library has them.
    ``pages`` says what becomes of pages.
    """

    refuses: Callable[[Workload, Target], str | None]
    compute: Callable[[Step], Compute]
    columns: Callable[[Sizes], int]
    products: int
    call: str
    pages: str
