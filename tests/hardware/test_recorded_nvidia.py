"""Outputs of nvidia-smi on real machines: which device each one was, and which sheet it gets, if any."""

import csv

import pytest

from backends.cuda import partition_of
from suite.hardware.match import Match, match
from tests.hardware.devices import device
from tests.hardware.nvidia_smi import columns, instances, number, plain, profiles, table, text, value, values, xml

SXM5, SXM5_MIB = "NVIDIA H100 80GB HBM3", 81559
MISSING = ("N/A", "[N/A]", "Not Supported", "Not Found", "ERR!", "[Unknown Error]", "Insufficient Permissions", "None")


def matched(name: str, memory_mib: float | None, units: int | None = None) -> Match:
    """As the CUDA backend describes a device; 0 bytes where the runtime tells no memory."""
    return match(device(name, memory_mib=memory_mib or 0, visible_units=units, partition=partition_of(name)))


@pytest.mark.parametrize("cell", MISSING)
def test_what_is_no_number_is_unknown_and_not_0(cell: str) -> None:
    assert number(cell) is None


# --- the default table -----------------------------------------------------------------------------------------------


def test_eight_h100_in_the_table() -> None:
    rows = table("table_h100_8gpu.txt")
    assert [(row.name, row.memory_mib, row.limit_w) for row in rows] == [(SXM5, SXM5_MIB, 700)] * 8
    assert (rows[0].temperature_c, rows[0].power_w) == (27, 72)
    assert text("table_h100_8gpu.txt").count("Disabled |") == 8
    assert {matched(row.name, row.memory_mib).hardware for row in rows} == {"nvidia-h100-sxm5-80gb"}


def test_a_gb10_has_no_memory_to_go_by() -> None:
    """In the table it is Not Supported, in a query [N/A]; neither is a memory of 0."""
    (row,) = table("gb10_table.txt")
    assert (row.power_w, row.limit_w, row.use_percent, row.memory_mib) == (11, None, 10, None)
    assert row.bus.startswith("0000000F:")
    (queried,) = csv.reader(text("gb10_query.csv").splitlines(), skipinitialspace=True)
    assert queried[:4] == ["NVIDIA GB10", "[N/A]", "12.1", "[N/A]"]
    assert {"10.8", "2405", "3003"} <= set(queried)
    for name in (row.name, queried[0]):
        assert matched(name, row.memory_mib).hardware == "nvidia-gb10"


def test_a_jetson_s_table_tells_nothing() -> None:
    (row,) = table("orin_table.txt")
    assert row.name == "Orin (nvgpu)"
    assert not any(row[2:9])
    assert "Driver Version: N/A" in text("orin_table.txt")
    assert matched(row.name, row.memory_mib).reason == "no sheet has the runtime name 'Orin (nvgpu)'"


def test_a_name_that_the_table_cuts_is_nobody_s() -> None:
    (row,) = table("table_fan_err.txt")
    assert (row.name, row.fan, row.mode) == ("NVIDIA GeForce ...", None, "E. Process")
    assert (row.temperature_c, row.power_w, row.limit_w, row.used_mib, row.memory_mib) == (38, 49, 450, 2021, 23028)
    assert row.use_percent == 0
    assert matched(row.name, row.memory_mib).hardware is None


def test_a_vgpu_is_a_slice_of_a_card_and_has_none_of_its_figures() -> None:
    (row,) = table("vgpu_v100d_8c_table.txt")
    assert (row.name, row.memory_mib) == ("GRID V100D-8C", 8192)
    assert (row.temperature_c, row.power_w, row.limit_w) == (None, None, None)
    found = matched(row.name, row.memory_mib, 80)
    assert found.spec is None
    assert "is a vGPU, a share of a card" in found.reason


# --- nvidia-smi -q ---------------------------------------------------------------------------------------------------


def test_an_h200() -> None:
    report = plain("h200_q_load.txt")
    (gpu,) = report.gpus
    memory = number(value(gpu, "FB Memory Usage", "Total"))
    assert (value(gpu, "Product Name"), memory) == ("NVIDIA H200", 143_771)
    assert [number(value(gpu, "FB Memory Usage", key)) for key in ("Used", "Reserved")] == [32_362, 614]
    assert [number(value(gpu, "Utilization", key)) for key in ("GPU", "Memory")] == [100, 7]
    assert [number(each) for each in values(gpu, "Used GPU Memory")] == [2566, 1542, 28_234]
    assert number(value(gpu, "Clocks", "SM")) == 1980
    assert matched("NVIDIA H200", memory, 132).hardware == "nvidia-h200-sxm5-141gb"


def test_an_l40s() -> None:
    (gpu,) = plain("l40s_q_load.txt").gpus
    memory = number(value(gpu, "FB Memory Usage", "Total"))
    assert (memory, number(value(gpu, "FB Memory Usage", "Used"))) == (46_068, 1235)
    assert (value(gpu, "MIG Mode", "Current"), number(value(gpu, "Max Clocks", "SM"))) == ("N/A", 2520)
    assert value(gpu, "Clocks", "SM") == value(gpu, "Max Clocks", "SM")
    assert [number(each) for each in values(gpu, "Used GPU Memory")] == [538, 681]
    assert matched(value(gpu, "Product Name"), memory, 142).hardware == "nvidia-l40s"


def test_an_a10() -> None:
    (gpu,) = plain("q_a10.txt").gpus
    memory = number(value(gpu, "FB Memory Usage", "Total"))
    assert (value(gpu, "Product Name"), memory, value(gpu, "Performance State")) == ("NVIDIA A10", 23_028, "P8")
    assert [number(each) for each in values(gpu, "Power Draw")] == [43.89, None]
    assert number(value(gpu, "Utilization", "Gpu")) == 0
    assert matched("NVIDIA A10", memory).hardware == "nvidia-a10"


def test_eight_h100_of_older_labels_are_told_apart() -> None:
    gpus = plain("q_h100_8gpu.txt").gpus
    assert {value(gpu, "Product Name") for gpu in gpus} == {SXM5}
    assert {value(gpu, "FB Memory Usage", "Total") for gpu in gpus} == {f"{SXM5_MIB} MiB"}
    assert [number(each) for each in values(gpus[0], "Power Draw")] == [67.74, None], "the second is the module's"
    for key in ("GPU UUID", "Serial Number"):
        assert len({value(gpu, key) for gpu in gpus}) == len(gpus) == 8, key


def test_a_print_that_ends_early_has_the_gpus_that_it_shows() -> None:
    """And a key that is spelt otherwise is another key."""
    report = plain("q_h100_truncated_after_first.txt")
    assert (value(report.head, "Attached GPUs"), len(report.gpus)) == ("8", 1)
    assert values(report.gpus[0], "HW Slowdown") == []
    assert value(report.gpus[0], "Invalid HW Slowdown") == "Not Active"
    assert values(report.gpus[0], "FB Memory Usage", "Total") == []
    assert matched(value(report.gpus[0], "Product Name"), None).hardware == "nvidia-h100-sxm5-80gb"


def test_one_of_two_dies_of_a_k80_has_no_sheet() -> None:
    report = plain("k80_q_head.txt")
    (gpu,) = report.gpus
    assert gpu[0].keys[0] == "GPU 3E3F8E05:00:00.0"
    assert values(report.head, "CUDA Version") == []
    assert (value(gpu, "Product Name"), value(gpu, "MultiGPU Board")) == ("Tesla K80", "Yes")
    assert matched("Tesla K80", None).hardware is None


def test_a_print_without_a_name_gives_no_sheet() -> None:
    """What is asked for by ``-d`` holds nothing to know a device by, however many there are."""
    pages = plain("retired_pages_8gpu_bad.txt")
    assert (value(pages.head, "Attached GPUs"), len(pages.gpus)) == ("8", 8)
    counts = [tuple(number(value(gpu, f"{bits} Bit ECC")) for bits in ("Single", "Double")) for gpu in pages.gpus]
    assert counts == [(60, 5), (2, 61), (0, 0), (6, 0), (0, 0), (20, 45), (0, 0), (8, 56)]
    pending = [index for index, gpu in enumerate(pages.gpus) if value(gpu, "Pending Page Blacklist") == "Yes"]
    assert pending == [1, 3, 5, 7]
    guest_host = plain("rtx_pro_6000_qd_performance.txt")
    assert (value(guest_host.head, "CUDA Version"), value(guest_host.head, "Attached GPUs")) == ("Not Found", "4")
    assert values(guest_host.head, "Heterogenous Multi-vGPU") == ["Supported"]
    (gpu,) = guest_host.gpus
    assert value(gpu, "Performance State") == "P8"
    assert (value(gpu, "SW Power Capping"), value(gpu, "SW Power Cap")) == ("1202176 us", "Not Active")
    assert not any(values(each, "Product Name") for each in (*pages.gpus, gpu))
    assert matched("", None).hardware is None


# --- nvidia-smi -q -x ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "name", "memory_mib", "max_sm_mhz", "units", "hardware"),
    [
        ("qx_a100_40gb.xml", "NVIDIA A100-SXM4-40GB", 40_960, 1410, 108, "nvidia-a100-sxm4-40gb"),
        ("qx_h100_first2of8.xml", SXM5, SXM5_MIB, 1980, 132, "nvidia-h100-sxm5-80gb"),
        ("qx_l40s.xml", "NVIDIA L40S", 46_068, 2520, 142, "nvidia-l40s"),
        ("qx_gb200_4gpu.xml", "NVIDIA GB200", 189_471, 2062, 152, "nvidia-gb200"),
        ("qx_p100.xml", "Tesla P100-PCIE-16GB", 16_384, 1328, 56, None),
    ],
)
def test_whole_gpus(file: str, name: str, memory_mib: int, max_sm_mhz: int, units: int, hardware: str | None) -> None:
    for gpu in xml(file).gpus:
        assert (value(gpu, "product_name"), number(value(gpu, "fb_memory_usage", "total"))) == (name, memory_mib)
        assert number(value(gpu, "max_clocks", "sm_clock")) == max_sm_mhz
        found = matched(name, memory_mib, units)
        assert found.hardware == hardware, found.reason


@pytest.mark.parametrize(("file", "mode"), [("qx_a100_40gb.xml", "Disabled"), ("qx_l40s.xml", "N/A"), ("qx_p100.xml", "N/A")])
def test_gpus_that_are_not_divided(file: str, mode: str) -> None:
    (gpu,) = xml(file).gpus
    assert value(gpu, "current_mig") == mode


def test_two_of_eight_h100() -> None:
    report = xml("qx_h100_first2of8.xml")
    assert (value(report.head, "attached_gpus"), len(report.gpus)) == ("8", 2)
    assert number(value(report.gpus[0], "max_clocks", "mem_clock")) == 2619


def test_facts_of_an_a100_and_an_l40s() -> None:
    (a100,), (l40s,) = (xml(file).gpus for file in ("qx_a100_40gb.xml", "qx_l40s.xml"))
    assert number(value(a100, "max_clocks", "mem_clock")) == 1215
    assert (value(a100, "fabric", "state"), value(a100, "pcie_gen", "max_link_gen")) == ("N/A", "4")
    assert value(l40s, "memory_temp") == "N/A"


def test_four_gb200_are_not_told_apart_by_their_serials() -> None:
    gpus = xml("qx_gb200_4gpu.xml").gpus
    assert len(gpus) == 4
    assert len({value(gpu, "serial") for gpu in gpus}) < 4
    assert len({value(gpu, "pci_bus_id") for gpu in gpus}) == 4
    for gpu in gpus:
        assert (value(gpu, "fabric", "state"), value(gpu, "fabric", "status")) == ("Completed", "Success")
        assert (value(gpu, "max_link_gen"), value(gpu, "max_device_link_gen")) == ("5", "6")
        assert [entry.value for entry in gpu].count("Insufficient Permissions") == 1
        assert value(gpu, "addressing_mode") == "ATS"


def test_a_state_alone_does_not_tell_a_fabric_s_health() -> None:
    gpus = xml("qx_gb200_fabric_degraded.xml").gpus
    assert [(value(gpu, "fabric", "state"), value(gpu, "fabric", "status")) for gpu in gpus] == [("Completed", "Success")] * 2
    assert [value(gpu, "summary") for gpu in gpus] == ["Healthy", "Unhealthy"]
    assert [value(gpu, "route_unhealthy") for gpu in gpus] == ["False", "True"]
    mocked = number(value(gpus[0], "fb_memory_usage", "total"))
    assert mocked == 196_608, "a stand-in's; a real one has 189,471"


# --- instances -------------------------------------------------------------------------------------------------------


def test_instances_of_an_h100_are_the_same_in_three_prints() -> None:
    listed = text("h100_mig_L.txt").splitlines()
    names = [line.split()[1] for line in listed[1:]]
    assert (listed[0].partition(" (")[0], names) == (f"GPU 0: {SXM5}", ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"])
    (gpu,) = plain("h100_mig_q_idle.txt").gpus
    assert (value(gpu, "MIG Mode", "Current"), value(gpu, "FB Memory Usage", "Total")) == ("Enabled", f"{SXM5_MIB} MiB")
    assert value(gpu, "Utilization", "GPU") == "N/A"
    assert any("Requested functionality has been deprecated" in entry.value for entry in gpu)
    queried = [
        [number(each) for each in values(gpu, *keys)]
        for keys in (("GPU Instance ID",), ("Multiprocessor count",), ("Shared FB Memory Usage", "Total"))
    ]
    assert queried == [[2, 3, 9, 10], [60, 32, 16, 16], [40_448, 20_096, 9984, 9984]]
    (row,) = table("h100_mig_table_idle.txt")
    assert (row.power_w, row.limit_w, row.used_mib, row.use_percent) == (98, 700, 59, None)
    shown = instances("h100_mig_table_idle.txt")
    assert shown == [
        (2, 0, 0, 26, 40_448, 60), (3, 0, 1, 17, 20_096, 32), (9, 0, 2, 9, 9984, 16), (10, 0, 3, 9, 9984, 16),
    ]  # fmt: skip
    assert [list(column) for column in zip(*((each[0], each[5], each[4]) for each in shown), strict=True)] == queried
    for name, (*_, memory_mib, units), eighths in zip(names, shown, (4, 2, 1, 1), strict=True):
        spec = matched(f"{SXM5} MIG {name}", memory_mib, units).spec
        assert spec is not None
        assert spec.peak_flop_s("bf16") == pytest.approx(989.4e12 * units / 132, rel=1e-3)
        assert spec.bandwidth_bytes_s == 3350e9 * eighths / 8


def test_instances_of_an_a100_whose_share_of_memory_is_not_documented() -> None:
    report = xml("qx_a100_80gb_mig_four_1slice.xml")
    (gpu,) = report.gpus
    assert (value(report.head, "attached_gpus"), value(gpu, "current_mig")) == ("4", "Enabled")
    assert values(gpu, "mig_device", "gpu_instance_id") == ["3", "4", "5", "6"]
    assert [number(each) for each in values(gpu, "multiprocessor_count")] == [14] * 4
    assert values(gpu, "gpu_util") == ["N/A"]
    memory = {number(each) for each in values(gpu, "mig_device", "fb_memory_usage", "total")}
    assert memory == {19_968}
    found = matched(f"{value(gpu, 'product_name')} MIG 1g.20gb", memory.pop(), 14)
    assert found.hardware == "nvidia-a100-sxm4-80gb"
    assert found.spec is not None
    assert found.spec.bandwidth_bytes_s is None
    assert found.spec.peak_flop_s("bf16") == pytest.approx(312e12 * 14 / 108)


@pytest.mark.parametrize(
    ("file", "card", "first", "shares"),
    [
        ("mig_lgip_b200_cut.txt", "NVIDIA B200", ("1g.23gb", 19, 7, 20.5, 18), [1 / 8, 1 / 8, 2 / 8, 2 / 8]),
        ("mig_lgip_gb200_early_driver.txt", "NVIDIA GB200", ("1g.24gb", 19, 7, 20.0, 18), [None] * 4),
        (
            "mig_lgip_rtx_pro_6000.txt",
            "NVIDIA RTX PRO 6000 Blackwell Server Edition",
            ("1g.24gb", 14, 4, 23.12, 46),
            [1 / 4] * 3,
        ),
    ],
)
def test_profiles_of_a_card(file: str, card: str, first: tuple[object, ...], shares: list[float | None]) -> None:
    """Of a profile that NVIDIA's guide has not, the share of the bandwidth is not known: drivers name slices differently."""
    found = profiles(file)
    assert tuple(found[0]) == first
    assert len(found) == len(shares)
    whole = matched(card, None).spec
    assert whole is not None
    for profile, share in zip(found, shares, strict=True):
        spec = matched(f"{card} MIG {profile.name}", profile.memory_gib * 1024, profile.units).spec
        assert spec is not None, profile.name
        assert spec.units.value == profile.units
        assert spec.bandwidth_bytes_s == (None if share is None else (whole.bandwidth_bytes_s or 0) * share), profile.name


def test_more_profiles() -> None:
    assert profiles("mig_lgip_b200_cut.txt")[2].units == 30
    assert profiles("mig_lgip_gb200_early_driver.txt")[3].units == 38
    assert [each.name for each in profiles("mig_lgip_rtx_pro_6000.txt")] == ["1g.24gb", "1g.24gb+me", "1g.24gb+gfx"]


# --- queries of all fields -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "fields", "missing", "hardware"),
    [
        ("h200_query_gpu_idle.csv", 212, 61, "nvidia-h200-sxm5-141gb"),
        ("h100_query_gpu_load.csv", 212, 61, "nvidia-h100-sxm5-80gb"),
        ("h100_mig_query_gpu_load.csv", 212, 71, "nvidia-h100-sxm5-80gb"),
        ("l40s_query_gpu_not_idle.csv", 202, 51, "nvidia-l40s"),
    ],
)
def test_a_gpu_by_all_of_its_fields(file: str, fields: int, missing: int, hardware: str) -> None:
    said = columns(file)
    assert (len(said), list(said.values()).count("[N/A]")) == (fields, missing)
    assert matched(said["name"], number(said["memory.total [MiB]"])).hardware == hardware


def test_an_idle_h200() -> None:
    said = columns("h200_query_gpu_idle.csv")
    assert (said["memory.used [MiB]"], said["memory.total [MiB]"]) == ("0 MiB", "143771 MiB")
    assert (said["utilization.gpu [%]"], said["compute_cap"]) == ("0 %", "9.0")
    assert (said["clocks.current.sm [MHz]"], said["clocks.max.sm [MHz]"]) == ("345 MHz", "1980 MHz")
    assert list(said.values()).count("[Requested functionality has been deprecated]") == 6
    assert said["hostname"] == "[N/A]"


def test_a_divided_h100_tells_no_use_though_it_is_busy() -> None:
    said = columns("h100_mig_query_gpu_load.csv")
    assert number(said["utilization.gpu [%]"]) is None
    assert number(said["power.draw [W]"]) == 433.78


def test_an_l40s_that_is_called_idle_is_not() -> None:
    said = columns("l40s_query_gpu_not_idle.csv")
    assert (said["utilization.gpu [%]"], said["memory.used [MiB]"], said["power.draw [W]"]) == ("100 %", "0 MiB", "144.97 W")
    assert (said["temperature.memory"], said["fabric.state"], said["mig.mode.current"]) == ("N/A", "N/A", "[N/A]")
    assert number(said["temperature.memory"]) is number(said["mig.mode.current"]) is None
