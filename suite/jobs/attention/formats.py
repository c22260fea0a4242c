"""How attention's operands are stored in each format, and what rounds."""

from typing import NamedTuple

from suite.case import Items, Workload, items

HADAMARD = "hadamard"  # of the semantics: Q and K are rotated by a random-sign Hadamard matrix before they are rounded
SCALE_BYTES = 4


class AttentionFormat(NamedTuple):
    """Q, K and V of ``operand_bytes`` a number, the output and its gradients of ``output_bytes``.

    ``roundoff`` is the unit roundoff of the output, ``weight_roundoff`` that of the weights as the second product takes them.
    ``scalings`` is what may share a scale of each of Q, K and V; empty where numbers have none.
    """

    pipe: str
    operand_bytes: int
    output_bytes: int
    roundoff: float
    weight_roundoff: float
    scalings: tuple[str, ...] = ()
    has_gradients: bool = True


FORMATS = {
    "fp32": AttentionFormat("fp32", 4, 4, 2.0**-24, 2.0**-24),
    "bf16": AttentionFormat("bf16", 2, 2, 2.0**-8, 2.0**-8),
    "fp16": AttentionFormat("fp16", 2, 2, 2.0**-11, 2.0**-11),
    "fp8_e4m3": AttentionFormat("fp8", 1, 2, 2.0**-8, 2.0**-4, ("tensor", "head"), has_gradients=False),
}


def semantics_of(name: str, scaling: str | None, hadamard: bool) -> Items:
    """What a workload says of how its numbers came about; a format without scales says nothing of either."""
    fmt = FORMATS[name]
    if not fmt.scalings:
        return items({"accumulate": "fp32"})
    rotated = {HADAMARD: True} if hadamard else {}
    return items({"accumulate": "fp32", "scaling": scaling or fmt.scalings[0], **rotated})


def scaling_of(workload: Workload) -> str | None:
    """What shares a scale; ``None`` where numbers have none."""
    fmt = FORMATS[workload.format]
    return str(dict(workload.semantics).get("scaling", fmt.scalings[0])) if fmt.scalings else None
