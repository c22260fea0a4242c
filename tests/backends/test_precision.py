"""Numerical switches are set explicitly, and given back."""

import warnings

import torch

from backends.torch.precision import Precision, enforce, precision_of, preserved


def test_switches_reach_torch_and_are_given_back() -> None:
    matmul = torch.backends.cuda.matmul
    before = (torch.get_float32_matmul_precision(), matmul.allow_bf16_reduced_precision_reduction)
    with warnings.catch_warnings(), preserved():
        warnings.simplefilter("error")
        enforce(Precision(tf32=True, reduced_precision_reduction=False))
        assert matmul.fp32_precision == "tf32"
        assert torch.get_float32_matmul_precision() == "high"
        assert not matmul.allow_bf16_reduced_precision_reduction
        assert not matmul.allow_fp16_accumulation
        enforce(Precision(tf32=False, reduced_precision_reduction=True))
        assert matmul.fp32_precision == "ieee"
        assert matmul.allow_fp16_reduced_precision_reduction
    assert (torch.get_float32_matmul_precision(), matmul.allow_bf16_reduced_precision_reduction) == before


def test_alternating_kernels_each_get_their_own() -> None:
    one, other = Precision(tf32=True), Precision(tf32=False)
    with preserved():
        seen = []
        for precision in (one, other, one, one):
            enforce(precision)
            seen.append(torch.backends.cuda.matmul.fp32_precision)
    assert seen == ["tf32", "ieee", "tf32", "tf32"]


def test_after_giving_back_the_same_switches_are_set_anew() -> None:
    precision = Precision(tf32=True)
    for _ in range(2):
        with preserved():
            enforce(precision)
            assert torch.backends.cuda.matmul.fp32_precision == "tf32"


def test_what_a_case_leaves_out_is_off() -> None:
    assert precision_of("bf16", {}) == Precision()
    assert precision_of("tf32", {}) == Precision(tf32=True)
    assert precision_of("fp8_e4m3", {"fp8_fast_accum": True}) == Precision(fp8_fast_accum=True)
