"""Sizes of a decoder and of one step of it: its layers, their widths, its sequences and their context."""

from typing import Any, NamedTuple

from suite.case import Items, Workload, items
from suite.jobs.decode.sizes import Sizes as CacheSizes

WEIGHTS, STEP = "weights", "step"
PARTS = (WEIGHTS, STEP)
Q_LEN = 1  # new tokens of a sequence in one step
OF_A_STEP = ("kv_len", "page_size")


class Product(NamedTuple):
    """One kind of weight matrix (n x k): of a layer, or the vocabulary's; ``times`` is how many of it a step goes through."""

    name: str
    n: int
    k: int
    times: int


class Sizes(NamedTuple):
    """A decoder of equal layers with ``batch`` sequences, each of ``kv_len`` tokens of which the latest is new.

    ``model`` is empty where the sizes are no named model's; ``kv_len`` and ``page_size`` are 0 where only weights are meant.
    """

    part: str
    batch: int
    layers: int
    hidden_size: int
    num_q_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocabulary: int
    kv_len: int = 0
    page_size: int = 0
    model: str = ""

    @property
    def q_width(self) -> int:
        """Columns of all query heads."""
        return self.num_q_heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Columns of all heads of K, and of V."""
        return self.num_kv_heads * self.head_dim

    @property
    def group(self) -> int:
        """Query heads that share a head of K and V."""
        return self.num_q_heads // self.num_kv_heads

    @property
    def position(self) -> int:
        """Where the new token of each sequence stands, counted from 0."""
        return self.kv_len - 1

    @property
    def layer_products(self) -> tuple[Product, ...]:
        """The products of each layer in their order: q, k and v in one, as gate and up are."""
        hidden, layers = self.hidden_size, self.layers
        return (
            Product("qkv", self.q_width + 2 * self.kv_width, hidden, layers),
            Product("o", hidden, self.q_width, layers),
            Product("gate_up", 2 * self.intermediate_size, hidden, layers),
            Product("down", hidden, self.intermediate_size, layers),
        )

    @property
    def products(self) -> tuple[Product, ...]:
        """All products of a step."""
        return (*self.layer_products, Product("lm_head", self.vocabulary, self.hidden_size, 1))

    @property
    def weights(self) -> int:
        """Numbers in all matrices that a step reads whole."""
        return sum(each.times * each.n * each.k for each in self.products)

    @property
    def cache(self) -> CacheSizes:
        """One layer's cache, as the decode job has it: pages that lie anywhere."""
        heads = (self.num_q_heads, self.num_kv_heads)
        return CacheSizes(self.batch, *heads, Q_LEN, self.kv_len, self.head_dim, self.head_dim, self.page_size)


def params_of(sizes: Sizes) -> Items:
    """As a workload has them; ``q_len`` and ``v_head_dim`` stand there for whoever writes heads and lengths."""
    params: dict[str, Any] = {name: value for name, value in sizes._asdict().items() if value or name not in OF_A_STEP}
    if not sizes.model:
        del params["model"]
    if sizes.part == STEP:
        params["q_len"] = Q_LEN
    return items({**params, "v_head_dim": sizes.head_dim})


def sizes_of(workload: Workload) -> Sizes:
    """Of a workload of the decode_step job."""
    params: dict[str, Any] = dict(workload.params)
    return Sizes(**{name: params[name] for name in Sizes._fields if name in params})
