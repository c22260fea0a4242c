"""Matrix products: C[m, n] = A[m, k] B[k, n], in every format a device multiplies in."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from suite.case import Items, Scalar, Workload, items
from suite.errors import UsageError, nearest
from suite.jobs.emulation import EMULATIONS, NATIVE, workspace_bytes
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

# Who computes, and in which formats.  ``library`` is whoever the framework hands the product to; ``triton`` a kernel of
# roofbench's own, cut into tiles by a model of the device; ``triton_tuned`` the same kernel, cut in whichever of several ways
# was the fastest when they were tried, before anything is timed.
_TRITONS = ("tf32", "bf16", "fp16", "int8", "fp8_e4m3")
IMPLEMENTATIONS: dict[str, tuple[str, ...]] = {"library": tuple(FORMATS), "triton": _TRITONS, "triton_tuned": _TRITONS}

LAYOUTS = ("nt", "nn", "tn")  # A m x k as stored or transposed, B k x n as stored or transposed (nt: a Linear layer's weight)
DISTRIBUTIONS = ("normal", "uniform", "integer", "zeros", "constant", "outliers")

# Hopper sums fp8 products with about 14 significant bits when fast accumulation is on, and promotes them to fp32 every 128
# terms when it is off (DeepSeek-V3 technical report, section 3.3.2).  On an H200 fast accumulation of normal data was seen
# to add an error of 0.9e-3 at K = 2048, 2.1e-3 at 8192, 3.1e-3 at 16384 and 6.3e-3 at 53248: up to 2.7e-5 sqrt(K).
FP8_ACCUMULATE_ROUNDOFF = 2.0**-14
FP8_PROMOTED_TERMS = 128
# Summing k random terms with a rounding to fp16 after each moves the sum by 2^-11 sqrt(k / 12) of its own size; tensor cores
# round after several terms, to the nearest (Fasi and others, 2021, "Numerical behavior of NVIDIA tensor cores").
FP16_ACCUMULATE_ROUNDOFF = 0.5 * 2.0**-11
SCRATCH_BYTES = 256 * 2**20  # data and references go by blocks of at most 64 MiB


@dataclass
class GemmSettings(JobSettings):
    """Axes of the gemm job; each list is an axis.

    ``shapes`` are ``MxNxK``; ``models`` with ``m`` (tokens) add the projections of named models.  ``layouts``: ``nt``
    keeps B as a Linear layer stores its weight (n x k), ``nn`` as k x n, ``tn`` additionally transposes A.
    ``implementations`` are keys of ``IMPLEMENTATIONS``, which has the formats that each takes; a case of any other format is
    recorded as unsupported.

    The switches are one value or a list of them, and apply to the formats whose result or speed they can change:
    ``fp8_fast_accum`` sums fp8 products in the tensor core's short accumulator; ``reduced_precision_reduction`` lets split-K
    sums of bf16 and fp16 be added in that type, ``fp16_accumulation`` all sums of fp16; ``emulation`` computes fp32 by
    ``bf16x9`` or fp64 by ``int8``; ``tunable_op`` has torch try the libraries' kernels and keep the fastest;
    ``workspace_mib`` is what cuBLAS may use beside the operands (null: torch's own choice for the device).
    """

    name: str = "gemm"
    formats: list[str] = field(default_factory=lambda: list(FORMATS))
    shapes: list[str] = field(default_factory=lambda: ["4096x4096x4096"])
    models: list[str] = field(default_factory=list)
    m: list[int] = field(default_factory=lambda: [1, 16, 128, 4096])
    layouts: list[str] = field(default_factory=lambda: ["nt"])
    distributions: list[str] = field(default_factory=lambda: ["normal"])
    implementations: list[str] = field(default_factory=lambda: ["library"])
    fp8_fast_accum: Any = True
    reduced_precision_reduction: Any = True
    fp16_accumulation: Any = False
    emulation: Any = NATIVE
    tunable_op: Any = False
    workspace_mib: Any = None


class Switch(NamedTuple):
    """A switch of ``GemmSettings``: the formats it applies to, and the values it takes (none: a number of MiB, or null)."""

    formats: tuple[str, ...]
    values: tuple[Scalar, ...] = (True, False)


SWITCHES = {
    "fp8_fast_accum": Switch(("fp8_e4m3",)),
    "reduced_precision_reduction": Switch(("bf16", "fp16")),
    "fp16_accumulation": Switch(("fp16",)),
    "emulation": Switch(tuple(each.format for each in EMULATIONS.values()), (NATIVE, *EMULATIONS)),
    "tunable_op": Switch(tuple(name for name in FORMATS if name != "int8")),
    "workspace_mib": Switch(tuple(FORMATS), ()),
}
# A case that does not name one of these has it off: a switch that comes later gives no stored case another key.
LEFT_OUT_WHEN_OFF: dict[str, Scalar | None] = {
    "fp16_accumulation": False,
    "emulation": NATIVE,
    "tunable_op": False,
    "workspace_mib": None,
}
TORCHS_OWN = ("tunable_op", "workspace_mib")  # an emulated product does not go through torch
LARGEST_WORKSPACE_MIB = 1 << 20


class GemmJob:
    """See ``suite.jobs.job.Job``."""

    name = "gemm"
    method_version = 2  # 2: data with outliers has them at 32 times, not 64
    settings_type = GemmSettings
    formats = tuple(FORMATS)
    implementations = tuple(IMPLEMENTATIONS)

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
        for name in SWITCHES:
            _check_switch(name, _asked(settings, name))
        if not settings.m:  # it would silently leave every model out
            raise UsageError("jobs.gemm.m is empty; name tokens for the models, such as [1,16,4096]")
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

    def switches(self, settings: GemmSettings, workload: Workload) -> tuple[Items, ...]:
        """Every combination of what applies to this format: a key splits where result or speed can, and nowhere else."""
        return _combinations(workload.format, tuple(tuple(_asked(settings, name)) for name in SWITCHES))

    def work(self, workload: Workload, switches: Items = ()) -> Work:
        """2mnk operations, each operand once; the pipe is that of the emulation or of the sums where a switch asks for one."""
        shape, fmt = _shape(workload), FORMATS[workload.format]
        inputs = (shape.m * shape.k + shape.k * shape.n) * fmt.input_bytes + fmt.scales_bytes
        return Work(
            flops=2 * shape.m * shape.n * shape.k,
            compulsory_bytes=inputs + shape.m * shape.n * fmt.output_bytes,
            pipe=_pipe(fmt, dict(switches)),
        )

    def footprint(self, workload: Workload, switches: Items = ()) -> Footprint:
        """Scratch covers blocks of the reference and of drawn data, and an emulation's workspace; on a device without fp8
        bf16 copies of both operands come on top.
        """
        shape, fmt = _shape(workload), FORMATS[workload.format]
        wide_bytes = 2 * (shape.m * shape.k + shape.k * shape.n) if fmt.pipe == "fp8" else 0
        emulation = dict(switches).get("emulation")
        return Footprint(
            input_bytes=(shape.m * shape.k + shape.k * shape.n) * fmt.input_bytes + fmt.scales_bytes,
            output_bytes=shape.m * shape.n * fmt.output_bytes,
            scratch_bytes=SCRATCH_BYTES + (workspace_bytes(str(emulation), *shape) if emulation else 0),
            emulation_bytes=wide_bytes,
        )

    def tolerance(self, workload: Workload, switches: Items) -> float:
        """Twice the rounding of the output, plus what accumulating ``k`` terms adds.

        Rounding errors of a sum of k terms grow as sqrt(k) for a random walk; four standard deviations are allowed.
        Integers are exact.  Splits of K that are summed in the output's format add one more rounding.  An emulation keeps
        the accuracy of its format, so it is held to the same.
        """
        fmt, k, on = FORMATS[workload.format], workload.param("k"), dict(switches)
        if fmt.accumulate == "int32":
            return 0.0
        if fmt.operand_roundoff:
            return 2 * fmt.operand_roundoff
        roundings = 3.0 if on.get("reduced_precision_reduction") else 2.0
        accumulate = 4 * (2.0**-53 if fmt.accumulate == "fp64" else 2.0**-24) * math.sqrt(k)
        if fmt.pipe == "fp8":
            terms = k if on.get("fp8_fast_accum") else min(k, FP8_PROMOTED_TERMS)
            accumulate += FP8_ACCUMULATE_ROUNDOFF * math.sqrt(terms)
        if on.get("fp16_accumulation"):
            accumulate += FP16_ACCUMULATE_ROUNDOFF * math.sqrt(k)
        return roundings * fmt.roundoff + accumulate


def _shape(workload: Workload) -> Shape:
    params = dict(workload.params)
    return Shape(int(params["m"]), int(params["n"]), int(params["k"]))


def _pipe(fmt: GemmFormat, switches: Mapping[str, Any]) -> str:
    """The peak that applies, as ``suite.hardware.spec`` reads it."""
    emulation = switches.get("emulation")
    if emulation:
        return EMULATIONS[str(emulation)].pipe
    return "fp16_acc_fp16" if switches.get("fp16_accumulation") else fmt.pipe


def _shapes(settings: GemmSettings) -> list[Shape]:
    squares = [parse_shape(text) for text in settings.shapes]
    projections = [shape for model in settings.models for m in settings.m for shape in model_shapes(model, m)]
    return list(dict.fromkeys(squares + projections))


def _semantics(format_name: str) -> Items:
    fmt = FORMATS[format_name]
    scaling = {"scaling": "tensor"} if fmt.scales_bytes else {}
    return items({"accumulate": fmt.accumulate, **scaling})


def _asked(settings: GemmSettings, name: str) -> list[Any]:
    """What a switch is set to, as a list."""
    given = getattr(settings, name)
    return list(given) if isinstance(given, list | tuple) else [given]


def _check_switch(name: str, given: list[Any]) -> None:
    """Refuse an empty list and values that the switch does not have."""
    where, values = f"jobs.gemm.{name}", SWITCHES[name].values
    if not given:
        raise UsageError(f"{where} is empty; leave it out for the default")
    for value in given:
        if values == (True, False) and not isinstance(value, bool):
            raise UsageError(f"{where}={_written(value)} is neither true nor false")
        if NATIVE in values and value not in values:
            raise UsageError(f"unknown emulation '{_written(value)}' in {where}{nearest(str(value), map(str, values))}")
        if not values and not (value is None or (_whole(value) and 1 <= value <= LARGEST_WORKSPACE_MIB)):
            raise UsageError(
                f"{where}={_written(value)} is not a whole number of MiB from 1 to {LARGEST_WORKSPACE_MIB}; "
                "null leaves the choice to torch"
            )


@cache
def _combinations(format_name: str, given: tuple[tuple[Any, ...], ...]) -> tuple[Items, ...]:
    """The same for every workload of a format: a plan of thousands asks once for each."""
    asked = {name: each for name, each in zip(SWITCHES, given, strict=True) if format_name in SWITCHES[name].formats}
    axes = {name: _values(each, name, format_name) for name, each in asked.items()}
    chosen = (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
    tf32 = {"tf32": format_name == "tf32"} if format_name in ("fp32", "tf32") else {}
    return tuple(dict.fromkeys(items({**tf32, **_recorded(each)}) for each in chosen))


def _values(given: Sequence[Any], name: str, format_name: str) -> list[Any]:
    """The values of a switch that mean something for a format, without repeats."""
    values = list(dict.fromkeys(given))
    if name != "emulation":
        return values
    fitting = [value for value in values if value == NATIVE or EMULATIONS[value].format == format_name]
    return fitting or [NATIVE]


def _recorded(switches: Mapping[str, Any]) -> dict[str, Scalar]:
    """The switches that stand in a case."""
    emulated = switches.get("emulation", NATIVE) != NATIVE
    return {
        name: value
        for name, value in switches.items()
        if not (name in LEFT_OUT_WHEN_OFF and value == LEFT_OUT_WHEN_OFF[name]) and not (emulated and name in TORCHS_OWN)
    }


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _written(value: Any) -> str:
    """A value as YAML has it and not Python."""
    return {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else str(value)
