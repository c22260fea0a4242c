"""Sizes of one attention, and the pairs of query and key that its mask leaves."""

from functools import lru_cache
from typing import Any, NamedTuple

from suite.case import Items, Workload, items
from suite.jobs.heads import HeadsAxis, Values

FULL, CAUSAL, SLIDING_WINDOW = "full", "causal", "sliding_window"
MASKS = (FULL, CAUSAL, SLIDING_WINDOW)
FORWARD, BACKWARD = "forward", "backward"
DIRECTIONS = (FORWARD, BACKWARD)
HEAD_DIMS = range(8, 513, 8)
LARGEST_LENGTH = 1 << 20


HEADS = HeadsAxis("attention", HEAD_DIMS, Values.ANY, "16x128, 32/8x128 or 128x192/128")


class Sizes(NamedTuple):
    """``batch`` sequences of ``q_len`` queries and ``kv_len`` keys; the last query stands at the last key.

    ``window`` counts the latest keys that a query sees, itself included; ``None`` where it sees all before it.
    """

    direction: str
    batch: int
    num_q_heads: int
    num_kv_heads: int
    q_len: int
    kv_len: int
    head_dim: int
    v_head_dim: int
    mask: str
    window: int | None = None

    @property
    def group(self) -> int:
        """Query heads that share a head of K and V."""
        return self.num_q_heads // self.num_kv_heads

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """A query ``i`` sees the keys ``j`` with ``first <= j - i <= last``; ``None`` is no bound."""
        if self.mask == FULL:
            return None, None
        last = self.kv_len - self.q_len
        return (None if self.window is None else last - self.window + 1), last

    @property
    def visible_pairs(self) -> int:
        """Pairs of query and key of all query heads of all sequences."""
        return self.batch * self.num_q_heads * visible_pairs(self.q_len, self.kv_len, self.bounds)

    @property
    def pairs(self) -> int:
        """The same without a mask."""
        return self.batch * self.num_q_heads * self.q_len * self.kv_len

    @property
    def is_backward(self) -> bool:
        return self.direction == BACKWARD

    def elements(self) -> dict[str, int]:
        """Numbers of Q, K, V and O; a gradient has as many as what it is of."""
        queries, keys = self.batch * self.num_q_heads * self.q_len, self.batch * self.num_kv_heads * self.kv_len
        return {
            "q": queries * self.head_dim,
            "k": keys * self.head_dim,
            "v": keys * self.v_head_dim,
            "o": queries * self.v_head_dim,
        }


@lru_cache(maxsize=1024)
def visible_pairs(q_len: int, kv_len: int, bounds: tuple[int | None, int | None]) -> int:
    """Pairs of one head that ``bounds`` leave, counted query by query."""
    first, last = bounds
    if first is None and last is None:
        return q_len * kv_len
    lows = (0 if first is None else max(0, i + first) for i in range(q_len))
    highs = (kv_len - 1 if last is None else min(kv_len - 1, i + last) for i in range(q_len))
    return sum(max(0, high - low + 1) for low, high in zip(lows, highs, strict=True))


def params_of(sizes: Sizes) -> Items:
    """As a workload has them; a window only where there is one."""
    return items({name: value for name, value in sizes._asdict().items() if value is not None})


def sizes_of(workload: Workload) -> Sizes:
    """Of a workload of the attention job."""
    params: dict[str, Any] = dict(workload.params)
    return Sizes(**{name: params[name] for name in Sizes._fields if name in params})
