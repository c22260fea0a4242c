"""What storing groups in a format costs: the exact product of what is stored against that of the numbers before."""

import torch

from backends.seeds import mixed_seed
from backends.torch.data import Drawn
from backends.torch.gemm.product import rows_of
from backends.torch.grouped_gemm.product import groups_of
from backends.torch.kernel import TorchKernel
from suite.jobs.grouped_gemm import Sizes

GROUPS = 4
SIDE = 64  # rows and columns looked at in each of them
EXACT = ("fp32",)  # drawn as it is stored


def quantisation_error(kernel: TorchKernel, format_name: str, sizes: Sizes) -> float | None:
    """norm(C' - C) / norm(C) over the first rows and columns of some groups: C of the data as drawn, C' of what is stored.

    ``None`` where nothing is rounded, and on data that are all zeros.
    """
    if format_name in EXACT:
        return None
    assert kernel.seed is not None
    busy = list(groups_of(sizes))
    chosen = dict.fromkeys(busy[place * (len(busy) - 1) // max(1, GROUPS - 1)] for place in range(GROUPS))
    operands = kernel.input_sets[0].operands[:2]
    drawn = [
        Drawn(shape, kernel.distribution, mixed_seed(kernel.seed, 0, place), operands[place].data.device)
        for place, shape in enumerate(((sizes.height, sizes.k), (sizes.groups * sizes.n, sizes.k)))
    ]
    off, whole = [], []
    for number, first, last in chosen:
        spans = ((first, min(first + SIDE, last)), (number * sizes.n, number * sizes.n + min(SIDE, sizes.n)))
        pairs = list(zip(operands, drawn, spans, strict=True))
        exact = _product([numbers.rows(*span).cpu().to(torch.float64) for _, numbers, span in pairs])
        stored = _product([rows_of(operand, False, *span) for operand, _, span in pairs])
        off.append((stored - exact).flatten())
        whole.append(exact.flatten())
    size = float(torch.cat(whole).norm())
    return float(torch.cat(off).norm()) / size if size else None


def _product(factors: list[torch.Tensor]) -> torch.Tensor:
    a, b = factors
    return a @ b.t()
