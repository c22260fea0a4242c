"""A case made ready through Triton's own compiler and launch path, on a device that computes on the host."""

import json
import weakref
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from triton.tools.tensor_descriptor import TensorDescriptor

from backends.torch import jobs
from backends.torch.kernel import TorchKernel
from backends.triton.gemm import kernel as kernel_module
from backends.triton.gemm import port
from backends.triton.gemm.config import Config
from backends.triton.gemm.device import Device
from backends.triton.gemm.kernel import Trials
from suite.case import Case
from tests.backends.cases import addresses, fresh_verdict, gemm_case
from tests.backends.fake_cuda import FakeCuda
from tests.backends.triton.conftest import ANY, Plug
from tests.backends.triton.fake_driver import STREAM, Launch, compute
from tests.peers import gemm_implementations

AMPERE = Device("80", 108, 166_912)


def triton_case(format_name: str, *sizes: int, implementation: str = "triton", **options: Any) -> Case:
    return replace(gemm_case(format_name, *sizes, **options), implementation=implementation)


def prepared(case: Case, sets: int = 1) -> TorchKernel:
    assert jobs.reason(case, ANY) is None
    return jobs.prepare(case, ANY, sets, seed=3)


@pytest.mark.parametrize(
    ("format_name", "layout", "sizes"),
    [("bf16", "nt", (96, 80, 64)), ("fp8_e4m3", "tn", (96, 80, 64)), ("int8", "nn", (33, 17, 9))],
)
def test_a_launch_is_given_what_the_product_needs(plug: Plug, format_name: str, layout: str, sizes: tuple[int, ...]) -> None:
    launches: list[Launch] = []
    plug(lambda launch: (launches.append(launch), compute(launch)))
    case = triton_case(format_name, *sizes, layout=layout)
    kernel = prepared(case)
    assert not launches, "nothing is launched before it is asked for"
    assert fresh_verdict(kernel, case, seed=4).passed
    (launch,) = launches
    assert launch.stream == STREAM
    assert [launch.arguments[name] for name in "mnk"] == list(sizes)
    assert launch.constants["SCALES"] == ("tensor" if format_name == "fp8_e4m3" else "none")


def test_each_set_has_its_own_descriptors_made_once(plug: Plug) -> None:
    launches: list[Launch] = []
    plug(launches.append)
    kernel = prepared(triton_case("bf16", 64, 64, 64), sets=3)
    for _ in range(2):
        for set_index in (2, 0, 1):
            kernel.enqueue(set_index)
    given = [launch.arguments["a_desc"] for launch in launches]
    assert all(isinstance(each, TensorDescriptor) for each in given)
    assert [id(each) for each in given[:3]] == [id(each) for each in given[3:]]
    buffers = [each.operands[0].data.data_ptr() for each in kernel.input_sets]
    assert [each.base.data_ptr() for each in given[:3]] == [buffers[index] for index in (2, 0, 1)]


def test_fresh_data_goes_into_the_buffers_that_the_launches_know(plug: Plug) -> None:
    plug(compute)
    case = triton_case("fp16", 64, 48, 32)
    kernel = prepared(case, sets=2)
    before = addresses(kernel)
    assert fresh_verdict(kernel, case, seed=5).passed
    assert fresh_verdict(kernel, case, seed=6).passed
    assert addresses(kernel) == before


def test_the_description_says_how_the_product_is_cut_and_what_the_kernel_became(plug: Plug) -> None:
    plug(compute)
    described = prepared(triton_case("bf16", 4096, 512, 64)).describe()
    assert json.loads(json.dumps(described)) == described
    assert described["kernel"] == "gemm_by_descriptors"
    assert described["loads"] == "tensor descriptors"
    assert (described["registers"], described["spilled_words"]) == (168, 0)
    assert described["tiles"].count("x") == 2
    assert described["stages"] >= 2
    assert 0 < described["shared_bytes"] <= 232_448
    assert any(name.startswith("wgmma") for name in described["instructions"])
    assert (described["emulation"], described["chosen_by"]) == ("", "a model of the device")
    assert described["switches_without_effect"] == ["reduced_precision_reduction"]


def test_a_device_without_descriptors_has_pointers_and_one_program_a_tile(plug: Plug) -> None:
    launches: list[Launch] = []
    plug(lambda launch: (launches.append(launch), compute(launch)), AMPERE)
    case = triton_case("bf16", 200, 136, 64)
    kernel = prepared(case)
    assert fresh_verdict(kernel, case, seed=4).passed
    described = kernel.describe()
    block_m, block_n, _ = (int(size) for size in described["tiles"].split("x"))
    assert launches[0].grid == (-(-200 // block_m) * -(-136 // block_n), 1, 1)
    assert described["loads"] == "pointers: sm_80 has no tensor descriptors"


def test_sizes_of_one_are_no_constants_that_break_a_kernel(plug: Plug) -> None:
    """Triton compiles an argument that is 1 into the kernel, where it is no tensor any more."""
    plug(compute)
    for sizes, layout in (((1, 16, 16), "tn"), ((16, 1, 16), "nn"), ((16, 16, 1), "nt"), ((1, 1, 1), "tt")):
        case = triton_case("fp16", *sizes, layout=layout)
        assert fresh_verdict(prepared(case), case, seed=4).passed


class Scripted:
    """A device on which a configuration's launch takes what ``seconds`` says, and ``broken`` ones write nothing."""

    def __init__(self, seconds: Any, broken: Any = lambda launch: False) -> None:
        self.cuda = FakeCuda()
        self._seconds, self._broken = seconds, broken

    def launched(self, launch: Launch) -> None:
        def work() -> None:
            self.cuda.device_s += self._seconds(launch)
            if not self._broken(launch):
                compute(launch)

        self.cuda.run(work)


@pytest.fixture
def tuned(plug: Plug, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Prepare a small tuned case on a scripted device, with few configurations to compile."""
    configs = [Config(64, 32, 64, 4, stages, 8, flatten=flatten) for flatten in (True, False) for stages in (2, 3)]
    monkeypatch.setattr(port, "default", lambda problem, device: configs[0])
    monkeypatch.setattr(port, "candidates", lambda problem, device: configs)

    def prepare(device: Scripted) -> TorchKernel:
        plug(device.launched)
        monkeypatch.setattr(kernel_module, "prepare", partial(prepare_, cuda=device.cuda))
        return prepared(triton_case("bf16", 64, 48, 32, implementation="triton_tuned"), sets=2)

    prepare_ = kernel_module.prepare
    return prepare


def slow_unless(**wanted: Any) -> Any:
    return lambda launch: 1e-5 if all(launch.constants[name] == value for name, value in wanted.items()) else 2e-5


def test_the_fastest_configuration_is_found_recorded_and_launched(tuned: Any) -> None:
    device = Scripted(slow_unless(FLATTEN=False))
    kernel = tuned(device)
    described = kernel.describe()
    assert json.loads(json.dumps(described)) == described
    assert (described["chosen_by"], described["flattened"], described["untried"]) == ("trial", False, 0)
    assert len(described["tried"]) == 4
    assert described["tried"][0]["time_s"] == pytest.approx(1e-5)
    assert described["tried"][-1]["time_s"] == pytest.approx(2e-5)
    assert described["tuning_s"] > 0
    case = triton_case("bf16", 64, 48, 32, implementation="triton_tuned")
    before = device.cuda.device_s
    assert fresh_verdict(kernel, case, seed=9).passed
    assert device.cuda.device_s - before == pytest.approx(kernel.sets * 1e-5)


def test_a_fast_configuration_that_is_wrong_is_not_chosen(tuned: Any) -> None:
    device = Scripted(slow_unless(FLATTEN=False), broken=lambda launch: not launch.constants["FLATTEN"])
    described = tuned(device).describe()
    assert described["flattened"] is True
    assert len(described["refused"]) == 2
    assert all("away from that of the first configuration" in why for why in described["refused"].values())


def test_a_configuration_without_room_is_left_out_and_named(tuned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    configs = [Config(64, 32, 64, 4, 2, 8), Config(128, 256, 64, 8, 6, 8)]
    monkeypatch.setattr(port, "candidates", lambda problem, device: configs)
    described = tuned(Scripted(slow_unless())).describe()
    assert described["tiles"] == "64x32x64"
    (why,) = described["refused"].values()
    assert "shared memory" in why


def test_a_sweep_without_time_still_has_its_default(plug: Plug, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Scripted(slow_unless(FLATTEN=False))
    plug(device.launched)
    kernel = prepared(triton_case("bf16", 64, 48, 32))
    monkeypatch.setattr(kernel_module, "Trials", partial(Trials, cuda=device.cuda))
    ((label, time_s),) = gemm_implementations.tried(kernel, 0.0).items()
    assert label.startswith(str(kernel.describe()["tiles"]))
    assert time_s == pytest.approx(2e-5)


def test_buffers_are_given_back(plug: Plug) -> None:
    plug(compute)
    kernel = prepared(triton_case("bf16", 64, 64, 64))
    output = weakref.ref(kernel.input_sets[0].output)
    kernel.close()
    assert output() is None
    assert kernel.describe()["registers"] == 168
