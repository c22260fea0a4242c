"""GEMM through XLA: C = A B with A m x k, B k x n, C m x n, as one ``dot_general``.

``layout`` names how A and B are stored: ``n`` as they are written, ``t`` transposed; arguments and results are row-major.
What executes it (cuBLAS, cuDNN, a generated Triton kernel, XLA's own code) is XLA's choice, and is read from what it
compiled.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from backends.distributions import largest_product, past_the_largest
from backends.jax.data import DISTRIBUTIONS, Operand
from backends.jax.hlo import parse, product_types
from backends.jax.kernel import Plan
from backends.jax.rounded import RoundedKernel, Side
from backends.jax.target import FORMATS, Target
from backends.jax.widening import times, wide
from suite.case import Case, Workload
from suite.errors import nearest
from suite.jobs.emulation import EXECUTED_PIPE, WIDE_ON_A_CPU
from suite.jobs.gemm import IMPLEMENTATIONS
from suite.jobs.gemm.epilogue import NONE as NO_EPILOGUE
from suite.jobs.gemm.epilogue import name_of
from suite.jobs.gemm.formats import FORMATS as LADDER
from suite.jobs.gemm.switches import SWITCHES as OF_THE_JOB

LAYOUTS = ("nn", "nt", "tn", "tt")
SWITCHES = ("tf32", "fp8_fast_accum", "reduced_precision_reduction")


class Sizes(NamedTuple):
    """Sizes of a GEMM and how its operands are stored."""

    m: int
    n: int
    k: int
    layout: str

    @classmethod
    def of(cls, workload: Workload) -> "Sizes":
        params = dict(workload.params)
        return cls(int(params["m"]), int(params["n"]), int(params["k"]), str(params.get("layout", "nt")))

    @property
    def a_shape(self) -> tuple[int, int]:
        return (self.m, self.k) if self.layout[0] == "n" else (self.k, self.m)

    @property
    def b_shape(self) -> tuple[int, int]:
        return (self.k, self.n) if self.layout[1] == "n" else (self.n, self.k)

    @property
    def contracted(self) -> tuple[tuple[tuple[int], tuple[int]], tuple[tuple[()], tuple[()]]]:
        """Which axes of A and B are summed over, in ``dot_general``'s form."""
        return (((1 if self.layout[0] == "n" else 0,), (0 if self.layout[1] == "n" else 1,)), ((), ()))


class Product:
    """The float64 product of the operands as stored, multiplied by NumPy."""

    def __init__(self, layout: str) -> None:
        self._layout = layout

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> NDArray[np.float64]:
        a, b = operands
        part_a = a.data[row : row + rows] if self._layout[0] == "n" else a.data[:, row : row + rows].T
        part_b = b.data[:, column : column + columns] if self._layout[1] == "n" else b.data[column : column + columns].T
        product: NDArray[np.float64] = wide(np.asarray(part_a)) @ wide(np.asarray(part_b))
        return product * _scale(a) * _scale(b)

    def project(self, operands: Sequence[Operand], vector: NDArray[np.float64]) -> NDArray[np.float64]:
        a, b = (np.asarray(each.data) for each in operands)
        b_vector = times(b if self._layout[1] == "n" else b.T, vector)
        return times(a if self._layout[0] == "n" else a.T, b_vector) * _scale(operands[0]) * _scale(operands[1])

    def expected_size(self, operands: Sequence[Operand], rows: int, columns: int) -> float:
        a, b = (np.square(wide(np.asarray(each.data))) for each in operands)
        of_a, of_b = a.mean(0 if self._layout[0] == "n" else 1), b.mean(1 if self._layout[1] == "n" else 0)
        return math.sqrt(float(of_a @ of_b)) * _scale(operands[0]) * _scale(operands[1])


def reason(case: Case, target: Target) -> str | None:
    """Why this case cannot run on ``target``; ``None`` when it can."""
    workload, switches = case.workload, dict(case.switches)
    for told in (
        _unknown("implementation", case.implementation, ("library",), IMPLEMENTATIONS),
        _unknown("format", workload.format, FORMATS, LADDER),
        _unknown("distribution", workload.distribution, DISTRIBUTIONS),
        _unknown("layout", Sizes.of(workload).layout, LAYOUTS),
        *(_unknown("switch", name, SWITCHES, OF_THE_JOB) for name in switches),
    ):
        if told is not None:
            return told
    return (
        target.missing(workload.format) or _semantics_reason(workload) or _epilogue_reason(workload) or _range_reason(workload)
    )


def _range_reason(workload: Workload) -> str | None:
    """Constant data adds up with K: past the largest number of the output no kernel can be right."""
    output, k = FORMATS[workload.format].output, Sizes.of(workload).k
    integer = workload.format == "int8"
    largest = float(jnp.iinfo(output).max if integer else jnp.finfo(output).max)
    return past_the_largest(workload.distribution, k, largest_product(workload.distribution, integers=integer), largest)


def _epilogue_reason(workload: Workload) -> str | None:
    name = name_of(workload)
    return None if name == NO_EPILOGUE else f"gemm through XLA has no epilogue {name}; take none, or a backend of torch"


def prepare(case: Case, target: Target, sets: int, seed: int) -> RoundedKernel:
    """Draw ``sets`` input sets and compile the product."""
    workload = case.workload
    sizes = Sizes.of(workload)
    plan = plan_of(workload.format, sizes, dict(case.switches))
    describe = partial(_description, workload.format, sizes, case.switches, target)
    sides = (Side(sizes.layout[0] == "t", sizes.m), Side(sizes.layout[1] == "n", sizes.n))
    return RoundedKernel(workload.format, sides, sizes.k, plan, sets, seed, workload.distribution, describe)


def plan_of(format_name: str, sizes: Sizes, switches: Mapping[str, Any]) -> Plan:
    """Shapes, types and computation of a product."""
    numerics = FORMATS[format_name]
    return Plan(
        operands=((sizes.a_shape, numerics.operand), (sizes.b_shape, numerics.operand)),
        output=((sizes.m, sizes.n), numerics.output),
        compute=_compute(format_name, sizes, switches),
        formula=Product(sizes.layout),
        products=1,
    )


def _compute(format_name: str, sizes: Sizes, switches: Mapping[str, Any]) -> Callable[..., jax.Array]:
    numerics = FORMATS[format_name]
    scaled = format_name == "fp8_e4m3"
    product = partial(
        lax.dot_general,
        dimension_numbers=sizes.contracted,
        precision=_precision(format_name, switches),
        preferred_element_type=jnp.float32 if scaled else numerics.output,
    )
    if not scaled:
        return product
    # Scales behind the product keep its operands fp8: XLA 0.10 and 0.11 compile operands that are scaled in front of it into
    # a bf16 product and two kernels that convert.
    return lambda a, b, scale_a, scale_b: (product(a, b) * (scale_a * scale_b)).astype(numerics.output)


def _precision(format_name: str, switches: Mapping[str, Any]) -> Any:
    """XLA's own switch: HIGHEST keeps fp32 from tensor cores, and fp8 from the tensor core's short accumulator."""
    if format_name == "tf32":
        return lax.DotAlgorithmPreset.TF32_TF32_F32
    if format_name == "fp32" or (format_name == "fp8_e4m3" and not switches.get("fp8_fast_accum", False)):
        return lax.Precision.HIGHEST
    return lax.Precision.DEFAULT


def _description(format_name: str, sizes: Sizes, switches: Any, target: Target, text: str) -> dict[str, Any]:
    taken, numerics = product_types(parse(text)), FORMATS[format_name]
    as_stored = numerics.xla in taken
    lacked = dict(target.lacking).get(format_name, "") if as_stored else ""
    multiplied = f"XLA multiplies {', '.join(sorted(taken)) or 'in a form that its text does not show'}"
    told, native = f"converted: {lacked}" if lacked else multiplied, as_stored and not lacked
    return {
        # On a GPU or TPU what multiplies f32 may be a narrower unit.
        **({EXECUTED_PIPE: WIDE_ON_A_CPU} if target.kind == "cpu" and taken == {"f32"} and not native else {}),
        "execution": "native" if native else "emulated",
        "call": "lax.dot_general",
        "layout": sizes.layout,
        "operand_dtype": jnp.dtype(numerics.operand).name,
        "output_dtype": jnp.dtype(numerics.output).name,
        "accumulate": numerics.accumulate,
        "emulation": "" if native else told,
        "switches_without_effect": sorted(
            name for name, on in dict(switches).items() if name == "reduced_precision_reduction" and on
        ),
    }


def _semantics_reason(workload: Workload) -> str | None:
    semantics = dict(workload.semantics)
    accumulate = semantics.get("accumulate", FORMATS[workload.format].accumulate)
    if accumulate != FORMATS[workload.format].accumulate:
        return f"{workload.format} accumulates in {FORMATS[workload.format].accumulate} here, not in {accumulate}"
    scaling = semantics.get("scaling", "tensor")
    if workload.format == "int8" and "scaling" in semantics:
        return f"int8 with {scaling} scales is not offered, only raw integers"
    return None if scaling == "tensor" else f"{workload.format} with {scaling} scales is not offered, only tensor scales"


def _unknown(kind: str, given: str, known: Collection[str], elsewhere: Collection[str] = ()) -> str | None:
    """What is known ``elsewhere`` is no misspelling of anything."""
    if given in known:
        return None
    if given in elsewhere:
        return f"gemm through XLA has no {kind} {given}, only {', '.join(known)}; take one of those, or a backend of torch"
    return f"gemm through XLA has no {kind} {given!r}{nearest(given, known)}"


def _scale(operand: Operand) -> float:
    return 1.0 if operand.scale is None else float(operand.scale)
