"""The kernels compiled for devices that are not there, and what they became.

    python -m tests.backends.triton.decode.compiled SPEC...   # DEVICE/FORMAT/SCALES/HEADS/PAGE, with /NUMBER of the candidate

``HEADS`` is a key of ``HEADS``; the first candidate is taken where none is named.  Prints one JSON object a line as it goes: a
compiler that gives up may take its process with it.
"""

import json
import sys
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from triton.backends.compiler import GPUTarget
from triton.errors import TritonError
from triton.runtime import driver

from backends.triton.decode.call import Operands, Workspace, decode_call, workspace_shapes
from backends.triton.decode.config import Config, candidates, shared_bytes
from backends.triton.decode.plan import planned
from backends.triton.decode.problem import Problem, reason
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device
from backends.triton.gemm.instructions import matrix_instructions
from tests.backends.triton.compiled import DEVICES, registers
from tests.backends.triton.decode.reference import DTYPES

LENGTHS = (4096, 4000)
PAGES = 600
HEADS: dict[str, dict[str, Any]] = {
    "8b": {"q_heads": 32, "kv_heads": 8, "width": 128},
    "8b-4-tokens": {"q_heads": 32, "kv_heads": 8, "width": 128, "q_len": 4},
    "70b": {"q_heads": 64, "kv_heads": 8, "width": 128},
    "mqa": {"q_heads": 32, "kv_heads": 1, "width": 128},
    "mha-64": {"q_heads": 16, "kv_heads": 16, "width": 64},
    "256": {"q_heads": 16, "kv_heads": 8, "width": 256},
    "mla": {"q_heads": 128, "kv_heads": 1, "width": 512, "tail": 64, "shared_values": True},
    "mla-16": {"q_heads": 16, "kv_heads": 1, "width": 512, "tail": 64, "shared_values": True},
}


class Spec(NamedTuple):
    """What is compiled, for what."""

    device: Device
    problem: Problem
    candidate: int

    @classmethod
    def parse(cls, text: str) -> "Spec":
        device, format_name, scales, heads, page, *number = text.split("/")
        problem = Problem(format=format_name, scales=scales, page_size=int(page), **HEADS[heads])
        return cls(DEVICES[device], problem, int(number[0]) if number else 0)


def call_of(spec: Spec, config: Config) -> Call:
    """As a launch would have it, on tensors without memory."""
    device, p, _ = spec

    def empty(*sizes: int, kind: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.empty(*sizes, dtype=kind, device="meta")

    q_kind = torch.bfloat16 if p.has_eight_bits else DTYPES[p.format]
    q = empty(len(LENGTHS), p.q_len, p.q_heads, p.width + p.tail, kind=q_kind)
    cache = empty(PAGES, p.kv_heads, p.page_size, p.width + p.tail, kind=DTYPES[p.format])
    scale = empty(PAGES, p.kv_heads, p.page_size) if p.scales == "token" else empty(1)
    table = empty(len(LENGTHS), -(-max(LENGTHS) // p.page_size), kind=torch.int32)
    operands = Operands(q, cache, cache, q[..., : p.width], empty(len(LENGTHS), p.q_len, p.q_heads), table, scale, scale)
    plan = planned(LENGTHS, config.block, p.kv_heads, device.units * config.resident)
    items, parts, parts_lse, arrived = workspace_shapes(p, plan, len(LENGTHS))
    ints = [empty(*shape, kind=torch.int32) for shape in (items, arrived)]
    workspace = Workspace(ints[0], empty(*parts), empty(*parts_lse), ints[1])
    return decode_call(p, config, device, plan, operands, workspace)


def outcome(spec: Spec) -> dict[str, Any]:
    """What the kernel of a spec became, or why there is none."""
    device, problem, number = spec
    refused = reason(problem, device)
    if refused:
        return {"refused": refused}
    target = GPUTarget("hip", device.architecture, 64) if device.is_amd else GPUTarget("cuda", int(device.architecture), 32)
    absent = {"get_current_device": lambda: 0, "get_current_stream": lambda _: 0, "get_current_target": lambda: target}
    driver.set_active(SimpleNamespace(**absent))
    config = candidates(problem, device)[number]
    call = call_of(spec, config)
    call.kernel.device_caches.clear()
    try:
        kernel = call.kernel.warmup(*call.arguments, grid=call.grid, **call.constants, **call.options)
    except (TritonError, RuntimeError) as error:
        return {"failed": str(error).strip().splitlines()[-1][:200]}
    text = kernel.asm["ptx" if "ptx" in kernel.asm else "amdgcn"]
    return {
        "config": config.label,
        "kernel": config.kernel,
        **registers(kernel),
        "shared_bytes": kernel.metadata.shared,
        "expected_shared_bytes": shared_bytes(config, problem, device),
        "instructions": matrix_instructions(text),
        "copies": text.count("cp.async.c"),
        "conversions": text.count("cvt.rn.f16x2.e4m3x2"),
        "wide_loads": text.count("ld.global.v4.b32"),
        "stored_words": text.count("st.shared"),
    }


def main() -> None:
    for text in sys.argv[1:]:
        print(json.dumps({"spec": text, **outcome(Spec.parse(text))}), flush=True)


if __name__ == "__main__":
    main()
