"""Sizes of a product and how its operands are stored."""

from typing import NamedTuple

import torch

from suite.case import Workload

LAYOUTS = ("nn", "nt", "tn", "tt")


class Sizes(NamedTuple):
    """C = A B with A m x k, B k x n; ``layout`` names how A and B are stored: ``n`` as they are written, ``t`` transposed."""

    m: int
    n: int
    k: int
    layout: str

    @classmethod
    def of(cls, workload: Workload) -> "Sizes":
        params = dict(workload.params)
        return cls(int(params["m"]), int(params["n"]), int(params["k"]), str(params.get("layout", "nt")))

    @property
    def a_shape(self) -> tuple[int, int]:
        return (self.m, self.k) if self.layout[0] == "n" else (self.k, self.m)

    @property
    def b_shape(self) -> tuple[int, int]:
        return (self.k, self.n) if self.layout[1] == "n" else (self.n, self.k)


def a_view(data: torch.Tensor, layout: str) -> torch.Tensor:
    """A as m x k, whatever way it is stored."""
    return data if layout[0] == "n" else transposed(data)


def b_view(data: torch.Tensor, layout: str) -> torch.Tensor:
    """B as k x n, whatever way it is stored."""
    return data if layout[1] == "n" else transposed(data)


def transposed(data: torch.Tensor) -> torch.Tensor:
    """A view with rows and columns exchanged."""
    # One row and one column lie in memory alike.  Said in strides of a transpose, torch._int_mm on a CPU (seen with 2.13)
    # takes it for something it cannot do and silently writes nothing.
    return data.view(data.shape[1], data.shape[0]) if 1 in data.shape else data.t()
