"""Inputs of ``decode_kernels`` in rotating copies, and what is wrong with a result."""

from collections.abc import Sequence
from typing import Any

import torch

from backends.triton.decode.problem import LOG2_E
from suite.jobs.decode.cache import compulsory_bytes
from tests.peers.decode_kernels_cases import Case

DEVICE = "cuda"
COLD_BYTES = 1e9  # of all copies of the cache: an order of magnitude above any last-level cache
RIGHT = 0.006  # of the norm, for outputs: rounding weights and output to the format
RIGHT_LSE = 0.01
CHECKED = 3  # sequences
PARTS = 8  # in which a cache is drawn and rounded
LARGEST = {"fp8_e4m3": 448.0, "int8": 127.0}
DTYPES = {"bf16": torch.bfloat16, "fp8_e4m3": torch.float8_e4m3fn, "int8": torch.int8}


def rounded(numbers: torch.Tensor, format_name: str, scale: torch.Tensor | None) -> torch.Tensor:
    """Numbers in the cache's format, ``scale`` (to be broadcast) taken out."""
    if scale is None:
        return numbers.to(DTYPES[format_name])
    scaled = (numbers.float() / scale).clamp(-LARGEST[format_name], LARGEST[format_name])
    return (scaled.round() if format_name == "int8" else scaled).to(DTYPES[format_name])


class Inputs:
    """One case's queries and copies of its cache, with the results of ``CHECKED`` sequences in float64."""

    def __init__(self, case: Case) -> None:
        p, pages = case.problem, case.pages()
        self.case, self.pages = case, pages
        self.table = torch.from_numpy(pages.table).to(DEVICE)
        generator = torch.Generator(DEVICE).manual_seed(5)
        batch = len(pages.lengths)
        shape = (batch, p.q_len, p.q_heads, p.width + p.tail)
        self.q = torch.randn(shape, device=DEVICE, generator=generator).to(torch.bfloat16)
        self.o = torch.empty(*shape[:3], p.width, device=DEVICE, dtype=torch.bfloat16)
        self.lse = torch.empty(shape[:3], device=DEVICE)
        self.checked = sorted({0, batch // 2, batch - 1})[:CHECKED]
        wanted = [self._entries(sequence) for sequence in self.checked]
        k, k_scale, k_exact = self._cache(generator, wanted)
        v, v_scale, v_exact = (k, k_scale, k_exact) if p.shared_values else self._cache(generator, wanted)
        self.right = [self._right(sequence, *self._dequantised(k, v, k_scale, v_scale, sequence)) for sequence in self.checked]
        exact = [self._right(*each) for each in zip(self.checked, k_exact, v_exact, strict=True)]
        self.rounding = max(_distance(a, b) for (a, _), (b, _) in zip(self.right, exact, strict=True))
        self.copies = [(k, v, k_scale, v_scale)]
        size = sum(each.nbytes for each in (k, v, k_scale, v_scale) if each is not None)
        for _ in range(max(0, -int(-COLD_BYTES // size) - 1)):
            twice = [None if each is None else each.clone() for each in (k, k_scale, v_scale)]
            self.copies.append((twice[0], twice[0] if p.shared_values else v.clone(), twice[1], twice[2]))

    def _entries(self, sequence: int) -> torch.Tensor:
        return self.table[sequence, : -(-self.pages.lengths[sequence] // self.pages.page_size)].long()

    def _cache(self, generator: Any, wanted: Sequence[torch.Tensor]) -> tuple[torch.Tensor, Any, list[torch.Tensor]]:
        """A cache of normal numbers, its scales, and what the pages ``wanted`` had before they were rounded."""
        p, count = self.case.problem, self.pages.page_count
        shape = (count, p.page_size, p.kv_heads) if self.case.tokens_first else (count, p.kv_heads, p.page_size)
        cache = torch.empty(*shape, p.width + p.tail, device=DEVICE, dtype=DTYPES[p.format])
        cache = cache.transpose(1, 2) if self.case.tokens_first else cache
        scale = torch.empty(count, p.kv_heads, p.page_size, device=DEVICE) if p.scales == "token" else None
        exact = [torch.empty(len(each), *cache.shape[1:], device=DEVICE, dtype=torch.bfloat16) for each in wanted]
        step = -(-count // PARTS)
        one_scale = None
        for first in range(0, count, step):
            size = (min(step, count - first), *cache.shape[1:])
            numbers = torch.randn(size, device=DEVICE, generator=generator, dtype=torch.bfloat16)
            for pages, kept in zip(wanted, exact, strict=True):
                here = (pages >= first) & (pages < first + size[0])
                kept[here] = numbers[pages[here] - first]
            largest = None if p.scales == "none" else numbers.abs().amax(3 if p.scales == "token" else None).float()
            if scale is not None and largest is not None:
                scale[first : first + size[0]] = largest / LARGEST[p.format]
            elif largest is not None and one_scale is None:  # the first part's largest number stands for all of them
                one_scale = largest.reshape(1) / LARGEST[p.format]
            taken = one_scale if scale is None else scale[first : first + size[0], ..., None]
            cache[first : first + size[0]] = rounded(numbers, p.format, taken)
        return cache, one_scale if scale is None else scale, exact

    def _dequantised(self, k: Any, v: Any, k_scale: Any, v_scale: Any, sequence: int) -> tuple[torch.Tensor, torch.Tensor]:
        pages, found = self._entries(sequence), []
        for cache, scale in ((k, k_scale), (v, v_scale)):
            numbers = cache[pages].double()
            if scale is not None:
                numbers *= scale[pages][..., None] if self.case.problem.scales == "token" else scale
            found.append(numbers)
        return found[0], found[1]

    def _right(self, sequence: int, k_pages: torch.Tensor, v_pages: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Output (q_len, q_heads, width) and logarithms of sums of one sequence, head by head."""
        p, length = self.case.problem, self.pages.lengths[sequence]
        out = torch.empty(p.q_len, p.q_heads, p.width, device=DEVICE, dtype=torch.float64)
        lse = torch.empty(p.q_len, p.q_heads, device=DEVICE, dtype=torch.float64)
        last = length - p.q_len + torch.arange(p.q_len, device=DEVICE)
        unseen = torch.arange(length, device=DEVICE)[None, :] > last[:, None]
        for head in range(p.kv_heads):
            k, v = (each[:, head].reshape(-1, each.shape[3])[:length].double() for each in (k_pages, v_pages))
            members = slice(head * p.group, (head + 1) * p.group)
            scores = self.q[sequence, :, members].double() @ k.t() * (p.scale_log2 / LOG2_E)
            scores = scores.masked_fill(unseen[:, None, :], float("-inf"))
            out[:, members] = scores.softmax(2) @ v[:, : p.width]
            lse[:, members] = scores.logsumexp(2)
        return out, lse

    def wrong(self, out: torch.Tensor, lse: torch.Tensor | None) -> str:
        """What is wrong with a result (batch, q_len, q_heads, width); empty where nothing is."""
        for sequence, (right, right_lse) in zip(self.checked, self.right, strict=True):
            distance = _distance(out[sequence], right)
            if not distance <= RIGHT:
                return f"its result for sequence {sequence} is {distance:.3g} of the norm away"
            apart = 0.0 if lse is None else float((lse[sequence].double() - right_lse).abs().max())
            if not apart <= RIGHT_LSE:
                return f"its logarithms of sums for sequence {sequence} are {apart:.3g} away"
        return "" if bool(out.isfinite().all()) else "some of its results are not finite"

    @property
    def bytes(self) -> int:
        p = self.case.problem
        return compulsory_bytes(self.case.heads, self.pages, p.format, p.scales, p.q_len).total


def _distance(found: torch.Tensor, right: torch.Tensor) -> float:
    return float((found.double() - right).norm() / right.norm())
