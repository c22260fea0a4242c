"""Jobs beside products on AMD devices: what is NVIDIA's alone, and whose kernels torch has under names of others."""

from dataclasses import replace

import pytest
import torch
import torch.distributed as dist

from backends.torch import jobs
from backends.torch.attention import packages as attention_packages
from backends.torch.attention import sdpa
from backends.torch.decode import packages as decode_packages
from backends.torch.hip_target import HIPBLASLT, hip_target
from backends.torch.target import cuda_target
from suite.case import Case, Regime, Workload, items
from tests.backends.attention_cases import attention_case
from tests.backends.decode_cases import decode_case

MI300X = hip_target(0, "gfx942", HIPBLASLT)
H200 = cuda_target(0, (9, 0))


def test_packages_written_for_nvidia_are_refused_before_they_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_packages, "installed", lambda package: "4.0")
    monkeypatch.setattr(decode_packages, "installed", lambda: "0.5")
    said = "is written for NVIDIA's devices, not for gfx942"
    assert jobs.reason(attention_case("flash_attn_4"), MI300X) == f"flash_attn_4 {said}"
    assert jobs.reason(decode_case("flashinfer"), MI300X) == f"flashinfer {said}"
    for taken in (attention_case("flash_attn"), attention_case("flash_attn_4")):
        assert jobs.reason(taken, H200) is None
    assert jobs.reason(attention_case("flash_attn"), MI300X) is None


def test_attention_of_torch_is_named_after_whose_kernels_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda, "preferred_rocm_fa_library", lambda: "_ROCmFABackend.AOTriton")
    assert sdpa._library(sdpa.BACKENDS["library_flash"], MI300X) == "AOTriton in torch"
    assert sdpa._library(sdpa.BACKENDS["library_flash"], H200) == "FlashAttention in torch"
    assert sdpa._library(sdpa.BACKENDS["library_math"], MI300X) == "torch, operation by operation"


@pytest.mark.parametrize(("proto", "refused"), [("ll128", True), ("simple", False), ("ll", False)])
def test_ll128_is_not_forced_upon_links_of_amd(monkeypatch: pytest.MonkeyPatch, proto: str, refused: bool) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(dist, "is_nccl_available", lambda: True)
    workload = Workload("collective", "fp32", items({"op": "all_reduce", "message_bytes": 1 << 20, "world_size": 2}))
    switches = items({"algo": "ring", "proto": proto, "in_place": True, "transport": "device_link"})
    case = Case(workload, "library", "rocm", Regime("warm", "sustained", "call"), switches)
    said = str(jobs.reason(case, MI300X))
    assert ("RCCL's to tell" in said) == refused, said
    assert jobs.reason(replace(case, backend="cuda"), H200) is None
