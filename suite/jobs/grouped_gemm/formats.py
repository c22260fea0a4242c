"""Formats of grouped products: those of plain products, as far as there are grouped ones."""

from collections.abc import Mapping

from suite.case import Items, Workload, items
from suite.jobs.gemm.formats import FIXED, Variant, semantics_of
from suite.jobs.gemm.formats import FORMATS as LADDER

# The scalings of each format, the usual one first; empty where numbers carry no scales.  ``row``: of A each row, of B each
# column of each group; ``block``: of A 1x128, of B 128x128.
FORMATS: Mapping[str, tuple[str, ...]] = {"bf16": (), "fp16": (), "fp32": (), "fp8_e4m3": ("row", "block")}
BLOCK = "block"
SIDE = 128  # of a square block of B, which lies within a group


def semantics(name: str, scaling: str | None) -> Items:
    """What a workload says of its numbers; ``None`` is the format's usual scaling, and so is one that it does not have."""
    scalings = FORMATS[name]
    if not scalings:
        return items({"accumulate": LADDER[name].accumulate})
    return semantics_of(name, scaling if scaling in scalings else scalings[0], zero_point=False)


def variant(workload: Workload) -> Variant:
    """How operands are stored; raises ``KeyError`` for a scaling that the format does not have."""
    return LADDER[workload.format].variants[scaling_of(workload) or FIXED]


def scaling_of(workload: Workload) -> str | None:
    """``row``, ``block``, or ``None`` where numbers carry no scales; what a workload says, or else its format's usual one."""
    scalings = FORMATS[workload.format]
    return str(dict(workload.semantics).get("scaling", scalings[0])) if scalings else None


def misfit(name: str, scaling: str | None, groups: int, n: int, k: int) -> str | None:
    """Why groups cannot be stored with such scales, with the remedy; ``None`` where they can."""
    if scaling != BLOCK:
        return None
    told = LADDER[name].variants[BLOCK].misfit(f"{name} in blocks", k)
    if told is None and n % SIDE and groups > 1:
        shared = f"with n={n} the last rows of a group would share theirs with the first of the next"
        told = f"{name} in blocks has one scale for every {SIDE} rows of B: {shared}; pad N to {-(-n // SIDE) * SIDE}"
    return told
