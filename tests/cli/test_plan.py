"""What a plan says to people: cases, time, memory, what was left out, and what could not be checked."""

import json
import re
from pathlib import Path

import pytest

from suite import cli, devices
from suite.case import Case, Workload, items
from suite.commands.plan import left_out_lines
from suite.plan import COLD
from suite.report.words import case_title
from tests.cli.command import FAKE
from tests.report.builders import result

H200 = "hardware=nvidia-h200-sxm5-141gb"


def plan(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert cli.main(["plan", *arguments]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return said.out.splitlines()


def test_a_plan_for_a_machine_that_is_not_here_checks_its_memory(capsys: pytest.CaptureFixture[str]) -> None:
    lines = plan(capsys, H200, "jobs.gemm.formats=[bf16]")
    assert lines[-1].startswith("12 cases on cuda NVIDIA H200 (151 GB): about ")
    assert lines[0].split() == ["case", "memory", "time"]
    assert all(" GB  " in line and line.endswith(" s") for line in lines[1:13])
    assert len({line.index(" GB  ") for line in lines[1:13]}) == 1
    assert lines[0].index("memory") + len("memory") == lines[1].index(" GB  ") + len(" GB")


def test_a_plan_for_a_missing_device_says_that_memory_was_not_checked(capsys: pytest.CaptureFixture[str]) -> None:
    broken = ("++backends.rocm.target=tests.fake.backend:FakeBackend", "+backends.rocm.options.start='error:no driver'")
    lines = plan(capsys, "backend=rocm", "jobs.gemm.formats=[bf16]", *broken)
    assert lines[-2].startswith("11 cases on rocm (no device facts): ")
    assert lines[-1] == (
        "memory was not checked and times are guesses: no device for backend 'rocm': RuntimeError: no driver; "
        "`roofbench devices` lists what there is; hardware=NAME plans for one of the table"
    )


def test_a_backend_that_is_not_built_yet_is_said_to_be_plannable_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "built_in", lambda: ["cpu", "cuda"])
    gone = "++backends.rocm.target=backends.nowhere:Backend"
    lines = plan(capsys, "backend=rocm", gone, "hardware=mi300x", "jobs.gemm.formats=[bf16]")
    assert lines[-1] == (
        "this can be planned, not run: backend 'rocm' is not built into this version of roofbench, which has cpu and cuda"
    )
    assert cli.main(["run", "backend=rocm", gone]) == 2
    assert capsys.readouterr().err == (
        "roofbench: no device for backend 'rocm': not built into this version of roofbench, which has cpu and cuda; "
        "`roofbench devices` lists what there is\n"
    )
    assert cli.main(["devices", "backend=rocm", gone]) == 0
    assert capsys.readouterr().out == "rocm: not built into this version of roofbench\n"


@pytest.mark.parametrize("sheet", ["intel-gaudi2", "intel-max-1550", "aws-trainium2", "aws-inferentia2"])
def test_a_device_that_no_backend_measures_is_not_planned_on_another_s(sheet: str, capsys: pytest.CaptureFixture[str]) -> None:
    vendor = {"intel": "Intel", "aws": "AWS"}[sheet.partition("-")[0]]
    assert cli.main(["plan", f"hardware={sheet}"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f"roofbench: hardware={sheet} is of {vendor}, whose devices none of cuda, rocm, xla, cpu measures; "
        f"`roofbench hardware {sheet}` prints its figures, and backend=NAME plans for a backend of your own\n"
    )


@pytest.mark.parametrize(
    ("backend", "sheet"),
    [
        ("cuda", "mi300x"),
        ("cuda", "intel-gaudi2"),
        ("rocm", "h200-sxm5-141gb"),
        ("cpu", "h200-sxm5-141gb"),
        ("[cpu,cuda]", "h200-sxm5-141gb"),
        ("[cuda,cpu]", "h200-sxm5-141gb"),
    ],
)
def test_a_backend_is_not_planned_for_another_maker_s_device(
    backend: str, sheet: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["plan", f"backend={backend}", f"hardware={sheet}"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    measures = "backend=cpu measures a CPU, " if "cpu" in backend else f"backend={backend} measures devices of "
    assert said.err.startswith(f"roofbench: {measures}")
    assert said.err.endswith("; leave one of them out\n")
    assert ("is no CPU; " in said.err) is ("cpu" in backend)


@pytest.mark.parametrize(
    ("overrides", "backend"),
    [
        ((), "cuda"),
        (("backend=xla",), "xla"),
        ((*FAKE[:2], "backend=fake"), "fake"),
    ],
)
def test_a_sheet_is_planned_on_its_maker_s_backend_or_the_one_that_was_named(
    overrides: tuple[str, ...], backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = plan(capsys, H200, *overrides, "jobs.gemm.formats=[bf16]", "jobs.gemm.shapes=[64]")
    assert any(f" cases on {backend} NVIDIA H200 (151 GB): " in line for line in lines)


@pytest.mark.parametrize("sheet", ["google-tpu-v5e", "nvidia-h200-sxm5-141gb"])
def test_a_plan_for_a_machine_that_is_not_here_asks_nobody(
    sheet: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """To ask JAX for a TPU loads it in a child for seconds."""
    asked: list[str] = []
    monkeypatch.setattr("suite.devices.ask_backend", lambda target, *_, **__: asked.append(target))
    monkeypatch.setattr("suite.devices.DEVICE_NODES", {"cuda": tmp_path / "none"})
    plan(capsys, f"hardware={sheet}", "jobs.gemm.formats=[bf16]", "jobs.gemm.shapes=[64]")
    assert asked == []


def test_json_rows_hold_the_verdict_of_what_cannot_fit(capsys: pytest.CaptureFixture[str]) -> None:
    huge = ("jobs.gemm.shapes=[300000x300000x300000]", "jobs.gemm.formats=[bf16]", "oversize=record", "max_kernel_s=null")
    rows = json.loads("\n".join(plan(capsys, H200, *huge, "--json")))
    lost = [row for row in rows if row["job"] == "gemm"]
    assert {row["outcome"] for row in lost} == {"out_of_memory"}
    assert all("151" not in row["reason"] and "needs" in row["reason"] for row in lost)
    assert {row["outcome"] for row in rows if row["job"] == "calibration"} == {None}


def test_an_oversize_plan_is_refused_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    huge = ("jobs.gemm.shapes=[300000x300000x300000]", "max_kernel_s=null")
    assert cli.main(["plan", H200, *huge]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "on NVIDIA H200 needs " in said.err
    assert said.err.endswith("choose smaller shapes, or oversize=record to store such cases as out_of_memory\n")


def test_what_is_left_out_is_named_up_to_a_point_with_the_way_round() -> None:
    assert list(left_out_lines([])) == []
    assert list(left_out_lines(["a", "b", "c", "d", "e"])) == [
        "left out: a",
        "left out: b",
        "left out: c",
        "left out: 2 more for the same reason",
        "max_kernel_s=null measures them too",
    ]


def test_a_plan_creates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    plan(capsys, H200)
    assert list(tmp_path.iterdir()) == []


def test_devices_that_work_side_by_side_take_the_time_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    one = plan(capsys, *FAKE)[-1]
    four = plan(capsys, *FAKE, "backends.fake.options.devices=4", "device=all")[-1]
    assert four.startswith("28 cases on ")
    assert one.partition(": ")[2] == four.partition(": ")[2]


def test_a_sweep_that_is_cut_off_says_after_how_long(capsys: pytest.CaptureFixture[str]) -> None:
    assert ", of which max_time_s=2 allows 2 s at a time; " in plan(capsys, *FAKE, "max_time_s=2")[-1]
    assert "max_time_s" not in plan(capsys, *FAKE, "max_time_s=3600")[-1]


def test_a_plan_names_each_case_as_its_result_will_be(capsys: pytest.CaptureFixture[str]) -> None:
    axes = (
        "jobs.gemm.fp8_fast_accum=[true,false]",
        "jobs.gemm.distributions=[normal,zeros]",
        "jobs.gemm.emulation=[none,bf16x9]",
    )
    lines = plan(capsys, H200, "jobs.gemm.formats=[fp8_e4m3,fp32,bf16]", "jobs.gemm.shapes=[4096]", *axes, "max_cases=null")
    cases = [line.partition(" GB")[0].rpartition("  ")[0] for line in lines if line.startswith(("gemm", "calibration"))]
    assert len(set(cases)) == len(cases) > 20
    fp8 = [line for line in cases if " fp8_e4m3 " in line and line.startswith("gemm")]
    assert all(line.count(" fp8_fast_accum=True") + line.count(" fp8_fast_accum=False") == 1 for line in fp8)
    assert any(" layout=nt zeros data emulation=bf16x9 " in line for line in cases)
    row = result(switches={"emulation": "bf16x9", "tf32": False}, format="fp32", params={"m": 8, "n": 8, "k": 8})
    planned = Case(Workload("gemm", "fp32", items(row.params)), row.implementation, "cuda", COLD, items(row.switches))
    assert planned.title == case_title(row)
    assert planned.title == "gemm 8x8x8 emulation=bf16x9 tf32=False fp32 library cold/sustained/device"


def test_a_plan_says_what_becomes_of_that_which_the_device_does_not_offer(capsys: pytest.CaptureFixture[str]) -> None:
    said = "what the device turns out not to offer is skipped at once, and its seconds, which count here, are not spent"
    assert said in plan(capsys, H200)


def test_where_nothing_that_was_asked_for_is_left_the_plan_says_so_and_the_run_refuses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    too_long = ("jobs.gemm.shapes=[16384,32768]", "max_kernel_s=1e-6", *FAKE, f"{H200}")
    line = plan(capsys, *too_long)[-1]
    assert line.startswith(
        "a run is refused: nothing that was asked for is left: gemm 16384x16384x16384 layout=nt bf16: at least "
    )
    assert line.endswith(
        " s a launch on fake, above max_kernel_s=1e-06, and 1 more; choose smaller shapes, or max_kernel_s=null to measure "
        "them all the same"
    )
    assert cli.main(["run", *too_long]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"roofbench: {line.removeprefix('a run is refused: ')}\n")
    (other,) = [
        text
        for text in plan(capsys, "job=attention", "max_kernel_s=1e-9", *FAKE, f"{H200}")
        if text.startswith("a run is refused")
    ]
    (command,) = re.findall("choose smaller sizes \\(`roofbench (.*)` prints what can be set\\), or max_kernel_s=null", other)
    assert cli.main(command.split()) == 0
    assert "tokens:" in capsys.readouterr().out
    assert cli.main(["run", "-m", *too_long, "seed=1,2"]) == 2
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_plan_of_the_selftest_s_experiment_says_that_it_is_a_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(capsys, H200, "experiment=selftest")[-1].startswith("this is one pass of four: `roofbench selftest` measures ")
    assert not any("selftest" in line for line in plan(capsys, H200))
