"""Products of quantised operands made ready through Triton's own compiler and launch path, on a device that is the host."""

import gc
import json
import weakref
from functools import partial
from typing import Any

import pytest
import torch

from backends.torch.gemm.operands import QuantisedOperand, quantised_of
from backends.torch.quantise.quantised import Quantised, Rows, dequantise
from backends.triton import ladder
from backends.triton.gemm.device import Device
from backends.triton.gemm.kernel import LaunchedKernel
from backends.triton.quantised import kernel as kernel_module
from backends.triton.quantised import weight_config
from backends.triton.quantised.problem import Problem
from backends.triton.quantised.product import product_of
from backends.triton.quantised.weight_config import Config
from suite.errors import UsageError
from tests.backends.cases import addresses, fresh_verdict
from tests.backends.fake_cuda import FakeCuda
from tests.backends.triton.conftest import HOPPER, Plug
from tests.backends.triton.fake_driver import Launch
from tests.backends.triton.fake_rungs import compute_rung
from tests.backends.triton.rungs import BLOCKS, BY_ROWS, MX4, MX8, QUANTISED, W4, W8, Rung, buffers_of, shared_of

SIZES = (24, 80, 256)
AMPERE = Device("80", 108, 166_912)


def prepared(rung: Rung, *sizes: int, sets: int = 1, device: Device = HOPPER, tuned: bool = False) -> LaunchedKernel:
    case = rung.case(*(sizes or SIZES))
    problem = ladder.problem_of(case)
    assert (ladder.not_taken(case.workload) or ladder.reason(problem, {}, device)) is None
    return ladder.prepare(problem, device, buffers_of(case, sets), shared_of(case), seed=3, tuned=tuned)


@pytest.mark.parametrize("rung", [*QUANTISED, *BY_ROWS], ids=lambda rung: rung.name)
def test_launches_compute_the_product_of_what_was_filled_in_last(plug: Plug, rung: Rung) -> None:
    launches: list[Launch] = []
    plug(lambda launch: (launches.append(launch), compute_rung(launch)))
    case, kernel = rung.case(*SIZES), prepared(rung, sets=2)
    assert not launches, "nothing is launched before it is asked for"
    assert fresh_verdict(kernel, case, seed=4).passed
    before = addresses(kernel)
    assert fresh_verdict(kernel, case, seed=5).passed
    assert addresses(kernel) == before
    described = kernel.describe()
    assert json.loads(json.dumps(described)) == described
    assert described["chosen_by"] == "a model of the device"
    assert "wgmma" in described["instructions"][0] or "mma.sync" in described["instructions"][0]


def test_a_refill_prepacks_again_and_launches_nothing(plug: Plug) -> None:
    launches: list[Launch] = []
    plug(launches.append)
    kernel = prepared(W4, sets=2)
    kernel.refill(1)
    given = [_words_of(kernel, launches, index).clone() for index in range(2)]
    assert not torch.equal(*given)
    launches.clear()
    kernel.refill(2)
    assert not launches
    assert not torch.equal(_words_of(kernel, launches, 0), given[0])


def _words_of(kernel: LaunchedKernel, launches: list[Launch], set_index: int) -> torch.Tensor:
    kernel.enqueue(set_index)
    words: torch.Tensor = launches[-1].arguments["w"].base
    return words


@pytest.mark.parametrize("rung", [W4, W8, MX4, BLOCKS], ids=lambda rung: rung.name)
def test_what_is_native_multiplies_as_the_format_says(plug: Plug, rung: Rung) -> None:
    plug(compute_rung)
    kernel = prepared(rung)
    assert (kernel.execution, kernel.describe()["emulation"]) == ("native", "")


def test_mxfp8_is_emulated_by_passes_that_a_launch_makes_first(plug: Plug) -> None:
    launches: list[Launch] = []
    plug(lambda launch: (launches.append(launch), compute_rung(launch)))
    kernel = prepared(MX8)
    described = kernel.describe()
    assert kernel.execution == "emulated"
    assert described["emulation"] == "operands converted to bf16, then a bf16 matmul"
    assert (described["passes"], described["executed_pipe"]) == (["mxfp8_to_bf16"] * 2, "bf16")
    m, n, k = SIZES
    assert described["passing_bytes"] == 2 * (m + n) * k
    kernel.refill(1)
    kernel.enqueue(0)
    assert len(launches) == 3


def test_a_device_without_descriptors_is_given_pointers(plug: Plug) -> None:
    launches: list[Launch] = []
    plug(lambda launch: (launches.append(launch), compute_rung(launch)), AMPERE)
    kernel = prepared(W4, device=AMPERE)
    assert fresh_verdict(kernel, W4.case(*SIZES), seed=4).passed
    assert kernel.describe()["loads"] == "pointers"
    assert isinstance(launches[0].arguments["w"], torch.Tensor)
    assert launches[0].constants["DESCRIBED"] is False


def test_sizes_of_one_are_no_constants_that_break_a_kernel(plug: Plug) -> None:
    plug(compute_rung)
    for rung, k in ((W4, 128), (W8, 64), (MX4, 128), (BLOCKS, 128), (MX8, 32)):
        case = rung.case(1, 1, k)
        assert fresh_verdict(prepared(rung, 1, 1, k), case, seed=4).passed, rung.name


def scaled_by(monkeypatch: pytest.MonkeyPatch, factor: float, *operands: QuantisedOperand) -> None:
    """Data of a magnitude that the distributions have not, in these operands or in all that are quantised."""
    fill = Quantised.fill
    only = [id(each.quantised) for each in operands]

    def scaled(quantised: Quantised, rows: Rows) -> None:
        taken = factor if not only or id(quantised) in only else 1.0
        fill(quantised, lambda start, stop: rows(start, stop) * taken)

    monkeypatch.setattr(Quantised, "fill", scaled)


def wrong_by(kernel: LaunchedKernel) -> float:
    """Of the first set, as a share of the norm; weights are mxfp4."""
    each = kernel.input_sets[0]
    expected = each.operands[0].data.double() @ dequantise(quantised_of(each.operands[1])).t()
    return float((each.output.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize(("factor", "format_name"), [(1.0, "mxfp4"), (2.0**-80, "mxfp4_full"), (2.0**80, "mxfp4_full")])
def test_the_conversion_is_chosen_by_the_scales(
    plug: Plug, monkeypatch: pytest.MonkeyPatch, factor: float, format_name: str
) -> None:
    launches: list[Launch] = []
    plug(lambda launch: (launches.append(launch), compute_rung(launch)))
    scaled_by(monkeypatch, factor)
    kernel = prepared(MX4)
    kernel.refill(4)
    kernel.enqueue(0)
    assert launches[-1].constants["FORMAT"] == format_name
    assert kernel.describe()["conversion"] == f"{format_name} to bf16 in registers"
    assert wrong_by(kernel) < 0.01


@pytest.mark.parametrize("set_index", [0, 1])
def test_the_scales_of_one_set_choose_for_all(plug: Plug, monkeypatch: pytest.MonkeyPatch, set_index: int) -> None:
    launches: list[Launch] = []
    plug(lambda launch: (launches.append(launch), compute_rung(launch)))
    kernel = prepared(MX4, sets=2)
    weights = kernel.input_sets[set_index].operands[1]
    assert isinstance(weights, QuantisedOperand)
    scaled_by(monkeypatch, 2.0**80, weights)
    kernel.refill(4)
    for each in range(2):
        kernel.enqueue(each)
    assert [launch.constants["FORMAT"] for launch in launches] == ["mxfp4_full"] * 2


def test_a_kernel_for_all_scales_stays_when_they_become_ordinary(plug: Plug, monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[Launch] = []
    plug(launches.append)
    kernel = prepared(MX4)
    with monkeypatch.context() as patch:
        scaled_by(patch, 2.0**80)
        kernel.refill(4)
    kernel.refill(5)
    kernel.enqueue(0)
    assert launches[-1].constants["FORMAT"] == "mxfp4_full"


def test_scales_that_a_captured_kernel_does_not_take_are_an_error(plug: Plug, monkeypatch: pytest.MonkeyPatch) -> None:
    plug(compute_rung)
    kernel = prepared(MX4)
    kernel.refill(4)
    scaled_by(monkeypatch, 2.0**80)
    with pytest.raises(UsageError, match=r"need the conversion mxfp4_full, .* prepare the case anew, or take implementation"):
        kernel.refill(5)


def test_scales_that_no_kernel_takes_are_an_error(plug: Plug, monkeypatch: pytest.MonkeyPatch) -> None:
    plug(compute_rung)
    kernel = prepared(MX4)
    scaled_by(monkeypatch, 2.0**-125)
    with pytest.raises(UsageError, match=r"mxfp4 weights have scales from 2\^-12\d"):
        kernel.refill(4)


def test_weights_that_are_not_finite_come_out_as_nan(plug: Plug, monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[Launch] = []
    plug(lambda launch: (launches.append(launch), compute_rung(launch)))
    kernel = prepared(MX4)
    scaled_by(monkeypatch, float("inf"))
    kernel.refill(4)
    kernel.enqueue(0)
    assert launches[-1].constants["FORMAT"] == "mxfp4_full"
    assert kernel.input_sets[0].output.isnan().all()


CONFIGS = [Config(64, 16, 1, 4, stages, split) for split in (0, 2) for stages in (2, 3)]


def tuned_on(plug: Plug, monkeypatch: pytest.MonkeyPatch, wrong: Any = lambda launch: False) -> LaunchedKernel:
    """A device on which a split is the faster, by a script."""
    cuda = FakeCuda()

    def launched(launch: Launch) -> None:
        def work() -> None:
            cuda.device_s += 1e-5 if launch.constants.get("SPLIT") else 2e-5
            if not wrong(launch):
                compute_rung(launch)

        cuda.run(work)

    plug(launched)
    monkeypatch.setattr(weight_config, "candidates", lambda problem, device: [*CONFIGS, Config(64, 16, 1, 4, 2, 3)])
    monkeypatch.setattr(kernel_module, "prepare", partial(kernel_module.prepare, cuda=cuda))
    return prepared(W4, sets=2, tuned=True)


def test_the_fastest_configuration_is_found_recorded_and_launched(plug: Plug, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tuned_on(plug, monkeypatch)
    described = kernel.describe()
    assert json.loads(json.dumps(described)) == described
    assert (described["chosen_by"], described["programs_per_tile"], described["untried"]) == ("trial", 2, 0)
    assert described["tuning_s"] > 0
    assert [each["time_s"] for each in described["tried"]] == pytest.approx([1e-5, 1e-5, 2e-5, 2e-5])
    (why,) = described["refused"].values()
    assert why == "64x16, 1 blocks, 4 warps, 2 stages, split 3 has more parts than the 2 turns of its loop over k=256"
    assert fresh_verdict(kernel, W4.case(*SIZES), seed=9).passed


def test_a_fast_configuration_that_is_wrong_is_not_chosen(plug: Plug, monkeypatch: pytest.MonkeyPatch) -> None:
    described = tuned_on(plug, monkeypatch, wrong=lambda launch: launch.constants.get("SPLIT") == 2).describe()
    assert "programs_per_tile" not in described
    assert sum("away from that of the first configuration" in why for why in described["refused"].values()) == 2


@pytest.mark.parametrize("rung", QUANTISED, ids=lambda rung: rung.name)
def test_buffers_are_given_back(plug: Plug, rung: Rung) -> None:
    launches: list[Launch] = []
    plug(launches.append)
    kernel = prepared(rung)
    kernel.refill(1)
    kernel.enqueue(0)
    held = [weakref.ref(each) for each in launches[-1].arguments.values() if isinstance(each, torch.Tensor)]
    output = weakref.ref(kernel.input_sets[0].output)
    launches.clear()
    kernel.close()
    assert output() is None
    assert not [each for each in held if each() is not None]
    assert kernel.describe()["registers"] == 168


@pytest.mark.parametrize("rung", QUANTISED, ids=lambda rung: rung.name)
def test_what_was_never_launched_gives_its_buffers_back_at_once(rung: Rung) -> None:
    """Without waiting for a collection: a case that failed makes room for the next."""
    case = rung.case(*SIZES)
    gc.disable()
    try:
        buffers = buffers_of(case, 1)
        held = [weakref.ref(tensor) for tensor in (buffers[0].a.data, buffers[0].b.data, buffers[0].output)]
        problem = ladder.problem_of(case)
        assert isinstance(problem, Problem)
        product = product_of(problem, HOPPER, buffers)
        del buffers, product
        assert not [each for each in held if each() is not None]
    finally:
        gc.enable()
