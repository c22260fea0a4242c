"""How a KV cache's numbers are stored in each format, and what stands beside them."""

from collections.abc import Mapping
from typing import NamedTuple

from suite.case import Items, Workload, items
from suite.jobs.decode.cache import NUMBER_BYTES

UNSCALED = "none"  # as the counting of bytes calls it


class Activation(NamedTuple):
    """Numbers of queries and output: their bytes and their unit roundoff."""

    bytes: int
    roundoff: float


ACTIVATIONS: Mapping[str, Activation] = {
    "bf16": Activation(2, 2.0**-8),
    "fp16": Activation(2, 2.0**-11),
    "fp32": Activation(4, 2.0**-24),
}


class CacheFormat(NamedTuple):
    """``scalings`` is what may share a scale, ``activations`` what queries may be in, the usual one first of each.

    8-bit numbers have scales, and queries of either 16-bit type; other caches have queries in their own type, and no scales.
    """

    activations: tuple[str, ...]
    scalings: tuple[str, ...] = ()

    @property
    def is_quantised(self) -> bool:
        return bool(self.scalings)


FORMATS: Mapping[str, CacheFormat] = {
    "bf16": CacheFormat(("bf16",)),
    "fp16": CacheFormat(("fp16",)),
    "fp32": CacheFormat(("fp32",)),
    "fp8_e4m3": CacheFormat(("bf16", "fp16"), ("tensor", "token")),
    "int8": CacheFormat(("bf16", "fp16"), ("tensor", "token")),
}
assert FORMATS.keys() == NUMBER_BYTES.keys()


def semantics_of(name: str, scaling: str | None) -> Items:
    """What a workload says of how its numbers came about; a format without scales says nothing of them."""
    fmt = FORMATS[name]
    return items({"accumulate": "fp32", **({"scaling": scaling or fmt.scalings[0]} if fmt.is_quantised else {})})


def scaling_of(workload: Workload) -> str:
    """What shares a scale; ``none`` where numbers have none."""
    fmt = FORMATS[workload.format]
    return str(dict(workload.semantics).get("scaling", fmt.scalings[0])) if fmt.is_quantised else UNSCALED


def activation_of(workload: Workload) -> str:
    """The type of queries and output."""
    return str(dict(workload.params).get("activation", FORMATS[workload.format].activations[0]))
