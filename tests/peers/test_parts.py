"""Whole parts on a scripted device, beside peers that answer, fail or are not there."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backends.cpu import CpuBackend
from suite.backend import DeviceInfo
from suite.errors import DeviceNotFound
from suite.telemetry import NoTelemetry
from tests.peers import agreement, clocks, economy, energy, nvbench, repeatability, telemetry_cost
from tests.peers.bench import WARM, Bench
from tests.peers.child import Deadline
from tests.peers.gemms import square
from tests.peers.part import Part, Session, main
from tests.peers.record import Record, Row, Verdict

DEVICE = "tests.peers.stand_in.device:CudaStandIn"
FAKE = "tests.fake.backend:FakeBackend"
STAND_IN = Path(__file__).parent / "stand_in"
ROOT = Path(__file__).parent.parent.parent

Make = Callable[..., Session]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A session of one part; peers load the scripted device under its own name, which asks for no CUDA stream."""

    def session(part: Part, seconds: float = 300.0, ncu: str = str(STAND_IN / "ncu.py")) -> Session:
        record = Record(part.name, tmp_path / f"{part.name}.json")
        return Session(Bench(DEVICE, tiny=True), record, Deadline(seconds), FAKE, ncu)

    return session


@pytest.fixture
def with_nvbench(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The stand-in for nvbench where children find it, with what it is told."""

    def plant(**told: Any) -> None:
        monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{STAND_IN}")
        monkeypatch.setenv("NVBENCH_STAND_IN", json.dumps(told))
        monkeypatch.setattr(nvbench, "why_absent", lambda backend: "")

    return plant


@pytest.fixture
def _without_nvbench(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvbench, "why_absent", lambda backend: "no nvbench here")


def verdicts(session: Session) -> list[Verdict]:
    return [row.verdict for row in session.record.rows]


def named(session: Session, name: str) -> Row:
    return next(row for row in session.record.rows if name in row.name)


def test_agreement_with_both_peers(make: Make, with_nvbench: Callable[..., None]) -> None:
    with_nvbench(mean_s=2.01e-6)
    session = make(agreement.PART)
    agreement.run(session)
    assert verdicts(session) == [Verdict.PASS] * 10
    assert named(session, "64x64x64 cold").figures["ours_cycles"] == pytest.approx(2800, rel=1e-3)
    sustained = named(session, "sustained")
    assert len(sustained.figures["ours_s"]) == len(sustained.figures["nvbench"]) == agreement.PAIRS
    assert sustained.figures["difference"] == pytest.approx(2 / 2.01 - 1, abs=1e-3)
    assert {"ncu warm", "ncu cold", "nvbench batch"} <= set(session.record.raw)


def test_agreement_without_ncu_and_with_an_nvbench_that_fails(make: Make, with_nvbench: Callable[..., None]) -> None:
    with_nvbench(exit=3)
    session = make(agreement.PART, ncu="/nowhere/ncu")
    agreement.run(session)
    assert verdicts(session) == [Verdict.ABSENT] * 10
    assert {row.note for row in session.record.rows[:9]} == {"ncu cannot be started: No such file or directory"}
    assert named(session, "sustained").note.startswith("nvbench ended with status 3")
    assert all(row.figures["ours"]["summary"]["p50_s"] > 0 for row in session.record.rows)


@pytest.mark.usefixtures("_without_nvbench")
def test_a_part_without_time_begins_nothing(make: Make) -> None:
    session = make(agreement.PART, seconds=0.0)
    agreement.run(session)
    assert {row.note for row in session.record.rows[:9]} == {"no time was left"}
    assert set(verdicts(session)) == {Verdict.ABSENT}


def test_economy_takes_the_median_over_what_both_sides_measured(
    make: Make, with_nvbench: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_nvbench(wall_s=50.0, fail=[1])
    monkeypatch.setattr(economy, "TWENTY", tuple(square("bf16", side) for side in (512, 1024, 2048)))
    monkeypatch.setattr(economy, "GROUP", 2)
    session = make(economy.PART)
    economy.run(session)
    assert verdicts(session) == [Verdict.INFO, Verdict.ABSENT, Verdict.INFO, Verdict.PASS]
    assert named(session, "median").note == "2 of 3 cases"
    first = session.record.rows[0].figures
    assert first["ratio"] == pytest.approx(first["sampling_s"] / 100.0)
    assert "planted" in session.record.rows[1].note


@pytest.mark.usefixtures("_without_nvbench")
def test_economy_alone_keeps_our_times(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(economy, "TWENTY", (square("bf16", 512),))
    session = make(economy.PART)
    economy.run(session)
    assert verdicts(session) == [Verdict.ABSENT, Verdict.ABSENT]
    assert session.record.rows[0].figures["sampling_s"] > 0
    assert session.record.rows[0].note == "no nvbench here"


def test_clocks_has_every_load_and_distribution(make: Make) -> None:
    session = make(clocks.PART)
    clocks.run(session)
    assert [row.name for row in session.record.rows[:6]] == [
        f"{distribution}, {load}" for distribution in ("normal", "zeros", "integer") for load in ("from idle", "sustained")
    ]
    assert verdicts(session) == [Verdict.INFO] * 7 + [Verdict.ABSENT], "a scripted device has no sheet, so no fraction"
    assert named(session, "of the rate").figures["spread"] < 1e-3


def test_energy_compares_the_windows_of_the_device(make: Make) -> None:
    session = make(energy.PART)
    energy.run(session)
    (row,) = session.record.rows
    assert row.verdict is Verdict.PASS
    assert row.figures["integral_j"] == pytest.approx(row.figures["counter_j"] / 1.01)


def test_telemetry_is_on_in_half_of_the_rounds_of_one_trial(make: Make) -> None:
    session = make(telemetry_cost.PART)
    measured, sides = telemetry_cost.in_turns(session, square("bf16", 64))
    assert measured.measurement is not None
    assert measured.measurement.samples is not None
    assert len(measured.measurement.samples.boundaries) == len(sides) == 2 * telemetry_cost.PAIRS
    assert sum(sides) == telemetry_cost.PAIRS
    switchable = telemetry_cost.Switchable(session.bench.backend)
    assert not isinstance(switchable.telemetry(), NoTelemetry)
    switchable.on = False
    assert isinstance(switchable.telemetry(), NoTelemetry)


def test_telemetry_cost_is_one_judged_row(make: Make) -> None:
    session = make(telemetry_cost.PART)
    telemetry_cost.run(session)
    (row,) = session.record.rows
    assert row.verdict is Verdict.PASS, "on a scripted clock telemetry costs nothing"
    assert row.figures["low"] <= row.figures["difference"] <= row.figures["high"]


def test_do_bench_times_the_kernel_in_milliseconds_and_its_failure_is_the_cases_own(make: Make) -> None:
    session = make(repeatability.PART)
    planned = session.bench.gemm(square("bf16", 64), WARM)
    launched: list[str] = []

    def do_bench(function: Callable[[], None], return_mode: str) -> float:
        function()
        launched.append(return_mode)
        return 2.5

    def broken(function: Callable[[], None], return_mode: str) -> float:
        raise RuntimeError("no device")

    assert repeatability.once(session, planned, do_bench) == pytest.approx(2.5e-3)
    assert launched == ["median"]
    assert "no device" in str(repeatability.once(session, planned, broken))
    assert repeatability.once(make(repeatability.PART, seconds=0.0), planned, do_bench) == "no time was left"


def test_a_part_as_a_script_leaves_a_file_and_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(energy.PART, ["--out", str(tmp_path / "out"), "--backend", DEVICE, "--tiny"]) == 0
    record = Record.load(tmp_path / "out" / "energy.json")
    assert record.finished
    assert record.about["device"] == "Simulated Accelerator"
    assert capsys.readouterr().out.splitlines()[0].startswith("energy: power readings")


def test_a_part_without_its_device_says_so(tmp_path: Path) -> None:
    class Broken(Exception):
        pass

    def run(session: Session) -> None:
        raise Broken("half way")

    part = Part("tried", "x", ("one",), run)
    assert main(part, ["--out", str(tmp_path), "--backend", DEVICE, "--tiny"]) == 1
    assert "half way" in Record.load(tmp_path / "tried.json").rows[-1].note
    assert not Record.load(tmp_path / "tried.json").finished
    status = main(part, ["--out", str(tmp_path), "--backend", "tests.peers.test_parts:Nowhere"])
    assert status == 2
    assert "no such device" in Record.load(tmp_path / "tried.json").rows[-1].note


class Nowhere(CpuBackend):
    """A backend whose device is not there."""

    def select(self, index: int) -> DeviceInfo:
        raise DeviceNotFound("no such device")
