"""Which products a device gets: twenty cases, none of them long, whatever the device is."""

import pytest

from backends.cold import flush_factor
from suite.backend import DeviceInfo
from suite.config import compose
from suite.errors import UsageError
from suite.hardware.assign import assign
from suite.hardware.catalogue import load
from suite.jobs.gemm import GemmJob, GemmSettings
from suite.plan import COLD
from suite.planned import DeviceSlot
from suite.roofline import Ceilings, floors_s
from suite.rows import Calibration
from suite.selftest.cases import LONGEST_S, SIDES, Products, products
from suite.selftest.course import Course, courses
from suite.settings import RunConfig

MIB = 2**20
TWO_CORES = DeviceInfo(
    "cpu",
    0,
    "Two cores",
    "b",
    8 * 2**30,
    visible_units=2,
    max_clock_hz=2.6e9,
    llc_bytes=32 * MIB,
    isa=("avx2", "fma"),
    cold_by="flush",
)
H200 = DeviceInfo(
    "cuda",
    0,
    "NVIDIA H200",
    "a",
    150_109_880_320,
    visible_units=132,
    max_clock_hz=1.98e9,
    llc_bytes=60 * MIB,
    pci_bus_id="0000:01:00.0",
)
STRANGE = DeviceInfo("cuda", 0, "Testium T0", "c", 16 * 2**30)


def limits(info: DeviceInfo) -> Ceilings:
    return Ceilings(info, assign(info, None).spec)


def test_a_large_accelerator_gets_large_products() -> None:
    assert products(limits(H200)) == Products(
        ("bf16", "fp8_e4m3"), ("8192x8192x8192", "4096x4096x4096", "2048x2048x2048", "16x2560x2560", "16x15616x15616")
    )


def test_two_cores_get_small_ones_in_the_formats_they_compute_in() -> None:
    few = products(limits(TWO_CORES))
    assert few == Products(("fp32", "fp64"), ("512x512x512", "256x256x256", "128x128x128", "16x1024x1024", "16x5632x5632"))
    wide = DeviceInfo(
        "cpu", 0, "Two cores", "b", 8 * 2**30, visible_units=2, max_clock_hz=2.6e9, llc_bytes=32 * MIB,
        isa=("avx512f", "avx512_bf16"), cold_by="flush",
    )  # fmt: skip
    assert products(limits(wide)).formats == ("fp32", "bf16")
    assert products(limits(wide)).largest == "1024x1024x1024"


def test_a_device_without_a_sheet_gets_those_of_a_middling_one() -> None:
    config = gemm(compose(["experiment=selftest"]))
    assert products(limits(STRANGE)) == Products(("bf16", "fp32"), tuple(config.shapes))
    assert config.formats == ["bf16", "fp32"]


SHEETS = ("nvidia-t4", "nvidia-v100-sxm2-32gb", "nvidia-a100-sxm4-80gb", "nvidia-b200-sxm", "amd-mi300x", "nvidia-rtx-4090")


@pytest.mark.parametrize("sheet", SHEETS)
def test_no_launch_is_long_and_the_formats_are_native(sheet: str) -> None:
    known, job = Ceilings(STRANGE, load(sheet)), GemmJob()
    few = products(known)
    assert len(set(few.formats)) == 2
    for workload in job.workloads(GemmSettings(formats=list(few.formats), shapes=list(few.shapes))):
        work = job.work(workload)
        peak = known.peak_flop_s(work.pipe)
        assert peak is not None
        assert work.flops / peak <= LONGEST_S


@pytest.mark.parametrize("info", [H200, TWO_CORES, STRANGE], ids=["H200", "cpu", "no sheet"])
def test_one_product_fits_in_the_cache_and_one_does_not(info: DeviceInfo) -> None:
    few, job = products(limits(info)), GemmJob()
    llc_bytes = info.llc_bytes or 32 * MIB
    for name in few.formats:
        fits, streams = (
            job.footprint(workload).set_bytes
            for workload in job.workloads(GemmSettings(formats=[name], shapes=list(few.shapes[3:])))
        )
        assert 0.1 * llc_bytes < fits < llc_bytes
        assert streams > 1.5 * llc_bytes


def gemm(config: RunConfig) -> GemmSettings:
    settings = config.jobs["gemm"]
    assert isinstance(settings, GemmSettings)
    return settings


def slot(number: int, info: DeviceInfo) -> DeviceSlot:
    return DeviceSlot(number, info.backend, f"backends.{info.backend}:Backend", info)


def course(*infos: DeviceInfo, offers: bool = True, settings: tuple[str, ...] = ()) -> tuple[Course, ...]:
    names = dict.fromkeys(info.backend for info in infos)
    config = compose(["experiment=selftest", f"backend=[{','.join(names)}]", *settings])
    return courses(config, [slot(number, info) for number, info in enumerate(infos)], lambda backend: offers)


@pytest.mark.parametrize("info", [H200, TWO_CORES, STRANGE], ids=["H200", "cpu", "no sheet"])
def test_four_passes_over_twenty_cases_in_about_four_minutes(info: DeviceInfo) -> None:
    (one,) = course(info)
    assert [each.name for each in one.passes] == ["first", "load", "doubled", "again"]
    assert [len(each.cases) for each in one.passes] == [25, 4, 10, 20]
    assert one.cases == 59
    assert one.predicted_s < 240


def test_the_second_pass_is_the_first_reversed() -> None:
    (one,) = course(H200)
    first, *_, again = one.passes
    keys = [planned.case.key for planned in first.cases if planned.case.workload.job == "gemm"]
    assert [planned.case.key for planned in again.cases] == keys[::-1]
    assert len(set(keys)) == 20


def test_the_load_pass_takes_the_largest_product_in_both_loads_for_over_two_seconds() -> None:
    (one,) = course(H200)
    load = one.passes[1]
    assert {planned.case.workload.param("m") for planned in load.cases} == {8192}
    assert {planned.case.regime.load for planned in load.cases} == {"burst", "sustained"}
    assert load.config.measure.min_time_s > 2
    load.config.measure.check()


def test_everything_that_makes_cold_is_doubled() -> None:
    (one,) = course(H200)
    first, _, doubled, _ = one.passes
    rotating = {planned.case.key: planned.sets for planned in first.cases}
    assert doubled.config.measure.cold_margin == 2 * first.config.measure.cold_margin
    assert doubled.config.backends["cuda"].options["flush_factor"] == 4.0
    assert first.config.backends["cuda"].options == {}
    for planned in doubled.cases:
        assert planned.case.regime.cache == "cold"
        assert planned.sets >= 1.5 * rotating[planned.case.key] or rotating[planned.case.key] == 2


def test_what_the_user_set_is_what_is_doubled() -> None:
    (one,) = course(H200, settings=("measure.cold_margin=2", "++backends.cuda.options.flush_factor=3"))
    first, _, doubled, _ = one.passes
    assert (first.config.measure.cold_margin, doubled.config.measure.cold_margin) == (2, 4)
    assert doubled.config.backends["cuda"].options["flush_factor"] == 6.0


def test_a_flush_that_a_backend_cannot_change_leaves_the_pass_out_with_the_reason() -> None:
    (one,) = course(TWO_CORES, offers=False)
    assert [each.name for each in one.passes] == ["first", "load", "again"]
    assert one.undoubled == "backend cpu has no option flush_factor, so that its flush cannot be doubled"
    (rotates,) = course(H200, offers=False)
    assert rotates.passes[2].config.backends["cuda"].options == {}
    assert rotates.undoubled == ""


@pytest.mark.parametrize(
    ("info", "setting", "most"),
    [
        (TWO_CORES, "backends.cpu.options.flush_factor=40", 64),
        (H200, "backends.cuda.options.flush_factor=33", 64),
        (H200, "measure.cold_margin=9", 16),
    ],
)
def test_what_cannot_be_doubled_within_its_limit_is_refused_as_it_was_given(info: DeviceInfo, setting: str, most: int) -> None:
    with pytest.raises(UsageError) as refused:
        course(info, settings=(f"++{setting}",))
    assert str(refused.value) == (
        f"{setting} cannot be doubled, as a selftest does to see whether cold is cold: at most {most} are taken; "
        f"give it at most {most // 2}"
    )


def test_the_largest_settings_that_can_be_doubled_are() -> None:
    (one,) = course(H200, settings=("measure.cold_margin=8", "++backends.cuda.options.flush_factor=32"))
    assert one.passes[2].config.measure.cold_margin == 16
    factor = one.passes[2].config.backends["cuda"].options["flush_factor"]
    assert flush_factor("cuda", factor) == factor == 64


def test_a_load_pass_is_no_longer_than_a_case_may_be() -> None:
    (one,) = course(H200, settings=("measure.max_time_s=3000",))
    load = one.passes[1].config.measure
    assert (load.min_time_s, load.max_time_s) == (3600, 3600)


def test_alike_devices_are_measured_side_by_side_and_others_after_them() -> None:
    other = DeviceInfo("cuda", 1, "NVIDIA H200", "z", H200.memory_bytes, llc_bytes=H200.llc_bytes, pci_bus_id="0000:02:00.0")
    both, alone = course(H200, other, TWO_CORES)
    assert [each.slot for each in both.slots] == [0, 1]
    assert both.passes[0].config.device == [0, 1]
    assert list(both.passes[0].config.backends) == ["cuda"]
    assert (len(both.passes[0].cases), len(alone.passes[0].cases)) == (50, 25)
    assert [each.slot for each in alone.slots] == [0]


def test_each_pass_is_what_run_composes_from_its_overrides() -> None:
    """So that `roofbench run resume=RUN` and a report's command mean the same measurement."""
    given = ["experiment=selftest", "seed=3", "measure.target=0.02"]
    config = compose([*given, "backend=cuda"])
    (one,) = courses(config, [slot(0, H200)], lambda backend: True)
    for each in one.passes:
        again = compose([*given, *each.overrides])
        assert (again.jobs, again.measure, again.backends, again.device) == (
            each.config.jobs, each.config.measure, each.config.backends, each.config.device,
        )  # fmt: skip


def test_the_calibration_belongs_to_the_first_pass() -> None:
    (one,) = course(TWO_CORES)
    jobs = [{planned.case.workload.job for planned in each.cases} for each in one.passes]
    assert jobs == [{"calibration", "gemm"}, {"gemm"}, {"gemm"}, {"gemm"}]


def test_a_named_sheet_decides_the_sizes() -> None:
    config = compose(["experiment=selftest", "backend=cuda", "hardware=nvidia-h200-sxm5-141gb"])
    (one,) = courses(config, [slot(0, STRANGE)], lambda backend: True)
    assert gemm(one.passes[0].config).formats == ["bf16", "fp8_e4m3"]


@pytest.mark.parametrize("info", [H200, TWO_CORES])
def test_the_largest_product_is_the_largest_whose_compute_floor_is_short_enough(info: DeviceInfo) -> None:
    known = limits(info)
    few = products(known)
    side = int(few.largest.partition("x")[0])

    def longest_s(side: int) -> float:
        works = [GemmJob().work(each) for each in GemmJob().workloads(GemmSettings(formats=[*few.formats], shapes=[f"{side}"]))]
        return max(floors_s(work, COLD, known, Calibration())[0] or 0.0 for work in works)

    assert longest_s(side) <= LONGEST_S or side == SIDES[-1]
    assert side == SIDES[0] or longest_s(2 * side) > LONGEST_S
