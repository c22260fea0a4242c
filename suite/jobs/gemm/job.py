"""What the gemm job measures: its axes, work model and footprint."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from suite.case import Case, Items, Regime, Workload, items
from suite.errors import UsageError
from suite.jobs.axes import check_choices, check_counts, check_names, check_truths
from suite.jobs.emulation import EMULATIONS, NATIVE, workspace_bytes
from suite.jobs.gemm.epilogue import EPILOGUES, NONE, OFFERED, epilogue_of, named, unknown
from suite.jobs.gemm.fit import refuse_misfits, semantics
from suite.jobs.gemm.formats import (
    FORMATS,
    SCALINGS,
    SQUARE_128,
    USUAL,
    GemmFormat,
    Variant,
    variant_of,
)
from suite.jobs.gemm.switches import check_switches, combinations
from suite.jobs.gemm.tolerance import tolerance
from suite.jobs.shapes import LARGEST_SIZE, Shape, model_shapes, parse_shape
from suite.settings import JobSettings
from suite.work import Footprint, Work

# Who computes, and in which formats.  ``library`` is whoever the framework hands the product to; ``triton`` a kernel of
# roofbench's own, cut into tiles by a model of the device; ``triton_tuned`` the same kernel, cut in whichever of several ways
# was the fastest when they were tried, before anything is timed.  ``compiled`` is what the framework's compiler makes of the
# product with its epilogue: torch.compile, which on a GPU tries the library's kernels and its own.  ``gluon`` is a kernel of
# roofbench's own for Hopper, of fp8 in scaled blocks.
_TRITONS = ("tf32", "bf16", "fp16", "int8", "fp8_e4m3", "mxfp8_e4m3", "w8a16", "w4a16", "mxfp4a16")
IMPLEMENTATIONS: dict[str, tuple[str, ...]] = {
    "library": tuple(FORMATS),
    "triton": _TRITONS,
    "triton_tuned": _TRITONS,
    "compiled": OFFERED,
    "gluon": ("fp8_e4m3",),
}

RETURNING = ("compiled",)  # a new matrix from each launch, kept until it is looked at

LAYOUTS = ("nt", "nn", "tn")  # A m x k as stored or transposed, B k x n as stored or transposed (nt: a Linear layer's weight)
DISTRIBUTIONS = ("normal", "uniform", "integer", "zeros", "constant", "outliers")

SCRATCH_BYTES = 256 * 2**20  # data and references go by blocks of at most 64 MiB
WIDE_BYTES = 2  # of a number converted to bf16
# Whose numbers are converted only where a device has no unit for them, which is that of bf16 for weights that torch has kernels
# for.  Of others there are devices with the unit and no library that takes them, so that room for converted operands is always
# reckoned with.
WITH_TORCHS_KERNELS = ("w8a16", "w4a16")
CONVERTED_WITHOUT_UNIT = ("fp8_e4m3", "fp8_e5m2", "nvfp4", *WITH_TORCHS_KERNELS)


@dataclass
class GemmSettings(JobSettings):
    """Axes of the gemm job; each list is an axis.

    ``shapes`` are ``MxNxK``; ``models`` with ``m`` (tokens) add the projections of named models.  ``layouts``: ``nt``
    keeps B as a Linear layer stores its weight (n x k), ``nn`` as k x n, ``tn`` additionally transposes A.
    ``implementations`` are keys of ``IMPLEMENTATIONS``, which has the formats that each takes; a case of any other format is
    recorded as unsupported.  ``epilogues`` are keys of ``suite.jobs.gemm.epilogue.EPILOGUES``, what follows the product within
    the launch; a format or an implementation that is not made for one is recorded as unsupported too.

    ``scaling`` is one value or a list of what shares a scale, for the formats that have a choice: ``tensor``, ``row`` or
    ``block`` (A in 1x128, B in 128x128) of fp8; ``none`` (raw integers), ``tensor`` or ``row`` of int8; null leaves each format
    its own, ``tensor`` for fp8 and ``none`` for int8.  ``zero_point``, true or false or both, has the zero of A in scaled int8
    and of B in w4a16 be any code.  What a format does not have leaves it as it is, and plan and run say so.

    The switches are one value or a list of them, and apply to the formats whose result or speed they can change:
    ``fp8_fast_accum`` sums fp8 products in the tensor core's short accumulator; ``reduced_precision_reduction`` lets split-K
    sums of bf16 and fp16 be added in that type, ``fp16_accumulation`` all sums of fp16; ``emulation`` computes fp32 by
    ``bf16x9`` or fp64 by ``int8``; ``tunable_op`` has torch try the libraries' kernels and keep the fastest;
    ``workspace_mib`` is what cuBLAS may use beside the operands (null: torch's own choice for the device).
    """

    name: str = "gemm"
    formats: list[str] = field(default_factory=lambda: list(USUAL))
    shapes: list[str] = field(default_factory=lambda: ["4096x4096x4096"])
    models: list[str] = field(default_factory=list)
    m: list[int] = field(default_factory=lambda: [1, 16, 128, 4096])
    layouts: list[str] = field(default_factory=lambda: ["nt"])
    distributions: list[str] = field(default_factory=lambda: ["normal"])
    implementations: list[str] = field(default_factory=lambda: ["library"])
    epilogues: list[str] = field(default_factory=lambda: [NONE])
    scaling: Any = None
    zero_point: Any = False
    fp8_fast_accum: Any = True
    reduced_precision_reduction: Any = True
    fp16_accumulation: Any = False
    emulation: Any = NATIVE
    tunable_op: Any = False
    workspace_mib: Any = None


class GemmJob:
    """See ``suite.jobs.job.Job``."""

    name = "gemm"
    method_version = 3  # 2: data with outliers has them at 32 times, not 64; 3: measured at several places in memory
    settings_type = GemmSettings
    formats = tuple(FORMATS)
    implementations = tuple(IMPLEMENTATIONS)
    usual_regimes: tuple[Regime, ...] = ()

    def check(self, settings: GemmSettings) -> None:
        """Refuse names that are not known, axes that are empty, and shapes that a format's scales do not divide."""
        axes = {
            "formats": self.formats,
            "implementations": self.implementations,
            "layouts": LAYOUTS,
            "distributions": DISTRIBUTIONS,
        }
        for axis, valid in axes.items():
            check_names(self.name, axis, getattr(settings, axis), valid)
        _check_epilogues(settings)
        check_choices(self.name, "scaling", settings.scaling, SCALINGS)
        check_truths(self.name, "zero_point", settings.zero_point)
        check_switches(settings)
        if not settings.m:  # it would silently leave every model out
            raise UsageError("jobs.gemm.m is empty; name tokens for the models, such as [1,16,4096]")
        check_counts(self.name, "m", settings.m, range(1, LARGEST_SIZE + 1))  # wrong also where no model is named yet
        if not _shapes(settings):
            raise UsageError("jobs.gemm has neither shapes nor models; set jobs.gemm.shapes=[4096x4096x4096] for instance")
        refuse_misfits(settings, list(dict.fromkeys(shape.k for shape in _shapes(settings))))

    def workloads(self, settings: GemmSettings) -> Iterator[Workload]:
        """Formats outermost, so that one format's sizes stand together, and its scalings within."""
        for format_name in dict.fromkeys(settings.formats):
            for scaled in semantics(settings, format_name):
                for shape in _shapes(settings):
                    for layout, epilogue in _ends(settings):
                        params = items({"m": shape.m, "n": shape.n, "k": shape.k, "layout": layout, **named(epilogue)})
                        for distribution in dict.fromkeys(settings.distributions):
                            yield Workload("gemm", format_name, params, distribution, scaled)

    def switches(self, settings: GemmSettings, workload: Workload) -> tuple[Items, ...]:
        return combinations(settings, workload)

    def misfit(self, case: Case) -> str | None:
        """Nothing: what a device lacks is recorded."""
        return None

    def work(self, workload: Workload, switches: Items = ()) -> Work:
        """2mnk operations, each operand once with what it carries; the pipe is the one that multiplies the format natively, or
        that of the emulation or of the sums where a switch asks for one.  A kernel that multiplies on another says so.

        An epilogue adds the bytes of its bias, and no operations: the few that it does for each element are not the matrix
        unit's, whose peak the operations are held against.
        """
        shape, variant = _shape(workload), variant_of(workload)
        moved_bytes = _input_bytes(shape, variant) + shape.m * shape.n * variant.output_bytes
        return Work(
            flops=2 * shape.m * shape.n * shape.k,
            compulsory_bytes=moved_bytes + _bias_bytes(workload, shape, variant),
            pipe=_pipe(FORMATS[workload.format], dict(switches)),
        )

    def footprint(self, workload: Workload, switches: Items = ()) -> Footprint:
        """Scratch covers blocks of the reference and of drawn data, an emulation's workspace, what a library hands over to be
        scaled or copied, and operands converted to bf16 where no unit or no library takes them as they are stored.
        """
        shape, variant = _shape(workload), variant_of(workload)
        emulation, wide_bytes = dict(switches).get("emulation"), _wide_bytes(shape, variant)
        without_unit = workload.format in CONVERTED_WITHOUT_UNIT and variant.b.block != SQUARE_128
        workspace = workspace_bytes(str(emulation), *shape) if emulation else 0
        output_bytes = shape.m * shape.n * variant.output_bytes
        return Footprint(
            input_bytes=_input_bytes(shape, variant) + _bias_bytes(workload, shape, variant),
            output_bytes=output_bytes,
            scratch_bytes=SCRATCH_BYTES + workspace + _passing_bytes(shape, variant) + (0 if without_unit else wide_bytes),
            emulation_bytes=wide_bytes if without_unit else 0,
            rearranged_bytes=_rearranged_bytes(shape, variant),
            returned_bytes=tuple((name, output_bytes) for name in RETURNING),
        )

    def tolerance(self, workload: Workload, switches: Items) -> float:
        """See ``suite.jobs.gemm.tolerance``."""
        return tolerance(workload, dict(switches))


def _shape(workload: Workload) -> Shape:
    params = dict(workload.params)
    return Shape(int(params["m"]), int(params["n"]), int(params["k"]))


def _pipe(fmt: GemmFormat, switches: Mapping[str, Any]) -> str:
    """The peak that applies, as ``suite.hardware.spec`` reads it."""
    emulation = switches.get("emulation")
    if emulation:
        return EMULATIONS[str(emulation)].pipe
    return "fp16_acc_fp16" if switches.get("fp16_accumulation") else fmt.pipe


def _input_bytes(shape: Shape, variant: Variant) -> int:
    return variant.a.stored_bytes(shape.m, shape.k) + variant.b.stored_bytes(shape.n, shape.k)


def _bias_bytes(workload: Workload, shape: Shape, variant: Variant) -> int:
    return shape.n * variant.output_bytes if epilogue_of(workload).bias else 0


def _wide_bytes(shape: Shape, variant: Variant) -> int:
    """Both operands in bf16, less those that are or that nobody converts."""
    if variant.a.name == "int8" and not variant.a.zero_point_bytes:
        return 0
    numbers = (shape.m * shape.k if variant.a.name else 0) + (shape.n * shape.k if variant.b.name else 0)
    return WIDE_BYTES * numbers


def _passing_bytes(shape: Shape, variant: Variant) -> int:
    """int32 sums and what they are worth in fp32, where int8 carries scales; what torch's kernels for weights return, of which
    that for 8 bits has activations and results in fp32 on a GPU.
    """
    results = shape.m * shape.n
    if variant.a.name == "int8":
        return (4 + 4) * results
    in_fp32 = 4 * (shape.m * shape.k + results) if variant.b.name == "w8a16" else 0
    return in_fp32 + (2 * results if variant.b.name in WITH_TORCHS_KERNELS else 0)


def _rearranged_bytes(shape: Shape, variant: Variant) -> int:
    """Weights beside bf16 activations in the order of the kernels that read them, and block scales in that of the libraries."""
    if not variant.a.name and variant.b.name:
        return variant.b.stored_bytes(shape.n, shape.k)
    if variant.a.block.k and variant.b.block.k:
        return variant.a.beside_bytes(shape.m, shape.k) + variant.b.beside_bytes(shape.n, shape.k)
    return 0


def _shapes(settings: GemmSettings) -> list[Shape]:
    squares = [parse_shape(text) for text in settings.shapes]
    projections = [shape for model in settings.models for m in settings.m for shape in model_shapes(model, m)]
    return list(dict.fromkeys(squares + projections))


def _ends(settings: GemmSettings) -> list[tuple[str, str]]:
    """Each layout with each epilogue."""
    return list(product(dict.fromkeys(settings.layouts), dict.fromkeys(settings.epilogues)))


def _check_epilogues(settings: GemmSettings) -> None:
    for given in settings.epilogues:
        if given not in EPILOGUES:
            raise UsageError(f"jobs.gemm.epilogues: {unknown(given)}")
    if not settings.epilogues:
        raise UsageError(f"jobs.gemm.epilogues is empty; name at least one of {', '.join(EPILOGUES)}")
