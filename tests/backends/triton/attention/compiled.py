"""The kernels compiled for devices that are not there, and what they became.

    python -m tests.backends.triton.attention.compiled SPEC...     # a spec is DEVICE/KERNEL/MASK/FORMAT/HEAD[/GROUP]

``KERNEL`` is forward, preparation, keys, queries or hopper; ``HEAD`` is 64, 128, 256 or 192 (of which V has 128); ``GROUP``
query heads share one of keys, two where none is given.  Prints one JSON object a line as it goes: a compiler that gives up may
take its process with it.
"""

import json
import sys
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from triton.backends.compiler import GPUTarget
from triton.errors import TritonError
from triton.runtime import driver

from backends.triton.attention.call import Gradients, Operands, backward_calls, forward_call, hopper_call
from backends.triton.attention.config import BackwardConfig, Config, HopperConfig
from backends.triton.attention.problem import FULL, Mask, Problem, causal
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device
from backends.triton.gemm.instructions import matrix_instructions
from tests.backends.triton.compiled import DEVICES, registers

LENGTH = 4096
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8_e4m3": torch.float8_e4m3fn}
RAGGED = LENGTH - 40
MASKS = {
    "full": FULL,
    "causal": causal(LENGTH, LENGTH),
    "window": causal(LENGTH, LENGTH, window=1000),
    "ragged": FULL,
    "ragged-window": causal(LENGTH, RAGGED, window=1000),
}
FORWARD = {"nvidia": Config(128, 64, 8, 2), "amd": Config(128, 64, 4, 1)}
WIDE = {"nvidia": Config(64, 32, 4, 2), "amd": Config(64, 32, 4, 1)}  # heads of more than 128 columns
OF_KEYS = {"nvidia": BackwardConfig(32, 64, 4, 2), "amd": BackwardConfig(32, 64, 4, 1)}
OF_QUERIES = {"nvidia": BackwardConfig(64, 32, 4, 2), "amd": BackwardConfig(64, 32, 4, 1)}


class Spec(NamedTuple):
    """What is compiled, for what."""

    device: Device
    kernel: str
    problem: Problem

    @classmethod
    def parse(cls, text: str) -> "Spec":
        device, kernel, mask, format_name, head, *group = text.split("/")
        kv_len = RAGGED if mask.startswith("ragged") else LENGTH
        kv_heads = 16 // int(group[0]) if group else 8
        v_dim = 128 if head == "192" else int(head)
        transposed = format_name == "fp8_e4m3"
        kind: Mask = MASKS[mask]
        problem = Problem(format_name, 2, 16, kv_heads, LENGTH, kv_len, int(head), v_dim, kind, None, transposed)
        return cls(DEVICES[device], kernel, problem)


def call_of(spec: Spec) -> Call:
    """As a launch would have it, on tensors without memory."""
    device, kernel, problem = spec
    dtype = DTYPES[problem.format]

    def empty(heads: int, *sizes: int, kind: torch.dtype = dtype) -> torch.Tensor:
        return torch.empty(problem.batch, heads, *sizes, dtype=kind, device="meta")

    q = empty(problem.q_heads, problem.q_len, problem.qk_dim)
    k = empty(problem.kv_heads, problem.kv_len, problem.qk_dim)
    v = empty(problem.kv_heads, *sorted((problem.kv_len, problem.v_dim), reverse=not problem.v_transposed))
    wide = torch.bfloat16 if problem.format == "fp8_e4m3" else dtype
    o = empty(problem.q_heads, problem.q_len, problem.v_dim, kind=wide)
    rows = empty(problem.q_heads, problem.q_len, kind=torch.float32)
    operands = Operands(q, k, v, o, rows, rows, rows, rows)
    vendor = "amd" if device.is_amd else "nvidia"
    if kernel == "hopper":
        own_output = problem.qk_dim <= 128
        return hopper_call(problem, HopperConfig(block=128 if own_output else 64, own_output=own_output), device, operands)
    if kernel == "forward":
        return forward_call(problem, (FORWARD if problem.qk_dim <= 128 else WIDE)[vendor], device, operands)
    given = Gradients(o, q, k, v, rows)
    calls = backward_calls(problem, OF_KEYS[vendor], OF_QUERIES[vendor], device, operands, given)
    return calls[("preparation", "keys", "queries").index(kernel)]


def outcome(spec: Spec) -> dict[str, Any]:
    """What the kernel of a spec became, or why there is none."""
    device = spec.device
    target = GPUTarget("hip", device.architecture, 64) if device.is_amd else GPUTarget("cuda", int(device.architecture), 32)
    absent = {"get_current_device": lambda: 0, "get_current_stream": lambda _: 0, "get_current_target": lambda: target}
    driver.set_active(SimpleNamespace(**absent))
    call = call_of(spec)
    call.kernel.device_caches.clear()
    try:
        kernel = call.kernel.warmup(*call.arguments, grid=call.grid, **call.constants, **call.options)
    except (TritonError, RuntimeError) as error:
        return {"failed": str(error).strip().splitlines()[-1][:200]}
    text = kernel.asm["ptx" if "ptx" in kernel.asm else "amdgcn"]
    return {
        **registers(kernel),
        "shared_bytes": kernel.metadata.shared,
        "instructions": matrix_instructions(text),
        "tensor_copies": text.count("cp.async.bulk.tensor"),
        "barriers": text.count("mbarrier.try_wait"),
    }


def main() -> None:
    for text in sys.argv[1:]:
        print(json.dumps({"spec": text, **outcome(Spec.parse(text))}), flush=True)


if __name__ == "__main__":
    main()
