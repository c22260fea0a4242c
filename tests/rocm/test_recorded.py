"""Outputs of vendors' tools on real AMD machines: which device each one was, and which sheet it gets, if any."""

import json
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from backends.rocm import RocmBackend
from backends.telemetry.amd_parts import Modes, part_of
from backends.telemetry.gauges import ReadingLost
from backends.torch.hip_identity import NO_UUID
from suite.hardware.match import match
from suite.importers.amd_smi import listed_gpus
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
    assert (said["PCIE_INTERFACE_VERSION"], said["MAX_PCIE_WIDTH"]) == ("Gen 5", "16")
    assert match(amd(said["MARKET_NAME"], "gfx942", said["DEVICE_ID"], 304, 196_592)).hardware == "amd-mi300x"
    assert match(amd(said["MARKET_NAME"], "gfx942", None, 304, 196_592)).hardware is None


def test_an_mi355x() -> None:
    (said,) = json.loads((AMD / "amd_smi_static_mi355x_list_form.json").read_text())
    limit_w = said["limit"]["socket_power"]["value"]
    assert (said["asic"]["market_name"], limit_w) == ("AMD Instinct MI355X", 1400)
    assert device_of(FakeAmdsmi(power_cap_w=limit_w)).power_limit_w() == 1400.0
    assert match(amd(said["asic"]["market_name"], "gfx950", None, 256, 294_896)).hardware == "amd-mi355x"


def test_an_mi350x_of_half_its_units_by_the_print() -> None:
    """Serials are struck out there; 128 of 256 units are taken as printed, and no peak is made of them."""
    said = static("amd_smi_static_mi350x.txt")
    units, chip = int(said["NUM_COMPUTE_UNITS"]), said["DEVICE_ID"]
    assert (said["MARKET_NAME"], chip, said["ASIC_SERIAL"]) == ("AMD Instinct MI350X", "0x75a0", "<redacted>")
    for name in (said["MARKET_NAME"], ""):
        found = match(amd(name, said["TARGET_GRAPHICS_VERSION"], chip, units, 294_896))
        assert (found.spec, "128 of AMD Instinct MI350X's 256 CUs" in found.reason) == (None, True)
    assert match(amd("", "gfx950", chip, 256, 294_896)).hardware == "amd-mi350x"


def test_eight_idle_mi355x_by_their_ids_alone() -> None:
    rows = re.findall(
        r"^\d +\d +(0x[0-9a-f]+),.*?([\d.]+)W +NPS1, SPX, 0.* ([\d.]+)W +17%", text("rocm_smi_mi355x_idle.txt"), re.M
    )
    assert [(chip, cap) for chip, _, cap in rows] == [("0x75a3", "1400.0")] * 8
    watts = [float(each) for _, each, _ in rows]
    assert (min(watts), max(watts)) == (256.0, 288.0)
    clocks = [int(each) for each in re.findall(r"(\d+)Mhz +2000Mhz", text("rocm_smi_mi355x_idle.txt"))]
    assert (len(clocks), min(clocks), max(clocks)) == (8, 496, 2404), "clocks at rest: no sign of load"
    assert match(amd("", "gfx950", "0x75a3", 256, 294_896)).hardware == "amd-mi355x"
    assert match(amd("", "gfx950", "0x75a3", 128, 294_896)).hardware is None


def test_eight_mi300x_of_two_lines_each() -> None:
    said = text("rocm_smi_mi300x_two_line_rows.txt")
    assert re.findall(r"\[(0x\w+) : 0x00\].* (\w+), (\w+) ", said) == [("0x74a1", "NPS1", "SPX")] * 8
    watts = [float(each) for each in re.findall(r"([\d.]+)W +NPS1", said)]
    assert (min(watts), max(watts), said.count("750.0W")) == (137.0, 143.0, 8)
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
    said = text("rocminfo_mi300x_agent_cut.txt")
    assert re.findall(r"L[23]: +(\d+)\(", said) == ["4096", "262144"], "of one die, and of the package"
    assert re.findall(r"(?:ASIC Revision|Max Clock Freq. \(MHz\)): +(\d+)", said) == ["1", "2100"]
    found = match(amd("", agent.name, agent.chip_id, None, 196_592))
    assert found.hardware is None
    assert "gives no CU count to confirm it" in found.reason


def test_a_guest_has_one_gpu_and_no_mi325x() -> None:
    cpu, gpu = agents("rocminfo_mi300x_vf.txt")
    assert (cpu.is_gpu, gpu.is_gpu) == (False, True)
    assert (gpu.marketing_name, gpu.chip_id, gpu.compute_units) == ("AMD Instinct MI300X VF", "0x74b5", 304)
    assert (cpu.name, gpu.memory_kib) == ("Intel(R) Xeon(R) Platinum 8470", 200_998_912)
    found = match(amd(gpu.marketing_name, gpu.name, gpu.chip_id, gpu.compute_units, (gpu.memory_kib or 0) / 1024))
    assert found.hardware == "amd-mi300x"


def test_a_guest_s_memory_may_be_full_while_nothing_runs() -> None:
    said = text("rocm_smi_mi300x_vf_single.txt")
    row = re.search(r"^0 .*(0x74b5),.* ([\d.]+)W +NPS1.* (\d+)Mhz +900Mhz.* ([\d.]+)W +(\d+)% +(\d+)%", said, re.MULTILINE)
    assert row is not None
    assert row.groups() == ("0x74b5", "191.0", "2105", "750.0", "95", "0")
    assert match(amd("", "gfx942", row[1], 304, 196_288)).hardware == "amd-mi300x"


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
    assert (first["GPU use (%)"], [key for key in first if "VRAM Total" in key]) == ("10", [])
    assert part_of(first["Card series"], first["GPU ID"], Modes()) == "GCD"
    assert match(amd(first["Card series"], "gfx90a", first["Card model"], 104, 65_520, partition="GCD")).hardware is None
    product = text("rocm_smi_productname_mi250.txt")
    assert f"Card series:      {first['Card series']}" in product
    assert re.findall(r"GPU\[(\d)\] +: Card SKU: +(\w+)", product) == [("0", first["Card SKU"])] == [("0", "D65209")]


@pytest.mark.parametrize(
    ("file", "count", "watts", "chip", "serial"),
    [
        ("rocm_smi_mi100_r571.json", 6, 39.0, "GPU ID", "0"),
        ("rocm_smi_mi100_r602.json", 4, 36.0, "Device ID", "N/A"),
    ],
)
def test_boards_without_a_serial_are_told_apart_by_their_address(
    attach: Attach, backend: RocmBackend, file: str, count: int, watts: float, chip: str, serial: str
) -> None:
    """What is called a unique id here and there has a value in one of the two releases alone."""
    found = cards(file)
    assert len(found) == count
    assert float(found[0]["Average Graphics Package Power (W)"]) == watts
    assert float(found[0]["Max Graphics Package Power (W)"]) == 290.0
    assert {card["Serial Number"] for card in found} == {serial}
    assert {card[chip] for card in found} == {"0x738c"}
    assert match(amd(found[0]["Card series"], "gfx908", found[0][chip], 120, 32_752)).hardware == "amd-mi100"
    assert match(amd(found[0]["Card series"], "gfx908", None, 120, 32_752)).hardware is None, "the series is no runtime name"
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
    assert re.findall(r"([\d.]+)(?:°C|W)", text("rocm_smi_navi_edge_header.txt")) == ["42.0", "6.0", "303.0"]
    assert match(amd("", "gfx1100", found[1], 48, 24_560)).hardware is None


def test_clocks_of_cards_at_rest_and_at_work() -> None:
    rows = re.findall(r"^ +(\d) +(\d+) W .* (\d+) % +(\d+) MHz +\d+ % +(\d+) MHz$", text("amd_smi_monitor_mi300x.txt"), re.M)
    assert len(rows) == 8
    first = next(line for line in text("amd_smi_monitor_mi300x.txt").splitlines() if line.split()[0] == "0")
    assert len(first.split()) == 15, "of eight columns: units are cells of their own"
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


def test_eight_cards_by_their_addresses(attach: Attach, backend: RocmBackend) -> None:
    """A topology names no device but by its address: each of these is a card of its own."""
    said = text("amd_smi_topology_mi300x.txt")
    access, weights = said.split("WEIGHT TABLE:")
    addresses = re.findall(r"^(\S+\.0) ", access, re.MULTILINE)
    assert access.count("ENABLED ") + access.count("ENABLED\n") == 64
    rows = [line.split()[1:] for line in weights.splitlines() if line.startswith("0000:")]
    assert rows == [["0" if row == column else "15" for column in range(8)] for row in range(8)]
    hip = attach("mi300x")
    hip.properties = [at(hip.properties[0], address, uuid=NO_UUID) for address in addresses]
    devices = backend.devices()
    assert [each.pci_bus_id for each in devices] == addresses
    assert len({each.uid for each in devices}) == len(addresses) == 8
    assert {match(each).hardware for each in devices} == {"amd-mi300x"}
    assert {each.partition for each in devices} == {None}


def test_a_topology_without_names_has_two_devices_and_no_sheet() -> None:
    """The previous form: what is N/A is no bandwidth of 0."""
    links = json.loads(text("amd_smi_topology_old_form.json"))
    assert [link["gpu"] for link in links] == [0, 1]
    assert (links[0]["link_type"]["gpu_1"], links[0]["weight"]["gpu_1"]) == ("PCIE", 40)
    assert {bandwidth for link in links for bandwidth in link["numa_bandwidth"].values()} == {"N/A"}
    assert len(listed_gpus(text("amd_smi_topology_old_form.json"))) == 2
    assert match(amd("", "gfx942", None, None)).hardware is None


def test_a_tool_with_nothing_to_say_lists_no_device(attach: Attach, backend: RocmBackend) -> None:
    """Nor does a library that lists none take away what HIP sees: its readings are missing, with the reason."""
    assert text("rocm_smi_no_json.txt").strip() == "WARNING: No JSON data to report"
    with pytest.raises(json.JSONDecodeError):
        json.loads(text("rocm_smi_no_json.txt"))
    attach("mi300x")
    sys.modules["amdsmi"].amdsmi_get_processor_handles = list  # type: ignore[attr-defined]
    (device,) = backend.devices()
    assert device.details["amdsmi"] == "AMD SMI does not know the device at 0000:05:00.0"
    assert (device.power_limit_w, device.max_clock_hz, device.driver) == (None, None, None)
    assert match(device).hardware == "amd-mi300x"


def test_a_list_is_not_in_the_order_of_its_gpus() -> None:
    """A warning, then GPU 1 before GPU 0: 142 W of a moment at 73 %, and a mean of 90 W of the idle one."""
    said = text("amd_smi_metric_warning_before_json.txt")
    assert said.startswith("WARNING")
    gpus = listed_gpus(said)
    assert [gpu["gpu"] for gpu in gpus] == [1, 0]
    assert [gpu["usage"]["gfx_activity"]["value"] for gpu in gpus] == [73, 0]
    watts = gpus[0]["power"]["socket_power"]["value"]
    assert device_of(FakeAmdsmi(table={"current_socket_power": watts})).power_w() == 142.0


@pytest.mark.parametrize(
    ("file", "watts"), [("amd_smi_metric_mi300x_head.txt", 234.0), ("amd_smi_metric_wrapped_list.txt", 20.0)]
)
def test_power_of_a_socket(file: str, watts: float) -> None:
    """Full use at a third of the limit is power, and no reading of use."""
    found = re.search(r"SOCKET_POWER: (\d+) W", text(file))
    assert found is not None
    assert device_of(FakeAmdsmi(table={"current_socket_power": int(found[1])})).power_w() == watts


def test_an_unknown_value_may_have_a_unit_and_a_list_may_go_over_lines() -> None:
    head, wrapped = text("amd_smi_metric_mi300x_head.txt"), text("amd_smi_metric_wrapped_list.txt")
    assert (head.count("N/A mV"), re.findall(r"GFX_ACTIVITY: (\d+) %", head)) == (3, ["100"])
    jpeg = re.search(r"JPEG_ACTIVITY: \[([^\]]*)\]", wrapped)
    assert jpeg is not None
    assert (jpeg[1].count("N/A"), jpeg[1].count("\n")) == (32, 2)
    for unknown in ("N/A", "N/A mV"):
        with pytest.raises(ReadingLost, match=unknown):
            device_of(FakeAmdsmi(table={"current_socket_power": unknown})).power_w()


def test_two_labels_of_power_are_two_kinds_of_it() -> None:
    """An MI250's second die says N/A under the one, two other cards 4 and 3 W under the other."""
    said = re.findall(r"(Average|Current Socket) Graphics Package Power \(W\): (.*)", text("rocm_smi_power_secondary_die.txt"))
    assert said == [("Average", "N/A (Secondary die)"), ("Current Socket", "4.0"), ("Current Socket", "3.0")]
    for _, watts in said[1:]:
        assert device_of(FakeAmdsmi(table={"current_socket_power": float(watts)})).power_w() == float(watts)
    with pytest.raises(ReadingLost, match="Secondary die"):
        device_of(FakeAmdsmi(table={"average_socket_power": said[0][1]})).average_power_w()


def test_keys_of_the_firmware_s_table_hold_brackets_and_colons() -> None:
    """A laptop's: 32 of them, a width of 16 lanes and a speed in tenths of GT/s."""
    said = re.findall(r"^GPU\[0\]\t\t: (.*): (.*)$", text("rocm_smi_showmetrics.txt"), re.MULTILINE)
    table = dict(said)
    assert len(said) == len(table) == 32
    assert table["energy_accumulator (15.259uJ (2^-16))"] == "0"
    assert int(table["pcie_link_speed (0.1 GT/s)"]) * 0.1 == pytest.approx(16)
    assert table["gfx_activity_acc (%)"] == "N/A"
    entries = {
        "average_socket_power": int(table["average_socket_power (W)"]),
        "current_socket_power": "N/A",
        "current_uclk": int(table["current_uclk (MHz)"]),
        "pcie_link_width": int(table["pcie_link_width (Lanes)"]),
    }
    laptop = device_of(FakeAmdsmi(table=entries))
    assert (laptop.average_power_w(), laptop.memory_clock_hz(), laptop.facts()["pcie_width"].value) == (20.0, 96e6, 16)


def text(file: str) -> str:
    return (AMD / file).read_text()
