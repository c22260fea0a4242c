"""Prints of real TPUs and torch devices: how many devices each one was, and which sheet they get, if any."""

import re
from types import SimpleNamespace
from typing import Any

import pytest

from backends.xla import XlaBackend
from suite.backend import DeviceInfo
from suite.hardware.match import match
from tests.hardware.devices import MIB, device
from tests.hardware.tpus import FOLDER, chips, memory, printed, text


def described(devices: list[Any]) -> list[DeviceInfo]:
    """As the XLA backend describes them."""
    backend = XlaBackend({"platform": "tpu"})
    backend.__dict__["_jax_devices"] = devices
    return list(backend.devices())


def on_jax(kind: str, memory_gib: float) -> Any:
    return match(device(kind, "xla", memory_gib * 1024, details={"platform": "tpu"}))


def test_sixteen_chips_of_four_processes() -> None:
    """Ids are out of order, and a device is known by its own, not by its place in the list."""
    devices = printed("jax_devices_16_four_processes.txt")
    assert [each.id for each in devices[:6]] == [0, 1, 4, 5, 2, 3]
    assert [[each.process_index for each in devices].count(process) for process in range(4)] == [4] * 4
    assert {each.core_on_chip for each in devices} == {0}
    infos = described(devices)
    assert len({info.uid for info in infos}) == len(infos) == 16
    in_order = described(sorted(devices, key=lambda each: each.id))
    assert infos[2].uid == in_order[4].uid


@pytest.mark.parametrize(("kind", "memory_gib", "chip_tflop_s"), [("TPU v2", 7.48, 46), ("TPU v3", 15.48, 123)])
def test_two_cores_of_a_chip_are_one_chip_s_peak(kind: str, memory_gib: float, chip_tflop_s: float) -> None:
    devices = printed("jax_devices_8_cores_v2v3.txt", kind, memory_gib)
    assert (len(devices), len({each.coords for each in devices})) == (8, 4)
    assert [each.core_on_chip for each in devices] == [0, 1] * 4
    specs = [match(info).spec for info in described(devices)]
    together = sum(spec.peak_flop_s("bf16") or 0 for spec in specs if spec is not None)
    assert together == pytest.approx(4 * chip_tflop_s * 1e12)


def test_a_process_has_its_own_four_devices() -> None:
    devices = printed("jax_process3_mesh_print.txt")
    assert [each.id for each in devices] == [10, 11, 14, 15]
    assert {each.process_index for each in devices} == {3}
    assert [info.details["process_index"] for info in described(devices)] == ["3"] * 4
    other = re.findall(r"TPU_(\d+)\(process=(\d),\((\d),(\d),(\d),(\d)\)\)", text("jax_process3_mesh_print.txt"))
    spelt = {(int(number), *map(int, (x, y, z))) for number, _, x, y, z, _ in other}
    assert spelt == {(each.id, *each.coords) for each in devices}


def test_a_list_that_is_printed_three_times_is_of_four_devices() -> None:
    """A serving engine's line: 95.74 GiB of each chip are a v5p's."""
    line = text("tpu_worker_init_hbm.log")
    assert line.count("TpuDevice(id=0,") == 3
    hbm = [float(total) for total in re.findall(r"\(0\.0, ([\d.]+)\)", line)]
    devices = printed("tpu_worker_init_hbm.log", "TPU v5", hbm[0])
    assert hbm == [95.74] * len(devices) == [95.74] * 4
    infos = described(devices)
    assert {match(info).hardware for info in infos} == {"google-tpu-v5p"}
    assert infos[0].memory_bytes == round(95.74 * 2**30)


@pytest.mark.parametrize(
    ("file", "count", "kind", "total_gib", "hardware"),
    [
        ("tpu_info_v4_cores.txt", 4, "TPU v4", 30.75, "google-tpu-v4"),
        ("tpu_info_v4_devices.txt", 4, "TPU v4", 31.75, "google-tpu-v4"),
        ("tpu_info_v6e_static.md", 4, "TPU v6e", 31.25, "google-tpu-v6e"),
        ("tpu_info_v6e_streaming.md", 4, "TPU v6e", 31.25, "google-tpu-v6e"),
    ],
)
def test_chips_as_their_tool_prints_them(file: str, count: int, kind: str, total_gib: float, hardware: str) -> None:
    """Two prints of a v4 differ by a gibibyte: what is printed is taken, and either is within reach of the label."""
    assert [(name, each) for _, name, each in chips(file)] == [(kind, 1)] * count
    assert [total for _, total in memory(file).values()] == [total_gib] * count
    found = on_jax(kind, total_gib)
    assert found.hardware == hardware
    assert found.spec.memory_bytes == round(total_gib * 1024) * MIB
    assert on_jax(f"{kind} chip", total_gib).hardware is None, "the tool's words are no kind of JAX's"


def test_memory_in_use_is_that_of_each_chip() -> None:
    assert [used for used, _ in memory("tpu_info_v6e_static.md").values()] == [18.45, 10.40, 10.40, 10.40]
    assert set(memory("tpu_info_v4_devices.txt").values()) == {(0.0, 31.75)}
    metric = memory("tpu_info_metric_two.md")
    assert list(metric) == list(range(8))
    assert [used for used, _ in metric.values()] == [29.50, *[21.50] * 7]
    assert {total for _, total in metric.values()} == {31.25}
    assert on_jax("TPU v6 lite", 31.25).hardware == "google-tpu-v6e"
    assert on_jax("TPU v5 lite", 31.25).hardware is None, "twice a v5e's memory"


def test_three_ways_of_numbering_the_same_chips() -> None:
    said = text("tpu_info_v6e_streaming.md")
    assert [path for path, _, _ in chips("tpu_info_v6e_streaming.md")] == [f"/dev/vfio/{number}" for number in range(4)]
    assert list(memory("tpu_info_v6e_streaming.md")) == [8, 9, 12, 13]
    assert re.findall(r"^\| (\d) +\| +[\d.]+% ", said, re.MULTILINE) == ["0", "1", "2", "3"]


def test_a_duty_cycle_is_no_use_of_the_matrix_units() -> None:
    """100 % of the one, 14 % of the other; neither is read."""
    said = text("tpu_info_v6e_static.md")
    assert re.findall(r"GiB \| +([\d.]+)%", said) == ["100.00"] * 4
    cores = [float(share) for share in re.findall(r"^\| \d +\| ([\d.]+)%", said, re.MULTILINE)]
    assert cores == [13.60, 14.81, 14.36, 13.60]


# --- prints of torch's properties ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "memory_mib", "units", "hardware"),
    [
        ("NVIDIA H100 80GB HBM3", 81_082, 132, "nvidia-h100-sxm5-80gb"),
        ("NVIDIA H20", 97_285, 78, "nvidia-h20-96gb"),
        ("NVIDIA B200", 182_631, 148, "nvidia-b200-sxm"),
        ("NVIDIA Tegra X1", 3956, 1, None),
    ],
)
def test_nvidia_devices_of_torch(name: str, memory_mib: int, units: int, hardware: str | None) -> None:
    """MB there are MiB."""
    said = _nvidia(name)
    assert (int(said["total_memory"]), int(said["multi_processor_count"])) == (memory_mib, units)
    assert match(device(name, memory_mib=memory_mib, visible_units=units)).hardware == hardware


def test_versions_of_torch_tell_more_or_less() -> None:
    lines = [line for line in (FOLDER.parent / "torch/torch_device_properties_a.txt").read_text().splitlines() if line]
    assert len(lines) == 8
    older, newer = (line for line in lines if "H100" in line)
    assert ("uuid" in older, "uuid" in newer) == (False, True)
    assert (_nvidia("NVIDIA B200")["pci_bus_id"], _nvidia("NVIDIA B200")["L2_cache_size"]) == ("81", "126")


def _nvidia(name: str) -> dict[str, str]:
    """Of the first print with this name; sizes without their MB."""
    lines = (FOLDER.parent / "torch/torch_device_properties_a.txt").read_text().splitlines()
    line = next(each for each in lines if f"'{name}'" in each)
    return dict(re.findall(r"(\w+)=(\w+?)(?:MB)?[,)]", line))


def test_a_device_that_jax_knows_less_of_is_described_as_far_as_it_goes() -> None:
    """Older clients tell no memory at all: none is made up, and the sheet's stands."""
    (info,) = described([SimpleNamespace(**{**vars(printed("jax_process3_mesh_print.txt")[0]), "memory_stats": lambda: None})])
    assert (info.memory_bytes, info.llc_bytes, info.max_clock_hz) == (0, None, None)
    found = match(info)
    assert found.spec is not None
    assert found.spec.memory_bytes == 32 * 2**30
