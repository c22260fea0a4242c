"""What the ROCm backend says of a device, and which sheet that is judged by: never a whole card's for a part."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from backends.host.amdgpu import DriverFiles
from backends.rocm import RocmBackend
from backends.telemetry.amd_parts import Modes, dies_of, part_of
from backends.torch import hip_identity
from suite.case import Case, Regime, Workload, items
from suite.errors import DeviceNotFound, UsageError
from suite.hardware.match import match
from suite.roofline import Ceilings
from suite.telemetry import NoTelemetry
from tests.backends.fake_amdsmi import NO_PERM, FakeAmdsmi
from tests.rocm.conftest import Attach

MIB = 2**20


def test_an_mi300x(attach: Attach, backend: RocmBackend) -> None:
    """AMD SMI calls this board MI300X-O; torch's name and the PCI device id decide."""
    attach("mi300x")
    (device,) = backend.devices()
    assert (device.name, device.architecture, device.visible_units) == ("AMD Instinct MI300X", "gfx942", 304)
    assert device.memory_bytes == 196_592 * MIB
    assert device.pci_bus_id == "0000:05:00.0"
    assert (device.max_clock_hz, device.max_memory_clock_hz) == (2102e6, 1300e6)
    assert (device.power_limit_w, device.driver) == (750.0, "6.10.5")
    assert device.details == {"pci_device_id": "0x74a1", "virtualization": "baremetal"}
    assert device.partition is None
    assert len(device.uid) == 16
    assert match(device).hardware == "amd-mi300x"
    unnamed = replace(device, name="MI300X-O")
    assert match(unnamed).hardware == "amd-mi300x"


def test_the_last_cache_is_the_one_before_the_memory(attach: Attach, backend: RocmBackend) -> None:
    """torch reports the 4 MB of one die's L2."""
    hip = attach("mi300x")
    assert hip.properties[0].L2_cache_size == 4 * MIB
    assert backend.devices()[0].llc_bytes == 256 * MIB
    attach("mi250x")
    assert backend.devices()[0].llc_bytes == 8 * MIB, "nothing lies behind the L2 of a gfx90a"


def test_a_partition_keeps_its_l2_beside_a_last_cache_that_is_reported_whole(attach: Attach, backend: RocmBackend) -> None:
    attach("mi300x_cpx")
    device = backend.devices()[0]
    spec = match(device).spec
    assert spec is not None
    assert (spec.caches.l2_bytes.value, spec.caches.llc_bytes.value) == (4 * MIB, 256 * MIB)
    assert Ceilings(device, spec).llc_bytes == 256 * MIB


def test_without_amd_smi_no_cache_is_made_up_and_the_sheet_s_counts(
    attach: Attach, backend: RocmBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach("mi300x")
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    (device,) = backend.devices()
    assert device.llc_bytes is None
    assert (device.max_clock_hz, device.power_limit_w, device.driver) == (None, None, None)
    assert device.details["amdsmi"].startswith("AMD SMI is not readable: its Python package amdsmi does not load")
    assert Ceilings(device, match(device).spec).llc_bytes == 256 * MIB


def test_a_guest_s_whole_virtual_function(attach: Attach, backend: RocmBackend) -> None:
    """rocminfo of a VF: 304 compute units, 200998912 KB; 0x74b5 is no MI325X."""
    attach("mi300x_guest")
    (device,) = backend.devices()
    assert (device.name, device.visible_units, device.memory_bytes) == ("AMD Instinct MI300X VF", 304, 200_998_912 * 1024)
    assert device.details == {"pci_device_id": "0x74b5", "virtualization": "guest"}
    assert device.power_limit_w is None
    assert match(device).hardware == "amd-mi300x"


@pytest.mark.parametrize("units", [38, 152, 303])
def test_a_share_of_a_card_in_a_guest_gets_no_sheet(attach: Attach, backend: RocmBackend, units: int) -> None:
    hip = attach("mi300x_guest")
    hip.properties[0].multi_processor_count = units
    found = match(backend.devices()[0])
    assert found.hardware is None
    assert f"{units} of AMD Instinct MI300X's 304 CUs" in found.reason


def test_a_die_of_an_mi250x_is_half_of_one(attach: Attach, backend: RocmBackend) -> None:
    attach("mi250x")
    (device,) = backend.devices()
    assert (device.partition, device.visible_units, device.memory_bytes) == ("GCD", 110, 65_520 * MIB)
    assert device.power_limit_w is None, "the limit is the package's"
    found = match(device)
    assert found.spec is not None
    assert (found.hardware, found.spec.part) == ("amd-mi250x", "one GCD of 2")
    assert found.spec.peak_flop_s("bf16") == 191.5e12


def test_an_mi350x_with_half_its_units_is_flagged(attach: Attach, backend: RocmBackend) -> None:
    attach("mi350x")
    (device,) = backend.devices()
    assert (device.architecture, device.visible_units) == ("gfx950", 128)
    found = match(device)
    assert found.spec is None
    assert found.reason == "the runtime shows 128 of AMD Instinct MI350X's 256 CUs and names no partition"


def test_partitions_of_one_card(attach: Attach, backend: RocmBackend) -> None:
    attach("mi300x_cpx")
    devices = backend.devices()
    assert len({device.uid for device in devices}) == len(devices) == 8
    for device in devices:
        assert (device.partition, device.visible_units, device.power_limit_w) == ("CPX/NPS4", 38, None)
        found = match(device)
        assert found.spec is not None
        assert found.spec.peak_flop_s("bf16") == pytest.approx(1307.4e12 / 8)
        assert found.spec.bandwidth_bytes_s == 5300e9 / 4


def test_a_partition_has_the_clock_of_its_own_die_and_no_power(attach: Attach, backend: RocmBackend) -> None:
    attach("mi300x_cpx")
    partition = backend.devices()[2].partition
    device = backend._amdsmi_device(backend._identity(2), partition)
    assert not isinstance(device, str)
    assert device.xcd_clocks_hz() == [2107e6]
    assert device._part == "CPX/NPS4"


def test_without_amd_smi_the_driver_s_files_name_the_partition(
    attach: Attach, backend: RocmBackend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    attach("mi300x_cpx")
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    folder = tmp_path / "sys/bus/pci/devices/0000:05:00.0"
    folder.mkdir(parents=True)
    for name, text in {
        "device": "0x74a1\n",
        "current_compute_partition": "CPX\n",
        "current_memory_partition": "NPS1\n",
    }.items():
        (folder / name).write_text(text)
    device = backend.devices()[0]
    assert (device.partition, device.details["pci_device_id"]) == ("CPX/NPS1", "0x74a1")
    assert DriverFiles("0000:06:00.0", tmp_path).pci_device_id() is None


@pytest.mark.parametrize(
    ("name", "chip", "modes", "part"),
    [
        ("AMD Instinct MI300X", "0x74a1", Modes("SPX", "NPS1"), None),
        ("AMD Instinct MI300X", "0x74a1", Modes(), None),
        ("AMD Instinct MI300X", "0x74a1", Modes("SPX", "NPS4"), "SPX/NPS4"),
        ("AMD Instinct MI300X", "0x74a1", Modes("CPX", None), "CPX"),
        ("", "0x740c", Modes(), "GCD"),
        ("AMD Instinct MI250X", None, Modes(), "GCD"),
        ("AMD Instinct MI210", "0x740f", Modes(), None),
        ("AMD Instinct MI250X-like", None, Modes(), None),
    ],
)
def test_which_part_a_device_is(name: str, chip: str | None, modes: Modes, part: str | None) -> None:
    assert part_of(name, chip, modes) == part


@pytest.mark.parametrize(
    ("mode", "ordinal", "siblings", "dies"),
    [
        ("CPX", 3, 8, (3,)),
        ("QPX", 1, 4, (2, 3)),
        ("DPX", 1, 2, (4, 5, 6, 7)),
        ("CPX", 0, 1, None),  # of eight only one is visible: which, nothing tells
        ("SPX", 0, 1, None),
        (None, 0, 1, None),
    ],
)
def test_dies_of_a_partition(mode: str | None, ordinal: int, siblings: int, dies: tuple[int, ...] | None) -> None:
    assert dies_of(Modes(mode, "NPS1"), ordinal, siblings, 8) == dies


def test_a_uuid_of_two_letters_is_none(attach: Attach) -> None:
    """torch prints the letters XX of a device without an id; two such boards are two devices."""
    hip = attach("mi300x")
    named = hip_identity.identify(0)
    hip.properties[0].uuid = hip_identity.NO_UUID
    first = hip_identity.identify(0)
    hip.properties[0].pci_bus_id += 1
    second = hip_identity.identify(0)
    assert (named.uuid, first.uuid) == ("30303030-3030-3030-3030-303030303031", None)
    assert len({named.uid, first.uid, second.uid}) == 3


def test_torch_without_a_pci_address_says_what_is_missing(attach: Attach, backend: RocmBackend) -> None:
    hip = attach("mi300x")
    del hip.properties[0].pci_bus_id
    (device,) = backend.devices()
    assert device.pci_bus_id is None
    assert device.details["amdsmi"].startswith("this version of torch does not tell a device's PCI address")


def test_no_device_without_hip(attach: Attach, backend: RocmBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch of a CUDA build has devices too: they are the other backend's."""
    attach("mi300x")
    monkeypatch.setattr(torch.version, "hip", None)
    assert backend.devices() == ()
    with pytest.raises(DeviceNotFound, match="backend rocm has no device 0: torch sees 0 AMD device"):
        backend.select(0)


def test_the_library_that_torch_prefers_can_be_chosen(attach: Attach) -> None:
    hip = attach("mi300x")
    backend = RocmBackend({"blas": "rocblas"})
    backend.select(0)
    assert hip.blas == "Cublas"
    assert "torch prefers rocBLAS here" in backend._selected().missing["tf32"]
    with pytest.raises(UsageError, match=r"backends.rocm.options.blas='mkl' is none of auto, hipblaslt, rocblas, ck"):
        RocmBackend({"blas": "mkl"})


def test_a_workspace_is_not_asked_of_rocm(attach: Attach, backend: RocmBackend) -> None:
    attach("mi300x")
    backend.select(0)
    workload = Workload("gemm", "bf16", items({"m": 64, "n": 64, "k": 64, "layout": "nt"}))
    case = Case(workload, "library", "rocm", Regime("warm", "sustained", "device"), items({"workspace_mib": 64}))
    assert str(backend.supports(case)).startswith("workspace_mib is given to cuBLAS")


def test_telemetry_where_the_library_refuses_everything(attach: Attach, monkeypatch: pytest.MonkeyPatch) -> None:
    attach("mi300x")
    refusing = FakeAmdsmi(refused={"amdsmi_get_processor_handles": NO_PERM})
    monkeypatch.setitem(sys.modules, "amdsmi", refusing)  # type: ignore[arg-type]
    backend = RocmBackend({})
    backend._no_clock = "no counters here"  # type: ignore[misc]
    backend.select(0)
    telemetry = backend.telemetry()
    assert isinstance(telemetry, NoTelemetry)
    assert backend.environment()["driver"].reason == "AMD SMI does not know the device at 0000:05:00.0"


def test_several_cards_are_told_apart_by_their_address(attach: Attach, backend: RocmBackend) -> None:
    hip = attach("mi300x")
    hip.properties.append(SimpleNamespace(**{**vars(hip.properties[0]), "pci_bus_id": 0x26, "uuid": "another"}))
    devices = backend.devices()
    assert [device.pci_bus_id for device in devices] == ["0000:05:00.0", "0000:26:00.0"]
    assert devices[0].uid != devices[1].uid
    assert devices[1].details["amdsmi"] == "AMD SMI does not know the device at 0000:26:00.0"
