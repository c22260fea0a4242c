"""How attention is cut into tiles, and in which order programs take them."""

from functools import lru_cache
from typing import NamedTuple

from backends.triton.attention.problem import Problem

CACHED_BYTES = 24 << 20  # keys and values that stay in the last-level cache while all queries of their heads pass
UNCACHED_COST = 1.03  # neighbours in time still share what they read
HOPPER_ROWS = 128  # queries of a program of the kernel for Hopper, whose two groups have half each
HOPPER_KEYS, BLOCK_OF_QUERIES = 128, 64  # of a program of the gradients for Hopper
HOPPER_BLOCK = 128  # keys that it is written for: its masks then touch one block a tile


class Config(NamedTuple):
    """Of the portable forward kernel: ``block_m`` queries against ``block_n`` keys."""

    block_m: int
    block_n: int
    warps: int
    stages: int

    @property
    def label(self) -> str:
        return f"{self.block_m}x{self.block_n}, {self.warps} warps, {self.stages} stages"


class HopperConfig(NamedTuple):
    """Of the forward kernel for Hopper.

    ``ordered`` groups take turns at the tensor cores; where they are ``overlapped`` a group computes exponentials while its own
    values are multiplied, else only while the other group multiplies; ``own_output`` has buffers for the output besides those
    of the queries; ``resident`` programs stay and go through many tiles.
    """

    block: int = HOPPER_BLOCK
    stages: int = 2
    ordered: bool = True
    overlapped: bool = True
    own_output: bool = True
    resident: bool = True
    registers: int = 240

    @property
    def label(self) -> str:
        said = {
            "in turns": self.ordered,
            "overlapped": self.overlapped,
            "own output": self.own_output,
            "resident": self.resident,
        }
        return ", ".join([f"128x{self.block}", f"{self.stages} stages", *(name for name, holds in said.items() if holds)])


def chunk_of(problem: Problem, block_m: int, programs: int | None = None) -> int:
    """Heads (over all sequences) that are taken together.

    One head of keys after the other where all tiles are alike.  Where they get shorter, as many as the cache holds; programs
    that stay (``programs`` of them) then want the number by which the longest share of the tiles is shortest.
    """
    if problem.mask.last is None:
        return problem.group
    heads = problem.batch * problem.q_heads
    held = min(heads, max(1, CACHED_BYTES // problem.head_bytes) * problem.group)
    if programs is None:
        return held
    tiles = -(-problem.q_len // block_m)

    def cost(chunk: int) -> float:
        return _longest_share(heads, tiles, chunk, programs) * (1.0 if chunk <= held else UNCACHED_COST)

    step = max(1, heads // problem.group // 64) * problem.group
    return min(range(heads, 0, -step), key=cost)


@lru_cache(maxsize=256)
def _longest_share(heads: int, tiles: int, chunk: int, programs: int) -> float:
    """What the busiest program has to do, in blocks of keys of a causal mask; the order is that of ``order``."""
    shares = [0.0] * programs
    for number in range(tiles * heads):
        first_head = number // (chunk * tiles) * chunk
        tile = tiles - 1 - number % (chunk * tiles) // min(chunk, heads - first_head)
        turn, place = divmod(number, programs)
        shares[programs - 1 - place if turn % 2 else place] += tile + 1.5
    return max(shares)


class BackwardConfig(NamedTuple):
    """Of one of the two kernels of gradients: ``block_m`` queries against ``block_n`` keys."""

    block_m: int
    block_n: int
    warps: int
    stages: int

    @property
    def label(self) -> str:
        return f"{self.block_m}x{self.block_n}, {self.warps} warps, {self.stages} stages"


class HopperBackwardConfig(NamedTuple):
    """Of the kernel of gradients for Hopper; ``stages`` blocks of queries and dO are loaded ahead."""

    stages: int = 2
    registers: int = 240

    @property
    def label(self) -> str:
        return f"{BLOCK_OF_QUERIES}x{HOPPER_KEYS}, {self.stages} stages"
