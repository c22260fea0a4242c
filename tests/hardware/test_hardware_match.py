"""Devices as runtimes really report them, each to its own sheet or to none."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.backend import DeviceInfo
from suite.hardware.catalogue import all_specs
from suite.hardware.match import match
from suite.hardware.spec import HardwareSpec
from tests.hardware.devices import described, device

NAMES = [(spec, name) for spec in all_specs() for name in spec.device_names]

# Exact strings that runtimes and vendor tools print, none of which is an accelerator with a sheet.
STRANGERS = [
    "NVIDIA Graphics Device",  # a GB200 in early drivers
    "NVIDIA GeForce ...",  # cut by nvidia-smi
    "NVIDIA B300 SXM6",
    "NVIDIA GB200 NVL72",
    "NVIDIA H100",
    "NVIDIA H100 64GB HBM2",
    "NVIDIA H100 96GB HBM3",
    "NVIDIA H200 141GB",
    "NVIDIA H20-3e-x",
    "NVIDIA H800 PCIe",
    "NVIDIA A100",
    "NVIDIA A800-SXM4-80GB",
    "NVIDIA A100X",
    "NVIDIA A10M",
    "NVIDIA L20",
    "NVIDIA L20Y",
    "NVIDIA L40",
    "NVIDIA RTX A6000",
    "NVIDIA RTX 6000 Ada Generation",
    "NVIDIA GeForce RTX 4090 D",
    "NVIDIA GeForce RTX 3090 Ti",
    "NVIDIA GeForce RTX 5090 Laptop GPU",
    "NVIDIA GeForce GTX 1050 Ti",
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    "NVIDIA Thor",
    "Orin (nvgpu)",
    "NVIDIA Tegra X1",
    "Tesla V100-PCIE-16GB",
    "Tesla V100-FHHL-16GB",
    "Tesla P100-PCIE-16GB",
    "Tesla K80",
    "Quadro GV100",
    "GRID V100D-8C",
    "GRID T4-16Q",
    "NVIDIA A40-48Q",
    "NVIDIA L40S-48C",
    "NVIDIA A100-3-20C",
    "AMD Radeon Graphics",
    "AMD Radeon 8060S",
    "AMD Radeon RX 7900 XT",
    "AMD INSTINCT MI250 (MCM) OAM AC MBA",
    "AMD Instinct MI250",
    "AMD Instinct MI308X",
    "AMD Instinct MI300X HF",
    "AMD Instinct MI300A Accelerator",
    "MI300X-O",
    "FirePro W4300",
    "gfx942",
    "gfx90a:sramecc+:xnack-",
    "TPU v5 lite pod",
    "TPU v4 lite",
    "TPU v8",
    "TPU",
    "Intel(R) Data Center GPU Max 1100",
    "Intel(R) Arc(TM) Pro B70 Graphics",
    "GAUDI",
    "trn3",
    "Intel(R) Xeon(R) Platinum 8470",
    "",
]


@pytest.mark.parametrize(("spec", "name"), NAMES, ids=[name for _, name in NAMES])
def test_every_runtime_name_finds_its_own_sheet(spec: HardwareSpec, name: str) -> None:
    found = match(described(spec, name))
    assert found.hardware == spec.id, found.reason
    assert found.spec is not None
    devices = spec.runtime.parts.devices if spec.runtime.parts else 1
    for pipe in ("bf16", "fp32", "int8"):
        peak = spec.peak_flop_s(pipe)
        assert found.spec.peak_flop_s(pipe) == pytest.approx(peak / devices if peak else None)


def test_every_name_against_all_sheets() -> None:
    """The facts of one device under the name of another: the name's own sheet or none, and never the facts' sheet."""
    for spec, own in NAMES:
        facts = described(spec, own)
        for other, name in NAMES:
            if other.id != spec.id:
                assert match(replace(facts, name=name)).hardware in (other.id, None)


@pytest.mark.parametrize("name", STRANGERS)
def test_a_device_without_a_sheet_is_unknown(name: str) -> None:
    for backend, memory_mib, units in itertools.product(("cuda", "rocm", "xla", "xpu"), (0, 81559, 196592), (None, 132, 304)):
        found = match(device(name, backend, memory_mib, visible_units=units, max_clock_hz=1.98e9))
        assert found.spec is None
        assert found.hardware is None
        assert found.reason


AFFIXES = [
    "X",
    " X",
    "-X",
    "0",
    " 80GB",
    " PCIe",
    " SXM",
    " NVL",
    " Ti",
    " D",
    "e",
    "-8C",
    "-40Q",
    " (2)",
    " MIG",
    " MIG 9x",
    "NVIDIA ",
    "GRID ",
    "G",
]


CHANGES: dict[str, Callable[[str], set[str]]] = {
    **{affix: lambda name, affix=affix: {name + affix, affix + name} for affix in AFFIXES},  # type: ignore[misc]
    "cut": lambda name: {name[:-1], name[1:]},
    "in another case": lambda name: {name.lower(), name.upper()},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_known_name_with_anything_added_or_changed_is_unknown(change: Callable[[str], set[str]]) -> None:
    """The cross product that substring matching fails on: GB200 holds B200, H200 holds H20, A10G holds A10."""
    known = {name for _, name in NAMES}
    for spec, name in NAMES:
        info = described(spec, name)
        for changed in change(name) - known:
            found = match(device(changed, memory_mib=info.memory_bytes / 2**20, visible_units=info.visible_units))
            assert found.spec is None, f"{changed!r} was taken for {found.hardware}"


@given(st.text(max_size=60), st.integers(0, 2**39), st.none() | st.integers(1, 400), st.none() | st.text(max_size=8))
def test_no_invented_device_gets_a_sheet(name: str, memory: int, units: int | None, partition: str | None) -> None:
    if name.strip() in {known for _, known in NAMES}:
        return
    info = DeviceInfo("cuda", 0, name, "uid", memory, architecture="sm_90", visible_units=units, partition=partition)
    assert match(info).spec is None


# --- what the device reports -----------------------------------------------------------------------------------------


def test_what_an_h200_reports_outranks_the_sheet_except_for_peaks() -> None:
    info = device(
        "NVIDIA H200", memory_mib=143_000, visible_units=132, max_clock_hz=1.98e9, llc_bytes=50 * 2**20, architecture="sm_90"
    )
    spec = match(info).spec
    assert spec is not None
    assert spec.llc_bytes == 50 * 2**20
    assert "62,914,560" in spec.caches.l2_bytes.note
    assert spec.memory_bytes == info.memory_bytes
    assert spec.clocks.boost_hz.sources[0].kind == "device"
    assert spec.peak_flop_s("bf16") == 989.5e12
    assert spec.boost_flop_s("bf16", info.max_clock_hz or 0) == pytest.approx(1070.5e12, rel=1e-3)
    assert spec.derived is False


def test_rocm_reports_one_die_of_l2_and_the_infinity_cache_still_counts() -> None:
    """torch on an MI300X says L2_cache_size=4MB: a buffer sized by it would flush nothing."""
    info = device(
        "AMD Instinct MI300X", "rocm", 196592, architecture="gfx942:sramecc+:xnack-", visible_units=304, llc_bytes=4 * 2**20
    )
    spec = match(info).spec
    assert spec is not None
    assert spec.llc_bytes == 256 * 2**20
    assert spec.caches.l2_bytes.value == 32 * 2**20


def test_more_units_than_the_sheet_raise_the_rate_per_clock_not_the_peak() -> None:
    """B300s with 148 and with 152 SMs are sold."""
    few, many = (match(device("NVIDIA B300 SXM6 AC", memory_mib=275_040, visible_units=n)).spec for n in (148, 152))
    assert few is not None
    assert many is not None
    assert many.flop_per_clock("bf16") == pytest.approx(152 / 148 * (few.flop_per_clock("bf16") or 0))
    assert many.peak_flop_s("bf16") == few.peak_flop_s("bf16") == 2250e12
    assert "148" in many.units.note


def test_fewer_units_without_a_named_partition_are_nobodys_peak() -> None:
    """amd-smi showed an MI350X with 128 of its 256 CUs."""
    found = match(device("AMD Instinct MI350X", "rocm", 294896, architecture="gfx950", visible_units=128))
    assert found.spec is None
    assert "128 of AMD Instinct MI350X's 256 CUs and names no partition" in found.reason


@pytest.mark.parametrize(("units", "matched"), [(48, True), (96, False), (42, False)])
def test_rdna_counts_pairs_of_compute_units(units: int, matched: bool) -> None:
    found = match(device("AMD Radeon RX 7900 XTX", "rocm", 24560, architecture="gfx1100", visible_units=units))
    if matched:
        assert found.spec is not None
        assert found.spec.units.value == 96
        assert found.spec.boost_flop_s("bf16", 2.5e9) == pytest.approx(123e12, rel=0.02)
    else:
        assert found.spec is None or units * 2 > 96


# --- names that do not decide ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "memory_mib", "hardware"),
    [
        ("NVIDIA H100 80GB HBM3", 81559, "nvidia-h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", 81559, "nvidia-h100-pcie-80gb"),
        ("NVIDIA H100 NVL", 95830, "nvidia-h100-nvl-94gb"),
        ("NVIDIA GB200", 189471, "nvidia-gb200"),
        ("NVIDIA B200", 182631, "nvidia-b200-sxm"),
        ("NVIDIA H20", 97285, "nvidia-h20-96gb"),
        ("NVIDIA A100-SXM4-40GB", 40960, "nvidia-a100-sxm4-40gb"),
        ("NVIDIA A10", 23028, "nvidia-a10"),
        ("NVIDIA L40S", 46068, "nvidia-l40s"),
        ("NVIDIA GB10", 0, "nvidia-gb10"),  # unified memory: the query says [N/A]
        ("NVIDIA GB10", 122570, "nvidia-gb10"),
        ("NVIDIA GH200 120GB", 97871, "nvidia-gh200-96gb"),
        ("TPU v4", 30.75 * 1024, "google-tpu-v4"),
        ("TPU v5 lite", 15.75 * 1024, "google-tpu-v5e"),
        ("TPU v5", 95.74 * 1024, "google-tpu-v5p"),
        ("TPU v6 lite", 31.25 * 1024, "google-tpu-v6e"),
    ],
)
def test_memory_as_seen_on_real_devices_is_within_reach_of_the_label(name: str, memory_mib: float, hardware: str) -> None:
    assert match(device(name, memory_mib=memory_mib)).hardware == hardware


@pytest.mark.parametrize(
    ("name", "memory_mib"),
    [
        ("NVIDIA A100-SXM4-40GB", 81920),
        ("NVIDIA A100-SXM4-80GB", 40960),
        ("NVIDIA GH200 480GB", 147_456),  # the HBM3e board
        ("NVIDIA H20", 143_771),  # H20-3e
        ("Tesla V100-SXM2-32GB", 16_160),
        ("NVIDIA B200", 196_608),
        ("NVIDIA A40", 24_576),  # a vGPU that keeps the card's name
    ],
)
def test_another_memory_size_is_another_variant(name: str, memory_mib: float) -> None:
    found = match(device(name, memory_mib=memory_mib))
    assert found.spec is None
    assert "of memory where" in found.reason


@pytest.mark.parametrize(("units", "hardware"), [(132, "nvidia-h800-sxm5-80gb"), (114, None), (None, None)])
def test_the_h800_string_needs_its_unit_count(units: int | None, hardware: str | None) -> None:
    assert match(device("NVIDIA H800", memory_mib=81559, visible_units=units)).hardware == hardware


@pytest.mark.parametrize(("units", "hardware"), [(304, "amd-mi300x"), (38, None), (None, None)])
def test_a_virtual_function_counts_only_as_a_whole_card(units: int | None, hardware: str | None) -> None:
    info = device("AMD Instinct MI300X VF", "rocm", 196288, architecture="gfx942", visible_units=units)
    assert match(info).hardware == hardware


def amd(gfx: str, chip: str | None, units: int | None, memory_mib: float, name: str = "AMD Radeon Graphics") -> DeviceInfo:
    details = {"pci_device_id": chip} if chip else {}
    return device(name, "rocm", memory_mib, architecture=gfx, visible_units=units, details=details)


@pytest.mark.parametrize(
    ("info", "hardware"),
    [
        (amd("gfx942:sramecc+:xnack-", "0x74a1", 304, 196592), "amd-mi300x"),
        (amd("gfx942", "0x74A1", 304, 196592, "MI300X-O"), "amd-mi300x"),
        (amd("gfx942", "0x74a5", 304, 262128), "amd-mi325x"),
        (amd("gfx942", "0x74a0", 228, 131072, ""), "amd-mi300a"),
        (amd("gfx950", "0x75a3", 256, 294896), "amd-mi355x"),
        (amd("gfx1201", "0x7551", 32, 32624), "amd-r9700"),
        (amd("gfx942", None, 304, 196592), None),
        (amd("gfx942", "0x74a2", 80, 196592), None),  # MI308X
        (amd("gfx942", "0x74a9", 304, 196592), None),  # MI300X HF
        (amd("gfx90a", "0x74a1", 304, 196592), None),  # target and device id contradict
        (amd("gfx942", "0x74a1", None, 196592), None),  # could be a partition
        (amd("gfx942", "0x74a1", 304, 65536), None),
        (amd("gfx1151", None, 16, 11828), None),
        (amd("gfx942", "0", 304, 196592), None),  # torch's pci_device_id is a slot number
        (amd("gfx90a", "0x0b0c", 104, 65520, "FirePro W4300"), None),  # a subsystem id and rocm-smi's wrong table
    ],
)
def test_a_nameless_amd_device_is_decided_by_target_and_pci_device_id(info: DeviceInfo, hardware: str | None) -> None:
    found = match(info)
    assert found.hardware == hardware, found.reason


def test_the_reason_says_what_was_missing() -> None:
    assert match(amd("gfx1151", None, 16, 11828)).reason == (
        "no sheet has the runtime name 'AMD Radeon Graphics', and gfx1151 with no PCI device id does not decide it"
    )
    assert "vGPU" in match(device("GRID V100D-8C", memory_mib=8192)).reason


def test_a_name_that_its_pci_device_id_contradicts_is_unknown() -> None:
    found = match(amd("gfx950", "0x75a3", 256, 294896, "AMD Instinct MI350X"))
    assert found.spec is None
    assert "belongs to AMD Instinct MI355X" in found.reason


def test_published_mfu_mistakes_come_out_right() -> None:
    """Runs whose efficiency was printed above 100 % because an unknown device got an A100's 312 TFLOP/s."""
    b300 = match(device("NVIDIA B300 SXM6 AC", memory_mib=275_040, visible_units=148)).spec
    mi350x = match(device("AMD Instinct MI350X", "rocm", 294_896, architecture="gfx950", visible_units=256)).spec
    assert b300 is not None
    assert mi350x is not None
    assert 1.057 * 312e12 / (b300.peak_flop_s("bf16") or 0) == pytest.approx(0.1466, abs=2e-4)
    assert 1.52 * 312e12 / (mi350x.peak_flop_s("bf16") or 0) == pytest.approx(0.205, abs=2e-3)


def test_the_cpu_of_an_apu_is_not_the_accelerator() -> None:
    found = match(device("AMD Instinct MI300A", "cpu", visible_units=24, max_clock_hz=3.7e9, isa=("avx512f",)))
    assert found.hardware == "cpu"
    assert found.spec is not None
    assert found.spec.derived
