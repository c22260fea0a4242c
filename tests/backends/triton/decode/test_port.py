"""What the port says of launches that it made, with a compiler that is a script."""

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from backends.torch.decode.operands import allocate
from backends.torch.decode.way import Task
from backends.torch.target import Target
from backends.torch.way import Made
from backends.triton.decode import port
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device
from backends.triton.gemm.launch import Loaded
from suite.jobs.decode import sizes_of
from suite.jobs.emulation import EXECUTED_PIPE
from tests.backends.decode_cases import decode_case
from tests.backends.triton.compiled import DEVICES

FACTS = {"kernel": "said", "registers": 64, "spilled_words": 0, "shared_bytes": 0}
FP16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
BF16 = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
EITHER = "tcgen05.mma.cta_group::1.kind::f16"  # by its name of fp16 or of bf16
TARGET = Target(torch.device("cpu"), "cuda", {}, {}, "sm_90")


def made_of(loaded: Callable[[Call], Loaded], format_name: str = "bf16", sets: int = 1, **options: Any) -> Made:
    workload = decode_case("triton", format_name, heads="8/2x64", **options).workload
    buffers = [allocate(workload, TARGET.device) for _ in range(sets)]
    task = Task(workload, sizes_of(workload), TARGET, buffers, seed=3)
    return port.make("triton", task, DEVICES["sm_90"], loaded)


def compiled_to(*instructions: str) -> Callable[[Call], Loaded]:
    return lambda call: Loaded(lambda: None, {**FACTS, "instructions": list(instructions)})


@pytest.mark.parametrize("instruction", [FP16, EITHER])
@pytest.mark.parametrize("format_name", ["int8", "fp8_e4m3"])
def test_eight_bits_beside_bf16_are_multiplied_as_fp16_and_it_says_so(format_name: str, instruction: str) -> None:
    made = made_of(compiled_to(instruction), format_name, activation="bf16")
    assert made.emulation == f"queries and cache converted, then multiplied by {instruction}"
    assert made.facts[EXECUTED_PIPE] == "fp16"


@pytest.mark.parametrize(
    ("format_name", "activation", "instructions"),
    [
        ("int8", "fp16", [FP16]),
        ("fp8_e4m3", "fp16", [EITHER]),
        ("bf16", None, [BF16]),
        ("bf16", None, [EITHER]),
        ("fp16", None, [FP16]),
        ("fp32", None, []),
    ],
)
def test_numbers_that_are_multiplied_as_the_work_has_them_are_not_emulated(
    format_name: str, activation: str | None, instructions: list[str]
) -> None:
    made = made_of(compiled_to(*instructions), format_name, activation=activation)
    assert made.emulation == ""
    assert EXECUTED_PIPE not in made.facts


def test_instructions_of_another_type_are_named_whatever_the_cache() -> None:
    assert made_of(compiled_to(FP16), "bf16").emulation.endswith(FP16)


def test_a_device_that_no_configuration_is_made_for_is_refused_by_name() -> None:
    for format_name in ("bf16", "fp8_e4m3"):
        told = port.reason(decode_case("triton", format_name).workload, Device("75", 40, 65_536))
        assert told is not None
        assert told.startswith("no configuration of this kernel is made for sm_75, only for sm_80,")


def test_seconds_of_compiling_have_no_planning_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    passed_s = [0.0]
    plan, workspace = port.planned, port._workspace

    def taking(seconds: float, call: Callable[..., Any]) -> Callable[..., Any]:
        def later(*given: Any) -> Any:
            passed_s[0] += seconds
            return call(*given)

        return later

    monkeypatch.setattr(time, "perf_counter", lambda: passed_s[0])
    monkeypatch.setattr(port, "planned", taking(100.0, plan))
    monkeypatch.setattr(port, "_workspace", taking(1000.0, workspace))
    made = made_of(taking(1.0, compiled_to(BF16)), sets=2)
    assert made.facts["compile_s"] == 2.0
    assert passed_s == [1102.0]


def test_memory_that_gives_out_is_not_called_a_configuration_that_does_not_fit() -> None:
    def full(call: Call) -> Loaded:
        raise torch.OutOfMemoryError("no room")

    with pytest.raises(torch.OutOfMemoryError):
        made_of(full)
