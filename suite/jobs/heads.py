"""Heads of attention as people write them: ``16x128``, ``32/8x128`` (GQA), ``128x192/128`` and ``128/1x576/512`` (MLA)."""

import re
from enum import Enum
from typing import Any, NamedTuple

from suite.errors import UsageError
from suite.jobs.axes import closest
from suite.values import written

HEADS_AT_MOST = 1024
_TEXT = re.compile(r"([0-9]{1,9})(?:/([0-9]{1,9}))?x([0-9]{1,9})(?:/([0-9]{1,9}))?")


class Values(Enum):
    """How many columns V may have beside those of K."""

    ANY = "any"
    FIRST_OF_KEYS = "no more than keys"  # MLA's cache: V is the first columns of K
    AS_KEYS = "as many as keys"


class Heads(NamedTuple):
    """Query heads over heads of K and V, by columns of Q and K over columns of V; the second of each where it differs."""

    num_q_heads: int
    num_kv_heads: int
    head_dim: int
    v_head_dim: int

    def __str__(self) -> str:
        """As the command line has it."""
        shared = f"/{self.num_kv_heads}" if self.num_kv_heads != self.num_q_heads else ""
        values = f"/{self.v_head_dim}" if self.v_head_dim != self.head_dim else ""
        return f"{self.num_q_heads}{shared}x{self.head_dim}{values}"


class HeadsAxis(NamedTuple):
    """A setting that names heads: ``jobs.JOB.heads``, the columns that a head may have, and an example of each kind."""

    job: str
    head_dims: range
    values: Values
    examples: str

    @property
    def key(self) -> str:
        return f"jobs.{self.job}.heads"

    def check(self, given: list[Any]) -> None:
        """Raise ``UsageError`` for an axis without heads, and for what are none."""
        if not given:
            raise UsageError(f"{self.key} is empty; name for instance {self.examples}")
        for each in given:
            self.parse(each)

    def parse(self, given: Any) -> Heads:
        """Read heads; raises ``UsageError`` naming the first condition that they break, and heads near them that do not."""
        found = _TEXT.fullmatch(given.strip()) if isinstance(given, str) else None
        if found is None:
            raise UsageError(f"{self.key} has {written(given)}, not HEADSxHEAD_DIM; write for instance {self.examples}")
        q_heads, kv_heads, head_dim, v_head_dim = (int(part) if part else None for part in found.groups())
        assert q_heads is not None
        assert head_dim is not None
        kv_heads, v_head_dim = q_heads if kv_heads is None else kv_heads, head_dim if v_head_dim is None else v_head_dim
        heads = Heads(q_heads, kv_heads, head_dim, v_head_dim)
        if broken := self._broken(heads):
            raise UsageError(f"{self.key} has {given.strip()}: {broken}; write {self._near(heads)}")
        return heads

    def _broken(self, heads: Heads) -> str:
        """The limit that heads break; empty where they break none."""
        q_heads, kv_heads, head_dim, v_head_dim = heads
        if not 1 <= q_heads <= HEADS_AT_MOST:
            return f"heads of Q go from 1 to {HEADS_AT_MOST}"
        if not 1 <= kv_heads <= q_heads:
            return f"heads of K and V go from 1 to the {q_heads} of Q"
        if q_heads % kv_heads:
            return f"{q_heads} heads of Q are no multiple of the {kv_heads} of K and V"
        if not {head_dim, v_head_dim} <= set(self.head_dims):
            return f"columns of a head are a multiple of {self.head_dims.step} from {self.head_dims[0]} to {self.head_dims[-1]}"
        if self.values is Values.FIRST_OF_KEYS and v_head_dim > head_dim:
            return f"values of {v_head_dim} columns, more than the {head_dim} of keys, whose first columns they are in MLA"
        if self.values is Values.AS_KEYS and v_head_dim != head_dim:
            return f"values of {v_head_dim} columns beside keys of {head_dim}, as in MLA; here both have as many"
        return ""

    def _near(self, heads: Heads) -> Heads:
        """Heads that break no limit, each number near that given."""
        q_heads = closest(heads.num_q_heads, range(1, HEADS_AT_MOST + 1))
        at_most = closest(heads.num_kv_heads, range(1, q_heads + 1))
        kv_heads = next(each for each in range(at_most, 0, -1) if q_heads % each == 0)
        head_dim, v_head_dim = (closest(each, self.head_dims) for each in heads[2:])
        if (self.values is not Values.ANY and v_head_dim > head_dim) or self.values is Values.AS_KEYS:
            v_head_dim = head_dim
        return Heads(q_heads, kv_heads, head_dim, v_head_dim)
