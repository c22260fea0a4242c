"""Attention and its gradients in float64, and operands to compute them from."""

from typing import NamedTuple

import torch

from backends.triton.attention.problem import LOG2_E, Problem


class Right(NamedTuple):
    """O, the logarithm of sums, and the gradients of Q, K and V; rows without a key are zero."""

    o: torch.Tensor
    lse: torch.Tensor
    gradients: tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class Operands(NamedTuple):
    """Q, K, V and dO as (batch, heads, rows, columns)."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    do: torch.Tensor


def operands(problem: Problem, dtype: torch.dtype, *, rows_first: bool = False, seed: int = 0) -> Operands:
    """Standard normal; with ``rows_first`` stored as (batch, rows, heads, columns)."""
    generator = torch.Generator().manual_seed(seed)

    def normal(heads: int, rows: int, columns: int) -> torch.Tensor:
        sizes = (problem.batch, rows, heads, columns) if rows_first else (problem.batch, heads, rows, columns)
        made = torch.randn(sizes, generator=generator).to(dtype)
        return made.transpose(1, 2) if rows_first else made

    above = normal(problem.q_heads, problem.q_len, problem.v_dim)
    q = normal(problem.q_heads, problem.q_len, problem.qk_dim)
    k = normal(problem.kv_heads, problem.kv_len, problem.qk_dim)
    return Operands(q, k, normal(problem.kv_heads, problem.kv_len, problem.v_dim), above)


def computed(problem: Problem, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, do: torch.Tensor) -> Right:
    """By the definition, scores and all."""
    leaves = tuple(each.double().requires_grad_() for each in (q, k, v))
    keys, values = (each.repeat_interleave(problem.group, dim=1) for each in leaves[1:])
    scores = leaves[0] @ keys.transpose(2, 3) * (problem.scale_log2 / LOG2_E)
    scores = scores.masked_fill(~visible(problem), float("-inf"))
    weights = scores.softmax(3).where(visible(problem).any(1)[:, None], 0.0)
    o = weights @ values
    gradients = torch.autograd.grad(o, leaves, do.double())
    return Right(o.detach(), scores.logsumexp(3).detach(), tuple(each.nan_to_num(0.0) for each in gradients))


def visible(problem: Problem) -> torch.Tensor:
    """Which keys each query sees."""
    apart = torch.arange(problem.kv_len)[None, :] - torch.arange(problem.q_len)[:, None]
    first, last = problem.mask
    seen = torch.ones_like(apart, dtype=torch.bool)
    if first is not None:
        seen &= apart >= first
    return seen if last is None else seen & (apart <= last)


def distance(found: torch.Tensor, right: torch.Tensor) -> float:
    """Relative to the norm of what is right."""
    return float((found.double() - right).norm() / right.norm())
