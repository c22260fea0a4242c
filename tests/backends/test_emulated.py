"""Emulated fp32 and fp64: the call that cuBLAS gets, what is confirmed of it, and where it is refused.

A stand-in multiplies in host memory what the call says, so that sizes, strides and transposes are checked by the product.
"""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from backends.failures import classify
from backends.torch import emulated, jobs
from backends.torch.emulated import MODES, library_reason
from backends.torch.gemm import preparing
from backends.torch.kernel import TorchKernel
from backends.torch.precision import NotInForce
from backends.torch.target import Target, cuda_target
from suite.jobs.emulation import EMULATIONS, workspace_bytes
from suite.outcome import Outcome
from tests.backends.cases import fresh_verdict, gemm_case, run_all, verdict
from tests.backends.fake_cublas import FakeCublas
from tests.backends.preserving import preserved

HOPPER, BLACKWELL = cuda_target(0, (9, 0)), cuda_target(0, (10, 0))
NAMES = [(each.format, name) for name, each in EMULATIONS.items()]


@pytest.fixture(autouse=True)
def _small_workspaces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(emulated, "workspace_bytes", lambda name, m, n, k: 1024)
    monkeypatch.setattr(emulated.torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=99))
    with preserved():
        yield


def on_host(monkeypatch: pytest.MonkeyPatch, library: FakeCublas, capability: tuple[int, int] = (10, 0)) -> Target:
    """A CUDA device whose memory is the host's and whose cuBLAS is the stand-in."""
    monkeypatch.setattr(preparing, "loaded_library", lambda name: library)
    monkeypatch.setattr(emulated, "loaded_library", lambda name: library)
    return replace(cuda_target(0, capability), device=torch.device("cpu"))


def case(format_name: str, name: str, m: int = 5, n: int = 7, k: int = 11, layout: str = "nt"):
    return gemm_case(format_name, m, n, k, backend="cuda", layout=layout, switches={"emulation": name})


@pytest.mark.parametrize("shape", [(5, 7, 11), (1, 9, 4), (8, 1, 3), (6, 4, 1)], ids=str)
@pytest.mark.parametrize("layout", ["nt", "nn", "tn", "tt"])
@pytest.mark.parametrize(("format_name", "name"), NAMES)
def test_the_call_computes_the_product(
    monkeypatch: pytest.MonkeyPatch, format_name: str, name: str, layout: str, shape: tuple[int, int, int]
) -> None:
    library = FakeCublas()
    target = on_host(monkeypatch, library)
    asked = case(format_name, name, *shape, layout=layout)
    assert jobs.reason(asked, target) is None
    kernel = jobs.prepare(asked, target, 2, seed=3)
    assert fresh_verdict(kernel, asked, seed=4).passed
    assert library.computed == [MODES[name].compute_type] * 2
    assert library.stream == 99
    assert library.values["strategy"] == emulated.STRATEGY_EAGER


def test_what_ran_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = jobs.prepare(case("fp64", "int8"), on_host(monkeypatch, FakeCublas()), 1, seed=3)
    run_all(kernel)
    described = kernel.describe()
    assert kernel.execution == "emulated"
    assert (described["call"], described["library"], described["emulation"]) == ("cublasGemmEx", "cuBLAS", "int8")
    assert (described["retained_mantissa_bits"], described["workspace_bytes"]) == (55, 1024)


def test_a_product_that_was_not_emulated_is_not_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    """cuBLAS falls back to native fp64 where data needs more bits than it has: right, and not what was asked for."""
    asked = case("fp64", "int8")
    kernel = jobs.prepare(asked, on_host(monkeypatch, FakeCublas(emulates=False)), 1, seed=3)
    with pytest.raises(NotInForce, match="native fp64") as caught:
        fresh_verdict(kernel, asked, seed=4)
    failure = classify(caught.value)
    assert (failure.outcome, failure.fatal) == (Outcome.NOT_HONOURED, False)


def test_an_earlier_emulation_confirms_nothing_later(monkeypatch: pytest.MonkeyPatch) -> None:
    library = FakeCublas()
    asked = case("fp64", "int8")
    kernel = jobs.prepare(asked, on_host(monkeypatch, library), 1, seed=3)
    assert fresh_verdict(kernel, asked, seed=4).passed
    library.emulates = False
    with pytest.raises(NotInForce):
        fresh_verdict(kernel, asked, seed=5)


def test_a_strategy_that_reads_back_otherwise_is_not_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    target = on_host(monkeypatch, FakeCublas(strategy=1))
    with pytest.raises(NotInForce, match="was given 2 and cuBLAS has 1"):
        jobs.prepare(case("fp32", "bf16x9"), target, 1, seed=3)


def test_a_refused_call_ends_the_case_and_not_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = jobs.prepare(case("fp64", "int8"), on_host(monkeypatch, FakeCublas(fails="cublasGemmEx")), 1, seed=3)
    with pytest.raises(RuntimeError, match="CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasGemmEx`") as caught:
        run_all(kernel)
    failure = classify(caught.value)
    assert (failure.outcome, failure.fatal) == (Outcome.UNSUPPORTED, False)


def test_closing_gives_the_handle_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    library = FakeCublas()
    kernel = jobs.prepare(case("fp64", "int8"), on_host(monkeypatch, library), 1, seed=3)
    assert library.handles == 1
    kernel.close()
    kernel.close()
    assert library.handles == 0


def test_a_native_case_beside_it_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    library = FakeCublas()
    target = on_host(monkeypatch, library)
    native = gemm_case("fp64", 5, 7, 11, backend="cuda", switches={})
    kernel = jobs.prepare(native, target, 1, seed=3)
    run_all(kernel)
    assert type(kernel) is TorchKernel
    assert kernel.execution == "native"
    assert verdict(kernel, native).passed
    assert library.calls == []


@pytest.mark.parametrize(
    ("format_name", "name", "target", "words"),
    [
        (
            "fp32",
            "bf16x9",
            HOPPER,
            "fp32 by bf16x9 needs compute capability 10.0 or 10.3, this device has compute capability 9.0",
        ),
        ("fp32", "bf16x9", cuda_target(0, (12, 0)), "10.0 or 10.3"),
        ("fp64", "int8", cuda_target(0, (7, 5)), "fp64 by int8 needs compute capability 8.0"),
        ("fp64", "int8", HOPPER, "libcublas.so is not loaded"),
        ("fp64", "bf16x9", BLACKWELL, "emulation bf16x9 computes fp32, not fp64"),
        ("bf16", "int8", BLACKWELL, "emulation int8 computes fp64, not bf16"),
        ("fp64", "int9", BLACKWELL, "did you mean 'int8'"),
    ],
)
def test_where_it_is_refused(format_name: str, name: str, target: Target, words: str) -> None:
    assert words in (jobs.reason(case(format_name, name), target) or "")


def test_an_older_cublas_is_named() -> None:
    cublas_12_9 = SimpleNamespace(cublasSetEmulationStrategy=None)
    assert library_reason("bf16x9", cublas_12_9) is None
    assert library_reason("int8", cublas_12_9) == "emulation by int8 came with cuBLAS 13.1; the cuBLAS loaded is older"


def test_workspaces_cover_what_the_documentation_asks_for() -> None:
    """By hand for 1024 x 2048 x 512: ten slices of both operands, ten 32-bit sums of the output, and a quarter more."""
    slices = (1024 + 2048) * 512 * 10 + 4 * (1024 + 2048)
    assert workspace_bytes("int8", 1024, 2048, 512) == (slices + 4 * 1024 * 2048 * 10) * 5 // 4 + 128 * 2**20
    assert workspace_bytes("int8", 1, 1, 1) == workspace_bytes("int8", 1024, 1024, 128)
    assert workspace_bytes("int8", 8192, 8192, 8192) > 8192 * 8192 * 8 * 3
