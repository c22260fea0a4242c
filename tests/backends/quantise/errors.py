"""How far each format is from what it stores:  python -m tests.backends.quantise.errors

The error is norm(stored - exact) / norm(exact) over a matrix of the gemm job's own distributions.
"""

from typing import NamedTuple

import torch

from backends.torch.data import DISTRIBUTIONS
from backends.torch.quantise.formats import Format, every_format
from backends.torch.quantise.quantised import dequantise, quantise

ROWS, K = 512, 4096
DATA = ("normal", "outliers")


class Row(NamedTuple):
    """One format: bits a number with all that goes with it, and the error on each distribution."""

    title: str
    bits: float
    errors: dict[str, float]


def drawn(distribution: str, rows: int, k: int, seed: int = 1) -> torch.Tensor:
    x = torch.empty(rows, k)
    DISTRIBUTIONS[distribution](x, torch.Generator().manual_seed(seed))
    return x


def relative_error(x: torch.Tensor, number_format: Format) -> float:
    exact = x.to(torch.float64)
    return float((dequantise(quantise(x, number_format)) - exact).norm() / exact.norm())


def table(rows: int = ROWS, k: int = K) -> list[Row]:
    data = {name: drawn(name, rows, k) for name in DATA}
    return [
        Row(
            each.title,
            8 * each.stored_bytes(rows, k).total / (rows * k),
            {name: relative_error(x, each) for name, x in data.items()},
        )
        for each in every_format()
    ]


def render(rows: list[Row]) -> str:
    lines = [("", "bits", *DATA)]
    lines += [(row.title, f"{row.bits:.3f}", *(f"{row.errors[name]:.3e}" for name in DATA)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in lines)


if __name__ == "__main__":
    print(f"relative norm error, {ROWS} x {K}")
    print(render(table()))
