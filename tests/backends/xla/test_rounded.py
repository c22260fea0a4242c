"""What rounding costs a product on XLA is told as torch's backends tell it: the same figure for the same kind of data."""

from typing import Any

import numpy as np
import pytest

from backends.jax.data import drawn
from backends.jax.rounded import RoundedKernel
from backends.jax.widening import wide
from backends.seeds import mixed_seed
from backends.torch import jobs
from backends.xla import XlaBackend
from tests.backends.cases import any_cpu, gemm_case

ROUNDED = ("bf16", "fp16", "fp8_e4m3")


@pytest.fixture(scope="module")
def backend() -> XlaBackend:
    made = XlaBackend({"platform": "cpu"})
    made.select(0)
    return made


def prepared(backend: XlaBackend, name: str, m: int, n: int, k: int, seed: int = 4, **given: Any) -> RoundedKernel:
    kernel = backend.prepare(gemm_case(name, m, n, k, backend="xla", **given), 1, seed)
    assert isinstance(kernel, RoundedKernel)
    return kernel


def told(kernel: RoundedKernel) -> float:
    error = kernel.describe()["quantisation_error"]
    assert isinstance(error, float)
    return error


@pytest.mark.parametrize("layout", ["nt", "nn", "tn"])
@pytest.mark.parametrize("name", ["bf16", "fp8_e4m3"])
def test_it_is_that_of_the_whole_product(backend: XlaBackend, name: str, layout: str) -> None:
    kernel = prepared(backend, name, 192, 160, 256, layout=layout)
    stored, exact = [], []
    for place, operand in enumerate(kernel.inputs[0]):
        turned = layout[place] == ("t" if place == 0 else "n")
        scale = 1.0 if operand.scale is None else float(operand.scale)
        whole = drawn(operand.data.shape, np.dtype(np.float32), "normal", mixed_seed(4, 0, place)).data
        stored.append(wide(np.asarray(operand.data.T if turned else operand.data)) * scale)
        exact.append(wide(np.asarray(whole.T if turned else whole)))
    right = exact[0] @ exact[1].T
    assert told(kernel) == pytest.approx(np.linalg.norm(stored[0] @ stored[1].T - right) / np.linalg.norm(right), rel=0.1)


@pytest.mark.parametrize("name", ROUNDED)
def test_torch_and_xla_agree_on_what_a_format_costs(backend: XlaBackend, name: str) -> None:
    by_torch = jobs.prepare(gemm_case(name, 128, 128, 256), any_cpu(), 1, seed=4).describe()["quantisation_error"]
    assert told(prepared(backend, name, 128, 128, 256)) == pytest.approx(by_torch, rel=0.1)


def test_it_is_of_the_data_that_the_kernel_has(backend: XlaBackend) -> None:
    kernel = prepared(backend, "bf16", 64, 64, 64)
    first = told(kernel)
    kernel.refill(5)
    assert told(kernel) != first
    assert told(kernel) == told(prepared(backend, "bf16", 64, 64, 64, seed=5))


def test_what_is_not_rounded_and_what_is_all_zeros_has_none(backend: XlaBackend) -> None:
    kernels = [prepared(backend, name, 64, 64, 64) for name in ("fp32", "int8")]
    kernels.append(prepared(backend, "bf16", 64, 64, 64, distribution="zeros"))
    assert not any("quantisation_error" in kernel.describe() for kernel in kernels)


def test_a_closed_kernel_has_no_data_to_speak_of(backend: XlaBackend) -> None:
    kernel = prepared(backend, "bf16", 64, 64, 64)
    kernel.close()
    assert "quantisation_error" not in kernel.describe()
