"""What a grouped product has to compute and to move."""

from typing import NamedTuple

from suite.case import Workload
from suite.jobs.grouped_gemm.formats import variant
from suite.jobs.grouped_gemm.sizes import sizes_of

END_BYTES = 4  # int32


class Bytes(NamedTuple):
    """What one launch moves at least, every piece once: the roofline's bytes, part by part.

    ``b`` is that of the groups that have rows: nobody reads an expert that no token took.
    """

    a: int
    b: int
    ends: int
    output: int

    @property
    def total(self) -> int:
        return sum(self)


def bytes_of(workload: Workload) -> Bytes:
    """Of the rows that count: numbers and scales of A and B, where each group ends, and C."""
    return _bytes(workload, sizes_of(workload).m)


def stored_bytes_of(workload: Workload) -> Bytes:
    """The same with the rows that fill groups up, which are read and written too."""
    return _bytes(workload, sizes_of(workload).height)


def idle_bytes(workload: Workload) -> int:
    """Memory of the B that no launch reads."""
    sizes = sizes_of(workload)
    return (sizes.groups - sizes.busy) * variant(workload).b.stored_bytes(sizes.n, sizes.k)


def flops(workload: Workload) -> int:
    """2 n k for each row that counts."""
    sizes = sizes_of(workload)
    return 2 * sizes.m * sizes.n * sizes.k


def _bytes(workload: Workload, rows: int) -> Bytes:
    sizes, stored = sizes_of(workload), variant(workload)
    return Bytes(
        a=stored.a.stored_bytes(rows, sizes.k),
        b=sizes.busy * stored.b.stored_bytes(sizes.n, sizes.k),
        ends=sizes.groups * END_BYTES,
        output=rows * sizes.n * stored.output_bytes,
    )
