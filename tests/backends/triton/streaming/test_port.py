"""How a step is put together and its configurations are chosen, with launches on a host whose clock is a script."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from backends.torch.decode_step.kernel import StepKernel
from backends.torch.decode_step.operands import allocate
from backends.torch.decode_step.way import Task
from backends.torch.target import Target
from backends.torch.way import Made
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device
from backends.triton.streaming import products, step
from backends.triton.streaming.call import Operands, workspace_sizes
from backends.triton.streaming.config import MULTIPLIER, REGISTERS, RESIDENT, Config
from backends.triton.streaming.port import Maker, passing_bytes
from backends.triton.streaming.problem import PLAIN, Problem
from suite.jobs.decode_step import sizes_of
from suite.jobs.decode_step.work import activation_bytes
from tests.backends.decode_step.cases import fresh_verdict, step_case
from tests.backends.decode_step.flawed import kernel_of
from tests.backends.triton.compiled import DEVICES
from tests.backends.triton.streaming.host import BY_NAME, Host
from tests.backends.triton.streaming.llama import problem

H200, A100 = DEVICES["sm_90"], DEVICES["sm_80"]
CASE = partial(
    step_case,
    "triton_tuned",
    "bf16",
    layers=1,
    hidden_sizes=64,
    heads="4/2x16",
    intermediate_sizes=96,
    vocabularies=80,
    batches=[1],
    kv_lens=[20],
)


def made_of(host: Host, device: Device = H200, name: str = "triton_tuned", **more: Any) -> tuple[Made, Any, Any]:
    """Launches of a case, the case and its buffers."""
    case = CASE(**more)
    target = Target(torch.device("cpu"), "cuda", {}, {}, device.name)
    buffers = [allocate(case.workload, target.device, paged=True)]
    task = Task(case.workload, sizes_of(case.workload), target, buffers, 3)
    return step.make(name, task, device, host.load, host.cuda), case, buffers


def is_streamed(call: Call) -> bool:
    return BY_NAME.get(call.kernel) == "streamed"


def by_rows(fastest: int) -> Callable[[Call], float]:
    """Launches with so many rows of weights at a time and not split take half as long."""

    def seconds(call: Call) -> float:
        if not is_streamed(call):
            return 1e-3
        return 5e-4 if call.constants["ROWS"] == fastest and call.constants.get("MULTIPLIED") is False else 1e-3

    return seconds


@pytest.mark.parametrize("rows", [4, 8])
def test_the_fastest_configuration_of_each_product_is_taken_and_the_step_is_right(rows: int) -> None:
    host = Host(by_rows(rows))
    made, case, buffers = made_of(host)
    assert set(made.facts["products"]) == {"qkv", "o", "gate_up", "down", "lm_head"}
    for each in made.facts["products"].values():
        assert each["chosen_by"] == "trial"
        assert each["configuration"].startswith(f"registers {rows}x")
        assert len(each["tried"]) > 2
    kernel = kernel_of(case, buffers, made.launches)
    for seed in (4, 5):
        result = fresh_verdict(kernel, case, seed)
        assert result.passed, result.reason


def depending(product: float) -> Callable[[Call], float]:
    """Dependent launches take ``product`` times as long as the others."""

    def seconds(call: Call) -> float:
        return 1e-3 * (product if call.options.get("launch_pdl") else 1.0)

    return seconds


@pytest.mark.parametrize(
    ("product", "order"), [(1.3, "one launch after the other"), (0.7, "dependent products")], ids=["slower", "faster"]
)
def test_products_depend_on_what_is_before_them_where_that_is_faster(product: float, order: str) -> None:
    host = Host(depending(product))
    made, case, buffers = made_of(host)
    assert made.facts["order"] == order
    assert len(made.facts["order_tried"]["tried"]) == 2
    host.loaded.clear()
    kernel = kernel_of(case, buffers, made.launches)
    assert fresh_verdict(kernel, case, 6).passed


def test_launches_depend_only_with_the_options_for_it() -> None:
    host = Host()
    made_of(host)
    depending = [call for call in host.loaded if call.options.get("launch_pdl")]
    assert depending
    assert all(is_streamed(call) and call.constants["DEPENDENT"] for call in depending)
    assert not any(call.constants.get("DEPENDENT") for call in host.loaded if not call.options.get("launch_pdl"))


def test_a_device_without_dependent_launches_is_not_asked_for_them() -> None:
    host = Host()
    made, _, _ = made_of(host, A100)
    assert not any(call.options.get("launch_pdl") for call in host.loaded)
    assert made.facts["order"] == "one launch after the other"


def test_dependent_launches_that_cannot_be_captured_are_refused_by_name_and_the_others_are_kept() -> None:
    host = Host(uncaptured=lambda call: bool(call.options.get("launch_pdl")))
    made, _, _ = made_of(host)
    assert made.facts["order"] == "one launch after the other"
    refused = made.facts["order_tried"]["refused"]
    assert set(refused) == {"dependent products"}
    assert all("not permitted" in why for why in refused.values())


def test_without_tuning_the_first_of_a_table_is_taken_and_nothing_is_launched() -> None:
    host = Host()
    made, case, buffers = made_of(host, name="triton")
    assert host.cuda.device_s == 0.0
    assert all(each["chosen_by"] == "the first of a table that fits" for each in made.facts["products"].values())
    kernel = kernel_of(case, buffers, made.launches)
    assert isinstance(kernel, StepKernel)
    assert fresh_verdict(kernel, case, 4).passed


def test_one_step_is_five_launches_a_layer_in_their_order() -> None:
    host = Host()
    launched: list[str] = []
    host.seconds = lambda call: launched.append(_told(call)) or 1e-3  # type: ignore[func-returns-value]
    made, case, buffers = made_of(host, name="triton", layers=2)
    kernel_of(case, buffers, made.launches).enqueue(0)
    layer = ["rotated", "attention", "residual", "swiglu", "residual"]
    assert launched == ["gathered", *layer, *layer, "plain"]
    assert made.facts["launches"] == len(launched)


def _told(call: Call) -> str:
    return str(call.constants["END"]) if is_streamed(call) else BY_NAME.get(call.kernel, "attention")


def test_a_configuration_that_spills_is_passed_over() -> None:
    host = Host(facts=lambda call: {"spilled_words": 3} if call.constants.get("ROWS") == 8 else {})
    made, _, _ = made_of(host, name="triton")
    for each in made.facts["products"].values():
        assert each["configuration"].startswith("registers 4x")
        assert any("spills 3 words" in why for why in each["passed_over"].values())


def test_a_configuration_whose_result_is_another_is_refused() -> None:
    """The fastest, were it right."""
    host = Host(by_rows(4), wrong=lambda call: is_streamed(call) and call.constants["ROWS"] == 4)
    made, _, _ = made_of(host)
    for each in made.facts["products"].values():
        assert not each["configuration"].startswith("registers 4x")
        assert any("away from that of the first configuration" in why for why in each["refused"].values())


def test_instructions_of_another_type_are_emulation_and_registers_are_not() -> None:
    foreign = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    assert made_of(Host(), name="triton")[0].emulation == ""
    told = made_of(Host(facts=lambda call: {"instructions": [foreign]}), name="triton")[0].emulation
    assert told.endswith(foreign)


def test_what_passes_is_activations_and_parts_of_tiles() -> None:
    made, case, _ = made_of(Host(), name="triton")
    sizes = sizes_of(case.workload)
    # Every product here has one block of K: nothing is split, and one program has the whole sequence of 20 tokens.  Of the one
    # layer's two norms, and of the last one, a row passes with their weights on it.
    assert made.facts["passing_bytes"] == activation_bytes(sizes, 2) + 3 * 64 * 2


def test_weights_alone_take_the_fastest_configuration_of_each_matrix_and_are_right() -> None:
    host = Host(by_rows(4))
    case = CASE(part="weights")
    sizes = sizes_of(case.workload)
    for each in sizes.products:
        kernel = products.prepare(case, H200, torch.device("cpu"), 3, each, 2, host.load, host.cuda)
        assert kernel.sets == 2
        kernel.refill(4)
        for index, one in enumerate(kernel.input_sets):
            kernel.enqueue(index)
            right = kernel.formula.tile(one.operands, 0, 0, sizes.batch, each.n)
            assert float((one.output.double() - right).norm() / right.norm()) < 2.0**-8
        described = kernel.describe()
        assert described["configuration"].startswith("registers 4x")
        assert described["chosen_by"] == "trial"


def test_parts_of_a_tile_are_counted() -> None:
    split = Config(MULTIPLIER, 64, 128, 4, 4, 3)
    p = problem("qkv", 8)
    assert passing_bytes(p, split, H200) == (6144 // 64) * 3 * 64 * 8 * 4
    assert passing_bytes(p, split._replace(split=1), H200) == 0
    assert workspace_sizes(p, split, H200) == ((6144 // 64) * 3 * 64 * 8, 96)


def test_a_device_on_which_everything_spills_is_told_so() -> None:
    host = Host(facts=lambda call: {"spilled_words": 1})
    weights, x, y = (torch.zeros(size) for size in ((64, 32), (1, 32), (1, 64)))
    maker = Maker(Problem("fp32", 1, 64, 32, PLAIN), H200, [Operands(weights, x, y)], host.load)
    assert {each.kernel for each in maker.choices} == {REGISTERS, RESIDENT, MULTIPLIER}
    with pytest.raises(
        NotImplementedError, match=r"none of \d+ configurations of this kernel fits this device .*: spills 1 words"
    ):
        maker.first()
