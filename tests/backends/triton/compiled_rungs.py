"""Products of quantised operands compiled for devices that are not there, and what they became.

    python -m tests.backends.triton.compiled_rungs SPEC...     # a spec is DEVICE/RUNG/MxNxK/WHICH, see Spec

Prints one JSON object a line as it goes: a compiler that gives up may take its process with it.
"""

import json
import re
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import triton
from triton.compiler import ASTSource
from triton.errors import TritonError
from triton.tools.tensor_descriptor import TensorDescriptor

from backends.targets.absent import target_of
from backends.torch.data import Operand
from backends.torch.gemm.operands import allocate, quantised_formats
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device
from backends.triton.gemm.instructions import matrix_instructions
from backends.triton.gemm.kernel import Buffers
from backends.triton.quantised import scaled_config, weight_config
from backends.triton.quantised.few_rows.config import Config as FewConfig
from backends.triton.quantised.few_rows.config import instructions
from backends.triton.quantised.port import reason
from backends.triton.quantised.problem import Problem
from backends.triton.quantised.product import Product, product_of
from backends.triton.quantised.weights import WeightOnly
from tests.backends.triton.compiled import DEVICES, complaints, registers
from tests.backends.triton.rungs import BLOCKS, HOPPER_TARGET, MX4, MX8, NEEDS_FULL, W4, W4_ZERO, W8
from tests.backends.triton.scoreboards import main_loop, products_under_way

META = torch.device("meta")
RUNGS = {"w4": W4, "w4zero": W4_ZERO, "w8": W8, "mx4": MX4, "mx4full": MX4, "blocks": BLOCKS, "mx8": MX8}
TYPES = {
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.uint8: "u8",
    torch.int8: "i8",
    torch.float8_e4m3fn: "fp8e4nv",
}


class Spec(NamedTuple):
    """``which`` configuration: its place among the candidates (0 is the default), words of its label, or ``all``."""

    device: Device
    rung: str
    sizes: tuple[int, ...]
    which: str

    @classmethod
    def parse(cls, text: str) -> "Spec":
        device, rung, sizes, *which = text.split("/")
        return cls(DEVICES[device], rung, tuple(int(size) for size in sizes.split("x")), which[0] if which else "0")

    @property
    def problem(self) -> Problem:
        return Problem(RUNGS[self.rung].format, *self.sizes, zero_point=self.rung == "w4zero")

    def product(self) -> Product:
        """On buffers that are nowhere."""
        case, (m, n, k) = RUNGS[self.rung].case(*self.sizes), self.sizes
        a_format, b_format = quantised_formats(case.workload, HOPPER_TARGET)
        a: Operand = allocate(a_format, torch.bfloat16, (m, k), META)
        b: Operand = allocate(b_format, torch.bfloat16, (n, k), META)
        product = product_of(self.problem, self.device, [Buffers(a, b, torch.empty(m, n, dtype=torch.bfloat16, device=META))])
        if self.rung == "mx4full":
            assert isinstance(product, WeightOnly)
            product.seen[0] = NEEDS_FULL
            assert product.conversion.kind == "mxfp4_full"
        return product


def source(call: Call) -> ASTSource:
    """The kernel with the types, constants and alignments that a launch of this call would have."""
    names = call.kernel.arg_names[: len(call.arguments)]
    given = dict(zip(names, call.arguments, strict=True))
    constants = {
        name: value for name, value in given.items() if value is None or (isinstance(value, int) and value == 1)
    } | dict(call.constants)
    signature = {name: "constexpr" if name in constants else _type(value) for name, value in given.items()}
    signature |= dict.fromkeys(call.constants, "constexpr")
    places = {name: (place,) for place, name in enumerate(signature)}
    aligned = [name for name, value in given.items() if _is_aligned(value) and name not in constants]
    attributes = {places[name]: [["tt.divisibility", 16]] for name in aligned}
    return ASTSource(call.kernel, signature, {places[name]: value for name, value in constants.items()}, attributes)


def _type(value: Any) -> str:
    if isinstance(value, TensorDescriptor):
        return f"tensordesc<{TYPES[value.base.dtype]}{list(value.block_shape)}>"
    return f"*{TYPES[value.dtype]}" if isinstance(value, torch.Tensor) else "i32"


def _is_aligned(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or (isinstance(value, int) and value % 16 == 0)


def became(device: Device, product: Product, config: Any) -> dict[str, Any]:
    """What the last call of a launch became: that which writes the output."""
    began_s = time.monotonic()
    call = product.calls(config)[0][-1]
    try:
        kernel = triton.compile(source(call), target=target_of(device), options=dict(call.options))
    except (TritonError, RuntimeError) as error:
        return {"config": config.label, "failed": complaint(error)}
    text = str(kernel.asm["ptx" if "ptx" in kernel.asm else "amdgcn"])
    instructions = matrix_instructions(text)
    return {
        "config": config.label,
        **registers(kernel),
        "shared_bytes": kernel.metadata.shared,
        "scratch_bytes": getattr(kernel.metadata, "global_scratch_size", 0),
        "instructions": instructions,
        "emulation": product.emulation({"instructions": instructions}),
        "complaints": complaints(kernel),
        "barriers": text.count("bar.sync"),
        "wide_loads": len(re.findall(r"ld\.global[\w.]*\.v4\.b32", text)),
        **_of_registers(kernel, config, call.constants["COLUMNS"] if isinstance(config, FewConfig) else 0),
        "seconds": time.monotonic() - began_s,
    }


def expected_shared_bytes(spec: Spec, config: Any) -> int | None:
    """``None`` where no configuration is chosen by it: loads go to registers."""
    if isinstance(config, FewConfig):
        return None
    of = weight_config.shared_bytes if spec.problem.is_weight_only else scaled_config.shared_bytes
    return of(config, spec.problem, spec.device)


def _of_registers(kernel: Any, config: Any, columns: int) -> dict[str, Any]:
    """What is asked of the kernel whose loads go to registers alone."""
    if not isinstance(config, FewConfig):
        return {}
    loop = main_loop(kernel.asm["cubin"])
    exchanged = [each.text for each in loop if any(name in each.text for name in ("BAR.", "STS", "LDS", "SHFL"))]
    return {
        "products_under_way": products_under_way(loop),
        "exchanged_in_the_loop": exchanged,
        "instructions_of_a_phase": len(loop) / 2,
        "expected_instructions": instructions(config, columns),
        "groups": config.sets,
        "tiles": config.tiles,
        "allowed_registers": config.registers,
    }


def complaint(error: BaseException) -> str:
    """The end of what the innermost cause says: those around it say where it was called from."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split())[-200:]


def chosen_of(configs: Sequence[Any], which: str) -> Any:
    """See ``Spec``."""
    return configs[int(which)] if which.isdecimal() else next(config for config in configs if which in config.label)


def outcomes(spec: Spec) -> list[dict[str, Any]]:
    """What the kernels of a spec became, or why there are none."""
    refused = reason(spec.problem, {}, spec.device)
    if refused:
        return [{"refused": refused}]
    product = spec.product()
    configs = product.configs()
    chosen = configs if spec.which == "all" else [chosen_of(configs, spec.which)]
    found = [became(spec.device, product, config) for config in chosen]
    if spec.rung != "mx8":
        for config, each in zip(chosen, found, strict=True):
            each["expected_shared_bytes"] = expected_shared_bytes(spec, config)
    return found


def main() -> None:
    for text in sys.argv[1:]:
        for each in outcomes(Spec.parse(text)):
            print(json.dumps({"spec": text, **each}), flush=True)


if __name__ == "__main__":
    main()
