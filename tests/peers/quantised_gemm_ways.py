"""What every product of ``quantised_gemm`` is made of: operands in rotating copies, ways to compute it, and what is right."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

DEVICE = "cuda"
COLD_BYTES = 320e6  # several times any last-level cache

Launch = Callable[[], Any]


class Shape(NamedTuple):
    """C (m x n) = X (m x k) W^T (n x k)."""

    m: int
    n: int
    k: int

    @property
    def title(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k


class Way(NamedTuple):
    """One way to compute a product; ``launches`` has one for each copy of the operands, all writing ``output``."""

    name: str
    launches: Sequence[Launch]
    output: torch.Tensor


class Limit(NamedTuple):
    """The best of the ways whose name begins with ``ours`` is held against ``peer``'s time, or its weights' bandwidth.

    ``least`` is peer's time over ours; with ``peer`` empty, the share of the read bandwidth.
    """

    ours: str
    peer: str
    least: float


class Case(NamedTuple):
    """A product with everything that computes it; ``ways`` makes them, and raises or leaves out what is not offered."""

    name: str
    shape: Shape
    weight_bytes: int
    copies: int
    reference: "Reference"
    ways: Callable[[], Iterator[Callable[[], Way]]]
    limits: Sequence[Limit]


class Reference:
    """The product in float64: whole for few rows of X, else its first rows and a projection of all."""

    def __init__(self, x: torch.Tensor, w: torch.Tensor) -> None:
        """``x`` (m x k) and ``w`` (n x k) in float64."""
        self._rows = x[:64] @ w.t()
        self._signs = torch.randint(0, 2, (w.shape[0],), device=w.device).to(torch.float64) * 2 - 1
        self._projection = x @ (w.t() @ self._signs)

    def distance(self, output: torch.Tensor) -> float:
        """The larger one relative to its norm; NaN where there is one."""
        rows, projection = output[:64].to(torch.float64), output.to(torch.float64) @ self._signs
        whole = [(rows, self._rows)] if len(output) <= 64 else [(rows, self._rows), (projection, self._projection)]
        return float(torch.stack([(seen - right).norm() / right.norm() for seen, right in whole]).amax())


def copied(tensors: Sequence[torch.Tensor | None], copies: int) -> list[list[Any]]:
    """The tensors and clones of them: other memory, the same numbers."""
    sets: list[list[Any]] = [list(tensors)]
    for _ in range(copies - 1):
        sets.append([None if each is None else each.clone() for each in tensors])
    return sets


def copies_of(byte_count: float) -> int:
    return max(2, min(64, -int(-COLD_BYTES // byte_count)))


def normal(rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, device=DEVICE, dtype=torch.float32)


def quantised_of(name: str, rows: int, k: int, block: str | None = None, zero_point: bool = False) -> Any:
    from backends.torch.quantise.formats import format_of
    from backends.torch.quantise.quantised import Quantised

    made = Quantised.empty(format_of(name, block, zero_point=zero_point), (rows, k), torch.device(DEVICE))
    generator = torch.Generator(device=DEVICE).manual_seed(rows + k)
    made.fill(lambda start, stop: torch.randn(stop - start, k, device=DEVICE, generator=generator))
    return made


def double(quantised: Any) -> torch.Tensor:
    from backends.torch.quantise.quantised import dequantise

    return dequantise(quantised)


def ready(name: str, calls: Sequence[Any], output: torch.Tensor) -> Way:
    """Calls of roofbench's own kernels, loaded; several in one launch where a call is a sequence."""
    from backends.triton.gemm.launch import load

    def loaded(call: Any) -> Launch:
        parts = [load(each).launch for each in (call if isinstance(call, list) else [call])]
        return parts[0] if len(parts) == 1 else lambda: [part() for part in parts]

    return Way(name, [loaded(each) for each in calls], output)


def bf16_mm(name: str, sets: Sequence[Sequence[torch.Tensor]], output: torch.Tensor) -> Way:
    return Way(name, [partial(torch.mm, x, w.t(), out=output) for x, w in sets], output)
