"""The tables of choices compiled for devices that are not there: the first choice that fits and spills nothing.

    python -m tests.backends.triton.attention.chosen SPEC...     # a spec is as in ``compiled``

``KERNEL`` is forward, hopper, keys or queries.  Prints one JSON object a line.  Registers and spills are those of NVIDIA's
assembler, or what the code for AMD says of itself.
"""

import json
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.errors import TritonError
from triton.runtime import driver

from backends.triton.attention.call import Gradients, Operands, backward_calls, forward_call, hopper_call
from backends.triton.attention.choices import choices_of_forward, choices_of_keys, choices_of_queries, hopper_choices
from backends.triton.attention.config import BackwardConfig
from backends.triton.gemm.call import Call
from tests.backends.triton.attention.compiled import DTYPES, Spec
from tests.backends.triton.compiled import registers

SMALL = BackwardConfig(16, 16, 4, 1)


def choices_of(spec: Spec) -> Sequence[Any]:
    device, kernel, problem = spec
    if kernel == "hopper":
        return hopper_choices(problem)
    tables = {"forward": choices_of_forward, "keys": choices_of_keys, "queries": choices_of_queries}
    return tables[kernel](problem, device)


def call_of(spec: Spec, config: Any) -> Call:
    """As a launch would have it, on tensors without memory."""
    device, kernel, problem = spec
    dtype = DTYPES[problem.format]
    wide = torch.bfloat16 if problem.format == "fp8_e4m3" else dtype

    def empty(heads: int, *sizes: int, kind: torch.dtype = dtype) -> torch.Tensor:
        return torch.empty(problem.batch, heads, *sizes, dtype=kind, device="meta")

    q = empty(problem.q_heads, problem.q_len, problem.qk_dim)
    k = empty(problem.kv_heads, problem.kv_len, problem.qk_dim)
    v = empty(problem.kv_heads, *sorted((problem.kv_len, problem.v_dim), reverse=not problem.v_transposed))
    o = empty(problem.q_heads, problem.q_len, problem.v_dim, kind=wide)
    rows = empty(problem.q_heads, problem.q_len, kind=torch.float32)
    operands = Operands(q, k, v, o, rows, rows, rows, rows)
    if kernel == "forward":
        return forward_call(problem, config, device, operands)
    if kernel == "hopper":
        return hopper_call(problem, config, device, operands)
    of_keys, of_queries = (config, SMALL) if kernel == "keys" else (SMALL, config)
    calls = backward_calls(problem, of_keys, of_queries, device, operands, Gradients(o, q, k, v, rows))
    return calls[1] if kernel == "keys" else calls[2]


def chosen(spec: Spec) -> dict[str, Any]:
    """The label of the first sound choice, and why those before it are none."""
    device = spec.device
    target = GPUTarget("hip", device.architecture, 64) if device.is_amd else GPUTarget("cuda", int(device.architecture), 32)
    absent = {"get_current_device": lambda: 0, "get_current_stream": lambda _: 0, "get_current_target": lambda: target}
    driver.set_active(SimpleNamespace(**absent))
    passed_over: dict[str, str] = {}
    for config in choices_of(spec):
        call = call_of(spec, config)
        call.kernel.device_caches.clear()
        try:
            kernel = call.kernel.warmup(*call.arguments, grid=call.grid, **call.constants, **call.options)
        except (TritonError, RuntimeError) as error:
            passed_over[config.label] = str(error).strip().splitlines()[-1][:200]
            continue
        spilled, shared = registers(kernel)["spilled_bytes"], kernel.metadata.shared
        if not spilled and shared <= device.shared_bytes:
            return {"chosen": config.label, "passed_over": passed_over}
        passed_over[config.label] = f"spills {spilled} bytes, {shared} bytes of shared memory"
    return {"chosen": None, "passed_over": passed_over}


def main() -> None:
    for text in sys.argv[1:]:
        print(json.dumps({"spec": text, **chosen(Spec.parse(text))}), flush=True)


if __name__ == "__main__":
    main()
