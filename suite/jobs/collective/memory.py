"""What ranks need beside their buffers, as it was seen in the processes that have them.

Ranks of torch are a process each, those of XLA are devices of one.
"""

from suite.collectives.names import Op
from suite.collectives.own import most_staged_elements
from suite.collectives.transport import Transport
from suite.jobs.collective.task import Task

MIB = 2**20
# A rank is a process with a framework of its own: with torch 2.13 on a CPU 226 MiB resident, and up to 115 MiB more while
# data are written and checked.
RANK_BYTES = 352 * MIB
# With JAX 0.10 on a CPU the process has 194 MiB and keeps up to 64 MiB of drawn data, and a rank adds at most 2.5 MiB.
XLA_BYTES, XLA_RANK_BYTES = 320 * MIB, 4 * MIB
# Of large messages a rank holds up to four: what is sent, a copy of it, the result and what XLA takes beside them.
XLA_MESSAGES = 4
# Messages under 32 MiB have no mapping of their own: of a rank's, the allocator's arenas keep up to ten that were given back,
# though not above 160 MiB.  Larger ones go back to the system.
XLA_KEPT_MESSAGES, XLA_KEPT_AT_MOST, XLA_MAPPED_BYTES = 10, 160 * MIB, 32 * MIB
XLA_DRAWN_BYTES = 8  # of an element of one rank at a time: data are drawn and looked at in float64


def process_bytes(task: Task) -> int:
    """Of all ranks that share their memory, each a process, or of one where each has its own."""
    ranks = task.ranks if task.transport.together else 1
    return ranks * (RANK_BYTES + _working_elements(task) * task.message.itemsize)


def xla_bytes(task: Task) -> int:
    """Of the process whose devices are the ranks, beside the buffers."""
    elements = max(task.message.send_elements, task.message.receive_elements)
    whole_bytes = elements * task.message.itemsize
    held_bytes = max(0, XLA_MESSAGES * whole_bytes - task.message.buffer_bytes(task.in_place))
    kept_bytes = min(XLA_KEPT_MESSAGES * whole_bytes, XLA_KEPT_AT_MOST) if whole_bytes < XLA_MAPPED_BYTES else 0
    return XLA_BYTES + XLA_DRAWN_BYTES * elements + task.ranks * (XLA_RANK_BYTES + held_bytes + kept_bytes)


def _working_elements(task: Task) -> int:
    """Elements that a rank has beside its buffers: what it receives to add, and data that must not be destroyed.

    Left to itself, gloo was seen to take another share for an all_gather and another message for a reduce_scatter.
    """
    given = task.message
    elements = max(given.send_elements, given.receive_elements)
    if task.choice.algo is None:
        copied = {Op.ALL_GATHER: given.send_elements, Op.REDUCE_SCATTER: elements}
        return copied.get(given.op, 0) if task.transport is Transport.HOST else 0
    kept = given.send_elements if given.op is Op.REDUCE_SCATTER and not task.in_place else 0
    return kept + most_staged_elements(given.op, task.choice.algo, given.ranks, elements, given.itemsize)
