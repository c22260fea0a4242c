"""Which cases of attention the kernels here take, what they say of the others, and how a configuration is chosen."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from backends.torch import jobs
from backends.torch.attention.operands import allocate
from backends.torch.attention.way import Task
from backends.torch.target import cuda_target
from backends.triton import works
from backends.triton.attention import port
from backends.triton.attention.choices import SPARED_OF_FORWARD, choices_of_forward, spared_words
from backends.triton.attention.config import Config
from backends.triton.gemm import device as device_module
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device
from backends.triton.gemm.launch import Loaded
from suite.jobs.attention import sizes_of
from tests.backends.attention_cases import attention_case
from tests.backends.triton.compiled import DEVICES

HOPPER = cuda_target(0, (9, 0))
OURS = ("triton", "triton_tuned", "gluon")
FACTS = {"kernel": "k", "registers": 128, "spilled_words": 0, "shared_bytes": 1, "instructions": ["wgmma.f32.bf16.bf16"]}


@pytest.fixture(autouse=True)
def _on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "sm_90")


def on(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    device = DEVICES.get(name, Device(name.removeprefix("sm_"), 1, 65_536))
    monkeypatch.setattr(device_module, "of_torch", lambda index: device)
    monkeypatch.setattr(works, "why_not", lambda: "")


def reason(implementation: str, format_name: str = "bf16", **options: Any) -> str | None:
    return jobs.reason(attention_case(implementation, format_name, backend="cuda", **options), HOPPER)


@pytest.mark.parametrize("implementation", OURS)
@pytest.mark.parametrize("mask", ["full", "causal", "sliding_window"])
@pytest.mark.parametrize("heads", ["16x64", "16x128", "32/8x128", "32/1x128", "8x256"])
def test_the_shapes_of_the_field_are_taken(implementation: str, mask: str, heads: str) -> None:
    for name in ("bf16", "fp16"):
        assert reason(implementation, name, heads=heads, mask=mask) is None
    if implementation != "gluon":
        assert reason(implementation, direction="backward", heads=heads, mask=mask) is None
        assert reason(implementation, "fp8_e4m3", heads=heads, mask=mask, length=4096) is None


def test_heads_of_mla_are_the_portable_kernels() -> None:
    assert reason("triton", heads="128x192/128") is None
    assert reason("triton", heads="128x192/128", direction="backward") is None
    assert "triton takes others" in (reason("gluon", heads="128x192/128") or "")


@pytest.mark.parametrize(
    ("implementation", "options", "words"),
    [
        ("triton", {"format_name": "fp32"}, "takes bf16, fp16, fp8_e4m3, not fp32"),
        ("triton", {"heads": "4x40"}, "head_dim that is a power of two from 16 to 256, or the sum of two, not 40"),
        ("triton", {"heads": "4x512"}, "not 512"),
        ("triton", {"heads": "4x64/96"}, "v_head_dim that is a power of two from 16 to 256, not 96"),
        ("triton", {"format_name": "fp8_e4m3", "length": 200}, "pad to 208"),
        ("gluon", {"direction": "backward", "heads": "4x256"}, "gluon backward takes one head_dim of 64, 128 for"),
        ("gluon", {"format_name": "fp8_e4m3", "length": 4096}, "triton takes fp8"),
        ("gluon", {"heads": "4x32"}, "one head_dim of 64, 128, 256"),
    ],
)
def test_refusals_say_why(implementation: str, options: dict[str, Any], words: str) -> None:
    told = reason(implementation, **options)
    assert told is not None
    assert words in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("device", "implementation", "format_name", "words"),
    [
        ("sm_80", "triton", "fp8_e4m3", "sm_80 does not multiply fp8_e4m3"),
        ("gfx942", "triton", "fp8_e4m3", "gfx942 does not multiply fp8_e4m3 as the OCP defines it"),
        ("sm_80", "gluon", "bf16", "written for sm_90, the device here is sm_80"),
        ("sm_100", "gluon", "bf16", "triton is portable"),
        ("sm_75", "triton", "bf16", "no configuration of this kernel is made for sm_75"),
    ],
)
def test_devices_that_lack_something_say_what(
    monkeypatch: pytest.MonkeyPatch, device: str, implementation: str, format_name: str, words: str
) -> None:
    on(monkeypatch, device)
    told = reason(implementation, format_name, length=4096)
    assert told is not None
    assert words in told


def test_where_triton_cannot_compile_the_case_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(works, "why_not", lambda: "Triton cannot compile here: no C compiler")
    assert reason("triton") == "Triton cannot compile here: no C compiler"


def task_of(implementation: str, **options: Any) -> Task:
    workload = attention_case(implementation, backend="cuda", **options).workload
    buffers = [allocate(workload, torch.device("cpu")) for _ in range(2)]
    return Task(workload, sizes_of(workload), replace(HOPPER, device=torch.device("cpu")), buffers, seed=3)


class Loads:
    """In the place of a compiler: notes the calls, and spills what it is told to."""

    def __init__(self, spilling: Sequence[Config] = ()) -> None:
        self.calls: list[Call] = []
        self._spilling = [(each.block_m, each.block_n, each.warps, each.stages) for each in spilling]

    def __call__(self, call: Call) -> Loaded:
        self.calls.append(call)
        cut = (call.constants.get("BLOCK_M"), call.constants.get("BLOCK_N"), *call.options.values())
        spilled = SPARED_OF_FORWARD + 1 if cut in self._spilling else 0
        return Loaded(lambda: None, {**FACTS, "spilled_words": spilled})


def test_a_configuration_that_spills_is_passed_over_and_named() -> None:
    task = task_of("triton")
    choices = choices_of_forward(port.problem_of(task.workload), DEVICES["sm_90"])
    made = port.make("triton", task, DEVICES["sm_90"], Loads(choices[:1]))
    assert made.facts["tiles"] == choices[1].label
    assert f"spills {SPARED_OF_FORWARD + 1} words" in made.facts["passed_over"][choices[0].label]
    assert len(made.launches) == 2


def test_spills_are_spared_where_they_were_seen_to_lie_outside_the_loop_alone() -> None:
    fastest, second, *_ = choices_of_forward(port.problem_of(task_of("triton").workload), DEVICES["sm_90"])
    problems = {mask: port.problem_of(task_of("triton", mask=mask).workload) for mask in ("causal", "full", "sliding_window")}
    spared = {mask: spared_words(problem, DEVICES["sm_90"], fastest) for mask, problem in problems.items()}
    assert spared == {"causal": SPARED_OF_FORWARD, "full": 0, "sliding_window": 0}
    assert spared_words(problems["causal"], DEVICES["sm_90"], second) == 0
    assert spared_words(problems["causal"], DEVICES["sm_100"], fastest) == 0


def test_where_all_of_them_spill_the_case_is_unsupported_and_says_each() -> None:
    task = task_of("triton")
    choices = choices_of_forward(port.problem_of(task.workload), DEVICES["sm_90"])
    with pytest.raises(NotImplementedError, match=r"none of \d+ configurations of this kernel fits this device"):
        port.make("triton", task, DEVICES["sm_90"], Loads(choices))


def test_a_backward_pass_is_three_kernels_after_a_forward_pass_of_its_own() -> None:
    loads = Loads()
    made = port.make("triton", task_of("triton", direction="backward"), DEVICES["sm_90"], loads)
    names = [call.kernel.fn.__name__ for call in loads.calls]
    assert names.count("forward") == names.count("row_products") == names.count("key_gradients") == 2
    assert names.count("query_gradients") == 2
    assert len(made.launches) == len(made.renewals) == 2


def test_on_hopper_the_gluon_kernel_is_launched() -> None:
    loads = Loads()
    made = port.make("gluon", task_of("gluon", heads="4/2x128"), DEVICES["sm_90"], loads)
    assert {call.kernel.fn.__name__ for call in loads.calls} == {"forward_on_hopper"}
    assert "in turns" in made.facts["tiles"]
