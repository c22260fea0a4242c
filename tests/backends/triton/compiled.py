"""Kernels compiled for devices that are not there, and what they became.

    python -m tests.backends.triton.compiled SPEC...   # a spec is DEVICE/FORMAT/LAYOUT, with /promoted, /row or /odd behind it

Prints one JSON object a line as it goes: a compiler that gives up may take its process with it.
"""

import json
import re
import sys
import time
from typing import Any, NamedTuple

import triton
from triton.compiler import ASTSource
from triton.errors import TritonError

from backends.targets import amd, nvidia
from backends.targets.absent import target_of
from backends.targets.binary import is_amd, text_of
from backends.targets.devices import DEVICES as EVERY_DEVICE
from backends.triton.gemm.call import blocks_of, constants_of, options_of
from backends.triton.gemm.config import Config, by_descriptors, default, shared_bytes
from backends.triton.gemm.device import Device
from backends.triton.gemm.instructions import matrix_instructions
from backends.triton.gemm.kernels import gemm_by_descriptors, gemm_by_pointers
from backends.triton.gemm.port import emulation, reason
from backends.triton.gemm.problem import Problem

# Those that configurations are made for; of sm_86 and sm_89, which take the same, the newer.
DEVICES = {name: device for name, device in EVERY_DEVICE.items() if device.unknown is None and name != "sm_86"}
FORMATS = ("bf16", "fp16", "tf32", "int8", "fp8_e4m3")
LAYOUTS = ("nt", "nn", "tn", "tt")
SIDE, ODD_SIDE = 8192, 8191  # whole blocks in rows of 16 bytes, and neither


class Spec(NamedTuple):
    """What is compiled: the default configuration of a large square."""

    device: Device
    problem: Problem

    @classmethod
    def parse(cls, text: str) -> "Spec":
        device, format_name, layout, *more = text.split("/")
        side = ODD_SIDE if "odd" in more else SIDE
        scaling = "row" if "row" in more else None
        return cls(DEVICES[device], Problem(format_name, side, side, side, layout, "promoted" in more, scaling))


def source(problem: Problem, config: Config, device: Device) -> ASTSource:
    """The kernel with the types, constants and alignments that a launch would have."""
    numbers = problem.numbers
    if by_descriptors(problem, device):
        blocks = blocks_of(problem, config)
        types = (numbers.operand, numbers.operand, numbers.output)
        names = zip(("a_desc", "b_desc", "c_desc"), types, blocks, strict=True)
        matrices = {name: f"tensordesc<{kind}{block}>" for name, kind, block in names}
        kernel, columns = gemm_by_descriptors, {}
    else:
        matrices = {"a_ptr": f"*{numbers.operand}", "b_ptr": f"*{numbers.operand}", "c_ptr": f"*{numbers.output}"}
        a_columns = problem.m if problem.a_transposed else problem.k
        b_columns = problem.k if problem.b_transposed else problem.n
        kernel, columns = gemm_by_pointers, {"a_columns": a_columns, "b_columns": b_columns}
    sizes = {"m": problem.m, "n": problem.n, "k": problem.k, **columns}
    constants = constants_of(problem, config, device)
    scales = {"a_scale_ptr": "*fp32", "b_scale_ptr": "*fp32"}
    signature = {**matrices, **scales, **dict.fromkeys(sizes, "i32"), **dict.fromkeys(constants, "constexpr")}
    places = {name: (place,) for place, name in enumerate(signature)}
    aligned = [name for name, kind in signature.items() if kind.startswith("*") or sizes.get(name, 1) % 16 == 0]
    attributes = {places[name]: [["tt.divisibility", 16]] for name in aligned}
    return ASTSource(kernel, signature, {places[name]: value for name, value in constants.items()}, attributes)


def compiled(problem: Problem, config: Config, device: Device) -> Any:
    return triton.compile(source(problem, config, device), target=target_of(device), options=options_of(config))


def complaints(kernel: Any) -> list[str]:
    """What NVIDIA's assembler says of a kernel whose products wait for each other; none of AMD's."""
    return nvidia.complaints(kernel.asm["ptx"]) if "ptx" in kernel.asm else []


def registers(kernel: Any) -> dict[str, int]:
    """Registers of a thread, and bytes that it spills."""
    found = amd.facts(kernel) if is_amd(kernel) else nvidia.facts(kernel)
    return {name: found[name] for name in ("registers", "spilled_bytes")}


def outcome(spec: Spec) -> dict[str, Any]:
    """What the kernel of a spec became, or why there is none."""
    device, problem = spec
    refused = reason(problem, {}, device)
    if refused:
        return {"refused": refused}
    config = default(problem, device)
    began_s = time.monotonic()
    try:
        kernel = compiled(problem, config, device)
    except (TritonError, RuntimeError) as error:
        return {"failed": str(error).strip().splitlines()[-1][:200]}
    seconds = time.monotonic() - began_s
    text = text_of(kernel)
    instructions = matrix_instructions(text)
    return {
        "config": config.label,
        **registers(kernel),
        "shared_bytes": kernel.metadata.shared,
        "expected_shared_bytes": shared_bytes(config, problem, device),
        "scratch_bytes": getattr(kernel.metadata, "global_scratch_size", 0),
        "instructions": instructions,
        "emulation": emulation({"instructions": instructions}, problem.format),
        "additions": len(re.findall(r"\badd(?:\.rn)?\.f32", text)),
        "complaints": complaints(kernel),
        "seconds": seconds,
    }


def main() -> None:
    for text in sys.argv[1:]:
        print(json.dumps({"spec": text, **outcome(Spec.parse(text))}), flush=True)


if __name__ == "__main__":
    main()
