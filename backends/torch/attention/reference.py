"""What attention and its gradients should be: in float64, of the operands as they are stored, without all scores at once."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from backends.torch.attention.operands import result_names, shapes_of, width_of, worth
from backends.torch.data import Operand
from backends.torch.kernel import Formula
from suite.jobs.attention import Sizes

NEIGHBOURS = 4
CHUNK_SCORES = 1 << 23  # of one block of queries, 64 MiB in float64


class Part(NamedTuple):
    """Rows of one head of one result; ``name`` is o, or q, k or v for the gradient of that."""

    name: str
    batch: int
    head: int
    rows: slice


class Weighed(NamedTuple):
    """A block of queries of one head with the keys that some of them see: weights (queries x keys), and slopes where asked.

    ``slopes`` are the gradients of the scaled scores, times the scale.
    """

    rows: slice
    keys: slice
    weights: torch.Tensor
    slopes: torch.Tensor | None


class Attention(Formula):
    """A row of one head is eight elements or more, which are never all near 0 by chance.

    Tiles are computed on the host: what judges a device's products must not be others of its products.  Of a tile of dK or dV
    the host multiplies; the sums over each query's keys that its weights are made with come from the device, in float64.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._shapes = shapes_of(sizes)
        self._width = width_of(sizes)

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> torch.Tensor:
        start, stop = row * self._width, (row + rows) * self._width
        found = [self._numbers(operands, part, *within) for part, *within in self._parts(start, stop)]
        return torch.cat(found).view(rows, self._width)[:, column : column + columns]

    def project(self, operands: Sequence[Operand], vector: torch.Tensor) -> torch.Tensor:
        return self.look(operands, vector)[0]

    def look(self, operands: Sequence[Operand], vector: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The output (rows x columns) times a vector (columns), and how large each row is meant to be.

        That is the largest norm within ``NEIGHBOURS`` of its head: a gradient may be near zero by chance, and its rounding is
        that of the terms which cancel.  One pass over all pairs of queries and keys, on the device.
        """
        names = result_names(self._sizes)
        parts: dict[str, list[torch.Tensor]] = {name: [] for name in names}
        norms: dict[str, list[torch.Tensor]] = {name: [] for name in names}
        for name, result in self._results(operands):
            rows = result.reshape(-1, self._width)
            parts[name].append(rows @ vector)
            norms[name].append(largest_near(torch.linalg.vector_norm(rows, dim=1), result.shape[1] // self._width))
        joined = [torch.cat([each for name in names for each in found[name]]) for found in (parts, norms)]
        return joined[0], joined[1]

    def _results(self, operands: Sequence[Operand]) -> Iterator[tuple[str, torch.Tensor]]:
        """What is written, head by head, in the order in which each result has its heads."""
        for batch in range(self._sizes.batch):
            if self._sizes.is_backward:
                for kv_head in range(self._sizes.num_kv_heads):
                    yield from self._gradients(operands, batch, kv_head)
            else:
                for head in range(self._sizes.num_q_heads):
                    yield "o", self._output(operands, batch, head)

    def _output(self, operands: Sequence[Operand], batch: int, head: int) -> torch.Tensor:
        values = worth(operands[2], batch, head // self._sizes.group)
        found = values.new_empty(self._sizes.q_len, values.shape[1])
        for block in self._blocks(operands, batch, head, slice(0, self._sizes.q_len)):
            torch.mm(block.weights, values[block.keys], out=found[block.rows])
        return found

    def _gradients(self, operands: Sequence[Operand], batch: int, kv_head: int) -> Iterator[tuple[str, torch.Tensor]]:
        """dQ of each query head of a head of keys, then its dK and dV."""
        q, k, v, do = operands
        keys, values = worth(k, batch, kv_head), worth(v, batch, kv_head)
        dk, dv = torch.zeros_like(keys), torch.zeros_like(values)
        for head in range(kv_head * self._sizes.group, (kv_head + 1) * self._sizes.group):
            queries, above = worth(q, batch, head), worth(do, batch, head)
            dq = torch.empty_like(queries)
            for block in self._blocks(operands, batch, head, slice(0, self._sizes.q_len), sloped=True):
                assert block.slopes is not None
                torch.mm(block.slopes, keys[block.keys], out=dq[block.rows])
                dk[block.keys].addmm_(block.slopes.t(), queries[block.rows])
                dv[block.keys].addmm_(block.weights.t(), above[block.rows])
            yield "q", dq
        yield "k", dk
        yield "v", dv

    def _parts(self, start: int, stop: int) -> Iterator[tuple[Part, int, int]]:
        """The rows of heads that elements ``start`` to ``stop`` of the output lie in, and where in those rows."""
        begin = 0
        for name in result_names(self._sizes):
            batch, heads, length, columns = self._shapes[name]
            for place in range(batch * heads):
                low, high = max(start, begin), min(stop, begin + length * columns)
                if low < high:
                    first, last = (low - begin) // columns, -(-(high - begin) // columns)
                    offset = begin + first * columns
                    part = Part(name, place // heads, place % heads, slice(first, last))
                    yield part, low - offset, high - offset
                begin += length * columns

    def _numbers(self, operands: Sequence[Operand], part: Part, low: int, high: int) -> torch.Tensor:
        compute = self._of_keys if part.name in "kv" else self._of_queries
        return compute(operands, part).reshape(-1)[low:high]

    def _of_queries(self, operands: Sequence[Operand], part: Part) -> torch.Tensor:
        """Rows of O or of dQ, on the host."""
        kv_head, sloped = part.head // self._sizes.group, part.name == "q"
        other = worth(operands[1 if sloped else 2], part.batch, kv_head).cpu()
        found = other.new_zeros(part.rows.stop - part.rows.start, other.shape[1])
        for block in self._blocks(operands, part.batch, part.head, part.rows, sloped, host=True):
            weights = block.slopes if sloped else block.weights
            assert weights is not None
            within = slice(block.rows.start - part.rows.start, block.rows.stop - part.rows.start)
            torch.mm(weights, other[block.keys], out=found[within])
        return found

    def _of_keys(self, operands: Sequence[Operand], part: Part) -> torch.Tensor:
        """Rows of dK or dV, on the host."""
        q, k, v, do = operands
        keys, values = (worth(each, part.batch, part.head, part.rows).cpu() for each in (k, v))
        found = torch.zeros_like(keys if part.name == "k" else values)
        for head in range(part.head * self._sizes.group, (part.head + 1) * self._sizes.group):
            logarithms, products = self._row_sums(operands, part.batch, head)
            queries, above = (worth(each, part.batch, head).cpu() for each in (q, do))
            scores = self._masked(queries @ keys.t() * self._scale, 0, part.rows.start)
            weights = scores.sub_(logarithms[:, None]).exp_()
            if part.name == "v":
                found.addmm_(weights.t(), above)
            else:
                slopes = (above @ values.t()).sub_(products[:, None]).mul_(weights).mul_(self._scale)
                found.addmm_(slopes.t(), queries)
        return found

    def _row_sums(self, operands: Sequence[Operand], batch: int, head: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Of each query of a head: the logarithm of the sum over its keys, and dO O; on the host."""
        q, k, v, do = operands
        keys, values = (worth(each, batch, head // self._sizes.group) for each in (k, v))
        logarithms, products = [], []
        for rows in self._row_blocks(slice(0, self._sizes.q_len)):
            seen = self._seen(rows)
            scores = self._masked(worth(q, batch, head, rows) @ keys[seen].t() * self._scale, rows.start, seen.start)
            logarithms.append(scores.logsumexp(1))
            output = scores.softmax(1) @ values[seen]
            products.append((output * worth(do, batch, head, rows)).sum(1))
        return torch.cat(logarithms).cpu(), torch.cat(products).cpu()

    def _blocks(
        self, operands: Sequence[Operand], batch: int, head: int, of: slice, sloped: bool = False, host: bool = False
    ) -> Iterator[Weighed]:
        """The queries ``of`` a head, as many at a time as keep their scores small."""
        kv_head = head // self._sizes.group
        keys = _placed(worth(operands[1], batch, kv_head), host)
        values = _placed(worth(operands[2], batch, kv_head), host) if sloped else keys
        for rows in self._row_blocks(of):
            seen = self._seen(rows)
            queries = _placed(worth(operands[0], batch, head, rows), host)
            scores = self._masked(queries @ keys[seen].t() * self._scale, rows.start, seen.start)
            weights, slopes = scores.softmax(1), None
            if sloped:
                slopes = _placed(worth(operands[3], batch, head, rows), host) @ values[seen].t()
                slopes -= (slopes * weights).sum(1, keepdim=True)
                slopes *= weights * self._scale
            yield Weighed(rows, seen, weights, slopes)

    def _row_blocks(self, of: slice) -> Iterator[slice]:
        step = max(1, CHUNK_SCORES // self._sizes.kv_len)
        return (slice(start, min(start + step, of.stop)) for start in range(of.start, of.stop, step))

    def _seen(self, rows: slice) -> slice:
        """Keys that some of the queries see."""
        first, last = self._sizes.bounds
        low = 0 if first is None else max(0, rows.start + first)
        high = self._sizes.kv_len if last is None else min(self._sizes.kv_len, rows.stop + last)
        return slice(low, max(low, high))

    def _masked(self, scores: torch.Tensor, query: int, key: int) -> torch.Tensor:
        """Scores of queries from ``query`` and keys from ``key`` on, minus infinity where a query does not see a key."""
        first, last = self._sizes.bounds
        if first is None and last is None:
            return scores
        rows, columns = (torch.arange(size, device=scores.device) for size in scores.shape)
        apart = (columns + key)[None, :] - (rows + query)[:, None]
        hidden = torch.zeros_like(apart, dtype=torch.bool)
        if last is not None:
            hidden |= apart > last
        if first is not None:
            hidden |= apart < first
        return scores.masked_fill_(hidden, float("-inf"))

    @property
    def _scale(self) -> float:
        return float(self._sizes.head_dim**-0.5)


def largest_near(norms: torch.Tensor, parts: int) -> torch.Tensor:
    """The largest within ``NEIGHBOURS`` rows on either side, of rows that have so many parts each."""
    reach = NEIGHBOURS * parts
    return torch.nn.functional.max_pool1d(norms[None], 2 * reach + 1, stride=1, padding=reach)[0]


def _placed(numbers: torch.Tensor, host: bool) -> torch.Tensor:
    return numbers.cpu() if host else numbers
