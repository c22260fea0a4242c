"""Attention and decoding through XLA on an NVIDIA GPU: right by every implementation that is there, and timed on the device."""

from typing import Any

import pytest

from backends.jax.kernel import XlaKernel
from backends.xla import XlaBackend
from suite.case import Case
from suite.errors import DeviceNotFound
from tests.backends import attention_cases, decode_cases
from tests.backends.attention_cases import attention_case
from tests.backends.cuda.helpers import NEEDS_DEVICE
from tests.backends.decode_cases import decode_case
from tests.backends.grid import diagonal, grid

pytestmark = NEEDS_DEVICE
HEADS, MASKS, FORMATS = (
    ("16x128", "32/8x128", "8x64", "8x256", "16x192/128"),
    ("full", "causal", "sliding_window"),
    ("bf16", "fp16", "fp32"),
)
STORED = [("bf16", None), ("fp16", None), ("fp32", None), ("int8", "token"), ("fp8_e4m3", "tensor")]


@pytest.fixture(scope="module")
def backend() -> XlaBackend:
    made = XlaBackend({"platform": "cuda"})
    try:
        made.select(0)
    except DeviceNotFound as error:
        pytest.skip(str(error))
    return made


def prepared(backend: XlaBackend, case: Case, sets: int = 1) -> XlaKernel:
    if told := backend.supports(case):
        pytest.skip(told)
    kernel = backend.prepare(case, sets, seed=3)
    assert isinstance(kernel, XlaKernel)
    return kernel


@grid(
    "implementation, heads, mask, format_name",
    ["library_cudnn", "library_math", "naive"],
    HEADS,
    MASKS,
    FORMATS,
    few=diagonal(4, ["library_cudnn", "library_math", "naive"], HEADS, MASKS, FORMATS),
)
def test_every_implementation_is_right(
    backend: XlaBackend, implementation: str, heads: str, mask: str, format_name: str
) -> None:
    case = attention_case(implementation, format_name, heads, length=1024, mask=mask, window=300, backend="xla")
    kernel = prepared(backend, case)
    result = attention_cases.fresh_verdict(kernel, case, seed=5)
    assert result.passed, result.reason
    assert kernel.execution == "native", kernel.describe()


@pytest.mark.parametrize("implementation", ["library_math", "naive"])
def test_gradients_are_right(backend: XlaBackend, implementation: str) -> None:
    case = attention_case(implementation, heads="8/2x128", length=512, direction="backward", backend="xla")
    result = attention_cases.fresh_verdict(prepared(backend, case), case, seed=5)
    assert result.passed, result.reason


def test_cudnn_is_what_computes_where_it_is_asked_for(backend: XlaBackend) -> None:
    kernel = prepared(backend, attention_case("library_cudnn", heads="16x128", length=1024, backend="xla"))
    assert any("cudnn" in name.lower() for name in kernel.describe()["custom_calls"])


@pytest.mark.parametrize("stored", STORED, ids=lambda stored: stored[0])
def test_decoding_is_right(backend: XlaBackend, stored: tuple[str, str | None]) -> None:
    format_name, scaling = stored
    options: dict[str, Any] = {"lengths": "skewed", "batch": 8, "kv_len": 1000}
    case = decode_case("naive", format_name, "32/8x128", scaling=scaling, backend="xla", **options)
    result = decode_cases.fresh_verdict(prepared(backend, case), case, seed=5)
    assert result.passed, result.reason


@pytest.mark.parametrize(
    ("case", "cases"),
    [
        (attention_case("naive", heads="16x128", length=2048, backend="xla"), attention_cases),
        (attention_case("library_cudnn", heads="16x128", length=2048, backend="xla"), attention_cases),
        (decode_case("naive", heads="32/8x128", batch=16, kv_len=4096, backend="xla"), decode_cases),
    ],
    ids=["naive", "library_cudnn", "decode"],
)
def test_it_is_timed_on_the_device_and_leaves_right_outputs(backend: XlaBackend, case: Case, cases: Any) -> None:
    kernel = prepared(backend, case)
    sampler = backend.sampler(kernel, warm(case), 1e-3)
    assert sampler.method in ("loop", "queue")
    assert all(sample > 0 for sample in sampler.sample(3)), sampler.details
    assert cases.fresh_verdict(kernel, case, 8, sampler.replay).passed


def warm(case: Case) -> Case:
    return Case(case.workload, case.implementation, case.backend, case.regime._replace(cache="warm"))
