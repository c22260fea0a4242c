"""The peers' ways of ``attention_kernels``: torch's and flash-attn-4's."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from backends.triton.attention.problem import Problem
from tests.peers.attention_kernels_inputs import Inputs, Tensors
from tests.peers.rotation import Way

CUDNN, FLASH4, FLASH2 = "cuDNN", "flash-attn-4", "SDPA flash"


def sdpa(name: str, backend: Any, inputs: Inputs) -> Way:
    problem = inputs.problem
    options = {"is_causal": problem.mask.last is not None, "enable_gqa": problem.group > 1}

    def launch(tensors: Tensors) -> torch.Tensor:
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(tensors["q"], tensors["k"], tensors["v"], **options)

    return Way(name, [partial(launch, each) for each in inputs.copies])


def flash4(inputs: Inputs) -> Way:
    """flash-attn-4 takes (batch, rows, heads, columns): copies of its own in that order."""
    flash_attn_func = import_module("flash_attn.cute").flash_attn_func
    is_causal = inputs.problem.mask.last is not None
    turned = [{name: each[name].transpose(1, 2).contiguous() for name in "qkv"} for each in inputs.copies]

    def launch(tensors: Tensors) -> torch.Tensor:
        found = flash_attn_func(tensors["q"], tensors["k"], tensors["v"], causal=is_causal)
        output: torch.Tensor = found[0] if isinstance(found, tuple) else found
        return output.transpose(1, 2)

    return Way(FLASH4, [partial(launch, each) for each in turned])


def backward_of(name: str, inputs: Inputs, attend: Callable[[Any, Any, Any], torch.Tensor], turned: bool) -> Way:
    """The backward pass of a differentiable attention, by autograd on a graph that is kept."""

    def launch(out: torch.Tensor, leaves: Sequence[torch.Tensor], above: torch.Tensor) -> Any:
        found = torch.autograd.grad(out, leaves, above, retain_graph=True)
        return tuple(each.transpose(1, 2) for each in found) if turned else found

    launches = []
    for tensors in inputs.copies:
        laid = {key: each.transpose(1, 2).contiguous() if turned else each for key, each in tensors.items()}
        leaves = [laid[key].detach().requires_grad_() for key in "qkv"]
        launches.append(partial(launch, attend(*leaves), leaves, laid["do"]))
    return Way(name, launches)


def theirs(problem: Problem, backward: bool) -> list[tuple[str, Callable[[Inputs], Way]]]:
    is_causal = problem.mask.last is not None
    if not backward:
        found: list[tuple[str, Callable[[Inputs], Way]]] = [
            (CUDNN, lambda inputs: sdpa(CUDNN, SDPBackend.CUDNN_ATTENTION, inputs)),
            (FLASH4, flash4),
            (FLASH2, lambda inputs: sdpa(FLASH2, SDPBackend.FLASH_ATTENTION, inputs)),
        ]
        return found

    def by(backend: Any) -> Callable[[Any, Any, Any], torch.Tensor]:
        def attend(q: Any, k: Any, v: Any) -> torch.Tensor:
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)

        return attend

    def cute(q: Any, k: Any, v: Any) -> torch.Tensor:
        out = import_module("flash_attn.cute").flash_attn_func(q, k, v, causal=is_causal)
        output: torch.Tensor = out[0] if isinstance(out, tuple) else out
        return output

    return [
        (CUDNN, lambda inputs: backward_of(CUDNN, inputs, by(SDPBackend.CUDNN_ATTENTION), False)),
        (FLASH4, lambda inputs: backward_of(FLASH4, inputs, cute, True)),
        (FLASH2, lambda inputs: backward_of(FLASH2, inputs, by(SDPBackend.FLASH_ATTENTION), False)),
    ]
