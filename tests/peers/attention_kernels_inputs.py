"""Inputs of ``attention_kernels`` in rotating copies, and the distance of a result from float64."""

from collections.abc import Sequence
from typing import Any

import torch

from backends.triton.attention.problem import LOG2_E, Problem

DEVICE = "cuda"
COLD_BYTES = 320e6  # several times any last-level cache
CHECKED_HEADS, CHECKED_ROWS = 6, 64

Tensors = dict[str, torch.Tensor]


class Inputs:
    """Copies of Q, K, V and dO of one problem, (batch, heads, rows, columns), and what our kernels write."""

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        self.problem = problem
        torch.manual_seed(seed)
        made = {name: torch.randn(shape, device=DEVICE) for name, shape in shapes_of(problem).items()}
        self.scales: tuple[torch.Tensor | None, ...] = (None, None, None)
        if problem.format == "fp8_e4m3":
            kv_scale = torch.ones(problem.batch, problem.kv_heads, device=DEVICE)
            self.scales = (torch.ones(problem.batch, problem.q_heads, device=DEVICE), kv_scale, kv_scale.clone())
        kind = dtype_of(problem)
        first = {name: tensor.to(kind if name != "do" else torch.bfloat16) for name, tensor in made.items()}
        size = sum(tensor.nbytes for tensor in first.values())
        self.copies = [first]
        for _ in range(max(1, -int(-COLD_BYTES // size) - 1)):
            self.copies.append({name: tensor.clone() for name, tensor in first.items()})
        out = torch.float16 if problem.format == "fp16" else torch.bfloat16
        rows = (problem.batch, problem.q_heads, problem.q_len)
        self.o = torch.empty(*rows, problem.v_dim, device=DEVICE, dtype=out)
        self.lse = torch.empty(rows, device=DEVICE)
        generator = torch.Generator().manual_seed(seed)
        self.places = [
            (
                int(torch.randint(problem.batch, (), generator=generator)),
                int(torch.randint(problem.q_heads, (), generator=generator)),
            )
            for _ in range(CHECKED_HEADS)
        ]

    def distance(self, output: torch.Tensor, lse: torch.Tensor | None = None) -> float:
        """From float64, relative to its norm, on tiles of rows; the largest of them."""
        problem, found = self.problem, [0.0]
        q, k, v = (self.copies[0][name] for name in "qkv")
        middle = problem.q_len // 2 - CHECKED_ROWS // 2 - 3
        for batch, head in self.places:
            keys, values = (each[batch, head // problem.group].double() for each in (k, v))
            for start in dict.fromkeys((0, max(0, middle), max(0, problem.q_len - CHECKED_ROWS))):
                rows = slice(start, min(problem.q_len, start + CHECKED_ROWS))
                scores = _scores(problem, q[batch, head, rows].double() @ keys.t(), start)
                right = scores.softmax(1) @ values
                seen = output[batch, head, rows].double()
                found.append(float((seen - right).norm() / right.norm()))
                if lse is not None:
                    found.append(float((lse[batch, head, rows].double() - scores.logsumexp(1)).abs().max()))
        return max(found, key=lambda each: (each != each, each))  # NaN is the largest

    def gradient_distance(self, gradients: Sequence[torch.Tensor]) -> float:
        """The same for dQ, dK and dV, of whole heads in fp32."""
        problem, found = self.problem, [0.0]
        for batch, kv_head in {(batch, head // problem.group) for batch, head in self.places[:2]}:
            heads = slice(kv_head * problem.group, (kv_head + 1) * problem.group)
            q = self.copies[0]["q"][batch, heads].float()
            do = self.copies[0]["do"][batch, heads].float()
            k, v = (self.copies[0][name][batch, kv_head].float() for name in "kv")
            right = [torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)]
            for member in range(problem.group):
                for start in range(0, problem.q_len, 2048):
                    rows = slice(start, start + 2048)
                    _add_gradients(problem, right, member, rows, start, q, k, v, do)
            seen = (gradients[0][batch, heads], gradients[1][batch, kv_head], gradients[2][batch, kv_head])
            found += [float((a.float() - b).norm() / b.norm()) for a, b in zip(seen, right, strict=True)]
        return max(found, key=lambda each: (each != each, each))


def _add_gradients(
    problem: Problem, right: list[torch.Tensor], member: int, rows: slice, start: int, q: Any, k: Any, v: Any, do: Any
) -> None:
    weights = _scores(problem, q[member, rows] @ k.t(), start).softmax(1)
    above = do[member, rows]
    slopes = above @ v.t()
    right[2] += weights.t() @ above
    slopes = weights * (slopes - (weights * slopes).sum(1, keepdim=True)) * (problem.scale_log2 / LOG2_E)
    right[0][member, rows] = slopes @ k
    right[1] += slopes.t() @ q[member, rows]


def _scores(problem: Problem, products: torch.Tensor, start: int) -> torch.Tensor:
    """Scaled and masked; ``products`` are of the queries from ``start`` on."""
    scores = products * (problem.scale_log2 / LOG2_E)
    i = torch.arange(start, start + len(scores), device=DEVICE)[:, None]
    apart = torch.arange(problem.kv_len, device=DEVICE)[None, :] - i
    first, last = problem.mask
    if first is not None:
        scores = scores.masked_fill(apart < first, float("-inf"))
    return scores if last is None else scores.masked_fill(apart > last, float("-inf"))


def shapes_of(problem: Problem) -> dict[str, tuple[int, ...]]:
    of_q, of_k = (problem.batch, problem.q_heads, problem.q_len), (problem.batch, problem.kv_heads, problem.kv_len)
    shapes = {"q": (*of_q, problem.qk_dim), "k": (*of_k, problem.qk_dim), "v": (*of_k, problem.v_dim)}
    return {**shapes, "do": (*of_q, problem.v_dim)}


def dtype_of(problem: Problem) -> torch.dtype:
    return {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8_e4m3": torch.float8_e4m3fn}[problem.format]
