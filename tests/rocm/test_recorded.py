"""Outputs of vendors' tools on real AMD machines: which device each one was, and which sheet it gets, if any."""

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest

from backends.rocm import RocmBackend
from backends.telemetry.amd_parts import Modes, part_of
from backends.torch.hip_identity import NO_UUID
from suite.hardware.match import match
from tests.backends.fake_amdsmi import FakeAmdsmi, device_of
from tests.hardware.devices import device
from tests.rocm.conftest import Attach
from tests.rocm.devices import at
from tests.rocm.recorded import AMD, agents, static, torch_properties

MIB = 2**20


def cards(file: str) -> list[dict[str, Any]]:
    """Cards of ``rocm-smi -a --json``; ``system`` is none."""
    return [card for name, card in json.loads((AMD / file).read_text()).items() if name.startswith("card")]


def amd(name: str, gfx: str, chip: str | None, units: int | None, memory_mib: float = 0, **facts: Any) -> Any:
    details = {"pci_device_id": chip} if chip else {}
    return device(name, "rocm", memory_mib, architecture=gfx, visible_units=units, details=details, **facts)


def test_prints_of_torch_s_properties() -> None:
    """L2 is that of one die (4 of 32 MB); an MI250X is one die; gfx1151 counts pairs of units."""
    mi300x = torch_properties("AMD Instinct MI300X")
    assert (mi300x.gcnArchName, mi300x.multi_processor_count) == ("gfx942:sramecc+:xnack-", 304)
    assert (mi300x.total_memory, mi300x.L2_cache_size) == (196_592 * MIB, 4 * MIB)
    mi250x = torch_properties("AMD Instinct MI250X")
    assert (mi250x.multi_processor_count, mi250x.total_memory) == (110, 65_520 * MIB)
    strix = torch_properties("AMD Radeon Graphics")
    assert (strix.gcnArchName, strix.multi_processor_count, strix.uuid) == ("gfx1151", 16, NO_UUID)
    assert match(amd(strix.name, "gfx1151", None, 16, 11_828)).hardware is None


def test_an_mi300x_that_amd_smi_calls_otherwise() -> None:
    said = static("amd_smi_static_mi300x_head.txt")
    assert (said["MARKET_NAME"], said["DEVICE_ID"], said["OAM_ID"]) == ("MI300X-O", "0x74a1", "7")
    assert match(amd(said["MARKET_NAME"], "gfx942", said["DEVICE_ID"], 304, 196_592)).hardware == "amd-mi300x"
    assert match(amd(said["MARKET_NAME"], "gfx942", None, 304, 196_592)).hardware is None


def test_an_mi355x() -> None:
    (said,) = json.loads((AMD / "amd_smi_static_mi355x_list_form.json").read_text())
    limit_w = said["limit"]["socket_power"]["value"]
    assert (said["asic"]["market_name"], limit_w) == ("AMD Instinct MI355X", 1400)
    assert device_of(FakeAmdsmi(power_cap_w=limit_w)).power_limit_w() == 1400.0
    assert match(amd(said["asic"]["market_name"], "gfx950", None, 256, 294_896)).hardware == "amd-mi355x"


def test_eight_idle_mi355x_by_their_ids_alone() -> None:
    rows = re.findall(
        r"^\d +\d +(0x[0-9a-f]+),.*?([\d.]+)W +NPS1, SPX, 0.* ([\d.]+)W +17%", text("rocm_smi_mi355x_idle.txt"), re.M
    )
    assert [(chip, cap) for chip, _, cap in rows] == [("0x75a3", "1400.0")] * 8
    assert {float(watts) for _, watts, _ in rows} >= {256.0, 288.0}
    assert match(amd("", "gfx950", "0x75a3", 256, 294_896)).hardware == "amd-mi355x"
    assert match(amd("", "gfx950", "0x75a3", 128, 294_896)).hardware is None


def test_eight_mi300x_of_two_lines_each() -> None:
    said = text("rocm_smi_mi300x_two_line_rows.txt")
    assert re.findall(r"\[(0x\w+) : 0x00\].* (\w+), (\w+) ", said) == [("0x74a1", "NPS1", "SPX")] * 8
    names = re.findall(r"^ +(AMD Instinct \w+)$", said, re.MULTILINE)
    assert names == ["AMD Instinct MI300X"] * 8
    assert part_of(names[0], "0x74a1", Modes("SPX", "NPS1")) is None
    assert match(amd(names[0], "gfx942", "0x74a1", 304, 196_592)).hardware == "amd-mi300x"


def test_gpus_of_an_apu_are_counted_by_gfx_and_not_by_marketing_name() -> None:
    """Four CPUs are called after the accelerator, two GPUs are called nothing."""
    found = agents("rocminfo_mi300a_grep.txt")
    gpus = [agent for agent in found if agent.is_gpu]
    assert (len(found), len(gpus)) == (6, 2)
    assert {(gpu.name, gpu.marketing_name) for gpu in gpus} == {("gfx942", "")}
    assert match(amd("", "gfx942", None, 228, 131_072)).hardware is None
    assert match(amd("", "gfx942", "0x74a0", 228, 131_072)).hardware == "amd-mi300a"
    assert match(device("AMD Instinct MI300A Accelerator", "rocm", architecture=None)).hardware is None


def test_an_agent_without_a_count_of_units_is_not_taken_for_a_whole_card() -> None:
    (agent,) = agents("rocminfo_mi300x_agent_cut.txt")
    assert (agent.name, agent.marketing_name, agent.chip_id) == ("gfx942", "AMD Instinct MI300X", "0x74a1")
    assert agent.compute_units is None
    found = match(amd("", agent.name, agent.chip_id, None, 196_592))
    assert found.hardware is None
    assert "gives no CU count to confirm it" in found.reason


def test_a_guest_has_one_gpu_and_no_mi325x() -> None:
    cpu, gpu = agents("rocminfo_mi300x_vf.txt")
    assert (cpu.is_gpu, gpu.is_gpu) == (False, True)
    assert (gpu.marketing_name, gpu.chip_id, gpu.compute_units) == ("AMD Instinct MI300X VF", "0x74b5", 304)
    found = match(amd(gpu.marketing_name, gpu.name, gpu.chip_id, gpu.compute_units, (gpu.memory_kib or 0) / 1024))
    assert found.hardware == "amd-mi300x"


def test_sixty_four_partitions_are_eight_cards_and_each_gets_its_share() -> None:
    said = text("amd_smi_static_partition_cpx_nps4_64.txt")
    modes = re.findall(r"COMPUTE_PARTITION: (\w+)\n +MEMORY_PARTITION: (\w+)\n +PARTITION_ID: (\d)", said)
    assert len(modes) == 64
    assert {mode[:2] for mode in modes} == {("CPX", "NPS4")}
    assert [number for *_, number in modes].count("0") == 8
    part = part_of("AMD Instinct MI300X", "0x74a1", Modes(*modes[0][:2]))
    assert part == "CPX/NPS4"
    share = match(amd("AMD Instinct MI300X", "gfx942", "0x74a1", 38, 49_136, partition=part)).spec
    assert share is not None
    assert share.peak_flop_s("bf16") == pytest.approx(1307.4e12 / 8)
    assert share.bandwidth_bytes_s == 5300e9 / 4
    unnamed = match(amd("AMD Instinct MI300X", "gfx942", "0x74a1", 38, 49_136))
    assert unnamed.hardware is None


def test_a_star_at_a_mode_says_that_it_is_the_current_one() -> None:
    """Six dies in SPX: an MI300A, whole."""
    said = text("amd_smi_partition_tables.txt")
    assert re.findall(r"^\d +(NPS\d) +(\w+) +0 +0$", said, re.MULTILINE) == [("NPS1", "SPX")] * 4
    assert re.search(r"SPX\*.*XCC +6$", said, re.MULTILINE)
    assert part_of("AMD Instinct MI300A", "0x74a0", Modes("SPX", "NPS1")) is None
    library = FakeAmdsmi(partition=("SPX", "N/A"), table={"current_gfxclks": [2100] * 6 + ["N/A"] * 2})
    assert device_of(library).dies() == 6
    assert "amdsmi_get_gpu_memory_partition: the driver gives none" in device_of(library).facts()["memory_partition"].reason


def test_an_mi250_is_two_dies_and_its_subsystem_is_no_model() -> None:
    both = cards("rocm_smi_mi250_r5.json")
    assert len(both) == 2
    first = both[0]
    assert (first["Card series"], first["Card model"]) == ("AMD INSTINCT MI250 (MCM) OAM AC MBA", "0x0b0c")
    assert (first["Average Graphics Package Power (W)"], first["Max Graphics Package Power (W)"]) == ("89.0", "560.0")
    assert part_of(first["Card series"], first["GPU ID"], Modes()) == "GCD"
    assert match(amd(first["Card series"], "gfx90a", first["Card model"], 104, 65_520, partition="GCD")).hardware is None
    assert f"Card series:      {first['Card series']}" in text("rocm_smi_productname_mi250.txt")


@pytest.mark.parametrize(
    ("file", "count", "watts"), [("rocm_smi_mi100_r571.json", 6, 39.0), ("rocm_smi_mi100_r602.json", 4, 36.0)]
)
def test_boards_without_a_serial_are_told_apart_by_their_address(
    attach: Attach, backend: RocmBackend, file: str, count: int, watts: float
) -> None:
    found = cards(file)
    assert len(found) == count
    assert float(found[0]["Average Graphics Package Power (W)"]) == watts
    hip = attach("mi250x")
    known = {"gcnArchName": "gfx908:sramecc+:xnack-", "multi_processor_count": 120, "name": "AMD Instinct MI100"}
    memory = int(found[0].get("VRAM Total Memory (B)", 34_342_961_152))
    hip.properties = [
        at(SimpleNamespace(**{**vars(hip.properties[0]), **known, "total_memory": memory}), card["PCI Bus"]) for card in found
    ]
    devices = backend.devices()
    assert [each.pci_bus_id for each in devices] == [card["PCI Bus"].lower() for card in found]
    assert len({each.uid for each in devices}) == count
    assert {match(each).hardware for each in devices} == {"amd-mi100"}


def test_a_radeon_of_which_a_table_shows_the_model_only() -> None:
    """Its [Model : Revision] is the subsystem's id: no PCI device id."""
    found = re.search(r"\[(0x\w+) : (0x\w+)\]", text("rocm_smi_navi_edge_header.txt"))
    assert found is not None
    assert found.groups() == ("0x471e", "0xc8")
    assert match(amd("", "gfx1100", found[1], 48, 24_560)).hardware is None


def test_clocks_of_cards_at_rest_and_at_work() -> None:
    rows = re.findall(r"^ +(\d) +(\d+) W .* (\d+) % +(\d+) MHz +\d+ % +(\d+) MHz$", text("amd_smi_monitor_mi300x.txt"), re.M)
    assert len(rows) == 8
    _, watts, use, clock, memory = (int(cell) for cell in rows[0])
    assert (watts, use, clock, memory) == (182, 83, 1613, 1230)
    table = {"current_socket_power": watts, "current_gfxclks": [clock] * 8, "current_uclk": memory}
    busy = device_of(FakeAmdsmi(table=table))
    assert (busy.power_w(), busy.sm_clock_hz(), busy.memory_clock_hz()) == (182.0, 1613e6, 1230e6)
    idle = device_of(FakeAmdsmi(table={"current_gfxclks": [int(rows[2][3])] * 8}))
    assert (rows[2][2], idle.sm_clock_hz()) == ("0", 120e6)


def test_a_value_has_its_unit_beside_it_and_words_have_none() -> None:
    (said,) = json.loads(text("amd_smi_metric_power_units.json"))
    power = said["power"]
    assert (power["socket_power"], power["gfx_voltage"]) == ({"value": 10, "unit": "W"}, {"value": 6, "unit": "mV"})
    assert power["throttle_status"] == "UNTHROTTLED"
    assert device_of(FakeAmdsmi(table={"current_socket_power": power["socket_power"]["value"]})).power_w() == 10.0


def text(file: str) -> str:
    return (AMD / file).read_text()
