"""Matrix products: C[m, n] = A[m, k] B[k, n], in every format a device multiplies in."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from suite.case import Items, Workload, items
from suite.errors import UsageError, nearest
from suite.jobs.shapes import LARGEST_SIZE, Shape, model_shapes, parse_shape
from suite.settings import JobSettings
from suite.work import Footprint, Work


class GemmFormat(NamedTuple):
    """How one format multiplies.

    ``roundoff`` is the unit roundoff of the output format; ``operand_roundoff`` that of rounding the operands, where
    the hardware does it on the way in (TF32).  ``scales_bytes`` are read once per operand pair.
    """

    input_bytes: int
    output_bytes: int
    pipe: str
    accumulate: str
    roundoff: float
    operand_roundoff: float = 0.0
    scales_bytes: int = 0


FORMATS: dict[str, GemmFormat] = {
    "fp64": GemmFormat(8, 8, "fp64", "fp64", 2.0**-53),
    "fp32": GemmFormat(4, 4, "fp32", "fp32", 2.0**-24),
    "tf32": GemmFormat(4, 4, "tf32", "fp32", 2.0**-24, operand_roundoff=2.0**-10),
    "bf16": GemmFormat(2, 2, "bf16", "fp32", 2.0**-8),
    "fp16": GemmFormat(2, 2, "fp16", "fp32", 2.0**-11),
    "int8": GemmFormat(1, 4, "int8", "int32", 0.0),
    "fp8_e4m3": GemmFormat(1, 2, "fp8", "fp32", 2.0**-8, scales_bytes=8),
}

LAYOUTS = ("nt", "nn", "tn")  # A m x k as stored or transposed, B k x n as stored or transposed (nt: a Linear layer's weight)
DISTRIBUTIONS = ("normal", "uniform", "integer", "zeros", "constant", "outliers")

# Hopper sums fp8 products with about 14 significant bits when fast accumulation is on, and promotes them to fp32 every 128
# terms when it is off (DeepSeek-V3 technical report, section 3.3.2).  On an H200 fast accumulation of normal data was seen
# to add an error of 0.9e-3 at K = 2048, 2.1e-3 at 8192, 3.1e-3 at 16384 and 6.3e-3 at 53248: up to 2.7e-5 sqrt(K).
FP8_ACCUMULATE_ROUNDOFF = 2.0**-14
FP8_PROMOTED_TERMS = 128
SCRATCH_BYTES = 256 * 2**20  # data and references go by blocks of at most 64 MiB


@dataclass
class GemmSettings(JobSettings):
    """Axes of the gemm job; each list is an axis.

    ``shapes`` are ``MxNxK``; ``models`` with ``m`` (tokens) add the projections of named models.  ``layouts``: ``nt``
    keeps B as a Linear layer stores its weight (n x k), ``nn`` as k x n, ``tn`` additionally transposes A.
    """

    name: str = "gemm"
    formats: list[str] = field(default_factory=lambda: list(FORMATS))
    shapes: list[str] = field(default_factory=lambda: ["4096x4096x4096"])
    models: list[str] = field(default_factory=list)
    m: list[int] = field(default_factory=lambda: [1, 16, 128, 4096])
    layouts: list[str] = field(default_factory=lambda: ["nt"])
    distributions: list[str] = field(default_factory=lambda: ["normal"])
    implementations: list[str] = field(default_factory=lambda: ["library"])
    fp8_fast_accum: bool = True
    reduced_precision_reduction: bool = True


class GemmJob:
    """See ``suite.jobs.job.Job``."""

    name = "gemm"
    method_version = 1
    settings_type = GemmSettings
    formats = tuple(FORMATS)
    implementations = ("library",)

    def check(self, settings: GemmSettings) -> None:
        """Refuse names that are not known and axes that are empty."""
        axes = {
            "formats": self.formats,
            "implementations": self.implementations,
            "layouts": LAYOUTS,
            "distributions": DISTRIBUTIONS,
        }
        for axis, valid in axes.items():
            for given in getattr(settings, axis):
                if given not in valid:
                    raise UsageError(f"unknown {axis[:-1]} '{given}' in jobs.gemm.{axis}{nearest(str(given), valid)}")
            if not getattr(settings, axis):
                raise UsageError(f"jobs.gemm.{axis} is empty; name at least one of {', '.join(valid)}")
        for m in settings.m:  # wrong also where no model is named yet
            if not 1 <= m <= LARGEST_SIZE:
                raise UsageError(f"jobs.gemm.m has {m}; tokens go from 1 to {LARGEST_SIZE}")
        if not _shapes(settings):
            raise UsageError("jobs.gemm has neither shapes nor models; set jobs.gemm.shapes=[4096x4096x4096] for instance")

    def workloads(self, settings: GemmSettings) -> Iterator[Workload]:
        """Formats outermost, so that one format's sizes stand together."""
        for format_name in dict.fromkeys(settings.formats):
            semantics = _semantics(format_name)
            for shape in _shapes(settings):
                for layout in dict.fromkeys(settings.layouts):
                    params = items({"m": shape.m, "n": shape.n, "k": shape.k, "layout": layout})
                    for distribution in dict.fromkeys(settings.distributions):
                        yield Workload("gemm", format_name, params, distribution, semantics)

    def switches(self, settings: GemmSettings, workload: Workload) -> Items:
        """Only what can change this format's result or speed is set, so that keys do not split needlessly."""
        if workload.format in ("fp32", "tf32"):
            return items({"tf32": workload.format == "tf32"})
        if workload.format in ("bf16", "fp16"):
            return items({"reduced_precision_reduction": settings.reduced_precision_reduction})
        if workload.format == "fp8_e4m3":
            return items({"fp8_fast_accum": settings.fp8_fast_accum})
        return ()

    def work(self, workload: Workload) -> Work:
        """2mnk operations; each operand once."""
        shape, fmt = _shape(workload), FORMATS[workload.format]
        inputs = (shape.m * shape.k + shape.k * shape.n) * fmt.input_bytes + fmt.scales_bytes
        return Work(
            flops=2 * shape.m * shape.n * shape.k,
            compulsory_bytes=inputs + shape.m * shape.n * fmt.output_bytes,
            pipe=fmt.pipe,
        )

    def footprint(self, workload: Workload) -> Footprint:
        """Scratch covers blocks of the reference and of drawn data; emulating fp8 takes bf16 copies of both operands."""
        shape, fmt = _shape(workload), FORMATS[workload.format]
        wide_bytes = 2 * (shape.m * shape.k + shape.k * shape.n) if fmt.pipe == "fp8" else 0
        return Footprint(
            input_bytes=(shape.m * shape.k + shape.k * shape.n) * fmt.input_bytes + fmt.scales_bytes,
            output_bytes=shape.m * shape.n * fmt.output_bytes,
            scratch_bytes=SCRATCH_BYTES,
            emulation_bytes=wide_bytes,
        )

    def tolerance(self, workload: Workload, switches: Items) -> float:
        """Twice the rounding of the output, plus what accumulating ``k`` terms adds.

        Rounding errors of a sum of k terms grow as sqrt(k) for a random walk; four standard deviations are allowed.
        Integers are exact.  Splits of K that are summed in the output's format add one more rounding.
        """
        fmt, k = FORMATS[workload.format], workload.param("k")
        if fmt.accumulate == "int32":
            return 0.0
        if fmt.operand_roundoff:
            return 2 * fmt.operand_roundoff
        roundings = 3.0 if dict(switches).get("reduced_precision_reduction") else 2.0
        accumulate = 4 * (2.0**-53 if fmt.accumulate == "fp64" else 2.0**-24) * math.sqrt(k)
        if fmt.pipe == "fp8":
            terms = k if dict(switches).get("fp8_fast_accum") else min(k, FP8_PROMOTED_TERMS)
            accumulate += FP8_ACCUMULATE_ROUNDOFF * math.sqrt(terms)
        return roundings * fmt.roundoff + accumulate


def _shape(workload: Workload) -> Shape:
    params = dict(workload.params)
    return Shape(int(params["m"]), int(params["n"]), int(params["k"]))


def _shapes(settings: GemmSettings) -> list[Shape]:
    squares = [parse_shape(text) for text in settings.shapes]
    projections = [shape for model in settings.models for m in settings.m for shape in model_shapes(model, m)]
    return list(dict.fromkeys(squares + projections))


def _semantics(format_name: str) -> Items:
    fmt = FORMATS[format_name]
    scaling = {"scaling": "tensor"} if fmt.scales_bytes else {}
    return items({"accumulate": fmt.accumulate, **scaling})
