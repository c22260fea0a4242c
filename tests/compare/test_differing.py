"""What else differed between two runs is found, named and ordered; what never is the same twice is left out."""

from dataclasses import replace

from suite.backend import Fact
from suite.compare.differing import Differing, differing, executed
from suite.compare.pairing import By, pair
from tests.compare.builders import chip, entry, side
from tests.report.builders import UID, device

SYSTEM = {
    "python": {"torch": Fact.measured("2.11.0"), "jax": Fact.unavailable("not installed"), "roofbench": Fact.measured("0.1.0")},
    "variables": {"OMP_NUM_THREADS": Fact.measured("8")},
    "storage": {"free_bytes": Fact.measured(1), "file_system": Fact.measured("ext4")},
    "cuda device 0": {"cublas": Fact.measured("13.1"), "ecc": Fact.unavailable("nvml is missing")},
}


def found(a, b):
    return {(each.group, each.name): (each.a, each.b) for each in differing(a, b, pair(a, b).pairs)}


def test_two_runs_of_the_same_are_the_same():
    assert found(side(entry()), side(entry())) == {}


def test_a_device_differs_in_chip_driver_clocks_and_power_with_their_units():
    other = chip("f00d", driver="590.1", power_limit_w=600.0, max_clock_hz=1.83e9, details={"nvml": "no library"})
    a, b = side(entry(), devices=[device()]), side(entry(device_uid="f00d"), devices=[other])
    assert found(a, b) == {
        ("device", "chip"): (UID, "f00d"),
        ("device", "driver"): ("580.159", "590.1"),
        ("device", "power limit"): ("700 W", "600 W"),
        ("device", "maximum clock"): ("1.98 GHz", "1.83 GHz"),
        ("device", "nvml"): ("not recorded", "no library"),
    }


def test_the_memory_of_a_device_that_nothing_looked_at_is_not_recorded():
    a, b = side(entry(), devices=[device()]), side(entry(), devices=[chip(UID, memory_bytes=0)])
    ((_, written),) = found(a, b).items()
    assert written[1] == "not recorded"


def test_a_difference_that_rounding_would_hide_is_shown_whole():
    a, b = side(entry(), devices=[device()]), side(entry(), devices=[chip(UID, max_clock_hz=1.9801e9)])
    assert found(a, b) == {("device", "maximum clock"): ("1980000000.0", "1980100000.0")}


def test_several_devices_are_named_once_each():
    a = side(entry(), devices=[device(), chip("f00d")])
    b = side(entry(), devices=[device()])
    assert found(a, b)["device", "chip"] == (f"{UID}, f00d", UID)


def test_versions_variables_and_libraries_of_the_system():
    later = {
        **SYSTEM,
        "python": {**SYSTEM["python"], "torch": Fact.measured("2.12.0"), "jax": Fact.measured("0.11.0")},
        "variables": {"XLA_FLAGS": Fact.measured("--xla_gpu_x"), "OMP_NUM_THREADS": Fact.measured("8")},
        "storage": {"free_bytes": Fact.measured(2), "file_system": Fact.measured("ext4")},
        "cuda device 1": {"cublas": Fact.measured("13.2"), "ecc": Fact.unavailable("worded otherwise")},
    }
    del later["cuda device 0"]
    assert found(side(entry(), environments=[SYSTEM]), side(entry(), environments=[later])) == {
        ("python", "torch"): ("2.11.0", "2.12.0"),
        ("python", "jax"): ("not installed", "0.11.0"),
        ("variables", "XLA_FLAGS"): ("not set", "--xla_gpu_x"),
        ("cuda device", "cublas"): ("13.1", "13.2"),
    }


def test_a_run_that_was_resumed_on_another_system_has_both():
    other = {**SYSTEM, "python": {**SYSTEM["python"], "torch": Fact.measured("2.12.0")}}
    a, b = side(entry(), environments=[SYSTEM, other]), side(entry(), environments=[other])
    assert found(a, b) == {("python", "torch"): ("2.11.0, 2.12.0", "2.12.0")}


def test_commit_settings_and_method_versions():
    a = side(entry(), entry(512), commit="abc", dirty=False, version="0.1.0")
    b = side(entry(), entry(512, version=2), commit="abc", dirty=True, version="0.2.0")
    config = {**b.info.config, "measure": {"target": 0.01, "interleave": 10}}
    b = replace(b, info=replace(b.info, config=config))
    assert found(a, b) == {
        ("roofbench", "version"): ("0.1.0", "0.2.0"),
        ("roofbench", "commit"): ("abc", "abc with changes"),
        ("roofbench", "method version of gemm"): ("1", "1, 2"),
        ("settings", "measure.target"): ("0.005", "0.01"),
        ("settings", "measure.interleave"): ("not set", "10"),
    }


def test_settings_are_named_as_they_are_typed():
    a, b = side(entry()), side(entry())
    config = {
        "measure": {"max_time_s": 2.0, "is_new": True, "regimes": ["standard", 64]},
        "backends": {"cpu": {"options": {"flush_factor": 4.0, "select": None}}},
    }
    b = replace(b, info=replace(b.info, config=config))
    settings = {name: values for (group, name), values in found(a, b).items() if group == "settings"}
    assert settings == {
        "measure.target": ("0.005", "not set"),
        "measure.max_time_s": ("not set", "2.0"),
        "seed": ("0", "not set"),
        "backends.cpu.options.flush_factor": ("not set", "4.0"),
        "backends.cpu.options.select": ("not set", "null"),
        "measure.is_new": ("not set", "true"),
        "measure.regimes": ("not set", "[standard, 64]"),
    }


def test_a_sheet_that_was_derived_or_not_found_is_called_so():
    sheets = {"my-xeon": device(hardware="my-xeon"), "derived": device(hardware=None, spec={"derived": True})}
    sheets["none"] = device(hardware=None, spec=None)
    for one, other in (("my-xeon", "derived"), ("derived", "none"), ("none", "my-xeon")):
        a, b = (side(entry(), devices=[sheets[name]]) for name in (one, other))
        assert found(a, b) == {("device", "spec sheet"): (one, other)}


def test_what_only_one_run_measured_has_no_other_version_of_its_method():
    calibrated = entry(job="calibration", params={"op": "read"}, workload_key="read")
    assert found(side(calibrated, entry()), side(entry())) == {}
    assert found(side(calibrated, entry()), side()) == {}


def test_what_differs_from_case_to_case_says_in_how_many():
    a = side(entry(switches={"tf32": False}), entry(512), entry(1024))
    b = side(entry(switches={"tf32": True}, implementation="triton"), entry(512, execution="emulated"), entry(1024))
    assert len(pair(a, b).pairs) == 2  # by case
    by_workload = differing(a, b, pair(a, b, By.WORKLOAD).pairs)
    assert set(by_workload) == {
        Differing("cases", "implementation", "library", "triton", "in 1 of 3"),
        Differing("switches", "tf32", "False", "True", "in 1 of 3"),
        Differing("cases", "execution", "native", "emulated", "in 1 of 3"),
    }


def test_another_kernel_is_named_and_what_it_cost_to_find_is_not():
    a = {
        "library": "cuBLASLt 13.1",
        "kernels": ["nvjet_a"],
        "tiles": [128, 256],
        "compile_s": 1.5,
        "precision": {"tf32": False},
    }
    b = {"library": "cuBLASLt 13.1", "kernels": ["nvjet_b"], "tiles": [128, 128], "compile_s": 9.5, "precision": {"tf32": True}}
    assert executed(a, b) == (
        Differing("kernel", "kernels", "nvjet_a", "nvjet_b"),
        Differing("kernel", "tiles", "128, 256", "128, 128"),
        Differing("kernel", "precision.tf32", "False", "True"),
    )
    assert executed(a, {}) == tuple(
        Differing("kernel", name, value, "not recorded")
        for name, value in [
            ("library", "cuBLASLt 13.1"),
            ("kernels", "nvjet_a"),
            ("tiles", "128, 256"),
            ("precision.tf32", "False"),
        ]
    )
