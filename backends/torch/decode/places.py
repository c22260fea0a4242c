"""Where in a batch and in its pages each token of a cache stands.

Tokens are numbered without regard to pages: those of a shared prefix first, then what each sequence has of its own, one
sequence after the other.  So the same numbers are drawn for a sequence whatever the size and the order of its pages.
"""

from typing import NamedTuple

import torch

from suite.jobs.decode import Sizes


class Own(NamedTuple):
    """The numbers of a sequence's tokens behind the shared prefix: from ``start`` to before ``stop``."""

    start: int
    stop: int


def own_tokens(sizes: Sizes) -> list[Own]:
    """Of each sequence."""
    found, start = [], sizes.shared_prefix
    for length in sizes.tokens:
        found.append(Own(start, start + length - sizes.shared_prefix))
        start = found[-1].stop
    return found


def latest_tokens(sizes: Sizes, device: torch.device) -> torch.Tensor:
    """The number of each sequence's last token."""
    return torch.tensor([each.stop - 1 for each in own_tokens(sizes)], device=device)


def places_of(sizes: Sizes, table: torch.Tensor) -> torch.Tensor:
    """Of each token the place (page x page_size + place in the page) that a table (batch x pages) gives it, in int64."""
    device, shared = table.device, sizes.shared_prefix
    own = own_tokens(sizes)
    counts = torch.tensor([each.stop - each.start for each in own], device=device)
    sequences = torch.repeat_interleave(torch.arange(sizes.batch, device=device), counts)
    starts = torch.tensor([each.start for each in own], device=device)
    positions = torch.arange(shared, shared + len(sequences), device=device) - starts[sequences] + shared
    sequences = torch.cat([sequences.new_zeros(shared), sequences])
    positions = torch.cat([torch.arange(shared, device=device), positions])
    pages = table[sequences, positions // sizes.page_size].to(torch.int64)
    return pages * sizes.page_size + positions % sizes.page_size
