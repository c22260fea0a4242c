"""What rounding the operands of attention and decoding through XLA costs: as torch has it of other data of the same kind."""

from typing import Any

import numpy as np
import pytest

from backends.jax.attention import error as attention_error
from backends.jax.attention.error import as_drawn as attention_as_drawn
from backends.jax.attention.error import sampled as sampled_rows
from backends.jax.attention.kernel import AttentionKernel
from backends.jax.attention.layout import HEADS_FIRST, ROWS_FIRST
from backends.jax.decode.error import sampled as sampled_heads
from backends.jax.decode.filling import as_drawn
from backends.jax.decode.kernel import DecodeKernel
from backends.jax.decode.preparing import step_of
from backends.seeds import mixed_seed
from backends.torch import jobs
from backends.xla import XlaBackend
from suite.case import Case
from suite.jobs.attention import sizes_of as attention_sizes
from suite.jobs.decode import sizes_of as decode_sizes
from tests.backends.attention_cases import attention_case
from tests.backends.cases import any_cpu
from tests.backends.decode_cases import STORED, decode_case

DATA_APART = 1.5  # what the errors of two draws of so few numbers may differ by


@pytest.fixture(scope="module")
def backend() -> XlaBackend:
    made = XlaBackend({"platform": "cpu"})
    made.select(0)
    return made


def told(backend: XlaBackend, case: Case) -> float | None:
    found = backend.prepare(case, 2, seed=3).describe().get("quantisation_error")
    assert found is None or isinstance(found, float)
    return found


def agree(by_torch: Case, found: float | None) -> bool:
    """Whether what torch says of the case is about what was found."""
    right = jobs.prepare(by_torch, any_cpu(), 1, seed=3).describe()["quantisation_error"]
    assert isinstance(right, float)
    return found is not None and right / DATA_APART < found < right * DATA_APART


ROUNDED = [each for each in STORED if each[0] != "fp32"]


@pytest.mark.parametrize(("stored", "scaling"), ROUNDED, ids=lambda each: str(each))
@pytest.mark.parametrize("heads", ["4/2x64", pytest.param("4/1x96/64", marks=pytest.mark.thorough)])
def test_a_cache_loses_by_rounding_what_torch_loses(backend: XlaBackend, stored: str, scaling: str | None, heads: str) -> None:
    of: dict[str, Any] = {"heads": heads, "scaling": scaling, "lengths": "skewed", "shared_prefix": 16}
    found = told(backend, decode_case("naive", stored, backend="xla", **of))
    assert agree(decode_case("naive", stored, **of), found)


@pytest.mark.parametrize(
    ("implementation", "name", "mask", "heads"),
    [
        ("naive", "bf16", "causal", "4/2x64"),
        ("naive", "fp16", "causal", "4/2x64"),
        ("library_math", "bf16", "full", "2x192"),
    ],
)
def test_attention_loses_by_rounding_what_torch_loses(
    backend: XlaBackend, implementation: str, name: str, mask: str, heads: str
) -> None:
    found = told(backend, attention_case(implementation, name, heads, mask=mask, backend="xla"))
    assert agree(attention_case("naive", name, heads, mask=mask), found)


@pytest.mark.parametrize(
    "case",
    [
        decode_case("naive", "fp32", backend="xla"),
        decode_case("naive", "int8", distribution="zeros", backend="xla"),
        attention_case("naive", "fp32", backend="xla"),
        attention_case("naive", "bf16", distribution="zeros", backend="xla"),
        attention_case("naive", "bf16", direction="backward", backend="xla"),
    ],
    ids=["decode_fp32", "decode_zeros", "attention_fp32", "attention_zeros", "backward"],
)
def test_nothing_is_said_of_what_is_not_rounded_or_all_zeros(backend: XlaBackend, case: Case) -> None:
    assert told(backend, case) is None


def test_a_cache_as_drawn_is_what_its_numbers_were_rounded_from(backend: XlaBackend) -> None:
    """In float32 nothing is: every token of every sequence, of every head, on fresh data too."""
    case = decode_case("naive", "fp32", lengths="uniform", shared_prefix=32, backend="xla")
    kernel, sizes = backend.prepare(case, 1, seed=3), decode_sizes(case.workload)
    assert isinstance(kernel, DecodeKernel)
    for seed in (3, 4):
        kernel.refill(seed)
        operands = kernel.inputs[0]
        table = np.asarray(operands[0].data)
        for sequence, length in enumerate(sizes.tokens):
            tokens = np.arange(length)
            places = table[sequence, tokens // sizes.page_size].astype(np.int64) * sizes.page_size + tokens % sizes.page_size
            for head in range(sizes.num_kv_heads):
                of_head = np.full(length, head)
                found = as_drawn(step_of("naive", case.workload), operands, "normal", mixed_seed(seed, 0), of_head, places)
                for cache, numbers in zip(operands[3:], found, strict=True):
                    pages = np.asarray(cache.data)[head]
                    assert np.array_equal(pages.reshape(-1, pages.shape[2])[places], numbers)


@pytest.mark.parametrize(("layout", "elements"), [(HEADS_FIRST, 1 << 24), (HEADS_FIRST, 1000), (ROWS_FIRST, 1000)])
def test_a_head_as_drawn_is_what_its_numbers_were_rounded_from(
    backend: XlaBackend, layout: Any, elements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_error, "DRAWN_ELEMENTS", elements)
    implementation = {HEADS_FIRST: "naive", ROWS_FIRST: "library_math"}[layout]
    case = attention_case(implementation, "fp32", backend="xla")
    kernel, sizes = backend.prepare(case, 1, seed=3), attention_sizes(case.workload)
    assert isinstance(kernel, AttentionKernel)
    for number, name in enumerate("qkv"):
        data = np.asarray(kernel.inputs[0][number].data)
        for batch, head in ((0, 0), (1, data.shape[layout.heads_axis] - 1)):
            found = attention_as_drawn(sizes, layout, "normal", 3, name, batch, head)
            assert np.array_equal(layout.head(data, batch, head).astype(np.float64), found)


def test_what_is_looked_at_goes_from_the_first_to_the_last() -> None:
    rows = sampled_rows(attention_sizes(attention_case("naive").workload))
    assert [(batch, head, each.start, each.stop) for batch, head, each in rows] == [
        (0, 0, 0, 64), (0, 2, 45, 109), (1, 0, 90, 154), (1, 3, 136, 200)
    ]  # fmt: skip
    assert sampled_heads(decode_sizes(decode_case("naive", batch=9).workload)) == [(0, 0), (2, 1), (5, 0), (8, 1)]
