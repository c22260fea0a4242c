"""Parts of an accelerator get their own share: never the whole card's peak, never a bandwidth that nobody documents."""

import pytest

from suite.hardware.catalogue import all_specs, load
from suite.hardware.match import match
from suite.hardware.spec import HardwareSpec
from tests.hardware.devices import device


def part(name: str, backend: str, memory_mib: float, units: int | None, **facts: object) -> HardwareSpec:
    found = match(device(name, backend, memory_mib, visible_units=units, **facts))
    assert found.spec is not None, found.reason
    assert found.spec.part in found.reason
    return found.spec


@pytest.mark.parametrize(
    ("profile", "memory_mib", "units", "share"),
    [("3g.40gb", 40448, 60, 4 / 8), ("2g.20gb", 20096, 32, 2 / 8), ("1g.10gb", 9984, 16, 1 / 8), ("1g.20gb", 20096, 16, 2 / 8)],
)
def test_mig_instances_of_a_real_h100(profile: str, memory_mib: float, units: int, share: float) -> None:
    """60 + 32 + 16 + 16 of 132 SMs were on one card."""
    whole = load("nvidia-h100-sxm5-80gb")
    instance = part(f"NVIDIA H100 80GB HBM3 MIG {profile}", "cuda", memory_mib, units, partition=f"MIG {profile}")
    assert instance.id == whole.id
    assert instance.units.value == units
    assert instance.peak_flop_s("bf16") == pytest.approx((whole.peak_flop_s("bf16") or 0) * units / 132)
    assert instance.flop_per_clock("bf16") == units * 4096
    assert instance.bandwidth_bytes_s == pytest.approx(3350e9 * share)
    assert instance.memory_bytes == round(memory_mib * 2**20)
    assert instance.tdp_w.value is None
    assert instance.interconnect.bidirectional_bytes_s.value is None


def test_the_partition_may_stand_in_the_name_or_beside_it() -> None:
    beside = part("NVIDIA H200", "cuda", 16384, 16, partition="MIG 1g.18gb")
    inside = part("NVIDIA H200 MIG 1g.18gb", "cuda", 16384, 16)
    assert beside.bandwidth_bytes_s == inside.bandwidth_bytes_s == 600e9


@pytest.mark.parametrize(
    ("name", "memory_mib", "units"),
    [
        ("NVIDIA GB200 MIG 1g.24gb", 20480, 18),  # early drivers' name, not in the guide
        ("NVIDIA A100-SXM4-80GB MIG 1g.20gb", 19968, 14),  # the guide contradicts itself
        ("NVIDIA B300 SXM6 AC MIG 1g.34gb", 34000, 18),
    ],
)
def test_a_profile_that_the_guide_does_not_list_has_no_bandwidth(name: str, memory_mib: float, units: int) -> None:
    instance = part(name, "cuda", memory_mib, units)
    assert instance.bandwidth_bytes_s is None
    assert instance.memory_bytes == round(memory_mib * 2**20), "the device reports its own memory"
    assert "no documented bandwidth" in match(device(name, memory_mib=memory_mib, visible_units=units)).reason
    assert instance.peak_flop_s("bf16")


def test_extensions_and_compute_instances_keep_the_memory_share() -> None:
    assert part("NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb+gfx", "cuda", 23674, 46).bandwidth_bytes_s == 448e9
    name = "NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb"
    compute = part(name, "cuda", 19968, 14)
    assert compute.bandwidth_bytes_s == pytest.approx(1555e9 / 2)
    assert "shared with other compute instances" in match(device(name, memory_mib=19968, visible_units=14)).reason


def test_a_mig_instance_without_a_unit_count_has_a_bandwidth_but_no_peak() -> None:
    instance = part("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "cuda", 9984, None)
    assert instance.peak_flop_s("bf16") is None
    assert instance.flop_per_clock("bf16") is None
    assert instance.bandwidth_bytes_s == pytest.approx(3350e9 / 8)


def test_mig_of_a_card_that_has_none_and_no_units_is_unknown() -> None:
    assert match(device("NVIDIA L40S MIG 1g.6gb", memory_mib=6000)).spec is None


def test_an_instance_larger_than_the_card_is_unknown() -> None:
    assert match(device("NVIDIA H100 PCIe MIG 1g.10gb", memory_mib=9984, visible_units=132)).spec is None
    assert match(device("NVIDIA H100 80GB HBM3 MIG 1g.10gb", memory_mib=81559, visible_units=16)).spec is None


def test_a_gcd_is_half_an_mi250x() -> None:
    """Reports that compared one GCD with the package's 383 TFLOP/s showed half the efficiency."""
    gcd = part("AMD Instinct MI250X", "rocm", 65520, 110, architecture="gfx90a:sramecc+:xnack-")
    assert gcd.peak_flop_s("bf16") == 191.5e12
    assert gcd.bandwidth_bytes_s == 1638.4e9
    assert gcd.caches.l2_bytes.value == 8 * 2**20
    assert gcd.part == "one GCD of 2"
    assert "GCD" in gcd.title
    assert part("AMD Instinct MI250X", "rocm", 65520, None, partition="GCD").peak_flop_s("bf16") == 191.5e12
    assert match(device("AMD Instinct MI250X", "rocm", 65520, visible_units=104)).spec is None, "an MI250's die has 104"


@pytest.mark.parametrize(
    ("name", "memory_gib", "bf16", "bandwidth"),
    [("TPU7x", 94.75, 1153.5e12, 3690e9), ("TPU v3", 15.48, 61.5e12, 450e9), ("TPU v2", 7.48, 23e12, 358e9)],
)
def test_a_tensorcore_is_half_a_tpu_chip(name: str, memory_gib: float, bf16: float, bandwidth: float) -> None:
    core = part(name, "xla", memory_gib * 1024, 1)
    assert core.peak_flop_s("bf16") == pytest.approx(bf16)
    assert core.bandwidth_bytes_s == pytest.approx(bandwidth)


@pytest.mark.parametrize(("name", "bf16"), [("TPU v4", 275e12), ("TPU v5", 459e12), ("TPU v5 lite", 197e12)])
def test_a_megacore_is_the_whole_chip(name: str, bf16: float) -> None:
    spec = match(device(name, "xla")).spec
    assert spec is not None
    assert spec.part == ""
    assert spec.peak_flop_s("bf16") == bf16


@pytest.mark.parametrize(("units", "share"), [(512, 0.5), (1024, 1.0), (None, 0.5)])
def test_a_max_1550_is_a_tile_or_both(units: int | None, share: float) -> None:
    """Flat mode shows each tile's 512 vector engines, composite mode the card's 1024."""
    spec = match(device("Intel(R) Data Center GPU Max 1550", "xpu", 131_072 * share, visible_units=units)).spec
    assert spec is not None
    assert spec.peak_flop_s("bf16") == 839e12 * share
    assert spec.llc_bytes == 408 * 2**20 * share


def test_trainium2_shows_pairs_of_cores() -> None:
    assert part("trn2", "neuron", 24 * 1024, None).peak_flop_s("bf16") == 667e12 / 4


@pytest.mark.parametrize(
    ("partition", "units", "memory_mib", "bandwidth"),
    [
        ("CPX/NPS4", 38, 49136, 5300e9 / 4),
        ("CPX NPS4", 38, 49136, 5300e9 / 4),
        ("QPX/NPS4", 76, 49136, 5300e9 / 4),
        ("CPX/NPS1", 38, 24560, None),
        ("CPX", 38, 24560, None),
        ("DPX/NPS1", 152, 98304, None),
    ],
)
def test_amd_partitions(partition: str, units: int, memory_mib: float, bandwidth: float | None) -> None:
    """64 devices of 38 CUs come out of 8 cards in CPX/NPS4; two share the memory of one quadrant."""
    spec = part("AMD Instinct MI300X", "rocm", memory_mib, units, architecture="gfx942", partition=partition)
    assert spec.units.value == units
    assert spec.peak_flop_s("bf16") == pytest.approx(1307.4e12 * units / 304)
    assert spec.bandwidth_bytes_s == bandwidth
    assert spec.caches.l2_bytes.value == pytest.approx(32 * 2**20 * units / 304)
    assert (spec.llc_bytes or 0) >= (64 if bandwidth else 256) * 2**20, (
        "an unknown share keeps the whole: a flush must exceed it"
    )


@pytest.mark.parametrize("partition", ["SPX", "SPX/NPS1", "NPS1", "spx nps1"])
def test_spx_is_the_whole_card(partition: str) -> None:
    spec = match(device("AMD Instinct MI300X", "rocm", 196592, visible_units=304, partition=partition)).spec
    assert spec is not None
    assert spec.part == ""
    assert spec.bandwidth_bytes_s == 5300e9


@pytest.mark.parametrize(
    ("name", "partition", "units"),
    [
        ("AMD Instinct MI300X", "CPX/NPS4", 304),  # the mode says an eighth, the runtime all
        ("AMD Instinct MI300X", "TPX", 101),  # no such mode on this card
        ("AMD Instinct MI300X", "CPX DPX", 38),
        ("AMD Instinct MI300A", "CPX", 28),
        ("AMD Instinct MI210", "CPX", 13),
        ("NVIDIA H200", "vGPU", 132),
        ("NVIDIA H200", "MIG", 16),
        ("TPU v4", "TensorCore", None),
    ],
)
def test_a_partition_that_contradicts_the_sheet_is_unknown(name: str, partition: str, units: int | None) -> None:
    found = match(device(name, "rocm", visible_units=units, partition=partition))
    assert found.spec is None
    assert found.reason


def test_every_mig_table_adds_up() -> None:
    """A profile's label is its share of the card, within the rounding of labels."""
    for spec in all_specs():
        mig = spec.runtime.mig
        for profile, slices in (mig.profiles if mig else {}).items():
            label = int(profile.split(".")[1].removesuffix("gb"))
            capacity = (spec.memory.capacity_bytes.value or 0) / 1e9
            assert label / capacity == pytest.approx(slices / (mig.memory_slices if mig else 1), abs=0.02), (spec.id, profile)
