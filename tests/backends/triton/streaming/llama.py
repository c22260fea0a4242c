"""The products of Llama-3-8B as streamed problems, and tensors of their shapes."""

from collections.abc import Callable
from typing import Any

import torch

from backends.triton.gemm.device import Device
from backends.triton.streaming.call import Operands, Workspace, workspace_sizes
from backends.triton.streaming.config import Config
from backends.triton.streaming.norm import slots
from backends.triton.streaming.problem import PLAIN, RESIDUAL, ROTATED, SWIGLU, Problem

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
PAGES, CONTEXT = 300, 4096

Empty = Callable[..., torch.Tensor]


def problem(kind: str, m: int, format_name: str = "bf16") -> Problem:
    return {
        "qkv": Problem(format_name, m, 6144, 4096, ROTATED, True, 32, 8, 128, 16),
        "o": Problem(format_name, m, 4096, 4096, RESIDUAL),
        "gate_up": Problem(format_name, m, 28672, 4096, SWIGLU, True),
        "down": Problem(format_name, m, 4096, 14336, RESIDUAL),
        "lm_head": Problem(format_name, m, 128256, 4096, PLAIN, True),
    }[kind]


def operands(p: Problem, empty: Empty) -> Operands:
    """``empty(*sizes, kind)`` makes a tensor."""
    kind = DTYPES[p.format]
    y = empty(p.m, p.n // 2 if p.end == SWIGLU else p.n, kind=kind)
    more: dict[str, Any] = {"squares": empty(slots(p.k, p.m), p.m, kind=torch.float32)} if p.normed else {}
    if p.end == RESIDUAL:
        more |= {name: empty(p.m, p.n, kind=kind) for name in ("residual", "scaled")}
        more |= {"norm": empty(p.n, kind=kind), "left": empty(slots(p.n, p.m), p.m, kind=torch.float32)}
    if p.end == ROTATED:
        y = empty(p.m, p.q_heads, p.head_dim, kind=kind)
        cache = (PAGES, p.kv_heads, p.page_size, p.head_dim)
        more |= {
            "k_cache": empty(*cache, kind=kind),
            "v_cache": empty(*cache, kind=kind),
            "rotation": empty(CONTEXT, p.head_dim, kind=torch.float32),
            "positions": empty(p.m, kind=torch.int32),
            "table": empty(p.m, CONTEXT // p.page_size + 1, kind=torch.int32),
        }
    return Operands(empty(p.n, p.k, kind=kind), empty(p.m, p.k, kind=kind), y, **more)


def workspace(p: Problem, config: Config, device: Device, empty: Empty) -> Workspace:
    sizes = workspace_sizes(p, config, device)
    return Workspace(empty(sizes.parts, kind=torch.float32), empty(sizes.arrived, kind=torch.int32))
