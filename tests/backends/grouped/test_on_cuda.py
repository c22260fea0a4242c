"""Grouped products on the device: every implementation that it has, right and wrong, eager and in graphs."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from backends.cuda import CudaBackend
from backends.torch.grouped_gemm.kernel import GroupedKernel
from suite.case import Case
from suite.jobs.grouped_gemm import IMPLEMENTATIONS, Sizes
from tests.backends.cuda.helpers import NEEDS_DEVICE, WARM, graph_of
from tests.backends.grid import diagonal, grid
from tests.backends.grouped.bugs import BUGS
from tests.backends.grouped.cases import STORED, fresh_verdict, grouped_case

pytestmark = NEEDS_DEVICE

Stored = tuple[str, str | None]
RAGGED = Sizes(16, 1000, 512, 1024, "skewed", top_k=2)
SHAPES = {
    "ragged": RAGGED,
    "filled up": RAGGED._replace(alignment=128),
    "few rows": Sizes(64, 32, 384, 512, "balanced", top_k=2),
    "even": Sizes(4, 4096, 768, 640),
    "one group": Sizes(1, 300, 256, 384),
    "odd": Sizes(5, 333, 129, 77, "skewed"),
}


@pytest.fixture(scope="module")
def backend() -> CudaBackend:
    made = CudaBackend()
    made.select(0)
    return made


@pytest.fixture(autouse=True)
def _memory_is_given_back() -> Iterator[None]:
    yield
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def prepared(backend: CudaBackend, case: Case, sets: int = 2) -> GroupedKernel:
    reason = backend.supports(case)
    if reason is not None:
        pytest.skip(reason)
    kernel = backend.prepare(case, sets, 3)
    assert isinstance(kernel, GroupedKernel)
    return kernel


def is_default(implementation: str, stored: Stored, sizes: str) -> bool:
    """A search among configurations in two formats; others in every format, and in bf16 with every shape."""
    if implementation == "triton_tuned":
        return sizes == "ragged" and stored in (("bf16", None), ("fp8_e4m3", "block"))
    return stored == ("bf16", None) or diagonal(5, STORED, list(SHAPES))(stored, sizes)


@grid("implementation, stored, shape", IMPLEMENTATIONS, STORED, list(SHAPES), few=is_default)
def test_every_implementation_is_right_or_says_why_not(
    backend: CudaBackend, implementation: str, stored: Stored, shape: str
) -> None:
    (format_name, scaling), sizes = stored, SHAPES[shape]
    if scaling == "block":
        sizes = sizes._replace(n=384, k=512)
    case = grouped_case(implementation, format_name, sizes, scaling=scaling)
    result = fresh_verdict(prepared(backend, case), case, seed=5)
    assert result.passed, result.reason


@pytest.mark.parametrize("implementation", [name for name in IMPLEMENTATIONS if name != "triton_tuned"])
@pytest.mark.parametrize(("format_name", "scaling"), [("bf16", None), ("fp8_e4m3", "row")])
def test_graphs_go_through_the_data_that_came_after_them(
    backend: CudaBackend, format_name: str, scaling: str | None, implementation: str
) -> None:
    case = replace(grouped_case(implementation, format_name, RAGGED, scaling=scaling), regime=WARM)
    kernel = prepared(backend, case)
    sampler = graph_of(backend, kernel, case)
    sampler.sample(3)
    for seed in (8, 9):
        result = fresh_verdict(kernel, case, seed=seed, run=sampler.replay)
        assert result.passed, result.reason
    sampler.close()


@pytest.mark.parametrize("implementation", ["library", "loop", "triton", "gluon"])
@pytest.mark.parametrize(("format_name", "scaling"), [("bf16", None), ("fp8_e4m3", "row"), ("fp8_e4m3", "block")])
def test_planted_bugs_are_caught_on_the_device(
    backend: CudaBackend, format_name: str, scaling: str | None, implementation: str
) -> None:
    sizes = Sizes(24, 60, 128, 256, "skewed")
    assert sizes.busy < sizes.groups
    case = grouped_case(implementation, format_name, sizes, scaling=scaling)
    kernel = prepared(backend, case, 1)
    for bug in BUGS:
        if bug.applies(sizes, scaling is not None):
            broken = bug.wrap(kernel, sizes)
            assert any(not fresh_verdict(broken, case, seed).passed for seed in (10, 11)), bug.name


@grid(
    "stored, implementation, seeds",
    STORED,
    ["triton", "gluon"],
    [8, 100],
    few=lambda stored, _, seeds: seeds == 8 and stored in (("bf16", None), ("fp8_e4m3", "block")),
)
def test_sound_kernels_never_fail(backend: CudaBackend, stored: Stored, implementation: str, seeds: int) -> None:
    format_name, scaling = stored
    case = grouped_case(implementation, format_name, RAGGED, scaling=scaling)
    kernel = prepared(backend, case, 1)
    failed = [result.reason for seed in range(seeds) if not (result := fresh_verdict(kernel, case, seed)).passed]
    assert failed == []


def test_where_groups_end_is_read_in_each_launch(backend: CudaBackend) -> None:
    """As a router leaves it: other ends, without another kernel or list, give another product."""
    for implementation in ("library", "triton"):
        case = grouped_case(implementation, "bf16", Sizes(4, 512, 256, 256))
        kernel = prepared(backend, case, 1)
        kernel.enqueue(0)
        first, ends = kernel.input_sets[0], torch.tensor([100, 100, 500, 512], dtype=torch.int32, device="cuda")
        first.operands[2].data.copy_(ends)
        kernel.enqueue(0)
        if getattr(kernel, "hands_over", False):
            kernel.hand_over([0])  # type: ignore[attr-defined]
        a, b = first.operands[0].data.double(), first.operands[1].data.double().view(4, 256, 256)
        start = 0
        for group, end in enumerate(ends.tolist()):
            right = a[start:end] @ b[group].t()
            assert float((first.output[start:end].double() - right).norm()) <= 0.01 * float(right.norm()), (
                implementation,
                group,
            )
            start = end
