"""From what is asked for to the devices that are here."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from suite import cli, devices, probe
from suite.backend import DeviceInfo
from suite.commands.devices import _named
from suite.config import compose
from suite.devices import ask_backend, choose, resolve
from suite.errors import DeviceNotFound, UsageError
from suite.probe import ProbeResult


def info(index: int, name: str = "NVIDIA H200", partition: str | None = None) -> DeviceInfo:
    return DeviceInfo("cuda", index, name, f"uid{index}", 2**30, partition=partition)


class Machine:
    """Answers for backends by the class that was asked; remembers the questions."""

    def __init__(self, **answers: ProbeResult) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, target: str, options: Mapping[str, Any]) -> ProbeResult:
        name = target.partition(":")[0].removeprefix("backends.")
        self.asked.append(name)
        return self.answers.get(name, ProbeResult(()))


GPUS = ProbeResult((info(0), info(1)))
CORES = ProbeResult((DeviceInfo("cpu", 0, "Two cores", "c", 2**30),))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            "backend backends.xla:XlaBackend: DeviceNotFound: backend xla needs JAX, which is not installed; "
            "pip install 'roofbench[xla]'",
            "needs JAX, which is not installed; pip install 'roofbench[xla]'",
        ),
        ("backend backends.xla:XlaBackend: DeviceNotFound: JAX finds no TPU", "none (JAX finds no TPU)"),
        ("backend backends.xla:XlaBackend: KeyError: 'x'", "none (KeyError: 'x')"),
        (
            "backend backends.xla:XlaBackend ended with status -11 before it named its devices",
            "none (it ended with status -11 before it named its devices)",
        ),
        ("its module mine is not installed", "none (its module mine is not installed)"),
        ("", "none"),
    ],
)
def test_a_backend_that_finds_nothing_says_why_without_its_classes(
    error: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(devices, "ask_backend", lambda *_: ProbeResult((), error))
    assert cli.main(["devices", "backend=xla"]) == 0
    assert capsys.readouterr().out == f"xla: {said}\n"
    assert cli.main(["devices", "backend=xla", "--json"]) == 0
    assert "XlaBackend" not in capsys.readouterr().out


def test_without_a_name_each_backend_is_asked_for_what_a_run_of_it_would_find(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """JAX on a CPU without a TPU's library: ``auto`` would take JAX for a TPU only."""

    def ask(target: str, options: Mapping[str, Any]) -> ProbeResult:
        no_tpu = "JAX finds no device for platform tpu: cannot open shared object file"
        return CORES if options.get("platform", "auto") != "tpu" else ProbeResult((), no_tpu)

    monkeypatch.setattr(devices, "ask_backend", ask)
    assert cli.main(["devices", "--json"]) == 0
    rows = {row["backend"]: row["device"] for row in json.loads(capsys.readouterr().out)}
    assert cli.main(["devices", "backend=xla", "--json"]) == 0
    (named,) = json.loads(capsys.readouterr().out)
    assert rows["xla"] == named["device"]
    assert named["device"]["name"] == "Two cores"


def test_an_option_of_what_auto_chooses_from_is_asked_with() -> None:
    asked = _named(["backends.auto.options.candidates.xla.options.platform=cuda"], None)
    assert asked.backends["xla"].options == {"platform": "cuda"}


def test_auto_takes_the_first_backend_with_a_device_and_asks_no_further() -> None:
    machine = Machine(rocm=ProbeResult((info(0, "AMD Instinct MI300X"),)), cpu=CORES)
    found = resolve(compose([]), machine)
    assert list(found.config.backends) == ["rocm"]
    assert [slot.info.name for slot in found.slots if slot.info] == ["AMD Instinct MI300X"]
    assert machine.asked == ["cuda", "rocm"]


def test_auto_ends_at_the_cpu_and_says_why_when_nothing_is_there() -> None:
    assert list(resolve(compose([]), Machine(cpu=CORES)).config.backends) == ["cpu"]
    with pytest.raises(DeviceNotFound) as refused:
        resolve(compose([]), Machine(cuda=ProbeResult((), "the driver is too old")))
    assert str(refused.value) == (
        "no backend finds a device (cuda: the driver is too old; rocm: it finds no device; xla: it finds no device; "
        "cpu: it finds no device); `roofbench devices` lists what there is"
    )


NO_JAX = "backend backends.xla:XlaBackend: DeviceNotFound: backend xla needs JAX"
NO_THREADS = "backend backends.cpu:CpuBackend: UsageError: backends.cpu.options.threads='x' is not a whole number above 0"


@pytest.mark.parametrize("backend", ["xla", "auto"])
def test_a_backend_that_a_run_cannot_use_is_told_without_its_classes(backend: str) -> None:
    with pytest.raises(DeviceNotFound, match=r"backend xla needs JAX[;)]") as refused:
        resolve(compose([f"backend={backend}"]), Machine(xla=ProbeResult((), NO_JAX)))
    assert "XlaBackend" not in str(refused.value)
    assert "DeviceNotFound" not in str(refused.value)


@pytest.mark.parametrize("backend", ["cpu", "auto"])
def test_what_a_backend_refuses_as_bad_input_is_no_want_of_a_device(
    backend: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(cpu=ProbeResult((), NO_THREADS))
    monkeypatch.setattr(devices, "ask_backend", lambda target, options, at_once: machine(target, options))
    assert cli.main(["plan", f"backend={backend}"]) == 2
    assert capsys.readouterr().err == "roofbench: backends.cpu.options.threads='x' is not a whole number above 0\n"


def test_an_accelerator_that_is_passed_over_is_worth_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = tmp_path / "nvidiactl"
    monkeypatch.setitem(devices.DEVICE_NODES, "cuda", node)
    monkeypatch.setitem(devices.DEVICE_NODES, "rocm", tmp_path / "kfd")
    machine = Machine(cuda=ProbeResult((), "torch has no CUDA"), cpu=CORES)
    assert resolve(compose([]), machine).notes == ()
    node.touch()
    assert resolve(compose([]), machine).notes == (
        f"{node} is here but backend cuda cannot use it, so another device is measured: torch has no CUDA",
    )


def test_named_backends_each_need_a_device() -> None:
    slots = resolve(compose(["backend=[cpu,cuda]"]), Machine(cuda=GPUS, cpu=CORES)).slots
    assert [(slot.slot, slot.backend) for slot in slots] == [(0, "cpu"), (1, "cuda")]
    with pytest.raises(DeviceNotFound, match=r"^no device for backend 'cuda': it finds none; "):
        resolve(compose(["backend=[cpu,cuda]"]), Machine(cpu=CORES))


@pytest.mark.parametrize(("wanted", "indices"), [(0, [0]), (1, [1]), ([1, 0], [1, 0]), ("all", [0, 1])])
def test_devices_are_chosen_by_index_in_the_order_given(wanted: Any, indices: list[int]) -> None:
    assert [each.index for each in choose(GPUS.devices, wanted, "cuda")] == indices


PARTS = (info(0, "NVIDIA H200", "MIG 1g.18gb"), info(1, "NVIDIA H200", "MIG 3g.71gb"), info(2, "NVIDIA H200", "MIG 3g.71gb"))


@pytest.mark.parametrize("wanted", ["MIG 1g.18gb", "MIG-1g.18gb", "mig 1g.18gb", " MIG 1g.18gb"])
def test_a_partition_is_named_as_people_write_it(wanted: str) -> None:
    assert choose(PARTS, wanted, "cuda") == [PARTS[0]]


def test_a_name_that_fits_several_or_none_lists_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"fits several devices of backend 'cuda'; choose by index: 1, 2$"):
        choose(PARTS, "MIG 3g.71gb", "cuda")
    with pytest.raises(DeviceNotFound, match=r"device=MIG 7g is not among .* \(MIG 1g\.18gb, MIG 3g\.71gb\)"):
        choose(PARTS, "MIG 7g", "cuda")
    with pytest.raises(DeviceNotFound, match=r"^device=7 is not among the devices of backend 'cuda' \(0, 1\)"):
        choose(GPUS.devices, [0, 7], "cuda")


def test_a_backend_that_is_not_installed_costs_no_child_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> ProbeResult:
        raise AssertionError("a child process was started")

    monkeypatch.setattr(probe, "probe", never)
    assert ask_backend("nowhere:Backend", {}) == ProbeResult((), "its module nowhere is not installed")
    assert ask_backend("nowhere.at.all:Backend", {}).error == "its module nowhere.at.all is not installed"


def test_a_backend_that_this_version_does_not_have_is_no_installation_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "built_in", lambda: ["cpu", "cuda", "tpu"])
    said = ask_backend("backends.nowhere:Backend", {})
    assert said == ProbeResult((), "not built into this version of roofbench, which has cpu, cuda and tpu")


def test_what_this_version_has_is_what_can_be_imported() -> None:
    found = devices.built_in()
    assert {"cpu", "cuda"} <= set(found)
    assert all(not devices.missing(f"backends.{name}:Backend") for name in found)
    assert "auto" not in found
