"""What follows from a cell's facts: how many warps a unit holds, and what XLA's estimate of the time is worth."""

from typing import Any, NamedTuple

from suite.hardware.catalogue import load
from suite.hardware.spec import HardwareSpec
from suite.roofline import roof
from suite.targets.limits import LIMITS
from suite.targets.names import BY_NAME
from suite.targets.occupancy import Occupancy, Taken, occupancy
from suite.targets.record import Compiled

ESTIMATED = ("bf16", "fp32")  # formats whose estimate means something
GEMM = "xla_gemm"
LEAVES_OUT = "leaves out launching, waiting for memory and the passes by which fp32 is multiplied in bf16"


class Estimate(NamedTuple):
    """XLA's own estimate as a rate (FLOP/s) and as a share of the roof of the sheet; ``why_not`` where it is not shown."""

    flop_s: float | None
    of_roof: float | None
    why_not: str = ""


def occupancy_of(compiled: Compiled) -> Occupancy | None:
    """Of a kernel on a GPU; ``None`` for everything else."""
    facts = compiled.facts
    if compiled.target not in LIMITS or not {"warps", "registers", "shared_bytes"} <= facts.keys():
        return None
    return occupancy(
        compiled.target,
        Taken(
            facts["warps"],
            facts["registers"],
            facts["shared_bytes"],
            facts.get("scalar_registers", 0),
            facts.get("tensor_columns", 0),
        ),
    )


def estimate_of(compiled: Compiled) -> Estimate | None:
    """Of a program of XLA's; ``None`` for what has no estimate to speak of."""
    facts = compiled.facts
    if compiled.target not in BY_NAME or not BY_NAME[compiled.target].sheet or not facts:
        return None
    format_name = compiled.program.partition(".")[2]
    if compiled.kernel != GEMM:
        return Estimate(None, None, "only that of matrix products says anything: elsewhere XLA reckons by bytes alone")
    if format_name not in ESTIMATED:
        return Estimate(None, None, f"it takes {format_name} for bf16: XLA's estimate has no rates of narrow formats")
    if not facts.get("optimal_s") or not facts.get("flops"):
        return Estimate(None, None, "XLA gives none")
    flop_s = facts["flops"] / facts["optimal_s"]
    declared = _roof(load(BY_NAME[compiled.target].sheet), facts)
    return Estimate(flop_s, flop_s / declared if declared else None)


def _roof(spec: HardwareSpec, facts: Any) -> float | None:
    """Of one of a chip's devices, at the intensity that XLA counts; by bf16's rate, in which a TPU multiplies fp32 too."""
    peak, width = spec.peak_flop_s("bf16"), spec.bandwidth_bytes_s
    if peak is None or not facts.get("bytes_accessed"):
        return None
    whole = roof(peak, width, [facts["flops"] / facts["bytes_accessed"]])[0]
    return whole / int(facts.get("devices_of_chip", 1))
