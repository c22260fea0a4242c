"""What decoding should give: in float64, of queries and cache as they are stored, one head of a sequence at a time."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import torch

from backends.torch.data import Operand
from backends.torch.decode.cache import CacheOperand
from backends.torch.decode.operands import rows_of
from backends.torch.kernel import Formula
from suite.jobs.decode import Sizes

HOST = torch.device("cpu")
# Converted to float64 at a time: on a host so few that memory is used again, not asked for again.
BLOCK_NUMBERS = {"cpu": 1 << 19, "cuda": 1 << 23}


class Rows(Protocol):
    """Rows of float64 numbers, a slice at a time: a tensor, or what stored numbers are worth."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> torch.Tensor: ...


class Group(NamedTuple):
    """One KV head of one sequence, which the queries of its group of heads share."""

    sequence: int
    kv_head: int


class Decoding(Formula):
    """A row of one head is eight elements or more, which are never all near 0 by chance.

    Tiles are computed on the host: what judges a device's products must not be others of its products.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> torch.Tensor:
        first, last = (each // (self._sizes.q_len * self._sizes.num_q_heads) for each in (row, row + rows - 1))
        found = torch.zeros((last - first + 1, *rows_of(self._sizes)[1:], self._sizes.v_head_dim), dtype=torch.float64)
        wanted = {self._group_of(each) for each in range(row, row + rows)}
        for group in wanted:
            self._heads(found[group.sequence - first], group.kv_head).copy_(self._output(operands, group, HOST))
        start = row - first * self._sizes.q_len * self._sizes.num_q_heads
        return found.flatten(0, 2)[start : start + rows, column : column + columns]

    def project(self, operands: Sequence[Operand], vector: torch.Tensor) -> torch.Tensor:
        return self.look(operands, vector)[0]

    def look(self, operands: Sequence[Operand], vector: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The output (rows x columns) times a vector (columns), and the norm of each row, on the device."""
        projection, norms = (vector.new_empty(rows_of(self._sizes)) for _ in range(2))
        for group in self._groups():
            output = self._output(operands, group)
            self._heads(projection[group.sequence], group.kv_head).copy_(output @ vector)
            self._heads(norms[group.sequence], group.kv_head).copy_(torch.linalg.vector_norm(output, dim=2))
        return projection.flatten(), norms.flatten()

    def of(self, queries: torch.Tensor, keys: Rows, values: Rows) -> torch.Tensor:
        """Attention of one group, all in float64: queries (q_len, heads, columns), the sequence's keys and values."""
        blocks = list(self._blocks(len(keys), queries.device))
        scores = torch.cat([queries @ keys[block].t() for block in blocks], 2) * self._scale
        hidden = self._hidden(len(keys), scores.device)
        if hidden is not None:
            scores.masked_fill_(hidden[:, None, :], float("-inf"))
        weights, width = scores.softmax(2), self._sizes.v_head_dim
        return torch.stack([weights[..., block] @ values[block][:, :width] for block in blocks]).sum(0)

    def queries(self, operands: Sequence[Operand], group: Group, on: torch.device | None = None) -> torch.Tensor:
        """(q_len, heads of the group, columns) in float64."""
        found = self._heads(operands[1].data[group.sequence], group.kv_head)
        return found.to(on or found.device).to(torch.float64)

    def _output(self, operands: Sequence[Operand], group: Group, on: torch.device | None = None) -> torch.Tensor:
        keys, values = operands[2], operands[-1]
        assert isinstance(keys, CacheOperand)
        assert isinstance(values, CacheOperand)
        k, v = (each.worth(*group, on) for each in (keys, values))
        return self.of(self.queries(operands, group, on), k, v)

    def _blocks(self, length: int, device: torch.device) -> Iterator[slice]:
        """Tokens, as many at a time as their numbers are worth converting at once."""
        step = max(1, BLOCK_NUMBERS.get(device.type, BLOCK_NUMBERS["cuda"]) // self._sizes.head_dim)
        return (slice(start, start + step) for start in range(0, length, step))

    def _hidden(self, length: int, device: torch.device) -> torch.Tensor | None:
        """Which keys a new token does not see (q_len x keys): those of the tokens after it."""
        q_len = self._sizes.q_len
        if q_len == 1:
            return None
        apart = torch.arange(length, device=device)[None, :] - torch.arange(q_len, device=device)[:, None]
        return apart > length - q_len

    def _heads(self, rows: torch.Tensor, kv_head: int) -> torch.Tensor:
        """Of rows of one sequence (q_len, query heads, ...) those of one KV head."""
        return rows[:, kv_head * self._sizes.group : (kv_head + 1) * self._sizes.group]

    def _groups(self) -> Iterator[Group]:
        return (Group(each, head) for each in range(self._sizes.batch) for head in range(self._sizes.num_kv_heads))

    def _group_of(self, row: int) -> Group:
        sequence = row // (self._sizes.q_len * self._sizes.num_q_heads)
        return Group(sequence, row % self._sizes.num_q_heads // self._sizes.group)

    @property
    def _scale(self) -> float:
        return float(self._sizes.head_dim**-0.5)
