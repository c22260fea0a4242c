"""Attention by the book: scores, mask, softmax and products one after the other, each written to memory whole.

What it moves is counted (``traffic_bytes``): this is the traffic that an attention which keeps scores on the chip saves.
"""

from functools import partial

import torch

from backends.host.cpuinfo import memory_available_bytes
from backends.torch.attention.operands import Buffers, ScaledOperand, output_type
from backends.torch.attention.way import Task, Way
from backends.torch.data import Operand
from backends.torch.target import Target
from backends.torch.way import Made
from suite.case import Workload
from suite.gigabytes import gigabytes
from suite.jobs.attention import AttentionJob, Sizes
from suite.jobs.emulation import EXECUTED_PIPE, TRAFFIC_BYTES

# How often the scores of all pairs are written or read: by the first product, the softmax (both), the second product; backward
# also by the products of dV, dP, dQ and dK, and by what turns dP into slopes (two passes).
FORWARD_PASSES, BACKWARD_PASSES = 4, 12
MASK_PASSES, SCALE_PASSES = 2, 2
SCORES = ("scores", "weights")  # buffers of all pairs


class Scores:
    """Buffers of all pairs, shared by the input sets: (batch x heads of keys, queries of a group, keys)."""

    def __init__(self, task: Task) -> None:
        self.sizes = task.sizes
        self.dtype = output_type(task.workload.format)
        self.device = task.target.device
        self.shape = (self.sizes.batch * self.sizes.num_kv_heads, self.sizes.group * self.sizes.q_len, self.sizes.kv_len)
        self.bytes = int(self.sizes.pairs * self.dtype.itemsize)
        self._refuse_too_large()
        self.scores, self.weights = (torch.empty(self.shape, dtype=self.dtype, device=self.device) for _ in SCORES)
        self.hidden = hidden(self.sizes, self.device)
        self.scale = self.sizes.head_dim**-0.5

    def _refuse_too_large(self) -> None:
        """A host gives out memory that it does not have, and ends whoever then uses it."""
        needed, free = len(SCORES) * self.bytes, memory_available_bytes()
        if self.device.type == "cpu" and needed > free:
            raise MemoryError(f"scores of all pairs need {gigabytes(needed)}, twice; {gigabytes(free)} are available")

    def soften(self, q: torch.Tensor, k: torch.Tensor, factor: torch.Tensor | None) -> torch.Tensor:
        """The weights of all pairs; ``factor`` (batch x heads of keys, group, 1, 1) is what scales of Q and K multiply by."""
        alpha = self.scale if factor is None else 1.0
        torch.baddbmm(self.scores, q, k.transpose(1, 2), beta=0, alpha=alpha, out=self.scores)
        by_head = self.scores.view(self.shape[0], self.sizes.group, self.sizes.q_len, self.sizes.kv_len)
        if factor is not None:
            by_head.mul_(factor)
        if self.hidden is not None:
            by_head.masked_fill_(self.hidden, float("-inf"))
        torch.softmax(self.scores, -1, out=self.weights)
        return self.weights

    def traffic_bytes(self, workload: Workload) -> int:
        passes = BACKWARD_PASSES if self.sizes.is_backward else FORWARD_PASSES
        passes += MASK_PASSES * (self.hidden is not None) + SCALE_PASSES * (workload.format == "fp8_e4m3")
        return AttentionJob().work(workload).compulsory_bytes + passes * self.bytes


def hidden(sizes: Sizes, device: torch.device) -> torch.Tensor | None:
    """Which keys a query does not see (queries x keys); ``None`` where it sees all."""
    first, last = sizes.bounds
    if last is None:
        return None
    apart = torch.arange(sizes.kv_len, device=device)[None, :] - torch.arange(sizes.q_len, device=device)[:, None]
    return apart > last if first is None else (apart > last) | (apart < first)


def make(task: Task) -> Made:
    """Launches that share the buffers of all pairs."""
    scores = Scores(task)
    facts = {
        "call": "torch.baddbmm, torch.softmax, torch.bmm",
        "library": "torch",
        TRAFFIC_BYTES: scores.traffic_bytes(task.workload),
        "scores_bytes": scores.bytes,
    }
    if task.sizes.is_backward:
        renewals = [partial(forward, scores, each, each.o) for each in task.buffers]
        return Made([partial(backward, scores, each) for each in task.buffers], facts, renewals=renewals)
    launches = [partial(forward, scores, each, each.o) for each in task.buffers]
    if task.workload.format != "fp8_e4m3":
        return Made(launches, facts)
    emulation = "Q, K and V converted to bf16 (exact), then bf16 products"
    return Made(launches, {**facts, EXECUTED_PIPE: "bf16"}, emulation=emulation)


def forward(scores: Scores, each: Buffers, output: torch.Tensor) -> None:
    """O into ``output``."""
    q, k, v = (_by_kv_head(operand, scores) for operand in (each.q, each.k, each.v))
    weights = scores.soften(q, k, _factor(each, scores))
    rows = output.view(scores.shape[0], scores.shape[1], -1)
    torch.bmm(weights, v, out=rows)
    if isinstance(each.v, ScaledOperand):
        rows.mul_(each.v.scales.view(-1, 1, 1))


def backward(scores: Scores, each: Buffers) -> None:
    """The gradients, by weights that are computed again."""
    assert each.do is not None
    q, k, v, do = (_by_kv_head(operand, scores) for operand in (each.q, each.k, each.v, each.do))
    dq, dk, dv = (result.view(scores.shape[0], -1, result.shape[3]) for result in each.results)
    weights = scores.soften(q, k, None)
    torch.bmm(weights.transpose(1, 2), do, out=dv)
    products = (do.float() * each.o.view_as(do).float()).sum(2, keepdim=True)
    slopes = torch.bmm(do, v.transpose(1, 2), out=scores.scores)
    slopes.sub_(products).mul_(weights)
    torch.baddbmm(dq, slopes, k, beta=0, alpha=scores.scale, out=dq)
    torch.baddbmm(dk, slopes.transpose(1, 2), q, beta=0, alpha=scores.scale, out=dk)


def _by_kv_head(operand: Operand, scores: Scores) -> torch.Tensor:
    """(batch x heads of keys, rows, columns): the queries of a group one below the other."""
    return operand.data.view(scores.shape[0], -1, operand.data.shape[3]).to(scores.dtype)


def _factor(each: Buffers, scores: Scores) -> torch.Tensor | None:
    if not isinstance(each.q, ScaledOperand) or not isinstance(each.k, ScaledOperand):
        return None
    by_group = each.q.scales.view(scores.shape[0], scores.sizes.group, 1, 1)
    return by_group * each.k.scales.view(-1, 1, 1, 1) * scores.scale


def refuses(workload: Workload, target: Target) -> str | None:
    """Scores that are too large for the format that they are kept in."""
    if workload.distribution == "outliers" and workload.format in ("bf16", "fp16"):
        return f"scores of outliers kept in {workload.format} are off by more than a right result; library_* keep them in fp32"
    return None


WAY = Way(refuses, make)
