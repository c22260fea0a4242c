"""The backends of torch's scaled_dot_product_attention, each pinned: torch uses no other, and says why where it will not.

Backward passes are the operations that its autograd calls, on results of the forward operation that are computed again
whenever the data is.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from backends.torch.attention.naive import hidden
from backends.torch.attention.operands import DTYPES, Buffers, shapes_of
from backends.torch.attention.way import Task, Way
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Workload
from suite.jobs.attention import Sizes, sizes_of

ATEN = torch.ops.aten


class Operations(NamedTuple):
    """A forward operation that returns what the backward operation wants, and that operation; both bound to a mask."""

    forward: Callable[[Buffers, bool], Sequence[Any]]
    backward: Callable[[Buffers, Sequence[Any], bool], Sequence[torch.Tensor]]


class Backend(NamedTuple):
    """``kinds`` are the devices that have it; ``operations`` by the kind of device, where there is a backward pass."""

    chosen: SDPBackend
    library: str
    kinds: tuple[str, ...]
    operations: dict[str, Operations]


def _qkv(each: Buffers) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return each.q.data, each.k.data, each.v.data


def _do(each: Buffers) -> torch.Tensor:
    assert each.do is not None
    return each.do.data


def _flash_backward(each: Buffers, saved: Sequence[Any], causal: bool) -> Sequence[torch.Tensor]:
    out, lse, cum_q, cum_k, max_q, max_k, state, unused = saved[:8]
    call = ATEN._scaled_dot_product_flash_attention_backward
    given = (out, lse, cum_q, cum_k, max_q, max_k, 0.0, causal, state, unused)
    gradients: Sequence[torch.Tensor] = call(_do(each), *_qkv(each), *given)
    return gradients


def _cpu_backward(each: Buffers, saved: Sequence[Any], causal: bool) -> Sequence[torch.Tensor]:
    call = ATEN._scaled_dot_product_flash_attention_for_cpu_backward
    gradients: Sequence[torch.Tensor] = call(_do(each), *_qkv(each), *saved[:2], 0.0, causal)
    return gradients


def _cudnn_backward(each: Buffers, saved: Sequence[Any], causal: bool) -> Sequence[torch.Tensor]:
    out, lse, cum_q, cum_k, max_q, max_k, seed, offset = saved[:8]
    call = ATEN._scaled_dot_product_cudnn_attention_backward
    given = (out, lse, seed, offset, None, cum_q, cum_k, max_q, max_k, 0.0, causal)
    gradients: Sequence[torch.Tensor] = call(_do(each), *_qkv(each), *given)
    return gradients


def _efficient_backward(each: Buffers, saved: Sequence[Any], causal: bool) -> Sequence[torch.Tensor]:
    call = ATEN._scaled_dot_product_efficient_attention_backward
    wanted = [True, True, True, False]  # gradients of Q, K and V, none of a bias
    gradients: Sequence[torch.Tensor] = call(_do(each), *_qkv(each), None, *saved[:4], 0.0, wanted, causal)[:3]
    return gradients


FLASH = Operations(
    lambda each, causal: ATEN._scaled_dot_product_flash_attention(*_qkv(each), 0.0, causal, False), _flash_backward
)
CPU = Operations(lambda each, causal: ATEN._scaled_dot_product_flash_attention_for_cpu(*_qkv(each), 0.0, causal), _cpu_backward)
CUDNN = Operations(
    lambda each, causal: ATEN._scaled_dot_product_cudnn_attention(*_qkv(each), None, True, 0.0, causal, False), _cudnn_backward
)
EFFICIENT = Operations(
    lambda each, causal: ATEN._scaled_dot_product_efficient_attention(*_qkv(each), None, True, 0.0, causal), _efficient_backward
)

BACKENDS = {
    "library_math": Backend(SDPBackend.MATH, "torch, operation by operation", ("cpu", "cuda"), {}),
    "library_flash": Backend(
        SDPBackend.FLASH_ATTENTION, "FlashAttention in torch", ("cpu", "cuda"), {"cpu": CPU, "cuda": FLASH}
    ),
    "library_cudnn": Backend(SDPBackend.CUDNN_ATTENTION, "cuDNN", ("cuda",), {"cuda": CUDNN}),
    "library_efficient": Backend(SDPBackend.EFFICIENT_ATTENTION, "xFormers' kernels in torch", ("cuda",), {"cuda": EFFICIENT}),
}


def refuses(name: str, workload: Workload, target: Target) -> str | None:
    """By what a backend is known not to have, then by torch's own choice for tensors of these sizes."""
    backend, sizes = BACKENDS[name], sizes_of(workload)
    if target.kind not in backend.kinds:
        return f"{name} is not on a {target.kind.upper()}: torch has it for {' and '.join(backend.kinds).upper()}"
    if workload.format == "fp8_e4m3":
        return "scaled_dot_product_attention takes no fp8; naive, triton and triton_tuned do"
    if sizes.window is not None and name != "library_math":
        return (
            "scaled_dot_product_attention has a sliding window only as a mask in memory: library_math, flex and triton take it"
        )
    if sizes.is_backward and target.kind not in backend.operations:
        return f"{name} has no backward operation of its own: torch differentiates step by step; naive does the same"
    return not_chosen(backend, name, workload, target)


def not_chosen(backend: Backend, name: str, workload: Workload, target: Target) -> str | None:
    """Why torch would not use this backend, in its own words; ``None`` when it would."""
    sizes = sizes_of(workload)
    shapes = shapes_of(sizes._replace(batch=1))
    dtype, wanted = DTYPES[workload.format], sizes.is_backward
    q, k, v = (torch.empty(shapes[each], dtype=dtype, device=target.device, requires_grad=wanted) for each in "qkv")
    causal = sizes.mask == "causal"
    with warnings.catch_warnings(record=True) as said, sdpa_kernel(backend.chosen):
        warnings.simplefilter("always")
        try:
            torch._fused_sdp_choice(q, k, v, None, 0.0, causal, enable_gqa=sizes.group > 1)
        except RuntimeError as error:
            reasons = [_first_sentence(str(each.message)) for each in said]
            told = [each for each in reasons if not each.endswith("because:")] or [_first_sentence(str(error))]
            return f"{name} is not taken by torch here: {'; '.join(dict.fromkeys(told))}"
    return None


def make(name: str, task: Task) -> Made:
    """Launches that return results in buffers of torch's."""
    backend, causal = BACKENDS[name], task.sizes.mask == "causal"
    facts = {"library": _library(backend, task.target), "pinned": backend.chosen.name}
    if not task.sizes.is_backward:
        mask = hidden(task.sizes, task.target.device) if task.sizes.window is not None else None
        bias = None if mask is None else ~mask
        bound = partial(_forward, backend.chosen, task.sizes, causal, bias)
        call = "torch.nn.functional.scaled_dot_product_attention"
        return Made([partial(bound, each) for each in task.buffers], {**facts, "call": call}, returns=True)
    operations = backend.operations[task.target.kind]
    states = [State(partial(operations.forward, each, causal)) for each in task.buffers]
    launches = [partial(_backward, operations, each, state, causal) for each, state in zip(task.buffers, states, strict=True)]
    renewals = [state.renew for state in states]
    return Made(launches, {**facts, "call": "torch.ops.aten: the backend's backward"}, returns=True, renewals=renewals)


def _library(backend: Backend, target: Target) -> str:
    """Whose kernels they are: builds for ROCm have those of AOTriton, or of CK where that is preferred, by the same names."""
    if not target.is_amd or backend.chosen is SDPBackend.MATH:
        return backend.library
    return f"{str(torch.backends.cuda.preferred_rocm_fa_library()).rpartition('.')[2]} in torch"


class State:
    """What a backward pass takes from a forward pass, in the same buffers for as long as it lives."""

    def __init__(self, compute: Callable[[], Sequence[Any]]) -> None:
        self._compute = compute
        self.values: list[Any] = []

    def renew(self) -> None:
        """Run the forward pass on the data as it now is."""
        found = self._compute()
        if not self.values:
            self.values = list(found)
        for kept, new in zip(self.values, found, strict=True):
            if isinstance(kept, torch.Tensor) and kept is not new:
                kept.copy_(new)


def _forward(
    chosen: SDPBackend, sizes: Sizes, causal: bool, bias: torch.Tensor | None, each: Buffers
) -> tuple[torch.Tensor, ...]:
    with sdpa_kernel(chosen):
        return (
            torch.nn.functional.scaled_dot_product_attention(
                *_qkv(each), attn_mask=bias, is_causal=causal, enable_gqa=sizes.group > 1
            ),
        )


def _backward(operations: Operations, each: Buffers, state: State, causal: bool) -> Sequence[torch.Tensor]:
    return operations.backward(each, state.values, causal)


def _first_sentence(text: str) -> str:
    """Without the place in torch's source that raised it."""
    return " ".join(text.partition("(Triggered internally")[0].split()).rstrip(". ")


def way(name: str) -> Way:
    """The way through one of ``BACKENDS``."""
    return Way(partial(refuses, name), partial(make, name))
