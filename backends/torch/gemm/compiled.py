"""torch.compile of a product with its epilogue: everything is compiled, chosen and launched once before anything is timed."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from backends.torch import compiling
from backends.torch.data import Operand
from backends.torch.gemm.epilogue import ACTIVATIONS, fuses, told_of
from backends.torch.gemm.sizes import Sizes, a_view, b_view
from backends.torch.handing_over import HandingKernel
from backends.torch.kernel import InputSet
from backends.torch.precision import Precision, enforce
from backends.torch.target import Target
from suite.jobs.gemm import IMPLEMENTATIONS
from suite.jobs.gemm.epilogue import Epilogue

MODES = {"cuda": "max-autotune-no-cudagraphs", "cpu": "default"}
RESULTS = {
    "cuda": "in buffers of the compiled program's own",
    "cpu": "in a new matrix for each launch: what allocating it takes is in the time",
}
NOT_TAKEN = {
    "emulation": "cuBLAS emulates, through calls of its own; take the library",
    "fp16_accumulation": "the compiler's own kernels sum fp16 in fp32; take the library",
}
# Calls in the program that the compiler writes for a graph: of a library, of a kernel in C++ or of one in Triton.
CALLS = re.compile(
    r"^\s+(?:\w+ = )?(extern_kernels\.\w+|torch\.ops\.[\w.]+|(?:cpp|triton)_\w+?)(?:\.run)?\((\w+)", re.MULTILINE
)
ADDMM, EXPANDED = "extern_kernels.addmm", "reinterpret_tensor"
# Passes of the product within a call that ATen does not hand to cuBLASLt: onto a copy of the bias, and to an activation.
PASSES_WITHIN = {ADDMM: 1, "extern_kernels.bias_addmm": 1, "torch.ops.aten._addmm_activation.default": 2}

Compiled = Callable[..., torch.Tensor]


class Program(NamedTuple):
    """What the compiler made of a product: the calls in turn, empty where they could not be read.

    ``passes`` is how often the product is written to be read again: between calls, and where a library copies the bias into
    the output first.
    """

    calls: tuple[str, ...] = ()
    passes: int = 0


class Built(NamedTuple):
    """A function of the operands' tensors, and what making it took."""

    function: Compiled
    program: Program
    seconds: float


def refuses(format_name: str, switches: Mapping[str, Any], target: Target) -> str | None:
    """Why nothing is compiled for this device; ``None`` where it is."""
    taken = IMPLEMENTATIONS["compiled"]
    if format_name not in taken:
        return f"implementation compiled takes {', '.join(taken)}, not {format_name}; take the library"
    told = next((f"{name}: {why}" for name, why in NOT_TAKEN.items() if switches.get(name)), None)
    if told is not None:
        return f"implementation compiled takes no {told}"
    return compiling.reason(target)


class CompiledKernel(HandingKernel):
    """A product as torch's compiler has it, which returns a new matrix."""

    def __init__(self, input_sets: Sequence[InputSet], *arguments: Any) -> None:
        super().__init__(input_sets, [(each.output,) for each in input_sets], True, *arguments)


def bind(function: Compiled, layout: str, operands: Sequence[Operand]) -> Callable[[], torch.Tensor]:
    """A launch on the buffers of one input set."""
    a, b, *bias = (each.data for each in operands)
    return partial(function, a_view(a, layout), b_view(b, layout), *bias)


def build(epilogue: Epilogue, sizes: Sizes, operands: Sequence[Operand], precision: Precision, target: Target) -> Built:
    """Compile for operands like these, and launch once: what the compiler tries, it tries then.

    Raises the compiler's own errors, and ``NotInForce`` where it wrote nothing.
    """
    enforce(precision)
    began_s = time.perf_counter()
    with compiling.compiling() as folder:
        function = compiling.compiled(_plain(epilogue), MODES[target.kind])
        bind(function, sizes.layout, operands)()
        if target.kind == "cuda":
            torch.cuda.synchronize()
        program = _written(folder, fuses(sizes, target))
    return Built(function, program, time.perf_counter() - began_s)


def facts(built: Built, kind: str, epilogue: Epilogue) -> dict[str, Any]:
    """For the description; on a GPU most of ``tuning_s`` goes into trying kernels, the library's among them."""
    told = {"epilogue": told_of(built.program.passes)} if epilogue.steps and built.program.calls else {}
    return {
        "call": f"torch.compile, mode {MODES[kind]}",
        "library": f"TorchInductor of torch {torch.__version__}",
        "results": RESULTS[kind],
        "compiled_calls": list(built.program.calls),
        "compiler_cache": "a folder of this case's own, removed once it was compiled",
        "compile_s": built.seconds,
        **({"tuning_s": built.seconds, "chosen_by": "trial"} if kind == "cuda" else {}),
        **told,
    }


def _plain(epilogue: Epilogue) -> Compiled:
    """What is to be compiled."""
    activation = ACTIVATIONS[epilogue.activation]

    def with_bias(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return activation(torch.addmm(bias, a, b))

    def without_bias(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return activation(torch.mm(a, b))

    return with_bias if epilogue.bias else without_bias


def _written(folder: Path, fuses_bias: bool) -> Program:
    """Read the program that the compiler wrote last; ``fuses_bias``: ATen hands a bias of one row to cuBLASLt."""
    programs = sorted(folder.rglob("*.py"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in programs:
        _, _, body = path.read_text(encoding="utf-8").partition("def call(")
        found = CALLS.findall(body.partition("return (")[0])
        if found:
            within = sum(_passes_within(name, first, fuses_bias) for name, first in found)
            return Program(tuple(name for name, _ in found), len(found) - 1 + within)
    return Program()


def _passes_within(name: str, first_argument: str, fuses_bias: bool) -> int:
    """addmm copies any bias that is expanded to a matrix; ``bias_addmm`` takes a row of it."""
    if not fuses_bias:
        return PASSES_WITHIN.get(name, 0)
    return int(name == ADDMM and first_argument == EXPANDED)
