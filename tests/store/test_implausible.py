"""What is put into the measured part of a store by hand: found by a check, left alone by a rebuild, at its own cost only."""

import json
import math
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from suite import cli
from suite.backend import Channel
from suite.commands.store import summarized
from suite.errors import StoreUnusable
from suite.jobs.gemm import GemmJob
from suite.measure.samples import decode, encode
from suite.measure.statistics import median
from suite.measurement import Measurement, SampleSet, Span, is_unread
from suite.report.document import build
from suite.report.markdown import render_markdown
from suite.store import maintain
from suite.store.coherent import interval_flaws, sample_flaws
from suite.store.queries import Reader
from suite.store.telemetry import pack, unpack
from suite.store.writer import Store
from tests.store import material

CONFIG = {"experiment": "quick", "seed": 7, "measure": {"telemetry": True}}


def measured() -> Measurement:
    """As a device gives it: every figure is that of its samples."""
    plain = material.sample_set()
    clocks_khz = tuple(1_330_000 + 7_500 * (index % 7) for index in range(plain.count))
    known = [duration * clock * 1e-6 for duration, clock in zip(plain.durations_ns, clocks_khz, strict=True)]
    cycles = median(known)
    samples = replace(plain, clocks_khz=clocks_khz, median_cycles=cycles)
    half = (cycles * 0.999 / samples.launches, cycles * 1.001 / samples.launches)
    return material.measurement(samples=samples, interval_s=(2.01e-6, 2.02e-6), interval_cycles=half)


@cache
def whole() -> bytes:
    """A store of two results, at rest."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with Store.open(str(path)) as store, store.start_run(material.run_start(config=CONFIG)) as run:
            for number in (0, 1):
                case = replace(material.case(number), method_version=GemmJob.method_version)
                run.record(material.record(material.planned(case), measured()))
            run.finish("complete")
        return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    path.write_bytes(whole())
    return path


def change(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def blob(path: Path, column: str, table: str) -> bytes:
    connection = sqlite3.connect(path)
    ((content,),) = connection.execute(f"select {column} from {table} where result_id = 1").fetchall()
    connection.close()
    assert isinstance(content, bytes)
    return content


def put_clocks(path: Path, spoil: Callable[[list[int]], list[int]]) -> None:
    clocks = spoil(decode(blob(path, "clocks", "sample_blob")))
    change(path, "update sample_blob set clocks = ? where result_id = 1", encode(clocks))


def put_channel(path: Path, name: str, spoil: Callable[[Channel], Channel]) -> None:
    channels = unpack(blob(path, "channels", "telemetry_blob"))
    channels[name] = spoil(channels[name])
    change(path, "update telemetry_blob set channels = ? where result_id = 1", pack(channels))


def with_values(spoil: Callable[[float], float]) -> Callable[[Channel], Channel]:
    return lambda channel: channel._replace(values=tuple(map(spoil, channel.values)))


def test_what_was_measured_is_whole_and_is_derived_anew_to_what_readers_take(path: Path) -> None:
    assert maintain.check(str(path)) == []
    assert maintain.rebuild(str(path), summarized, everything=True) == 2
    assert maintain.check(str(path)) == []
    assert all(row.p50_cycles for row in Reader.open(str(path)).results())


STATEMENTS = {
    "less than no work": ("update result set flops = '-5' where id = 1", "flops: -5 is not between"),
    "other work than its workload's": (
        "update result set flops = '7' where id = 1",
        "its flops is 7, and its job counts 4294967296",
    ),
    "no bytes": ("update result set compulsory_bytes = '0' where id = 1", "its compulsory_bytes is 0, and its job counts"),
    "less than no bytes": ("update result set compulsory_bytes = '-7' where id = 1", "compulsory_bytes: -7 is not between"),
    "less than no traffic": ("update result set traffic_bytes = '-7' where id = 1", "traffic_bytes: -7 is not between"),
    "cycles below none": ("update sample_blob set median_cycles = -5 where result_id = 1", "median_cycles: -5.0 is not"),
    "no cycles": ("update sample_blob set median_cycles = 0 where result_id = 1", "its median of cycles is not that"),
    "other cycles": ("update sample_blob set median_cycles = 27000 where result_id = 1", "its median of cycles is not that"),
    "another median": ("update sample_blob set median_ns = 20100 where result_id = 1", "its median is not that of its samples"),
    "another sum": ("update sample_blob set sum_ns = 1 where result_id = 1", "not those that were counted"),
    "another number": ("update sample_blob set count = 201 where result_id = 1", "not those that were counted"),
    "batches out of order": (
        "update sample_blob set boundaries = '[5,3,9999]' where result_id = 1",
        "its 200 samples cannot be in batches that begin with 5, 3, 9999",
    ),
    "no batches": ("update sample_blob set boundaries = '[]' where result_id = 1", "cannot be in batches"),
    "a step below none": ("update sample_blob set resolution_s = -1 where result_id = 1", "resolution_s: -1.0 is not between"),
    "an interval from far below": ("update result set interval_low_cycles = -4 where id = 1", "its interval of cycles, -4 to"),
    "an interval to far above": (
        "update result set interval_high_s = 3e-6 where id = 1",
        "its interval of seconds, 2.01e-06 to",
    ),
    "no telemetry": ("delete from telemetry_blob where result_id = 1", "its telemetry is missing, which its run read"),
    "half of telemetry": (
        "update telemetry_blob set channels = substr(channels, 1, 50) where result_id = 1",
        "its telemetry cannot be decoded: not packed telemetry",
    ),
    "a word for telemetry": ("update telemetry_blob set channels = 'hello' where result_id = 1", "telemetry cannot be decoded"),
}
BLOBS: dict[str, tuple[Callable[[Path], None], str]] = {
    "clocks of nothing": (lambda path: put_clocks(path, lambda kept: [0] * len(kept)), "they are 0 to 0 kHz"),
    "clocks doubled": (lambda path: put_clocks(path, lambda kept: [2 * each for each in kept]), "its median of cycles is not"),
    "clocks of some": (lambda path: put_clocks(path, lambda kept: kept[:10]), "200 samples are kept, and 10 clocks"),
    "a power below none": (
        lambda path: put_channel(path, "power", with_values(lambda _: -5.0)),
        "channel power: -5.0 is not between 0 and 1e+12",
    ),
    "a temperature of no device": (
        lambda path: put_channel(path, "temperature", with_values(lambda _: 1e308)),
        "channel temperature: 1e+308 is not between",
    ),
    "readings without times": (
        lambda path: put_channel(path, "power", lambda channel: channel._replace(times_s=channel.times_s[:-3])),
        "channel power has 100 readings at 97 times",
    ),
}
SPOILED: dict[str, tuple[Callable[[Path], None], str]] = {
    **{name: (lambda path, sql=sql: change(path, sql), says) for name, (sql, says) in STATEMENTS.items()},  # type: ignore[misc]
    **BLOBS,
}
each_spoiled = pytest.mark.parametrize(("spoil", "says"), SPOILED.values(), ids=SPOILED)


@each_spoiled
def test_a_check_finds_it_and_a_rebuild_leaves_that_row_alone(path: Path, spoil: Callable[[Path], None], says: str) -> None:
    spoil(path)
    found = maintain.check(str(path))
    assert any(each.where == "result 1" and says in each.what for each in found), found
    before = blob(path, "cast(p50_s || flop_s || coalesce(power_w, '') as blob)", "summary")
    left: list[maintain.Problem] = []
    assert maintain.rebuild(str(path), summarized, everything=True, tell=left.append) == 1
    assert [each.where for each in left] == ["result 1"]
    assert blob(path, "cast(p50_s || flop_s || coalesce(power_w, '') as blob)", "summary") == before
    with Reader.open(str(path)) as reader:
        assert [row.result_id for row in reader.results()] == [1, 2]
        assert reader.detail(2).row.outcome == "ok"


# What a rebuild leaves alone it takes from the same list whether the summary is there or not: one of each table and blob.
WITHOUT_SUMMARY = (
    "less than no work", "another sum", "no telemetry", "half of telemetry", "clocks doubled", "a power below none",
)  # fmt: skip


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(spoil, marks=() if name in WITHOUT_SUMMARY else pytest.mark.thorough, id=name)
        for name, (spoil, _) in SPOILED.items()
    ],
)
def test_a_missing_summary_is_not_derived_from_it(path: Path, spoil: Callable[[Path], None]) -> None:
    spoil(path)
    change(path, "delete from summary")
    assert maintain.rebuild(str(path), summarized) == 1
    with Reader.open(str(path)) as reader:
        assert [row.p50_s is None for row in reader.results()] == [True, False]


def test_a_rebuild_says_what_it_left_and_its_status_tells(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(path, STATEMENTS["cycles below none"][0])
    assert cli.main(["store", "rebuild", "--everything", "--store", str(path)]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("result 1 is left as it was: its samples cannot be decoded: median_cycles: -5.0 is not between")
    assert last.endswith(": 1 result derived anew")
    path.write_bytes(whole())
    assert cli.main(["store", "rebuild", "--everything", "--store", str(path)]) == 0


CHANNELS = ("power", "sm_clock", "memory_clock", "temperature")
# Each channel and each that is no number once: whether a reading is one is asked without looking at the channel.
ODD = ((math.nan, "power"), (math.inf, "sm_clock"), (-math.inf, "memory_clock"), (math.nan, "temperature"))


@pytest.mark.parametrize(
    ("odd", "channel"),
    [
        *ODD,
        *(
            pytest.param(odd, channel, marks=pytest.mark.thorough)
            for odd in (math.nan, math.inf, -math.inf)
            for channel in CHANNELS
            if (odd, channel) not in ODD
        ),
    ],
)
def test_a_reading_that_is_no_number_was_missing_to_every_reader(
    path: Path, odd: float, channel: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put_channel(path, channel, lambda whole: whole._replace(values=(odd, *whole.values[1:])))
    kept = material.telemetry()[channel]
    with Reader.open(str(path)) as reader:
        read = reader.measurement(1).telemetry[channel]
    assert (read.times_s, read.values) == (kept.times_s[1:], kept.values[1:])
    (problem,) = maintain.check(str(path))
    assert problem == ("result 1", f"1 readings of its {channel} are no numbers, and count as missing")
    assert cli.main(["show", "latest", "1", "--json", "--store", str(path)]) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["measurement"]["telemetry"][channel]
    assert told["values"] == [None, *kept.values[1:]]
    assert told["times_s"] == list(kept.times_s)
    assert cli.main(["show", "latest", "1", "--store", str(path)]) == 0
    assert f"{channel.replace('_', ' ')}: " in capsys.readouterr().out
    assert maintain.rebuild(str(path), summarized, everything=True) == 2
    power_w = Reader.open(str(path)).results()[0].power_w
    whole_w = material.telemetry()["power"].values
    expected = whole_w[1:] if channel == "power" else whole_w
    assert power_w == pytest.approx(sum(expected) / len(expected))


def test_a_channel_of_nothing_but_missing_readings_says_so(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_channel(path, "power", with_values(lambda _: math.nan))
    assert cli.main(["show", "latest", "1", "--store", str(path)]) == 0
    assert "power: unavailable, every reading was missing" in capsys.readouterr().out
    assert maintain.rebuild(str(path), summarized, everything=True) == 2
    assert Reader.open(str(path)).results()[0].power_w is None
    assert maintain.merge(str(path), str(path.with_name("other.db"))).results_added == 2


def test_a_writer_keeps_no_reading_that_was_missing(path: Path) -> None:
    power = Channel("W", (0.0, 0.1, math.nan, 0.3), (640.0, math.nan, 650.0, 660.0))
    with Store.open(str(path)) as store, store.start_run(material.run_start()) as run:
        row = run.record(material.record(measured=material.measurement(telemetry={"power": power})))
    with Reader.open(str(path)) as reader:
        assert reader.detail(row.result_id).measurement.telemetry["power"] == Channel("W", (0.0, 0.3), (640.0, 660.0))
    assert maintain.check(str(path)) == []


def test_missing_readings_cross_a_process_boundary_as_null() -> None:
    known = material.measurement(telemetry={"power": Channel("W", (0.0, 0.1), (math.nan, 650.0))})
    text = json.dumps(known.to_json(), allow_nan=False)
    back = Measurement.from_json(json.loads(text)).telemetry["power"]
    assert math.isnan(back.values[0])
    assert back.values[1] == 650.0


DAMAGED_TELEMETRY = ("half of telemetry", "a word for telemetry", "a power below none", "readings without times")


@pytest.mark.parametrize("damage", DAMAGED_TELEMETRY)
def test_damaged_telemetry_costs_the_telemetry_alone(
    path: Path, damage: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    SPOILED[damage][0](path)
    monkeypatch.chdir(path.parent)
    with Reader.open(str(path)) as reader:
        kept = reader.detail(1).measurement
    assert is_unread(kept)
    assert kept.samples == measured().samples
    assert cli.main(["show", "latest", "1", "--store", "store.db"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("telemetry: unavailable, it cannot be read (") == 1
    assert "200 samples of 10 launches each" in shown
    assert cli.main(["show", "latest", "1", "--json", "--store", "store.db"]) == 0
    assert json.loads(capsys.readouterr().out)["measurement"]["samples"]["durations"] == list(measured().samples.durations_ns)  # type: ignore[union-attr]
    assert cli.main(["report", "latest", "--output", "page.html", "--store", "store.db"]) == 0
    page = (path.parent / "page.html").read_text()
    assert "The samples of" not in page
    assert "its telemetry cannot be read" in page


def test_samples_that_are_damaged_are_counted_in_a_text_that_was_built_with_them(path: Path) -> None:
    change(path, STATEMENTS["cycles below none"][0])
    with Reader.open(str(path)) as reader:
        text = render_markdown(build(reader, ["latest"]))
    assert "The samples of 1 case cannot be read; \\`roofbench store check\\` says what is wrong." in text


def test_a_kept_set_of_samples_may_be_thinned_and_its_interval_wide() -> None:
    every_other = SampleSet((1000, 1002, 1001), 4, "graph", 1e-9, 5, 5005, 1000, stride=2, boundaries=(0, 3), median_ns=1001.0)
    assert list(sample_flaws(every_other)) == []
    assert list(interval_flaws(every_other, "seconds", (-1.0, 1.0))) == []
    few = SampleSet((1000, 1100), 1, "graph", 1e-9, 2, 2100, 1000, median_ns=1050.0)
    assert list(interval_flaws(few, "seconds", (0.4e-6, 1.7e-6))) == []
    assert list(interval_flaws(few, "seconds", (-1e-6, 1.7e-6))) != []
    flawed = replace(every_other, spans=(Span(1, 0.0, 1.0),))
    assert any("spans" in flaw for flaw in sample_flaws(flawed))


def test_a_verdict_without_measuring_names_the_option_of_its_own_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "nowhere" / "x.db"
    assert cli.main(["selftest", "--last", "--store", str(missing)]) == 2
    said = capsys.readouterr().err
    assert "run `roofbench selftest` first, or name one with --store PATH" in said
    assert "store.url" not in said


@pytest.mark.parametrize("column", ["flops", "compulsory_bytes"])
def test_other_work_than_its_workloads_gives_a_row_no_figures(path: Path, column: str) -> None:
    change(path, f"update result set {column} = '{7 * 10**8}' where id = 1")
    with Reader.open(str(path)) as reader:
        first, second = reader.results()
        with pytest.raises(StoreUnusable, match="which its job counts for its workload"):
            reader.detail(1)
    assert (first.outcome, first.flop_s, first.fractions.empirical) == ("error", None, None)
    assert f"{column} 700000000 is not " in first.reason
    assert second.outcome == "ok"


def test_a_case_that_is_damaged_itself_is_one_line(path: Path) -> None:
    change(path, STATEMENTS["less than no work"][0])
    with Reader.open(str(path)) as reader, pytest.raises(StoreUnusable, match=r"result 1, flops: -5 is not between"):
        reader.detail(1)
