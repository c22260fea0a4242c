"""Kernels compiled for devices that are not there, and what they became.

    python -m tests.backends.triton.compiled SPEC...   # a spec is DEVICE/FORMAT/LAYOUT, with /promoted, /row or /odd behind it

Prints one JSON object a line as it goes: a compiler that gives up may take its process with it.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.errors import TritonError

from backends.triton.gemm.call import blocks_of, constants_of, options_of
from backends.triton.gemm.config import Config, by_descriptors, default, shared_bytes
from backends.triton.gemm.device import Device
from backends.triton.gemm.instructions import matrix_instructions
from backends.triton.gemm.kernels import gemm_by_descriptors, gemm_by_pointers
from backends.triton.gemm.port import emulation, reason
from backends.triton.gemm.problem import Problem

# Units and shared memory of A100, L40S, H200, B200, RTX PRO 6000, MI210, MI300X and MI355X.
DEVICES = {
    device.name: device
    for device in (
        Device("80", 108, 166_912),
        Device("89", 142, 101_376),
        Device("90", 132, 232_448),
        Device("100", 148, 232_448),
        Device("120", 188, 101_376),
        Device("gfx90a", 104, 65_536),
        Device("gfx942", 304, 65_536),
        Device("gfx950", 256, 163_840),
    )
}
FORMATS = ("bf16", "fp16", "tf32", "int8", "fp8_e4m3")
LAYOUTS = ("nt", "nn", "tn", "tt")
SIDE, ODD_SIDE = 8192, 8191  # whole blocks in rows of 16 bytes, and neither
CUOBJDUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"


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


def target_of(device: Device) -> GPUTarget:
    return GPUTarget("hip", device.architecture, 64) if device.is_amd else GPUTarget("cuda", int(device.architecture), 32)


def complaints(kernel: Any) -> list[str]:
    """What NVIDIA's assembler says of a kernel whose products wait for each other (C7510 and the like); none of AMD's."""
    if "ptx" not in kernel.asm:
        return []
    found = re.search(r"\.target (sm_\w+)", kernel.asm["ptx"])
    assert found is not None
    assembler = CUOBJDUMP.with_name("ptxas-blackwell" if found[1].startswith(("sm_10", "sm_12")) else "ptxas")
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(kernel.asm["ptx"])
        file.flush()
        command = [str(assembler), "-v", f"-arch={found[1]}", file.name, "-o", "/dev/null"]
        said = subprocess.run(command, capture_output=True, text=True, check=True)
    return waits_in(said.stdout + said.stderr)


def waits_in(said: str) -> list[str]:
    """Lines of the assembler's that tell of products that wait."""
    return [line for line in said.splitlines() if re.search(r"C75\d\d|serializ", line)]


def registers(kernel: Any) -> dict[str, int]:
    """Registers of a thread, and bytes that it spills (what the frame takes on NVIDIA, words of four bytes on AMD)."""
    if "cubin" in kernel.asm:
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(kernel.asm["cubin"])
            file.flush()
            said = subprocess.run([CUOBJDUMP, "-res-usage", file.name], capture_output=True, text=True, check=True).stdout
        found = re.search(r"REG:(\d+) STACK:(\d+)", said)
        assert found is not None, said
        return {"registers": int(found[1]), "spilled_bytes": int(found[2])}
    vector, accumulation, spilled = (
        int(re.findall(rf"\.{name}:\s+(\d+)", kernel.asm["amdgcn"])[0])
        for name in ("vgpr_count", "agpr_count", "vgpr_spill_count")
    )
    return {"registers": vector + accumulation, "spilled_bytes": 4 * spilled}


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
    text = kernel.asm["ptx" if "ptx" in kernel.asm else "amdgcn"]
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
