"""A spec sheet of the user's own judges a run like one of the table."""

import json
import shutil
from importlib import resources
from pathlib import Path

from suite.devices import ask_backend
from suite.hardware.catalogue import load
from tests.cli.command import CONFIGS, roofbench

OWN = "acme-board"


def own_sheet(folder: Path) -> Path:
    """A copy of a real sheet under another id, in a folder that also has the fake backend's files."""
    configs = folder / "configs"
    shutil.copytree(CONFIGS, configs)
    text = (resources.files("configs") / "hardware" / "nvidia-h200-sxm5-141gb.yaml").read_text()
    (configs / "hardware").mkdir()
    (configs / "hardware" / f"{OWN}.yaml").write_text(text.replace("nvidia-h200-sxm5-141gb", OWN))
    return configs


def test_plan_run_and_report_use_it(tmp_path: Path) -> None:
    folder = own_sheet(tmp_path)
    line = ("--config-dir", str(folder), "backend=fake", "experiment=tiny", f"hardware={OWN}")
    planned = roofbench(tmp_path, "plan", *line)
    assert planned.status == 0, planned.err
    ran = roofbench(tmp_path, "run", *line)
    assert ran.status == 0, ran.err
    rows = json.loads(roofbench(tmp_path, "show", "--json").out)
    assert {row["hardware"] for row in rows} == {OWN}
    bf16 = [row for row in rows if row["format"] == "bf16"]
    peak = load("nvidia-h200-sxm5-141gb").peak_flop_s("bf16")
    assert peak is not None
    assert any(row["fractions"]["spec"] is not None and row["fractions"]["spec"] > 0 for row in bf16)
    reported = roofbench(tmp_path, "report", "latest", "-o", "report.md")
    assert reported.status == 0, reported.err
    assert "named by the user" in (tmp_path / "report.md").read_text()


def test_a_sheet_that_is_not_there_is_named_before_anything_is_created(tmp_path: Path) -> None:
    folder = own_sheet(tmp_path)
    said = roofbench(tmp_path, "run", "--config-dir", str(folder), "backend=fake", "experiment=tiny", "hardware=acme-bored")
    assert said.status == 2
    assert "acme-bored" in said.err
    assert not (tmp_path / "roofbench.db").exists()


def cpu_sheet(folder: Path) -> Path:
    """The one that the README shows, for the CPU that is here."""
    text = (Path(__file__).parents[2] / "README.md").read_text().partition("    id: my-xeon ")[2].partition("\n\n")[0]
    sheet = "id: my-xeon " + text.replace("\n    ", "\n")
    (folder / "hardware").mkdir(parents=True)
    (folder / "hardware" / "my-xeon.yaml").write_text(sheet.replace("Intel(R) Xeon(R) Processor", json.dumps(this_cpu())))
    return folder


def this_cpu() -> str:
    answer = ask_backend("backends.cpu:CpuBackend", {}, at_once=True)
    return answer.devices[0].name


def test_a_cpu_has_the_users_own_sheet_by_its_name(tmp_path: Path) -> None:
    folder = cpu_sheet(tmp_path / "conf")
    (row,) = json.loads(roofbench(tmp_path, "devices", "--config-dir", str(folder), "backend=cpu", "--json").out)
    assert (row["hardware"], row["reason"]) == ("my-xeon", f"runtime name '{this_cpu()}'")
    (row,) = json.loads(roofbench(tmp_path, "devices", "backend=cpu", "--json").out)
    assert row["hardware"] == "cpu"


def test_a_broken_sheet_of_a_cpu_is_named(tmp_path: Path) -> None:
    folder = cpu_sheet(tmp_path / "conf")
    sheet = folder / "hardware" / "my-xeon.yaml"
    sheet.write_text(sheet.read_text().replace("units:", "unit:"))
    said = roofbench(tmp_path, "devices", "--config-dir", str(folder), "backend=cpu")
    assert said.status == 2
    assert said.err == f"roofbench: {sheet}: units is missing\n"


def test_a_plan_by_the_sheet_of_a_device_that_is_here_is_what_a_run_would_measure(tmp_path: Path) -> None:
    """A sheet that named no cache planned other calibrations than the run took."""
    folder = cpu_sheet(tmp_path / "conf")
    small = ("backend=cpu", "jobs.gemm.shapes=[64]", "jobs.gemm.formats=[fp32]", "--config-dir", str(folder), "--json")
    named = json.loads(roofbench(tmp_path, "plan", "hardware=my-xeon", *small).out)
    plain = json.loads(roofbench(tmp_path, "plan", *small).out)
    assert [(row["params"], row["memory_bytes"]) for row in named] == [(row["params"], row["memory_bytes"]) for row in plain]


def test_how_a_cpus_peaks_are_derived_can_be_looked_up(tmp_path: Path) -> None:
    said = roofbench(tmp_path, "hardware", "cpu")
    assert said.status == 0, said.err
    assert said.out.startswith(f"{this_cpu()}   cpu\n")
    assert "derived from the cores, clock and instruction set that the CPU reports" in said.out
    assert json.loads(roofbench(tmp_path, "hardware", "cpu", "--json").out)["hardware"]["id"] == "cpu"


def test_what_a_sheet_lacks_is_listed(tmp_path: Path) -> None:
    folder = cpu_sheet(tmp_path / "conf")
    said = roofbench(tmp_path, "hardware", "my-xeon", "--config-dir", str(folder))
    assert said.status == 0, said.err
    lacking = said.out.partition("\nwhat this sheet lacks\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in lacking] == [
        "clocks_mhz.boost",
        "caches.l2_mb",
        "ops_per_clock_per_unit",
        "peaks_tflop_s",
    ]
    assert lacking[-1].endswith(": fp64, fp32, tf32, fp16, fp8, fp6, fp4, int8, int4")
    keys = json.loads(roofbench(tmp_path, "hardware", "my-xeon", "--config-dir", str(folder), "--json").out)["lacks"]
    assert keys[:4] == ["clocks_mhz.boost", "caches.l2_mb", "ops_per_clock_per_unit.bf16", "peaks_tflop_s.fp64"]
    assert "what this sheet lacks" not in roofbench(tmp_path, "hardware", "cpu").out


def test_a_fractional_count_of_cores_is_refused(tmp_path: Path) -> None:
    folder = cpu_sheet(tmp_path / "conf")
    sheet = folder / "hardware" / "my-xeon.yaml"
    sheet.write_text(sheet.read_text().replace("value: 2,", "value: 2.5,"))
    said = roofbench(tmp_path, "hardware", "my-xeon", "--config-dir", str(folder))
    assert (said.status, said.err) == (2, f"roofbench: {sheet}: units.count.value is 2.5, not a whole number\n")


def test_a_sheet_of_another_maker_s_cpu_is_refused_by_name(tmp_path: Path) -> None:
    folder = cpu_sheet(tmp_path / "conf")
    sheet = folder / "hardware" / "my-xeon.yaml"
    sheet.write_text(sheet.read_text().replace(json.dumps(this_cpu()), "another name"))
    other = "Intel" if "AMD" in this_cpu() else "AMD"
    sheet.write_text(sheet.read_text().replace("vendor: Intel", f"vendor: {other}"))
    said = roofbench(tmp_path, "run", "backend=cpu", "hardware=my-xeon", "--config-dir", str(folder))
    if "AMD" in this_cpu() or "Intel" in this_cpu():
        assert said.status == 2
        assert f"and my-xeon one of {other}" in said.err
