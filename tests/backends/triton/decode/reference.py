"""Decoding in float64 from a paged cache, and caches to decode from."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from backends.triton.decode.call import Operands
from backends.triton.decode.problem import LOG2_E, Problem
from suite.jobs.decode.pages import Pages

DTYPES = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8_e4m3": torch.float8_e4m3fn,
    "int8": torch.int8,
}
GARBAGE = {"int8": 127.0}  # what stands where no token does; NaN in any format that has one
SPARE_PAGES = 3


class Right(NamedTuple):
    """O and the logarithm of sums, as the kernels lay them out; rows without a key are 0 and -inf."""

    o: torch.Tensor
    lse: torch.Tensor


def operands(
    problem: Problem,
    pages: Pages,
    *,
    q_dtype: torch.dtype = torch.float16,
    tokens_first: bool = False,
    v_size: float = 1.0,
    seed: int = 0,
) -> Operands:
    """Standard normal, with scales about 1 or 1/40, of values ``v_size`` times that.

    Pages that no table names, and all behind a last token, are garbage.  With ``tokens_first`` a page is stored as (tokens,
    heads, columns).
    """
    p, generator = problem, torch.Generator().manual_seed(seed)
    if not p.has_eight_bits:
        q_dtype = DTYPES[p.format]
    batch, count = len(pages.lengths), pages.page_count + SPARE_PAGES
    used = _used(pages, count)

    def cache() -> torch.Tensor:
        shape = (count, p.page_size, p.kv_heads) if tokens_first else (count, p.kv_heads, p.page_size)
        numbers = torch.randn(*shape, p.width + p.tail, generator=generator)
        if p.format == "int8":
            numbers = (numbers * 40).round().clamp(-127, 127)
        there = used[:, :, None, None] if tokens_first else used[:, None, :, None]
        made = torch.where(there, numbers, GARBAGE.get(p.format, float("nan"))).to(DTYPES[p.format])
        return made.transpose(1, 2) if tokens_first else made

    def scale() -> torch.Tensor | None:
        size = 1 / 40 if p.format == "int8" else 1.0
        if p.scales == "tensor":
            return (torch.rand(1, generator=generator) + 0.5) * size
        if p.scales == "token":
            drawn = (torch.rand(count, p.kv_heads, p.page_size, generator=generator) + 0.5) * size
            return torch.where(used[:, None, :], drawn, float("nan"))
        return None

    q = torch.randn(batch, p.q_len, p.q_heads, p.width + p.tail, generator=generator).to(q_dtype)
    k = cache()
    v = k if p.shared_values else cache()
    k_scale = scale()
    v_scale = k_scale if p.shared_values else scale()
    if v_scale is not None and not p.shared_values:
        v_scale = v_scale * v_size
    o = torch.full((batch, p.q_len, p.q_heads, p.width), float("nan"), dtype=q_dtype)
    lse = torch.full((batch, p.q_len, p.q_heads), float("nan"))
    return Operands(q, k, v, o, lse, torch.from_numpy(pages.table.copy()), k_scale, v_scale)


def _used(pages: Pages, count: int) -> torch.Tensor:
    """Which places of which page have a token."""
    used = torch.zeros(count, pages.page_size, dtype=torch.bool)
    for row, length in zip(pages.table, pages.lengths, strict=True):
        for token in range(length):
            used[int(row[token // pages.page_size]), token % pages.page_size] = True
    return used


def computed(problem: Problem, given: Operands, lengths: Sequence[int]) -> Right:
    """By the definition, sequence by sequence."""
    found = [_of_sequence(problem, given, sequence, length) for sequence, length in enumerate(lengths)]
    return Right(torch.stack([each.o for each in found]), torch.stack([each.lse for each in found]))


def _of_sequence(problem: Problem, given: Operands, sequence: int, length: int) -> Right:
    p = problem
    q = given.q[sequence].double()  # (q_len, q_heads, columns)
    k = gathered(problem, given.k, given.k_scale, given.table[sequence], length)
    v = gathered(problem, given.v, given.v_scale, given.table[sequence], length)[..., : p.width]
    k, v = (each.repeat_interleave(p.group, dim=0) for each in (k, v))  # (q_heads, length, columns)
    scores = torch.einsum("ihc,hjc->hij", q, k) * (p.scale_log2 / LOG2_E)
    seen = torch.arange(length)[None, :] <= length - p.q_len + torch.arange(p.q_len)[:, None]
    scores = scores.masked_fill(~seen, float("-inf"))
    weights = scores.softmax(2).where(seen.any(1)[:, None], 0.0)
    return Right(torch.einsum("hij,hjc->ihc", weights, v), scores.logsumexp(2).T)


def gathered(
    problem: Problem, cache: torch.Tensor, scale: torch.Tensor | None, entries: torch.Tensor, length: int
) -> torch.Tensor:
    """One sequence's keys or values, (kv_heads, length, columns), for what they are worth."""
    tokens = torch.arange(length)
    pages, places = entries[tokens // problem.page_size].long(), tokens % problem.page_size
    numbers = cache[pages, :, places].double().transpose(0, 1)
    if scale is None:
        return numbers
    return numbers * (scale.double() if problem.scales == "tensor" else scale[pages, :, places].double().T[..., None])


def distance(found: torch.Tensor, right: torch.Tensor) -> float:
    """Relative to the norm of what is right."""
    return float((found.double() - right).norm() / right.norm())
