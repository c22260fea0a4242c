"""Whether a launch wrote to what it only has to read."""

from collections.abc import Iterable

import torch

WORDS = 1 << 22  # looked at together
ODD = -7046029254386353131  # 2^64 over the golden ratio, as a signed number: its multiples are spread over all bits


def fingerprint(tensors: Iterable[torch.Tensor]) -> int:
    """A number that another one stands for, but by a chance of 2^-64, once anything in contiguous tensors is changed.

    A single word that changes always changes it: its factor is odd, and no other word's.
    """
    total = 0
    for tensor in tensors:
        total = (total * 31 + _of_one(tensor)) & ((1 << 64) - 1)
    return total


def _of_one(tensor: torch.Tensor) -> int:
    """Sums in 64 bits that wrap around, each word times an odd number of its place."""
    flat = tensor.detach().reshape(-1)
    words = flat.view(torch.int64) if flat.nbytes % 8 == 0 else flat.view(torch.uint8).to(torch.int64)
    places = torch.arange(min(WORDS, len(words)), device=flat.device) * 2 + 1
    total = 0
    for number, part in enumerate(words.split(WORDS)):
        total += int((part * ((places[: len(part)] + 2 * number * WORDS) * ODD)).sum())
    return total
