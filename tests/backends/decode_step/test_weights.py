"""The weights of a whole model streamed alone, on CPU torch: every format, what it counts, and planted bugs."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from backends.torch import jobs, precision
from backends.torch.decode_step.weights import WeightsKernel, _joined
from suite.case import Case
from suite.jobs.decode_step import FORMATS, sizes_of
from suite.jobs.decode_step.tolerance import stage_tolerances
from suite.jobs.gemm import GemmJob
from tests.backends.cases import any_cpu
from tests.backends.decode_step.cases import JOB, fresh_verdict, prepared, step_case

EVEN: dict[str, Any] = {"hidden_sizes": 128, "heads": "4/2x32", "intermediate_sizes": 256, "vocabularies": 304, "layers": 2}


def weights_case(format_name: str = "bf16", **more: Any) -> Case:
    return step_case("library", format_name, "weights", **{**EVEN, **more})


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("format_name", FORMATS["weights"])
def test_every_format_passes(format_name: str, batch: int) -> None:
    case = weights_case(format_name, batches=[batch])
    kernel = prepared(case, sets=2)
    results = [fresh_verdict(kernel, case, seed) for seed in (4, 5)]
    assert all(result.passed for result in results), results
    told = json.loads(json.dumps(dict(kernel.describe())))
    assert set(told["products"]) == {"qkv", "o", "gate_up", "down", "lm_head"}
    assert ("quantisation_error" in told) == (format_name != "fp32")
    assert kernel.set_bytes == JOB.work(case.workload).compulsory_bytes


def test_what_passes_within_the_products_is_counted_for_each_of_them() -> None:
    """fp8 on a CPU goes through bf16 copies of both operands."""
    case = weights_case("fp8_e4m3", batches=[3])
    sizes = sizes_of(case.workload)
    copied = sum(each.times * 2 * (3 + each.n) * each.k for each in sizes.products)
    kernel = prepared(case)
    assert kernel.describe()["passing_bytes"] == copied
    assert kernel.execution == "emulated"


def test_launches_go_layer_by_layer_and_the_vocabulary_comes_last() -> None:
    case = weights_case()
    made = prepared(case, sets=2)
    launched: list[tuple[str, int]] = []
    for each in made.streamed:
        each.kernel.input_sets = tuple(
            one._replace(launch=partial(launched.append, (each.product.name, index)))
            for index, one in enumerate(each.kernel.input_sets)
        )
    WeightsKernel(made.streamed, 2, stage_tolerances(case.workload), case, {}).enqueue(1)
    of_layer = ["qkv", "o", "gate_up", "down"]
    assert launched == [(name, index) for index in (2, 3) for name in of_layer] + [("lm_head", 1)]


def test_every_layer_has_matrices_and_activations_of_its_own() -> None:
    kernel = prepared(weights_case(), sets=2)
    places = [
        tensor.data_ptr()
        for each in kernel.streamed
        for of_layer in each.kernel.input_sets
        for operand in of_layer.operands
        for tensor in operand.buffers
    ]
    assert len(set(places)) == len(places) == 2 * 2 * (2 * 4 + 1)


def _sub(kernel: WeightsKernel, name: str) -> Any:
    return next(each.kernel for each in kernel.streamed if each.product.name == name)


def _written(name: str, layer: int, change: Callable[[torch.Tensor], None]) -> Callable[[WeightsKernel], None]:
    """A result that is changed after the launch."""

    def launch(kernel: WeightsKernel) -> None:
        kernel.enqueue(0)
        change(_sub(kernel, name).input_sets[layer].output)

    return launch


def _stale(name: str) -> Callable[[WeightsKernel], None]:
    """The second layer's product by the first one's weights."""

    def launch(kernel: WeightsKernel) -> None:
        kernel.enqueue(0)
        first, second = _sub(kernel, name).input_sets[:2]
        second.output.copy_(second.operands[0].data.double() @ first.operands[1].data.double().t())

    return launch


def _without_k(name: str) -> Callable[[WeightsKernel], None]:
    """The last 16 numbers of K are left out in the second layer."""

    def launch(kernel: WeightsKernel) -> None:
        kernel.enqueue(0)
        each = _sub(kernel, name).input_sets[1]
        a, b = (operand.data.double() for operand in each.operands)
        each.output.copy_(a[:, :-16] @ b[:, :-16].t())

    return launch


def _in_the_inputs(kernel: WeightsKernel) -> None:
    kernel.enqueue(0)
    _sub(kernel, "down").input_sets[1].operands[1].data[7, 9] += 1


BUGS: dict[str, Callable[[WeightsKernel], None]] = {
    **{f"stale {name}": _stale(name) for name in ("qkv", "o", "gate_up", "down")},
    **{f"dropped K of {name}": _without_k(name) for name in ("qkv", "o", "gate_up", "down")},
    "truncated vocabulary": _written("lm_head", 0, lambda output: output[:, -8:].zero_()),
    "swapped columns": _written("gate_up", 1, lambda output: output.copy_(output.roll(1, 1))),
    "swapped rows": _written("o", 0, lambda output: output.copy_(output.flip(0))),
    "NaN": _written("down", 1, lambda output: output[0, 3].fill_(float("nan"))),
    "overwritten weights": _in_the_inputs,
}


@pytest.fixture(scope="module")
def kernel() -> WeightsKernel:
    made = prepared(weights_case(batches=[2]))
    assert isinstance(made, WeightsKernel)
    return made


@pytest.mark.parametrize("name", BUGS)
def test_planted_bugs_are_caught(kernel: WeightsKernel, name: str) -> None:
    case = weights_case(batches=[2])
    assert not fresh_verdict(kernel, case, 9, run=lambda: BUGS[name](kernel)).passed
    sound = fresh_verdict(kernel, case, 9)
    assert sound.passed, sound.reason


def test_a_format_that_a_library_does_not_take_in_these_sizes_says_which() -> None:
    case = weights_case("w4a16", vocabularies=300)
    assert "not n=300; pad to n=304" in (jobs.reason(case, any_cpu()) or "")


def test_tolerances_are_the_products_own() -> None:
    case = weights_case("w8a16", batches=[2])
    kernel, gemm = prepared(case), GemmJob()
    assert JOB.tolerance(case.workload, ()) == max(gemm.tolerance(each, ()) for each in _products(case))
    assert min(stage.counts for stage in kernel.stages(0)) == 1.0


def test_switches_are_put_in_force_once_and_not_between_the_products(
    kernel: WeightsKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each product's are of an object of its own, and setting them takes longer than most launches."""
    applied: list[precision.Precision] = []
    monkeypatch.setattr(precision, "_apply", applied.append)
    monkeypatch.setattr(precision, "_confirm", lambda _: None)
    monkeypatch.setattr(precision, "_in_force", None)
    kernel.enqueue(0)
    kernel.enqueue(0)
    assert len(applied) == 1
    precision.enforce(precision.Precision())  # a turn of another case
    kernel.enqueue(0)
    assert len(applied) == 3


def test_what_one_product_is_emulated_by_is_said_of_all() -> None:
    """As its execution is."""
    plain = {"precision": {}, "emulation": "", "operand_dtype": "bfloat16"}
    told = _joined({"qkv": plain, "o": {**plain, "emulation": "converted", "executed_pipe": "fp16"}}, [1, 1])
    assert (told["emulation"], told["executed_pipe"], told["operand_dtype"]) == ("converted", "fp16", "bfloat16")
    assert _joined({"qkv": plain, "o": plain}, [1, 1])["emulation"] == ""


def _products(case: Case) -> list[Any]:
    from suite.jobs.decode_step.formats import as_gemm

    sizes = sizes_of(case.workload)
    return [as_gemm(case.workload, sizes, each) for each in sizes.products]
