"""What an exception means for the case and for the process."""

import pytest
import torch

from backends.cuda import CudaBackend
from backends.failures import classify
from suite.outcome import Outcome
from suite.reason import REASON_CHARACTERS

ASYNCHRONOUS = (
    "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect."
    "\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1"
    "\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions (not supported here)."
)


class OutOfResources(Exception):
    """Triton's, by name."""


def accelerator(text: str) -> BaseException:
    error: BaseException = torch.AcceleratorError(text)
    return error


@pytest.mark.parametrize(
    ("error", "outcome", "fatal"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 160.00 GiB."), Outcome.OUT_OF_MEMORY, False),
        (accelerator("CUDA error: out of memory" + ASYNCHRONOUS), Outcome.OUT_OF_MEMORY, False),
        (
            RuntimeError("HIP error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(handle)`"),
            Outcome.OUT_OF_MEMORY,
            False,
        ),
        (
            RuntimeError("HIP error: HIPBLAS_STATUS_NOT_SUPPORTED when calling `hipblasLtMatmul(..)`"),
            Outcome.UNSUPPORTED,
            False,
        ),
        (accelerator("HIP error: invalid device function" + ASYNCHRONOUS), Outcome.UNSUPPORTED, False),
        (accelerator("HIP error: invalid argument" + ASYNCHRONOUS), Outcome.ERROR, False),
        (RuntimeError("HIP error: HIPBLAS_STATUS_INTERNAL_ERROR when calling `hipblasGemmEx(..)`"), Outcome.CRASHED, True),
        (accelerator("HIP error: unspecified launch failure" + ASYNCHRONOUS), Outcome.CRASHED, True),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
            Outcome.OUT_OF_MEMORY,
            False,
        ),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried to"),
            Outcome.OUT_OF_MEMORY,
            False,
        ),
        (MemoryError(), Outcome.OUT_OF_MEMORY, False),
        (accelerator("CUDA error: an illegal memory access was encountered" + ASYNCHRONOUS), Outcome.CRASHED, True),
        (accelerator("CUDA error: device-side assert triggered" + ASYNCHRONOUS), Outcome.CRASHED, True),
        (RuntimeError("CUDA error: unspecified launch failure" + ASYNCHRONOUS), Outcome.CRASHED, True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx(...)`"), Outcome.CRASHED, True),
        (accelerator("a message that a later version words anew"), Outcome.CRASHED, True),
        (accelerator("CUDA error: no kernel image is available for execution on the device"), Outcome.UNSUPPORTED, False),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasLtMatmul(...)`"),
            Outcome.UNSUPPORTED,
            False,
        ),
        (
            NotImplementedError("Could not run 'aten::_int_mm' with arguments from the 'Meta' backend"),
            Outcome.UNSUPPORTED,
            False,
        ),
        (RuntimeError("\"addmm_impl_cpu_\" not implemented for 'Float8_e4m3fn'"), Outcome.UNSUPPORTED, False),
        (RuntimeError("self.size(0) needs to be greater than 16, but got 1"), Outcome.UNSUPPORTED, False),
        (OutOfResources("out of resource: shared memory, Required: 393216"), Outcome.UNSUPPORTED, False),
        (RuntimeError("CUDA error: operation not permitted when stream is capturing"), Outcome.ERROR, False),
        (
            accelerator("CUDA error: operation failed due to a previous error during capture" + ASYNCHRONOUS),
            Outcome.ERROR,
            False,
        ),
        (RuntimeError("CUDA error: invalid argument"), Outcome.ERROR, False),
        (RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"), Outcome.ERROR, False),
        (KeyError("out of memory"), Outcome.ERROR, False),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_table(error: BaseException, outcome: Outcome, fatal: bool) -> None:
    failure = classify(error)
    assert (failure.outcome, failure.fatal) == (outcome, fatal)
    assert failure.reason.startswith(type(error).__name__)
    assert "\n" not in failure.reason


def test_a_reason_has_an_end() -> None:
    assert len(classify(RuntimeError("x" * 10_000)).reason) == REASON_CHARACTERS


def test_memory_that_really_runs_out_on_the_host() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**50, dtype=torch.uint8)
    assert classify(caught.value).outcome is Outcome.OUT_OF_MEMORY


def test_a_cuda_backend_without_a_device_has_none() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    assert CudaBackend().devices() == ()
    assert CudaBackend().classify(RuntimeError("CUDA error: device-side assert triggered")).fatal
