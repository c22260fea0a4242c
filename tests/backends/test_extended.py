"""What judges products of fp64 on the host is not the library that is judged."""

import math

import torch

from backends.torch import jobs
from backends.torch.gemm.product import extended
from tests.backends.cases import any_cpu, fresh_verdict, gemm_case


def test_sums_are_nearer_to_the_exact_ones_than_float64_has_them() -> None:
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(3, 4096, dtype=torch.float64, generator=generator) for _ in range(2))
    exact = [[math.fsum(x * y for x, y in zip(row, column, strict=True)) for column in b.tolist()] for row in a.tolist()]
    wide = torch.tensor(exact, dtype=torch.float64)  # each product rounded once, the sums not at all
    assert float((extended(a, b) - wide).abs().max()) <= float((a @ b.t() - wide).abs().max())
    assert not torch.equal(extended(a, b), a @ b.t())


def test_the_error_of_a_product_of_fp64_is_that_of_its_sums() -> None:
    case = gemm_case("fp64", 96, 80, 2048)
    found = fresh_verdict(jobs.prepare(case, any_cpu(), 1, seed=3), case, seed=4)
    assert found.passed
    assert found.error_rel is not None
    assert 1e-17 < found.error_rel < 1e-14
