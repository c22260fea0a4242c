"""Damaged stores: every reader says so in one line, a merge leaves nothing behind, and a check lists what is wrong."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from suite import cli
from suite.commands.store import summarized
from suite.errors import StoreUnusable
from suite.store import maintain
from suite.store.problem import MissingReadings, StrangeObject
from suite.store.queries import Reader
from suite.store.writer import Store
from tests.store import material

# By the reader's question that meets it first: what was done to the file, and what the one line names.
DAMAGES = {
    "an infinite time": ("update summary set p50_s = 9e999", "figures", "result 1, p50_s"),
    "a word for a time": ("update summary set p50_s = 'nan'", "figures", "result 1, p50_s"),
    "a negative time": ("update summary set p50_s = -1e-9", "figures", "result 1, p50_s: -1e-09 is not between"),
    "a time of zero": ("update summary set p50_s = 0", "figures", "result 1, p50_s: 0.0 is not between"),
    "an infinite rate": ("update summary set flop_s = 9e999", "figures", "inf"),
    "a word for a tolerance": ("update result set tolerance = 'small'", "figures", "result 1, tolerance"),
    "a word for a count": ("update result set flops = 'many'", "figures", "many"),
    "no configuration": ("update run set config = 'null'", "runs", "run 1: config"),
    "arguments that are none": ("update run set argv = '[1]'", "resolve", "run 1: argv"),
    "a day that is none": ("update run set started_at = 'yesterday'", "runs", "yesterday"),
    "no environment": ("delete from environment", "environment", "missing"),
    "facts that are none": ("update environment set facts = '{\"host\": 3}'", "environment", "host"),
    "parameters that are no JSON": ("update workload set params = '{bad'", "results", "result 1: "),
    "semantics that are no JSON": ("update workload set semantics = '{bad'", "results", "result 1: "),
    "semantics that are a list": ("update workload set semantics = '[1,2]'", "results", "result 1: "),
    "an error of quantisation that is a word": ("update summary set quantisation_error = 'x'", "figures", "quantisation_error"),
    "parameters that are a list": ("update workload set params = '[1,2]'", "results", "result 1: "),
    "NaN in JSON": ("update workload set params = '{\"m\": NaN}'", "results", "NaN"),
    "an overflow in JSON": ("update workload set params = '{\"m\": 1e999}'", "results", "1e999"),
    "no device": ("delete from device", "devices", "none"),
    "results without a device": ("delete from device", "results", "device is missing"),
    "a device that is none": ("update device set info = '{\"name\": 1}'", "devices", "device 1: "),
    "a sheet that is none": ("update device set spec = '[]'", "devices", "device 1: spec"),
    "an outcome that is none": ("update result set outcome = 'splendid'", "figures", "splendid"),
    "samples that are missing": ("delete from sample_blob", "detail", "no samples"),
    "samples that do not decode": ("update sample_blob set durations = x'00'", "detail", "result 1: "),
    "spans that are none": ("update sample_blob set spans = '[[0, \"now\", 1]]'", "detail", "now"),
    "a span of half a sample": ("update sample_blob set spans = '[[0.5, 0, 1]]'", "detail", "no span"),
    "a span without end": ("update sample_blob set spans = '[[0, 0, 1e999]]'", "detail", "1e999"),
    "bytes for what bounds it": ("update summary set bound = x'ff'", "figures", "result 1, bound"),
    "bytes for a throttle": ("update summary set throttle = x'ff'", "figures", "result 1, throttle"),
    "bytes for a unit": ("update result set pipe = x'ff'", "figures", "result 1, pipe"),
    "bytes for a method": ("update result set method = x'ff'", "figures", "result 1, method"),
    "bytes for an execution": ("update result set execution = x'ff'", "figures", "result 1, execution"),
    "bytes for a reason": ("update result set reason = x'ff'", "figures", "result 1, reason"),
    "bytes for a note": ("update run set note = x'ff'", "runs", "is no text"),
    "bytes for why a sheet fits": ("update device set match_reason = x'ff'", "devices", "is no text"),
    "a clock that stands almost": ("update summary set clock_hz = 1e-320", "figures", "result 1, clock_hz"),
    "a clock of no device": ("update summary set clock_hz = 1e308", "figures", "result 1, clock_hz"),
    "an interval from beyond": ("update summary set interval_low_s = 1e308", "figures", "result 1, interval_low_s"),
    "an interval from above its end": ("update summary set interval_low_s = 5.0", "figures", "interval_low_s 5.0 is above"),
    "a measured interval from beyond": ("update result set interval_low_s = 1e308", "detail", "1e+308 is not between"),
    "a measured interval from above its end": ("update result set interval_low_s = 5.0", "detail", "5.0 is above"),
    "a share of nothing": ("update summary set fraction_spec = 1e308", "figures", "result 1, fraction_spec"),
    "a share at a clock": ("update summary set fraction_at_clock = 1e308", "figures", "result 1, fraction_at_clock"),
    "a negative energy": ("update summary set energy_j = -1.0", "figures", "result 1, energy_j"),
    "a rate of no device": ("update summary set flop_s = 1e308", "figures", "1e+308 is not between"),
    "a slot below all": ("update result set device_slot = -5", "results", "its device is not in slot -5 of its run"),
    "a slot beyond all": (
        "update result set device_slot = 1 << 62",
        "results",
        "its device is not in slot 4611686018427387904",
    ),
    "a device that moved": ("update device set slot = 3", "results", "its device is not in slot 0 of its run"),
    "a word for an attempt": ("update result set attempt = 'first'", "results", "attempt 'first' is no count"),
    "a slot that is none": ("update device set slot = 'first'", "devices", "slot 'first' is no count"),
    "another chip than it says": ("update device set uid = 'other'", "devices", "info uid is not that of its column"),
    "a word for memory": ("update device set info = json_set(info, '$.memory_bytes', 'much')", "devices", "info memory_bytes"),
    "a clock that a list is": (
        "update device set info = json_set(info, '$.max_clock_hz', json('[1]'))",
        "devices",
        "max_clock_hz",
    ),
    "a power of no device": (
        "update device set info = json_set(info, '$.power_limit_w', 1e308)",
        "devices",
        "info power_limit_w",
    ),
    "instructions that are none": ("update device set info = json_set(info, '$.isa', json('[1]'))", "devices", "info isa"),
    "details that are none": ("update device set info = json_set(info, '$.details', 3)", "devices", "info details"),
    "bytes for a peak": ("update result set peak_memory_bytes = x'ff'", "detail", "peak_memory_bytes"),
    "samples of no launch": ("update sample_blob set launches = 0", "detail", "launches '0' is no count"),
    "a word for a stride": ("update sample_blob set stride = 'wide'", "detail", "stride 'wide' is no count"),
    "a list of sizes": ("update workload set params = '{\"m\": [1]}'", "results", "params m is no text, number or truth"),
    "a list of switches": ("update 'case' set switches = '{\"tf32\": [1]}'", "results", "switches tf32 is no text"),
    "a word for an error": (
        "update result set check_before = json_set(check_before, '$.error_rel', 'small')",
        "detail",
        "'small' is not a finite",
    ),
    "a word for what was not written": (
        "update result set check_before = json_set(check_before, '$.unwritten', 'all')",
        "detail",
        "unwritten 'all' is no count",
    ),
    "jobs that are none": ("update run set config = '{\"jobs\": 3}'", "runs", "run 1: config jobs is no JSON object"),
    "a word for a plan": ("update run set planned = 'all'", "runs", "planned 'all' is no count"),
    "an infinite phase": ("update result set phases_s = '{\"measure\": 1e999}'", "detail", "1e999"),
}
DAMAGES |= {
    "less than no work": ("update result set flops = '-5'", "figures", "result 1, flops: -5 is not between"),
    "less than no bytes": ("update result set compulsory_bytes = '-7'", "figures", "compulsory_bytes: -7 is not between"),
    "a rate of no bytes": (
        "update result set compulsory_bytes = '0'",
        "figures",
        "bytes_s 3100000000000.0 is of no compulsory_bytes",
    ),
    "a rate of no work": ("update result set flops = '0'", "figures", "flop_s 660000000000000.0 is of no flops"),
    "a negative tolerance": ("update result set tolerance = -0.5", "figures", "result 1, tolerance: -0.5 is not between"),
    "a negative error": ("update result set error_rel = -0.5", "figures", "result 1, error_rel: -0.5 is not between"),
    "a negative power": ("update summary set power_w = -5.0", "figures", "result 1, power_w: -5.0 is not between"),
    "cycles below none": ("update sample_blob set median_cycles = -5", "detail", "median_cycles: -5.0 is not between"),
    "a step below none": ("update sample_blob set resolution_s = -1", "detail", "resolution_s: -1.0 is not between"),
    "an infinite median": ("update sample_blob set median_ns = 9e999", "detail", "inf"),
    "a word for a batch": ("update sample_blob set boundaries = '[0, \"x\"]'", "detail", "a boundary 'x' is no count"),
}
ASK: dict[str, Callable[[Reader], object]] = {
    "runs": Reader.runs,
    "resolve": Reader.resolve,
    "results": Reader.results,
    "devices": Reader.devices,
    "environment": Reader.environment,
    "roofs": Reader.empirical_roofs,
    "detail": lambda reader: reader.detail(1),
    "figures": lambda reader: reader.detail(1),
}
each_damage = pytest.mark.parametrize(("statement", "question", "says"), DAMAGES.values(), ids=DAMAGES)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@cache
def whole() -> bytes:
    """A store of one run with one result, at rest."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
            run.record(material.record())
            run.finish("complete")
        return path.read_bytes()


def damage(path: Path, statement: str) -> None:
    path.write_bytes(whole())
    change(path, statement)


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


@cache
def whole_of_two() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
            for number in (0, 1):
                run.record(material.record(material.planned(material.case(number))))
            run.finish("complete")
        return path.read_bytes()


def two(path: Path) -> None:
    """A store of two results, at rest."""
    path.write_bytes(whole_of_two())


@each_damage
def test_a_reader_names_the_store_the_place_and_the_remedy(path: Path, statement: str, question: str, says: str) -> None:
    damage(path, statement)
    with Reader.open(str(path)) as reader, pytest.raises(StoreUnusable) as told:
        ASK[question](reader)
    line = str(told.value)
    assert line.startswith(f"{path} is damaged: ")
    assert line.endswith("; `roofbench store check` lists what is wrong")
    assert says in line
    assert line.isprintable()


# A merge refuses whatever a check lists, but for what `passes_over` names: one of each table stands for the others.
MERGED = (
    "an infinite time", "a negative tolerance", "arguments that are none", "no environment", "parameters that are no JSON",
    "another chip than it says", "spans that are none", "a list of switches", "an infinite phase",
)  # fmt: skip
passes_over = (MissingReadings, StrangeObject)


@pytest.mark.parametrize(
    "statement",
    [pytest.param(DAMAGES[name][0], marks=() if name in MERGED else pytest.mark.thorough, id=name) for name in DAMAGES],
)
def test_a_merge_leaves_no_half_target(path: Path, statement: str) -> None:
    damage(path, statement)
    target = path.with_name("target.db")
    with pytest.raises(StoreUnusable, match="is damaged: "):
        maintain.merge(str(path), str(target))
    assert not target.exists()


@each_damage
def test_a_check_lists_it_as_what_no_merge_takes(path: Path, statement: str, question: str, says: str) -> None:
    damage(path, statement)
    assert [problem for problem in maintain.check(str(path)) if not isinstance(problem, passes_over)]


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("update result set device_slot = -5", "result 1"),
        ("update device set run_id = 2", "result 1"),
        ("update environment set run_id = 2", "result 1"),
        ("update summary set interval_low_cycles = 9, interval_high_cycles = 8", "summary 1"),
        ("update result set interval_low_s = 9, interval_high_s = 8", "result 1"),
    ],
)
def test_what_contradicts_another_column_is_found(path: Path, statement: str, where: str) -> None:
    """Each value by itself is one that its column may have."""
    damage(path, statement)
    found = maintain.check(str(path))
    assert where in [problem.where for problem in found]


def test_a_whole_store_has_no_problems(path: Path) -> None:
    damage(path, "select 1")
    assert maintain.check(str(path)) == []


def test_a_long_or_hostile_value_stays_one_short_line(path: Path) -> None:
    damage(path, "update result set outcome = char(27) || '[2J' || char(10) || hex(zeroblob(100000))")
    with Reader.open(str(path)) as reader, pytest.raises(StoreUnusable) as told:
        reader.detail(1)
    with Reader.open(str(path)) as reader:
        (row,) = reader.results()
    assert row.reason.isprintable()
    assert len(row.reason) < 500
    assert str(told.value).isprintable()
    assert len(str(told.value)) < 500


@pytest.mark.parametrize("question", ["open", "vacuum"])
def test_drafts_of_the_dead_are_removed_and_nothing_else(path: Path, question: str) -> None:
    damage(path, "select 1")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    stale = [f".store.db.{dead.pid}.0123abcd{suffix}" for suffix in ("", "-wal", "-shm", "-journal")]
    kept = [
        f".store.db.{os.getpid()}.0123abcd",
        f".store.db.{dead.pid}.0123abc",
        f".store.db.{dead.pid}.0123abcd.txt",
        f".other.db.{dead.pid}.0123abcd",
        f"store.db.{dead.pid}.0123abcd",
        ".store.db.0.0123abcd",
    ]
    for name in (*stale, *kept):
        path.with_name(name).write_text("draft")
    if question == "open":
        Store.open(str(path)).close()
    else:
        maintain.vacuum(str(path))
    assert not [name for name in stale if path.with_name(name).exists()]
    assert [name for name in kept if path.with_name(name).exists()] == kept


def test_a_relative_path_in_a_removed_folder_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(StoreUnusable, match=r"^store.url='roofbench.db' leads nowhere .*: give a full path$"):
        Reader.open("roofbench.db")


def flipped(content: bytearray) -> bytearray:
    content[content.find(b"CREATE TABLE run") + 3] ^= 0x80
    return content


def cut(content: bytearray) -> bytearray:
    return content[: len(content) // 2 // 4096 * 4096]


def garbled(content: bytearray) -> bytearray:
    """A byte of a value that is text, which the driver refuses to decode."""
    content[content.find(b'{"passed"')] = 0xC1
    return content


BROKEN: dict[str, tuple[Callable[[bytearray], bytearray], str]] = {
    "a flipped bit in the schema": (flipped, "schema: malformed database schema (run)"),
    "a file that was cut": (cut, "file: it was cut: it has "),
    "text that is none": (garbled, "result 1: check_before: it is no UTF-8 text"),
}
each_break = pytest.mark.parametrize(("spoil", "says"), BROKEN.values(), ids=BROKEN)


def broken(path: Path, spoil: Callable[[bytearray], bytearray]) -> None:
    damage(path, "select 1")
    path.write_bytes(spoil(bytearray(path.read_bytes())))


COMMANDS = {
    "merge": ["store", "merge", "store.db", "--store", "other.db"],
    "rebuild": ["store", "rebuild", "--everything", "--store", "store.db"],
}


@pytest.mark.parametrize(
    ("command", "spoil"),
    [(name, spoil) for name in COMMANDS for spoil, _ in BROKEN.values() if (name, spoil) != ("rebuild", garbled)],
)
def test_a_command_on_a_broken_store_is_one_line_with_the_remedy(
    path: Path, command: str, spoil: Callable[[bytearray], bytearray], capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    broken(path, spoil)
    monkeypatch.chdir(path.parent)
    assert cli.main(COMMANDS[command]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert f"{path} is damaged" in line
    assert "`roofbench store check` " in line
    assert not path.with_name("other.db").exists()


@each_break
def test_a_check_says_where_it_is_broken_once_and_what_to_do(
    path: Path, spoil: Callable[[bytearray], bytearray], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broken(path, spoil)
    copy = path.with_name("store.db.bak-0003")
    copy.touch()
    assert cli.main(["store", "check", "--store", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(says)
    assert len(set(lines)) == len(lines)
    assert not any("store check` says" in line for line in lines)
    assert any(str(copy) in line for line in lines)
    assert any((".recover" if spoil is not garbled else "store prune") in line for line in lines)


CASE = {"a case": ["show", "latest", "1"], "a case for programs": ["show", "latest", "1", "--json"]}
READING = {
    "rows": ["show", "--json"],
    **CASE,
    "a page": ["report", "latest", "--output", "page.html"],
    "text": ["report", "latest", "--output", "page.md"],
}
OF_ITSELF = ("bytes for what bounds it", "a clock that stands almost", "an interval from beyond", "a negative power")


@pytest.mark.parametrize("command", READING.values(), ids=READING)
def test_a_command_that_reads_what_was_put_there_by_hand_is_one_line_and_writes_nothing(
    path: Path, command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    names = ("a slot below all", *(OF_ITSELF if command in CASE.values() else ()))
    for statement, _, says in (DAMAGES[name] for name in names):
        damage(path, statement)
        assert cli.main([*command, "--store", "store.db"]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("\n") == 1
        assert f"{path} is damaged: " in said.err
        assert says in said.err
        assert [each.name for each in path.parent.iterdir()] == ["store.db"]
        path.unlink()


OWN = {name: damage for name, damage in DAMAGES.items() if damage[1] == "figures"}


@pytest.mark.parametrize(("statement", "question", "says"), OWN.values(), ids=OWN)
def test_a_row_whose_figures_are_damaged_costs_a_list_nothing_but_itself(
    path: Path, statement: str, question: str, says: str
) -> None:
    two(path)
    before = Reader.open(str(path)).results()
    change(path, f"{statement} where {'result_id' if 'summary' in statement else 'id'} = 1")
    with Reader.open(str(path)) as reader:
        rows = reader.results()
        kept = reader.detail(2).row
    assert says.removeprefix("result 1, ").partition(":")[0] in rows[0].reason
    assert (rows[0].outcome, rows[0].p50_s, rows[0].fractions.empirical) == ("error", None, None)
    assert rows[0].case_key == before[0].case_key
    assert replace(rows[1], fractions=before[1].fractions) == before[1]
    assert kept == rows[1]
    assert "result 1" in rows[0].reason


def test_a_damaged_row_stands_in_tables_and_reports_with_why(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    two(path)
    monkeypatch.chdir(path.parent)
    change(path, "update summary set power_w = -5.0 where result_id = 1")
    assert cli.main(["show", "--json", "--store", "store.db"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["outcome"] for row in rows] == ["error", "ok"]
    assert "power_w: -5.0 is not between" in rows[0]["reason"]
    assert cli.main(["show", "--store", "store.db"]) == 0
    assert "power_w: -5.0" in " ".join(capsys.readouterr().out.split())
    for page in ("page.html", "page.md"):
        assert cli.main(["report", "latest", "--output", page, "--store", "store.db"]) == 0
        assert "damaged in the store" in (path.parent / page).read_text()


def test_a_reader_of_a_schema_that_is_no_text_says_so_in_one_line(path: Path) -> None:
    broken(path, flipped)
    with pytest.raises(StoreUnusable, match=rf"^store {path} is damaged \(malformed database schema .*store check`") as told:
        Reader.open(str(path))
    assert str(told.value).isprintable()
    with pytest.raises(StoreUnusable, match="is damaged"):
        Store.open(str(path))


def test_a_rebuild_derives_nothing_from_what_is_damaged_and_mends_what_is_derived(path: Path) -> None:
    damage(path, "update sample_blob set durations = x'00'")
    left: list[maintain.Problem] = []
    assert maintain.rebuild(str(path), summarized, everything=True, tell=left.append) == 0
    assert [each.where for each in left] == ["result 1"]
    assert left[0].what.startswith("its samples cannot be decoded")
    path.unlink()
    damage(path, "update summary set p50_s = -1.0")
    assert maintain.rebuild(str(path), summarized, everything=True) == 1
    assert maintain.check(str(path)) == []
