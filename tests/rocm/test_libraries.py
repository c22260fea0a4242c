"""Versions of ROCm's libraries and settings of torch on it, from stand-ins that answer as the libraries' headers say."""

import ctypes
from typing import Any

import pytest
import torch

from backends.torch import hip_libraries
from backends.torch.hip_libraries import (
    NO_TUNABLE_OP,
    hip_facts,
    hipblaslt_version,
    miopen_version,
    rccl_version,
    rocblas_version,
)
from tests.rocm.conftest import Attach

TEXT = b"4.4.0.cbc3b67"


class FakeLibrary:
    """Each call writes what it is asked for and returns a status."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.open_handles = 0

    def rocblas_get_version_string_size(self, size: Any) -> int:
        size._obj.value = len(TEXT) + 1
        return self.status

    def rocblas_get_version_string(self, text: Any, size: Any) -> int:
        assert size.value == len(TEXT) + 1
        ctypes.memmove(text, TEXT, len(TEXT) + 1)
        return self.status

    def hipblasLtCreate(self, handle: Any) -> int:  # noqa: N802
        handle._obj.value = 0xABC
        self.open_handles += 1
        return 0

    def hipblasLtGetVersion(self, handle: Any, number: Any) -> int:  # noqa: N802
        assert handle.value == 0xABC
        number._obj.value = 100_302
        return self.status

    def hipblasLtDestroy(self, handle: Any) -> int:  # noqa: N802
        self.open_handles -= 1
        return 0

    def miopenGetVersion(self, *parts: Any) -> int:  # noqa: N802
        for part, number in zip(parts, (3, 5, 1), strict=True):
            part._obj.value = number
        return self.status

    def ncclGetVersion(self, number: Any) -> int:  # noqa: N802
        number._obj.value = 22_706
        return self.status


def library(status: int = 0) -> Any:
    return FakeLibrary(status)


def test_versions_as_they_are_written() -> None:
    assert rocblas_version(library()) == "4.4.0.cbc3b67"
    assert hipblaslt_version(library()) == "1.3.2"
    assert miopen_version(library()) == "3.5.1"
    assert rccl_version(library()) == "2.27.6"


@pytest.mark.parametrize("read", [rocblas_version, hipblaslt_version, miopen_version, rccl_version])
def test_a_library_that_refuses_has_no_version(read: Any) -> None:
    refusing = library(status=3)
    with pytest.raises(OSError, match="returned status 3"):
        read(refusing)
    assert refusing.open_handles == 0


def test_what_is_not_loaded_says_so(attach: Attach) -> None:
    attach("mi300x")
    facts = hip_facts()
    assert facts["hip_runtime"].value == "7.2.53211"
    for name, file in {"rocblas": "librocblas.so", "hipblaslt": "libhipblaslt.so", "rccl": "librccl.so"}.items():
        assert facts[name] == (None, "unavailable", f"{file} is not loaded")
    assert facts["blas_preferred"].value == "hipBLASLt"


def test_tunable_op_and_its_bounds(attach: Attach, monkeypatch: pytest.MonkeyPatch) -> None:
    attach("mi300x")
    monkeypatch.setattr(hip_libraries, "HAS_TUNABLE_OP", False)
    assert hip_facts()["tunable_op"].reason == NO_TUNABLE_OP
    monkeypatch.setattr(hip_libraries, "HAS_TUNABLE_OP", True)
    answers = {
        "is_enabled": True,
        "tuning_is_enabled": False,
        "get_max_tuning_duration": 30,
        "get_max_tuning_iterations": 100,
        "get_rotating_buffer_size": 512,
    }
    for name, value in answers.items():
        monkeypatch.setattr(torch.cuda.tunable, name, lambda value=value: value)
    said = {name: fact.value for name, fact in hip_facts().items() if name.startswith("tunable_op")}
    assert said == {
        "tunable_op": True,
        "tunable_op_tunes": False,
        "tunable_op_trial_ms": 30,
        "tunable_op_trials": 100,
        "tunable_op_file": "in memory",
        "tunable_op_rotating_mib": 512,
    }


def test_whether_mscclpp_was_asked_for(attach: Attach, monkeypatch: pytest.MonkeyPatch) -> None:
    attach("mi300x")
    monkeypatch.setenv("RCCL_MSCCLPP_ENABLE", "0")
    monkeypatch.delenv("RCCL_MSCCL_ENABLE", raising=False)
    facts = hip_facts()
    assert facts["mscclpp"] == ("0", "declared", "")
    assert facts["msccl"].value == "RCCL's own choice"
