"""A bound that rests on a bandwidth measured beside other work is said to, wherever the bound is shown."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from suite import cli
from suite.hardware.figure import NOT_FOUND
from suite.hardware.spec import HardwareSpec
from suite.report.document import build
from suite.report.doubt import doubt_lines, in_doubt
from suite.report.html import render_html
from suite.report.markdown import render_markdown
from suite.rows import BANDWIDTHS, Calibration, DeviceRow
from suite.store.writer import Store
from tests.report.builders import BEFORE, CALIBRATION, SPEC, FakeReader, device, failed, result
from tests.store import material

DERIVED = replace(SPEC, derived=True, memory=replace(SPEC.memory, bandwidth_bytes_s=NOT_FOUND))
FASTEST = max(BANDWIDTHS, key=lambda name: getattr(CALIBRATION, name) or 0.0)
RESTS = "while other work ran, or not resolved: bounds that rest on it may be wrong; measure again with nothing beside"


def bare(spec: HardwareSpec | None = DERIVED) -> DeviceRow:
    return device(hardware=None, spec=spec.to_json() if spec else None)


def disturbed(*names: str) -> Calibration:
    return replace(CALIBRATION, disturbed=frozenset(names))


def reader_of(calibration: Calibration, own: DeviceRow | None = None) -> FakeReader:
    rows = (
        result(result_id=1),
        result(m=16, bound="memory", result_id=2),
        result(bound="launch", result_id=3),
        result(flops=0, result_id=4),
        failed("incorrect", "off by one", result_id=5),
    )
    return FakeReader(rows, device_rows=(own or bare(),), base=calibration)


@pytest.mark.parametrize(
    ("calibration", "own", "found"),
    [
        (disturbed(FASTEST), None, {1, 2}),
        (disturbed(FASTEST), bare(None), {1, 2}),
        (disturbed(), None, set()),
        (disturbed(*(name for name in BANDWIDTHS if name != FASTEST)), None, set()),
        (disturbed("empty_call_s"), None, set()),
        (disturbed(FASTEST), bare(SPEC), set()),
    ],
    ids=["derived", "no sheet", "alone", "not the fastest", "an empty kernel", "a declared bandwidth"],
)
def test_what_rests_on_a_disturbed_bandwidth(calibration: Calibration, own: DeviceRow | None, found: set[int]) -> None:
    reader = reader_of(calibration, own)
    assert in_doubt(reader, reader.device_rows, reader.rows).keys() == found


def test_one_line_for_a_device_says_how_many_and_what_to_do() -> None:
    reader = reader_of(disturbed(FASTEST))
    (line,) = doubt_lines(in_doubt(reader, reader.device_rows, reader.rows))
    assert line == (
        "cuda Testium T1: its bandwidth was measured while other work ran, or not resolved: the bound of 2 cases rests on it "
        "and may be wrong; measure again with nothing beside"
    )


def told(reader: FakeReader) -> dict[str, str]:
    document = build(reader, ["latest"])
    reasons = {field.name: field.reason for each in document.runs[0].devices for group in each.system for field in group.fields}
    remark = next(iter(filter(None, (reasons[f"{name.partition('_')[0]} bandwidth"] for name in BANDWIDTHS))), "")
    assert (remark in render_html(document), remark in render_markdown(document)) == (True, True)
    return reasons


def test_the_ceilings_of_a_report_say_so() -> None:
    name = f"{FASTEST.partition('_')[0]} bandwidth"
    whose = f"by library, cuda, of run {BEFORE}"
    assert told(reader_of(disturbed(FASTEST)))[name] == f"read {whose}; {RESTS}"
    assert told(reader_of(disturbed(FASTEST), bare(SPEC)))[name] == f"read {whose}; while other work ran, or not resolved"
    assert told(reader_of(disturbed()))[name] == f"read {whose}"
    other = next(each for each in BANDWIDTHS if each != FASTEST and getattr(CALIBRATION, each))
    op = other.partition("_")[0]
    doubt = "while other work ran, or not resolved"
    assert told(reader_of(disturbed(other)))[f"{op} bandwidth"] == f"{op} {whose}; {doubt}"
    assert told(reader_of(disturbed("empty_call_s")))["empty kernel, call"] == f"empty {whose}; {RESTS}"


@pytest.fixture
def beside_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run of a device without a sheet, whose copy was measured beside another's work; its name."""
    monkeypatch.chdir(tmp_path)
    own = replace(material.device(), hardware=None)
    copy = material.record(
        material.planned(material.calibration_case("copy")),
        measured=material.measurement(contended=True),
        summary=material.summary(flop_s=0.0, bytes_s=1e12),
    )
    with Store.open("roofbench.db") as store, store.start_run(material.run_start(own)) as run:
        run.record(copy)
        run.record(material.record())
        run.finish("complete")
        return run.run


def test_show_says_so_beneath_its_table_and_in_json(beside_others: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show"]) == 0
    assert "NVIDIA H200: its bandwidth was measured while other work ran" in capsys.readouterr().out
    assert cli.main(["show", "--json"]) == 0
    assert {row["job"]: row["bound_in_doubt"] for row in json.loads(capsys.readouterr().out)} == {
        "calibration": False,
        "gemm": True,
    }
    assert cli.main(["show", "latest", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bound_in_doubt"] is True
    with closing(sqlite3.connect("roofbench.db")) as connection, connection:
        connection.execute("update result set contended = 0")
    assert cli.main(["show"]) == 0
    assert "its bandwidth was measured" not in capsys.readouterr().out


def test_the_end_of_a_run_says_so(beside_others: str, capsys: pytest.CaptureFixture[str]) -> None:
    from suite.commands.show import print_run
    from suite.store.queries import Reader

    with Reader.open("roofbench.db") as reader:
        print_run(reader, beside_others)
    assert "the bound of 1 case rests on it and may be wrong" in capsys.readouterr().out
