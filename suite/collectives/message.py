"""What a message of an operation is on each rank: elements sent, received, and the memory that takes.

``message_bytes`` is the larger of what a rank sends and receives, as nccl-tests count it.  A size that does not divide by
ranks and element is rounded down to one that does, and up where that leaves a rank without an element: the message has the
rounded size, never the asked one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from suite.collectives.names import Op
from suite.collectives.number_format import number_format
from suite.errors import UsageError

SMALLEST_BYTES = 1
LARGEST_BYTES = 8 * 2**30
_BY_RANK = (Op.ALL_GATHER, Op.REDUCE_SCATTER, Op.ALL_TO_ALL, Op.GATHER, Op.SCATTER)
_GATHERING, _SCATTERING = (Op.ALL_GATHER, Op.GATHER), (Op.REDUCE_SCATTER, Op.SCATTER)
# The result shares memory with what is sent; all_to_all and send_recv have no such form in torch.distributed and XLA.
_IN_PLACE = (Op.ALL_REDUCE, Op.ALL_GATHER, Op.REDUCE_SCATTER, Op.BROADCAST, Op.REDUCE)


class Message(NamedTuple):
    """Elements of one rank's buffers."""

    op: Op
    format: str
    ranks: int
    send_elements: int
    receive_elements: int

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return number_format(self.format).itemsize

    @property
    def message_bytes(self) -> int:
        """The larger of sent and received."""
        return max(self.send_elements, self.receive_elements) * self.itemsize

    def buffer_bytes(self, in_place: bool) -> int:
        """Device memory of one rank's buffers: the larger one alone in place, else both."""
        return self.message_bytes if in_place else (self.send_elements + self.receive_elements) * self.itemsize


def message(op: Op, fmt: str, ranks: int, message_bytes: int) -> Message:
    """The message nearest below ``message_bytes``, of one element a rank at least.

    Raises ``UsageError`` for under 2 ranks or under ``SMALLEST_BYTES``.
    """
    if ranks < 2:
        raise UsageError(f"{op} over {ranks} rank moves nothing; take at least 2 ranks")
    if message_bytes < SMALLEST_BYTES:
        raise UsageError(f"a message of {message_bytes} bytes; take {SMALLEST_BYTES} to {LARGEST_BYTES}")
    shares = shares_of(op, ranks)
    elements = max(1, message_bytes // (number_format(fmt).itemsize * shares))
    sends = elements if op in _GATHERING else elements * shares
    receives = elements if op in _SCATTERING else elements * shares
    return Message(op, fmt, ranks, sends, receives)


def shares_of(op: Op, ranks: int) -> int:
    """Into how many equal parts the operation cuts a message: one a rank, or one alone."""
    return ranks if op in _BY_RANK else 1


def messages(op: Op, fmt: str, ranks: int, sizes: Sequence[int]) -> tuple[Message, ...]:
    """One message a size, less those that round to the same."""
    return tuple(dict.fromkeys(message(op, fmt, ranks, size) for size in sizes))


def has_in_place(op: Op) -> bool:
    """Whether the operation can put its result where its data was."""
    return op in _IN_PLACE
