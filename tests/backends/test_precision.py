"""Numerical switches are set explicitly before each launch, and read back."""

import os
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from backends.failures import classify
from backends.torch import jobs, precision
from backends.torch.precision import NotInForce, Precision, enforce, in_force, precision_of
from suite.outcome import Outcome
from tests.backends.cases import any_cpu, gemm_case
from tests.backends.preserving import preserved

ALL_ON = Precision(tf32=True, reduced_precision_reduction=True, fp16_accumulation=True)


@pytest.fixture(autouse=True)
def _as_they_were() -> Iterator[None]:
    with preserved():
        yield


class FakeTunable:
    """TunableOp of a GPU build: an environment variable may keep it on whatever the program asks."""

    def __init__(self, forced: bool = False) -> None:
        self.forced, self.on, self.tuning, self.recording = forced, True, False, True
        self.file = "tunableop_results0.csv"
        self.files_when_enabled: list[str] = []

    def set_filename(self, name: str, insert_device_ordinal: bool = False) -> None:
        self.file = name.replace(".", "0.") if insert_device_ordinal else name

    def record_untuned_enable(self, on: bool = True) -> None:
        self.recording = on

    def tuning_enable(self, on: bool = True) -> None:
        self.tuning = on

    def enable(self, on: bool = True) -> None:
        self.on = on
        if on:
            self.files_when_enabled.append(self.file)

    def is_enabled(self) -> bool:
        return self.on or self.forced


def with_tunable(monkeypatch: pytest.MonkeyPatch, **options: Any) -> FakeTunable:
    fake = FakeTunable(**options)
    monkeypatch.setattr(precision, "HAS_TUNABLE_OP", True)
    monkeypatch.setattr(torch.cuda, "tunable", fake)
    return fake


def test_switches_reach_torch() -> None:
    matmul = torch.backends.cuda.matmul
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enforce(Precision(tf32=True, reduced_precision_reduction=False, fp16_accumulation=True))
        assert matmul.fp32_precision == "tf32"
        assert torch.get_float32_matmul_precision() == "high"
        assert not matmul.allow_bf16_reduced_precision_reduction
        assert matmul.allow_fp16_accumulation
        enforce(Precision(tf32=False, reduced_precision_reduction=True))
        assert matmul.fp32_precision == "ieee"
        assert matmul.allow_fp16_reduced_precision_reduction
        assert matmul.allow_bf16_reduced_precision_reduction
        assert not matmul.allow_fp16_accumulation


def test_each_launch_gets_its_kernels_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kernels that alternate, as in an interleaved measurement: what is in force at every launch is the kernel's."""
    seen = []
    for name in ("tf32", "fp32"):
        case = gemm_case("fp32", 4, 4, 4, switches={"tf32": name == "tf32"})
        monkeypatch.setattr(precision, "_in_force", None)
        kernel = jobs.prepare(case, any_cpu(), 1, seed=1)
        kernel._launches = (lambda: seen.append(torch.backends.cuda.matmul.fp32_precision),)
        seen.append(kernel)
    one, other = seen
    seen.clear()
    for kernel in (one, other, one, one, other):
        kernel.enqueue(0)
    assert seen == ["tf32", "ieee", "tf32", "tf32", "ieee"]


def test_switches_that_are_in_force_are_not_set_again(monkeypatch: pytest.MonkeyPatch) -> None:
    set_to: list[Precision] = []
    monkeypatch.setattr(precision, "_apply", set_to.append)
    monkeypatch.setattr(precision, "_confirm", lambda _: None)
    one, other = Precision(), Precision()
    for each in (one, one, other, one):
        enforce(each)
    assert set_to == [one, other, one]


@pytest.mark.parametrize(
    "name", ["tf32", "reduced_precision_reduction", "reduced_precision_reduction of fp16", "fp16_accumulation"]
)
def test_a_switch_that_torch_does_not_have_in_force_stops_the_launch(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    really = in_force
    monkeypatch.setattr(precision, "in_force", lambda: {**really(), name: False})
    for _ in range(2):  # it is not taken to be in force the next time either
        with pytest.raises(NotInForce, match=f"{name}=True was set and torch has False") as caught:
            enforce(ALL_ON)
    failure = classify(caught.value)
    assert (failure.outcome, failure.fatal) == (Outcome.NOT_HONOURED, False)


def test_reading_back_names_every_switch() -> None:
    """Fast accumulation of fp8 is an argument of each call: there is nothing to read back."""
    enforce(ALL_ON)
    said = {name.partition(" ")[0] for name in in_force()}
    assert said == set(Precision().to_json()) - {"fp8_fast_accum"}
    assert [name for name, on in in_force().items() if not on] == ["tunable_op"]


def test_tunable_op_tunes_in_memory_only(monkeypatch: pytest.MonkeyPatch) -> None:
    tunable = with_tunable(monkeypatch)
    enforce(Precision())
    assert not tunable.on
    enforce(Precision(tunable_op=True))
    assert (tunable.on, tunable.tuning, tunable.recording) == (True, True, False)
    assert tunable.files_when_enabled == [os.devnull]  # before it is on: it reads its file when it is first used


def test_a_tunable_op_that_a_variable_keeps_on_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with_tunable(monkeypatch, forced=True)
    with pytest.raises(NotInForce, match="tunable_op=False was set and torch has True"):
        enforce(Precision())


def test_older_torch_is_kept_from_writing_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    tunable = with_tunable(monkeypatch)
    written = SimpleNamespace(at_exit=True)
    monkeypatch.setattr(FakeTunable, "write_file_on_exit", lambda _, on: setattr(written, "at_exit", on), raising=False)
    precision.place_tuning_results()
    assert (tunable.file, written.at_exit) == (os.devnull, False)


def test_what_a_case_leaves_out_is_off() -> None:
    assert precision_of("bf16", {}) == Precision()
    assert precision_of("tf32", {}) == Precision(tf32=True)
    assert precision_of("fp8_e4m3", {"fp8_fast_accum": True}) == Precision(fp8_fast_accum=True)
    assert precision_of("fp16", {"fp16_accumulation": True, "tunable_op": True}) == Precision(
        fp16_accumulation=True, tunable_op=True
    )
