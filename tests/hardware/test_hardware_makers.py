"""A device is not held against the sheet of something that it cannot be."""

from dataclasses import replace

import pytest

from suite.backend import DeviceInfo
from suite.errors import UsageError
from suite.hardware.assign import assign, check_named
from suite.hardware.catalogue import all_specs, load
from suite.hardware.makers import CPU, maker, makers, why_not
from suite.hardware.match import match
from suite.hardware.runtime import DeviceName, Runtime
from tests.hardware.devices import device

H200 = load("nvidia-h200-sxm5-141gb")
EPYC = device("AMD EPYC", "cpu", 8192, visible_units=2, max_clock_hz=2.6e9, isa=("avx2", "fma"))


def xla(platform: str) -> DeviceInfo:
    return device("anything", "xla", details={"platform": platform})


@pytest.mark.parametrize(
    ("info", "sheet", "may_be"),
    [
        (EPYC, "nvidia-h200-sxm5-141gb", False),
        (EPYC, "amd-mi300x", False),
        (device("NVIDIA H200"), "nvidia-h200-sxm5-141gb", True),
        (device("a renamed board"), "nvidia-h100-sxm5-80gb", True),
        (device("NVIDIA H200"), "amd-mi300x", False),
        (device("AMD Instinct MI300X", "rocm"), "amd-mi300x", True),
        (device("AMD Instinct MI300X", "rocm"), "nvidia-l4", False),
        (xla("cpu"), "google-tpu-v6e", False),
        (xla("tpu"), "google-tpu-v6e", True),
        (xla("tpu"), "nvidia-l4", False),
        (xla("gpu"), "nvidia-l4", True),
        (xla("gpu"), "amd-mi300x", True),
        (xla("gpu"), "google-tpu-v6e", False),
        (device("anything", "of_my_own"), "intel-gaudi3", True),
    ],
    ids=lambda value: value.backend if isinstance(value, DeviceInfo) else str(value),
)
def test_a_sheet_of_another_maker_or_kind_is_refused(info: DeviceInfo, sheet: str, may_be: bool) -> None:
    assert (why_not(load(sheet), info) == "") is may_be
    if may_be:
        check_named(info, sheet)
        return
    with pytest.raises(UsageError, match=f"hardware={sheet} cannot describe what is measured: .*leave hardware out"):
        check_named(info, sheet)


def test_the_refusal_names_the_device_and_what_the_sheet_is_of() -> None:
    assert why_not(H200, EPYC) == "cpu device 0 (AMD EPYC) is a CPU, and nvidia-h200-sxm5-141gb of NVIDIA"


def test_no_sheet_of_the_table_is_a_cpu_s_and_a_derived_one_is() -> None:
    assert CPU not in {maker(spec) for spec in all_specs()}
    derived = match(EPYC).spec
    assert derived is not None
    assert maker(derived) == CPU
    own = replace(H200, vendor="AMD", unit_name="core")  # as a user writes one of an EPYC
    assert why_not(own, EPYC) == ""
    assert why_not(own, device("AMD Instinct MI300X", "rocm")) != ""
    assert makers("of_my_own", {}) == ()


def test_another_sheet_than_the_device_s_own_is_said_and_its_own_or_an_unknown_device_s_is_not() -> None:
    h200 = device("NVIDIA H200", memory_mib=143_771, visible_units=132)
    assert check_named(h200, "nvidia-h200-sxm5-141gb") == ""
    assert check_named(h200, "nvidia-h100-sxm5-80gb") == (
        "cuda device 0 is held against hardware=nvidia-h100-sxm5-80gb as asked; by its runtime name 'NVIDIA H200' it would be "
        "nvidia-h200-sxm5-141gb"
    )
    assert check_named(device("NVIDIA H200 of another name"), "nvidia-h200-sxm5-141gb") == ""


def test_a_partition_gets_its_share_of_a_named_sheet_and_says_where_it_does_not() -> None:
    part = device("NVIDIA H200 MIG 1g.18gb", memory_mib=16_384, visible_units=16, partition="MIG 1g.18gb")
    found = assign(part, "nvidia-h200-sxm5-141gb")
    assert found.spec is not None
    assert found.spec.peak_flop_s("bf16") == pytest.approx(989.5e12 * 16 / 132)
    assert found.reason.startswith("named by the user; MIG 1g.18gb: 16 of 132 SMs, 1/8 of memory and bandwidth")
    strange = assign(device("renamed", visible_units=132, partition="half of it"), "nvidia-h200-sxm5-141gb")
    assert strange.spec is not None
    assert strange.spec.peak_flop_s("bf16") == 989.5e12
    assert "figures of the whole: partition 'half of it' is none that the sheet" in strange.reason


XEON = device("Intel(R) Xeon(R) Processor", "cpu")
NEOVERSE = device("ARM Neoverse-V2", "cpu")


@pytest.mark.parametrize(
    ("info", "vendor", "refused"),
    [
        (EPYC, "Intel", True),
        (EPYC, "AMD", False),
        (XEON, "AMD", True),
        (XEON, "Intel Corporation", False),
        (XEON, "Somebody", False),
        (NEOVERSE, "Intel", False),
        (device("Intel(R) Xeon(R) Processor", "xla", details={"platform": "cpu"}), "AMD", True),
        (device("Amdahl 1", "cpu"), "Intel", False),
    ],
)
def test_a_sheet_of_another_maker_s_cpu_is_refused_where_both_are_known(info: DeviceInfo, vendor: str, refused: bool) -> None:
    sheet = replace(H200, id="my-cpu", vendor=vendor, unit_name="core", runtime=Runtime())
    assert bool(why_not(sheet, info)) is refused
    named = replace(sheet, runtime=Runtime(device_names=(DeviceName(info.name, "", (), "high"),)))
    assert why_not(named, info) == ""


def test_the_refusal_of_a_cpu_s_sheet_names_both_makers() -> None:
    sheet = replace(H200, id="my-xeon", vendor="Intel", unit_name="core", runtime=Runtime())
    assert why_not(sheet, EPYC) == "cpu device 0 (AMD EPYC) is a CPU of AMD, and my-xeon one of Intel"
