"""The peers' ways of ``decode_kernels``: torch's on contiguous keys, and flashinfer's."""

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch.nn.attention import sdpa_kernel

from tests.peers.decode_kernels_inputs import DEVICE, DTYPES, Inputs
from tests.peers.rotation import Way

CUDNN, FLASH2, FLASHINFER = "cuDNN, contiguous", "SDPA flash, contiguous", "flashinfer"


def contiguous(inputs: Inputs) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The copies of the cache as (batch, kv_heads, length, columns); all sequences are of one length."""
    p, length = inputs.case.problem, inputs.pages.lengths[0]

    def gathered(cache: torch.Tensor) -> torch.Tensor:
        found = torch.empty(len(inputs.pages.lengths), p.kv_heads, length, p.width, device=DEVICE, dtype=cache.dtype)
        for sequence, row in enumerate(found):
            row.copy_(cache[inputs.table[sequence].long()].transpose(0, 1).reshape(p.kv_heads, -1, p.width)[:, :length])
        return found

    return [(gathered(k), gathered(v)) for k, v, *_ in inputs.copies]


def sdpa(name: str, backend: Any, inputs: Inputs, copies: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Way:
    q = inputs.q.transpose(1, 2)

    def launch(k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(backend):
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return out.transpose(1, 2)

    return Way(name, [partial(launch, *each) for each in copies])


def flashinfer(inputs: Inputs) -> Way:
    """Its paged decoding with tensor cores; planned once, outside what is timed."""
    p, pages = inputs.case.problem, inputs.pages
    counts = torch.tensor([-(-length // p.page_size) for length in pages.lengths], dtype=torch.int32)
    first = torch.nn.functional.pad(counts.cumsum(0), (1, 0)).to(torch.int32).to(DEVICE)
    entries = torch.cat([inputs.table[i, : int(count)] for i, count in enumerate(counts)])
    last = torch.tensor([(length - 1) % p.page_size + 1 for length in pages.lengths], dtype=torch.int32, device=DEVICE)
    space = torch.empty(256 << 20, dtype=torch.uint8, device=DEVICE)
    wrapper = import_module("flashinfer").BatchDecodeWithPagedKVCacheWrapper(space, "HND", use_tensor_cores=True)
    kinds = {"q_data_type": inputs.q.dtype, "kv_data_type": DTYPES[p.format]}
    wrapper.plan(first, entries, last, p.q_heads, p.kv_heads, p.width, p.page_size, **kinds)
    q = inputs.q[:, 0]

    def launch(k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = wrapper.run(q, (k, v))
        return out[:, None]

    return Way(FLASHINFER, [partial(launch, k, v) for k, v, *_ in inputs.copies])
