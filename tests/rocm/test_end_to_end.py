"""Whole runs on simulated AMD devices: planned, measured by a real worker, stored, shown and reported, as what they are."""

from pathlib import Path

import pytest

from suite.jobs.fp8 import FNUZ
from suite.measurement import Measurement
from suite.rows import ResultRow
from suite.store.queries import Reader
from tests.cli.command import roofbench

CONFIGS = str(Path(__file__).parent / "configs")
MIB = 2**20
WARM, COLD = "warm/sustained/device", "cold/sustained/device"
QUICK = ("measure.steady_window_s=0.01", "measure.min_time_s=0.005", "measure.max_time_s=0.02", "measure.max_burst_cases=0")


def run(folder: Path, *arguments: str) -> None:
    said = roofbench(folder, "run", "--config-dir", CONFIGS, "backend=simulated_rocm", *QUICK, *arguments)
    assert said.status == 0, said.err or said.out


def gemms(folder: Path) -> list[ResultRow]:
    with Reader.open(str(folder / "roofbench.db")) as reader:
        return [row for row in reader.results() if row.job == "gemm"]


def measured(folder: Path, row: ResultRow) -> Measurement:
    with Reader.open(str(folder / "roofbench.db")) as reader:
        return reader.measurement(row.result_id)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run on an MI300X."""
    folder = tmp_path_factory.mktemp("mi300x")
    run(folder, "jobs.gemm.formats=[bf16,fp8_e4m3,fp64]", "jobs.gemm.shapes=[64x64x64]", f"measure.regimes=[{WARM}]")
    return folder


@pytest.fixture(scope="module")
def part(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run on the fourth of the eight partitions of one."""
    folder = tmp_path_factory.mktemp("cpx")
    device = ("backends.rocm.options.device=mi300x_cpx", "device=3")
    run(folder, *device, "jobs.gemm.formats=[bf16]", "jobs.gemm.shapes=[64x64x64]", f"measure.regimes=[{COLD},{WARM}]")
    return folder


def test_every_product_is_right_and_labelled_simulated(whole: Path) -> None:
    rows = gemms(whole)
    assert {row.format for row in rows} == {"bf16", "fp8_e4m3", "fp64"}
    assert {(row.outcome, row.evidence, row.execution) for row in rows} == {("ok", "simulated", "native")}
    assert {row.hardware for row in rows} == {"amd-mi300x"}
    assert {row.backend for row in rows} == {"rocm"}


def test_fp8_of_an_mi300x_is_fnuz_and_says_so(whole: Path) -> None:
    row = next(row for row in gemms(whole) if row.format == "fp8_e4m3")
    description = measured(whole, row).description
    assert description["operand_dtype"] == "float8_e4m3fnuz"
    assert description["fp8_encoding"] == FNUZ
    assert description["library"] == "hipBLASLt"


def test_the_flush_is_twice_the_infinity_cache_and_not_the_l2_that_torch_reports(part: Path) -> None:
    """Of a partition too: its share of that cache is not told."""
    row = next(row for row in gemms(part) if row.cache == "cold")
    samples = measured(part, row).samples
    assert samples is not None
    assert samples.details["flush_bytes"] == 2 * 256 * MIB


def test_it_is_shown_and_reported_as_simulated(whole: Path) -> None:
    said = roofbench(whole, "show")
    lines = [line for line in said.out.splitlines() if "64x64x64" in line]
    assert len(lines) == 3
    assert all("simulated" in line for line in lines)
    assert "spec sheet amd-mi300x" in said.out
    assert roofbench(whole, "report", "latest", "-o", "report.md").status == 0
    report = (whole / "report.md").read_text()
    assert "simulated" in report
    assert "AMD Instinct MI300X" in report


def test_the_system_says_what_rocm_is_there(whole: Path) -> None:
    with Reader.open(str(whole / "roofbench.db")) as reader:
        run_id = reader.runs()[0].run
        facts = next(facts for group, facts in reader.environment(run_id).items() if group.startswith("rocm device"))
    assert facts["hip_runtime"].value == "7.2.53211"
    assert facts["blas_preferred"].value == "hipBLASLt"
    assert facts["compute_partition"].value == "SPX"
    assert facts["driver"].value == "6.10.5"
    assert facts["rccl"].reason == "librccl.so is not loaded"
    assert facts["msccl"] == ("RCCL's own choice", "declared", "")


def test_a_partition_has_its_own_share_of_the_sheet(part: Path) -> None:
    row = next(row for row in gemms(part) if row.cache == "warm")
    with Reader.open(str(part / "roofbench.db")) as reader:
        device = reader.devices(row.run)[0]
    assert (device.info.partition, device.info.visible_units) == ("CPX/NPS4", 38)
    assert device.hardware == "amd-mi300x"
    assert row.flop_s is not None
    assert row.fractions.spec == pytest.approx(row.flop_s / (1307.4e12 * 38 / 304), rel=1e-3)
