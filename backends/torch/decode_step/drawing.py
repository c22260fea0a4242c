"""How large a decoder's numbers are drawn, so that every stage's are of order one and each layer tells in what comes after it.

Matrices keep the size of what they multiply, as trained ones do.  What attention and feed-forward add is a fixed share of the
stream that they are added to: the stream grows, by a factor of ``LARGEST_STREAM`` at most over all layers, and the last layer
still is as large a part of it as the first.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from backends.torch.data import Operand
from suite.jobs.decode_step import Sizes

EMBEDDED_SIZE = 2.0  # of the embedding: at 1 a norm that is left out would change next to nothing
LARGEST_STREAM = 1000.0  # of the stream in the end over that of the embedding: fp16 ends at 65,504, and norms bring it back
LARGEST_SHARE = 0.5  # of the stream that a sub-layer adds to it
ROOT_MEAN_SQUARE: Mapping[str, float] = {"normal": 1.0, "uniform": 3.0**-0.5, "zeros": 1.0}
NORM_SIZE = math.sqrt(1.0 + 0.25 / 3.0)  # of a norm's weights, uniform from a half to one and a half
ACTIVATED_SIZE = math.sqrt(0.3558)  # of silu(g) u where g and u are standard normal
LARGEST_MEETING = 0.95  # of a key's numbers that are a query's


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn(Operand):
    """Numbers of the distribution times ``factor``."""

    factor: float

    def refill(self, distribution: str, seed: int) -> None:
        Operand.refill(self, distribution, seed)
        self.data.mul_(self.factor / ROOT_MEAN_SQUARE[distribution])


@dataclass(frozen=True, slots=True, kw_only=True)
class NormWeights(Operand):
    """Uniform from a half to one and a half, whatever the distribution: a norm that leaves them out is told by it."""

    def refill(self, distribution: str, seed: int) -> None:
        Operand.refill(self, "uniform", seed)
        self.data.mul_(0.5).add_(1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens(Operand):
    """The number of each sequence's new token, int32, any of the vocabulary."""

    vocabulary: int

    def refill(self, distribution: str, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.data.copy_(torch.randint(0, self.vocabulary, self.data.shape, generator=generator, dtype=torch.int32))


@dataclass(frozen=True, slots=True, kw_only=True)
class Projections(Operand):
    """The rows of q, k and v.  The key of each head is partly the query of the first head that reads it.

    A sequence's newest value then makes about as much of that query's result as all others together: a key that is missing, or
    that stands elsewhere, would else be lost in the rounding of a long context.
    """

    sizes: Sizes

    def refill(self, distribution: str, seed: int) -> None:
        Operand.refill(self, distribution, seed)
        self.data.mul_(1.0 / (ROOT_MEAN_SQUARE[distribution] * NORM_SIZE * math.sqrt(self.sizes.hidden_size)))
        meeting = meeting_share(self.sizes)
        queries, keys, _ = self.data.split((self.sizes.q_width, self.sizes.kv_width, self.sizes.kv_width))
        by_head = queries.unflatten(0, (self.sizes.num_q_heads, self.sizes.head_dim))[:: self.sizes.group]
        for key, query in zip(keys.unflatten(0, (self.sizes.num_kv_heads, self.sizes.head_dim)), by_head, strict=True):
            key.mul_(math.sqrt(1.0 - meeting**2)).add_(query, alpha=meeting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(Operand):
    """The matrix behind attention: columns of each head as large as makes all heads count alike, sums ``size`` large."""

    sizes: Sizes
    size: float

    def refill(self, distribution: str, seed: int) -> None:
        Operand.refill(self, distribution, seed)
        heads = torch.tensor(head_sizes(self.sizes), device=self.data.device)
        factors = self.size / (ROOT_MEAN_SQUARE[distribution] * math.sqrt(self.sizes.q_width)) / heads
        self.data.unflatten(1, (self.sizes.num_q_heads, self.sizes.head_dim)).mul_(factors[None, :, None].to(self.data.dtype))


def meeting_share(sizes: Sizes) -> float:
    """How much of its query a key is: where scores are standard normal, the squares of n weights sum to e / n, and that of one
    key with a score of 1 + ln(n) / 2 is as much (``backends.torch.decode.cache``).
    """
    return min(LARGEST_MEETING, (1.0 + 0.5 * math.log(sizes.kv_len)) / math.sqrt(sizes.head_dim))


def head_sizes(sizes: Sizes) -> list[float]:
    """About how large attention's numbers are, head by head: what weights square to, twice that where a key meets its query."""
    others = min(1.0, math.e / sizes.kv_len)
    return [math.sqrt(others if head % sizes.group else min(1.0, 2.0 * others)) for head in range(sizes.num_q_heads)]


def added_share(layers: int) -> float:
    """What each of two sub-layers of each layer adds to the stream, over the stream."""
    return min(LARGEST_SHARE, math.sqrt(LARGEST_STREAM ** (1.0 / layers) - 1.0))


def added_size(layers: int, sub_layer: int) -> float:
    """How large the numbers are that a sub-layer adds, counted from the first."""
    share = added_share(layers)
    return EMBEDDED_SIZE * share * math.sqrt(1.0 + share**2) ** sub_layer
