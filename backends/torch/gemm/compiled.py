"""torch.compile of a product with its epilogue: everything is compiled, chosen and launched once before anything is timed.

What is compiled for a case is its own code with its own folder of files, taken away again: neither what other cases left nor
what is found on disk decides what is chosen, and nothing stays behind.  Guards are left out, for the sizes of a case do not
change: no launch can compile again.
"""

import os
import re
import shutil
import sysconfig
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import Any, NamedTuple

import torch

from backends.torch.data import Operand
from backends.torch.gemm.epilogue import ACTIVATIONS, fuses, told_of
from backends.torch.gemm.sizes import Sizes, a_view, b_view
from backends.torch.handing_over import HandingKernel
from backends.torch.kernel import InputSet
from backends.torch.precision import NotInForce, Precision, enforce
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
KEEPING_FROM_IT = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")  # when they are 1
FOLDERS = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
# No pool of processes that outlives a compilation; no headers compiled for later ones, which have a folder of their own.
LEAVING_NOTHING = {"compile_threads": 1, "cpp_cache_precompile_headers": False}
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
    off = next((name for name in KEEPING_FROM_IT if os.environ.get(name) == "1"), None)
    if off is not None:
        return f"{off}=1 keeps torch from compiling; unset it"
    if target.kind == "cuda":
        from backends.triton.works import why_not

        return why_not() or None
    return no_cpp_compiler()


def no_cpp_compiler() -> str | None:
    """Why torch can compile nothing for a CPU here: it writes C++, and a module of Python around it."""
    name = os.environ.get("CXX") or "g++"
    if shutil.which(name) is None:
        return f"torch.compile on a CPU needs a C++ compiler, and there is no {name} here; install one, or name it in CXX"
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        return "torch.compile on a CPU needs Python.h, which is not here; install the headers of this Python"
    return None


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
    with _folder() as folder:
        function = torch.compile(_own_code(epilogue), fullgraph=True, dynamic=False, options=_options(target.kind))
        with torch.no_grad(), warnings.catch_warnings():
            # Advice to turn tf32 on; the case says whether it is.
            warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")
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


def _own_code(epilogue: Epilogue) -> Callable[..., torch.Tensor]:
    """A function with code of its own: by its code torch finds what it has compiled, and without guards it would take the
    first that it finds.
    """
    activation = ACTIVATIONS[epilogue.activation]

    def with_bias(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return activation(torch.addmm(bias, a, b))

    def without_bias(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return activation(torch.mm(a, b))

    plain = with_bias if epilogue.bias else without_bias
    return FunctionType(plain.__code__.replace(), plain.__globals__, plain.__name__, None, plain.__closure__)


def _options(kind: str) -> dict[str, Any]:
    """Those of the mode, and what keeps compiling within this process and its folder."""
    from torch._inductor import list_mode_options, list_options  # loads the compiler

    of_mode = list_mode_options(MODES[kind]) if kind == "cuda" else {}
    known = {name: value for name, value in LEAVING_NOTHING.items() if name in list_options()}
    return {**of_mode, **known, "guard_filter_fn": torch.compiler.skip_all_guards_unsafe}


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder for all that the compilers write while it is open."""
    before = {name: os.environ.get(name) for name in FOLDERS}
    with TemporaryDirectory(prefix="roofbench-compiled-", ignore_cleanup_errors=True) as folder:
        os.environ.update(dict.fromkeys(FOLDERS, folder))
        try:
            yield Path(folder)
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def _written(folder: Path, fuses_bias: bool) -> Program:
    """Read the program that the compiler wrote last; ``fuses_bias``: ATen hands a bias of one row to cuBLASLt.

    Raises ``NotInForce`` where there is none at all: what was launched is then what nobody compiled.
    """
    programs = sorted(folder.rglob("*.py"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    if not programs:
        names = " and ".join(KEEPING_FROM_IT)
        raise NotInForce(f"torch.compile compiled nothing; unset {names}, or take the library")
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
