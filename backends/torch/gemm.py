"""GEMM on torch devices: C = A B with A m x k, B k x n, C m x n.

``layout`` names how A and B are stored: ``n`` as they are written, ``t`` transposed.  ``nt`` is a Linear layer: B is kept
n x k with K contiguous.

Implementation ``library`` calls ``torch.mm`` for floating point, ``torch._int_mm`` for int8 and ``torch._scaled_mm`` for fp8;
on a CPU fp8 operands are converted to bf16 (which holds every fp8 number exactly) and multiplied there, because the fp8 call
of torch falls back to scalar loops.  Emulated fp32 and fp64 go to cuBLAS itself (``emulated``).  Implementations ``triton``
and ``triton_tuned`` are roofbench's own kernels (``backends.triton.gemm``) on the same buffers.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from backends.distributions import BLIND_SPOTS
from backends.torch.check import project
from backends.torch.data import DISTRIBUTIONS, Operand, largest_product
from backends.torch.emulated import MODES, EmulatedKernel, Emulator, library_reason
from backends.torch.kernel import InputSet, TorchKernel
from backends.torch.libraries import loaded_library
from backends.torch.precision import SWITCHES, Precision, precision_of
from backends.torch.target import FORMATS, Target
from suite.case import Case, Workload
from suite.errors import nearest
from suite.jobs.emulation import EMULATIONS
from suite.jobs.gemm import IMPLEMENTATIONS

if TYPE_CHECKING:
    from backends.triton.gemm.problem import Problem

LAYOUTS = ("nn", "nt", "tn", "tt")


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


def a_view(data: torch.Tensor, layout: str) -> torch.Tensor:
    """A as m x k, whatever way it is stored."""
    return data if layout[0] == "n" else _transposed(data)


def b_view(data: torch.Tensor, layout: str) -> torch.Tensor:
    """B as k x n, whatever way it is stored."""
    return data if layout[1] == "n" else _transposed(data)


def _transposed(data: torch.Tensor) -> torch.Tensor:
    # One row and one column lie in memory alike.  Said in strides of a transpose, torch._int_mm on a CPU (seen with 2.13)
    # takes it for something it cannot do and silently writes nothing.
    return data.view(data.shape[1], data.shape[0]) if 1 in data.shape else data.t()


class Product:
    """The float64 product of the operands as stored.

    Tiles are multiplied on the host: what judges a device's matrix product must not be another of its matrix products.
    """

    def __init__(self, layout: str) -> None:
        self._layout = layout

    def tile(self, operands: Sequence[Operand], row: int, column: int, rows: int, columns: int) -> torch.Tensor:
        a, b = operands
        a_mk = a_view(a.data, self._layout)[row : row + rows].to(torch.float64).cpu()
        b_kn = b_view(b.data, self._layout)[:, column : column + columns].to(torch.float64).cpu()
        return b.scaled(a.scaled(a_mk @ b_kn))

    def project(self, operands: Sequence[Operand], vector: torch.Tensor) -> torch.Tensor:
        a, b = operands
        b_vector = project(b_view(b.data, self._layout), vector)
        return b.scaled(a.scaled(project(a_view(a.data, self._layout), b_vector)))


def reason(case: Case, target: Target) -> str | None:
    """Why this case cannot run on ``target``; ``None`` when it can."""
    workload, switches = case.workload, dict(case.switches)
    for told in (
        _unknown("implementation", case.implementation, IMPLEMENTATIONS),
        _unknown("format", workload.format, FORMATS),
        _unknown("distribution", workload.distribution, DISTRIBUTIONS),
        _unknown("layout", Sizes.of(workload).layout, LAYOUTS),
        *(_unknown("switch", name, SWITCHES) for name in switches),
    ):
        if told is not None:
            return told
    return (
        target.missing.get(workload.format)
        or _semantics_reason(workload)
        or _switches_reason(workload.format, switches, target)
        or _range_reason(workload)
        or (_library_reason if case.implementation == "library" else _triton_reason)(case, target)
    )


Buffers = Sequence[tuple[Operand, Operand, torch.Tensor]]


def prepare(case: Case, target: Target, sets: int, seed: int) -> TorchKernel:
    """Allocate and fill ``sets`` input sets; raises torch's and Triton's own errors when memory or a compiler gives out."""
    sizes, numerics = Sizes.of(case.workload), FORMATS[case.workload.format]
    buffers = []
    for _ in range(sets):
        a = Operand.empty(sizes.a_shape, numerics.operand, target.device)
        b = Operand.empty(sizes.b_shape, numerics.operand, target.device)
        buffers.append((a, b, torch.empty(sizes.m, sizes.n, dtype=numerics.output, device=target.device)))
    if case.implementation == "library":
        kernel = _library_kernel(case, target, buffers)
    else:
        kernel = _triton_kernel(case, target, buffers, seed)
    kernel.refill(seed)
    kernel.poison()
    return kernel


def _library_kernel(case: Case, target: Target, buffers: Buffers) -> TorchKernel:
    workload, switches, sizes = case.workload, dict(case.switches), Sizes.of(case.workload)
    precision = precision_of(workload.format, switches)
    emulator = _emulator(switches, sizes, target)
    bind = _binder(workload.format, sizes, target, precision) if emulator is None else partial(emulator.bind, sizes.layout)
    input_sets = [InputSet((a, b), output, bind(a, b, output)) for a, b, output in buffers]
    parts = (input_sets, Product(sizes.layout), workload.distribution)
    described = {**_description(case, target), **_library_call(workload.format, target)}
    if emulator is None:
        return TorchKernel(*parts, target.execution(workload.format), precision, described)
    return EmulatedKernel(emulator, *parts, "emulated", precision, {**described, **_EMULATED_CALL})


def _triton_kernel(case: Case, target: Target, buffers: Buffers, seed: int) -> TorchKernel:
    from backends.triton.gemm import kernel
    from backends.triton.gemm.device import of_torch

    workload = case.workload
    precision = precision_of(workload.format, dict(case.switches))
    shared = kernel.Shared(Product(Sizes.of(workload).layout), workload.distribution, precision, _description(case, target))
    task = kernel.Task(_problem(case), of_torch(target.device.index), [kernel.Buffers(*each) for each in buffers])
    return kernel.prepare(task, shared, seed, tuned=case.implementation == "triton_tuned")


def _problem(case: Case) -> "Problem":
    from backends.triton.gemm.problem import Problem

    promoted = case.workload.format == "fp8_e4m3" and not dict(case.switches).get("fp8_fast_accum", False)
    return Problem(case.workload.format, *Sizes.of(case.workload), promoted)


_EMULATED_CALL = {"call": "cublasGemmEx", "library": "cuBLAS"}


def _emulator(switches: dict[str, Any], sizes: Sizes, target: Target) -> Emulator | None:
    name = switches.get("emulation")
    if name is None:
        return None
    return Emulator(str(name), (sizes.m, sizes.n, sizes.k), target.device, loaded_library("libcublas.so"))


Bind = Callable[[Operand, Operand, torch.Tensor], Callable[[], Any]]


def _binder(format_name: str, sizes: Sizes, target: Target, precision: Precision) -> Bind:
    """How a launch is made from buffers; the calls it makes allocate nothing that outlives them."""
    if format_name == "fp8_e4m3":
        return _bind_upcast(sizes, target) if target.kind == "cpu" else partial(_bind_scaled, sizes.layout, precision)
    multiply = torch._int_mm if format_name == "int8" else torch.mm

    def bind(a: Operand, b: Operand, output: torch.Tensor) -> Callable[[], Any]:
        return partial(multiply, a_view(a.data, sizes.layout), b_view(b.data, sizes.layout), out=output)

    return bind


def _bind_scaled(layout: str, precision: Precision, a: Operand, b: Operand, output: torch.Tensor) -> Callable[[], Any]:
    return partial(
        torch._scaled_mm,
        a_view(a.data, layout),
        b_view(b.data, layout),
        scale_a=a.scale,
        scale_b=b.scale,
        out_dtype=output.dtype,
        use_fast_accum=precision.fp8_fast_accum,
        out=output,
    )


def _bind_upcast(sizes: Sizes, target: Target) -> Bind:
    """fp8 on a CPU: convert both operands into shared bf16 scratch, then a scaled bf16 matmul."""
    a_wide = torch.empty(sizes.a_shape, dtype=torch.bfloat16, device=target.device)
    b_wide = torch.empty(sizes.b_shape, dtype=torch.bfloat16, device=target.device)

    def bind(a: Operand, b: Operand, output: torch.Tensor) -> Callable[[], Any]:
        def launch() -> None:
            assert a.scale is not None
            assert b.scale is not None
            a_wide.copy_(a.data)
            b_wide.copy_(b.data)
            factors = (a_view(a_wide, sizes.layout), b_view(b_wide, sizes.layout))
            torch.addmm(output, *factors, beta=0, alpha=float(a.scale) * float(b.scale), out=output)

        return launch

    return bind


def _unknown(kind: str, given: str, known: Any) -> str | None:
    return None if given in known else f"gemm through torch has no {kind} {given!r}{nearest(given, known)}"


def _semantics_reason(workload: Workload) -> str | None:
    semantics = dict(workload.semantics)
    accumulate = semantics.get("accumulate", FORMATS[workload.format].accumulate)
    if accumulate != FORMATS[workload.format].accumulate:
        return f"{workload.format} accumulates in {FORMATS[workload.format].accumulate} here, not in {accumulate}"
    scaling = semantics.get("scaling", "tensor")
    return None if scaling == "tensor" else f"{workload.format} with {scaling} scales is not offered, only tensor scales"


def _switches_reason(format_name: str, switches: dict[str, Any], target: Target) -> str | None:
    if "tf32" in switches and format_name in ("fp32", "tf32") and bool(switches["tf32"]) != (format_name == "tf32"):
        return f"format {format_name} contradicts the switch tf32={switches['tf32']}"
    if "workspace_mib" in switches and target.kind == "cpu":
        return "workspace_mib is given to cuBLAS; the libraries of a CPU take their own"
    return _emulation_reason(format_name, str(switches["emulation"]), target) if "emulation" in switches else None


def _emulation_reason(format_name: str, name: str, target: Target) -> str | None:
    if name not in MODES:
        return _unknown("emulation", name, MODES)
    if EMULATIONS[name].format != format_name:
        return f"emulation {name} computes {EMULATIONS[name].format}, not {format_name}"
    return target.missing.get(f"{format_name} by {name}") or library_reason(name)


def _range_reason(workload: Workload) -> str | None:
    """Constant data adds up with K: past the largest number of the output no kernel can be right."""
    numerics, k = FORMATS[workload.format], Sizes.of(workload).k
    info = torch.finfo(numerics.output) if numerics.output.is_floating_point else torch.iinfo(numerics.output)
    largest = largest_product(workload.distribution, numerics.operand)
    if largest is None or k * largest <= info.max:
        return None
    return (
        f"{workload.distribution} data over k={k} adds up to {k * largest:.4g}, above the {info.max:.4g} that the output holds"
    )


def _library_reason(case: Case, target: Target) -> str | None:
    """Sizes and layouts that the CUDA libraries behind torch's private calls refuse."""
    if target.kind != "cuda":
        return None
    m, n, k, layout = Sizes.of(case.workload)
    if case.workload.format == "int8":
        if m <= 16:
            return f"torch._int_mm takes more than 16 rows, not m={m}"
        if n % 8 or k % 8:
            return f"torch._int_mm takes n and k that are multiples of 8, not n={n} k={k}"
    if case.workload.format == "fp8_e4m3":
        if layout != "nt":
            return f"torch._scaled_mm takes both operands with K contiguous (layout nt), not layout {layout}"
        if n % 16 or k % 16:
            return f"torch._scaled_mm takes n and k that are multiples of 16, not n={n} k={k}"
    return None


def _triton_reason(case: Case, target: Target) -> str | None:
    """Formats, devices and switches that roofbench's own kernels are not made for."""
    taken = IMPLEMENTATIONS[case.implementation]
    if case.workload.format not in taken:
        return f"implementation {case.implementation} takes {', '.join(taken)}, not {case.workload.format}"
    if target.kind != "cuda":
        return f"implementation {case.implementation} runs on GPUs; the device here is a {target.kind.upper()}"
    from backends.triton.works import why_not

    why = why_not()
    if why:
        return why
    from backends.triton.gemm.device import of_torch
    from backends.triton.gemm.port import reason as port_reason

    return port_reason(_problem(case), dict(case.switches), of_torch(target.device.index))


def _description(case: Case, target: Target) -> dict[str, Any]:
    """What every implementation has in common."""
    numerics = FORMATS[case.workload.format]
    return {
        "layout": Sizes.of(case.workload).layout,
        "operand_dtype": str(numerics.operand).removeprefix("torch."),
        "output_dtype": str(numerics.output).removeprefix("torch."),
        "accumulate": numerics.accumulate,
        "reference": "float64",
        "switches_without_effect": _idle_switches(case, target),
        "check_cannot_see": list(BLIND_SPOTS.get(case.workload.distribution, ())),
    }


def _library_call(format_name: str, target: Target) -> dict[str, Any]:
    """Whom torch hands a product to."""
    call = {"int8": "torch._int_mm", "fp8_e4m3": "torch._scaled_mm"}.get(format_name, "torch.mm")
    if target.execution(format_name) == "emulated" and format_name == "fp8_e4m3":
        call = "torch.addmm on bf16 copies"
    return {"call": call, "library": _library(format_name, target), "emulation": target.emulated.get(format_name, "")}


def _idle_switches(case: Case, target: Target) -> list[str]:
    """Switches that allow what does not happen here: a CPU sums in the format's accumulator, torch has only one kernel for
    TunableOp to choose from anywhere but on ROCm, and roofbench's own kernels do not split K.
    """
    switches = dict(case.switches)
    idle = {name for name, on in switches.items() if on is True and target.kind == "cpu"}
    if switches.get("tunable_op") and torch.version.hip is None:
        idle.add("tunable_op")
    if switches.get("reduced_precision_reduction") and case.implementation != "library":
        idle.add("reduced_precision_reduction")
    return sorted(idle)


def _library(format_name: str, target: Target) -> str:
    """The library that torch hands this format to."""
    if target.kind == "cuda":
        preferred = str(torch.backends.cuda.preferred_blas_library()).rpartition(".")[2]
        return "cuBLASLt" if format_name in ("int8", "fp8_e4m3") else f"cuBLAS (preferred: {preferred})"
    if format_name in ("fp32", "fp64") and torch.backends.mkl.is_available():
        return "MKL"
    return "oneDNN" if torch.backends.mkldnn.is_available() else "torch's own BLAS"
