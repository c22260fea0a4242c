"""What goes in comes out: measurements to the last bit, and nothing that a column cannot hold."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suite.backend import Channel
from suite.errors import StoreUnusable
from suite.measurement import TIMED, Check, Measurement, SampleSet, Span
from suite.outcome import Outcome
from suite.store.queries import Reader
from suite.store.telemetry import pack, unpack
from suite.store.writer import Store
from suite.work import Work
from tests.store import material

INT64 = 2**63 - 1
finite = st.floats(allow_nan=False, allow_infinity=False)
durations = (
    st.floats(min_value=0.0, max_value=1e9, allow_subnormal=False).filter(lambda each: each == 0 or each > 1e-29).map(abs)
)
sizes = finite.map(abs)
counts = st.integers(0, INT64)
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)
json_objects = st.dictionaries(words, json_values, max_size=4)
ends = st.floats(-1e9, 1e9).map(lambda end: end + 0.0)  # SQLite has no -0.0
intervals = st.tuples(ends, ends).map(sorted).map(tuple)
checks = st.builds(Check, st.booleans(), st.none() | sizes, sizes, st.none() | sizes, counts, counts, words)
numbers = st.lists(st.floats(), max_size=20).map(tuple)
channels = st.builds(Channel, words, numbers, numbers, words)
# As a store gives them back: every reading is there and has its time.
whole = st.lists(st.tuples(finite, finite), max_size=20).map(lambda pairs: tuple(zip(*pairs, strict=True)) or ((), ()))
whole_channels = st.builds(lambda series, why: Channel("widgets", series[0], series[1], why), whole, words)
kept = st.lists(st.tuples(counts, counts), max_size=50).map(lambda pairs: tuple(zip(*pairs, strict=True)) or ((), ()))


def sample_set(kept: tuple[tuple[int, ...], ...], is_counted: bool, **fields: Any) -> SampleSet:
    return SampleSet(kept[0], clocks_khz=kept[1] if is_counted else (), **fields)


sample_sets = st.builds(
    sample_set,
    kept=kept,
    is_counted=st.booleans(),
    launches=st.integers(1, INT64),
    method=words,
    resolution_s=durations,
    count=counts,
    sum_ns=counts,
    min_ns=counts,
    stride=st.integers(1, INT64),
    boundaries=st.lists(counts, max_size=10).map(tuple),
    details=json_objects,
    spans=st.lists(st.builds(Span, counts, finite, finite), max_size=10).map(tuple),
    median_cycles=st.none() | durations,
)


@st.composite
def measurements(draw: Any) -> Measurement:
    outcome = draw(st.sampled_from(Outcome))
    timed = outcome in TIMED
    return Measurement(
        outcome=outcome,
        reason=draw(words),
        execution=draw(st.sampled_from(["native", "emulated"])),
        samples=draw(sample_sets if timed else st.none() | sample_sets),
        interval_s=draw(st.none() | intervals),
        interval_cycles=draw(st.none() | intervals),
        converged=draw(st.none() | st.booleans()),
        steady=draw(st.none() | st.booleans()),
        contended=draw(st.none() | st.booleans()),
        check_before=draw(st.none() | checks),
        check_after=draw(st.none() | checks),
        telemetry=draw(st.dictionaries(words, whole_channels, max_size=4)),
        description=draw(json_objects),
        phases_s=draw(st.dictionaries(words, finite, max_size=4)),
        peak_memory_bytes=draw(st.none() | counts),
    )


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = str(tmp_path_factory.mktemp("round") / "store.db")
    with Store.open(path) as store, store.start_run(material.run_start()) as run:
        yield run, Reader.open(path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(measurement=measurements())
def test_a_measurement_comes_back_to_the_last_bit(shared: Any, measurement: Measurement) -> None:
    run, reader = shared
    attempt = max(run.attempts.values(), default=0) + 1
    row = run.record(material.record(material.planned(), measurement, summary=None, attempt=attempt))
    got = reader.detail(row.result_id).measurement
    assert _bits(got) == _bits(measurement)
    assert reader.results(limit=1) == [row]


def _bits(measurement: Measurement) -> str:
    """JSON with every float spelled by its bits, so that NaN equals itself and -0.0 is not 0.0."""

    def spell(value: Any) -> Any:
        if isinstance(value, float):
            return value.hex()
        if isinstance(value, dict):
            return {key: spell(inner) for key, inner in value.items()}
        return [spell(inner) for inner in value] if isinstance(value, list | tuple) else value

    return json.dumps(spell(measurement.to_json()))


@given(st.dictionaries(st.text(max_size=8), channels, max_size=5))
def test_packed_telemetry_is_exact(telemetry: dict[str, Channel]) -> None:
    got = unpack(pack(telemetry))
    assert list(got) == list(telemetry)
    for name, channel in telemetry.items():
        assert [v.hex() for v in got[name].times_s] == [v.hex() for v in channel.times_s]
        assert [v.hex() for v in got[name].values] == [v.hex() for v in channel.values]
        assert (got[name].unit, got[name].unavailable) == (channel.unit, channel.unavailable)


@given(st.binary(max_size=200))
def test_what_is_no_telemetry_is_refused_not_misread(blob: bytes) -> None:
    with pytest.raises(ValueError, match="packed telemetry"):
        unpack(blob)


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_telemetry_that_was_cut_short_is_refused(cut: int) -> None:
    import zlib

    raw = zlib.decompress(pack(material.telemetry()))
    with pytest.raises(ValueError):
        unpack(zlib.compress(raw[:-cut]))


def test_telemetry_is_stored_compactly() -> None:
    channels = material.telemetry(500)
    plain = json.dumps({name: channel._asdict() for name, channel in channels.items()})
    assert len(pack(channels)) < len(plain) / 8


@pytest.mark.parametrize(
    "broken",
    [
        {"description": {"tiles": [1.0, math.nan]}},
        {"description": {"cost": {"s": math.inf}}},
        {"phases_s": {"compile": -math.inf}},
        {"interval_s": (math.nan, 1.0)},
        {"samples": replace(material.sample_set(), spans=(Span(0, 0.0, math.inf),))},
        {"check_after": Check(False, math.nan, 0.1, None, 0, 0)},
        {"check_before": Check(False, math.inf, 0.1, None, 0, 0)},
    ],
)
def test_no_nan_and_no_infinity_enters_a_store(tmp_path: Path, broken: dict[str, Any]) -> None:
    with Store.open(str(tmp_path / "s.db")) as store, store.start_run(material.run_start()) as run:
        with pytest.raises(ValueError, match=r"(?i)nan|inf|JSON"):
            run.record(material.record(measured=material.measurement(**broken)))
        row = run.record(material.record())
    assert Reader.open(str(tmp_path / "s.db")).results()[0].result_id == row.result_id


@pytest.mark.parametrize("field", ["p50_s", "flop_s", "power_w", "fraction_spec"])
def test_no_nan_enters_a_summary(tmp_path: Path, field: str) -> None:
    with Store.open(str(tmp_path / "s.db")) as store, store.start_run(material.run_start()) as run:
        with pytest.raises(ValueError, match="nan"):
            run.record(material.record(summary=material.summary(**{field: math.nan})))
        assert run.finished == frozenset()


def test_nan_in_a_config_or_an_environment_is_refused_before_the_run_exists(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "s.db")) as store:
        with pytest.raises(ValueError, match=r"(?i)nan|JSON"):
            store.start_run(material.run_start(config={"target": math.nan}))
        assert Reader.open(str(tmp_path / "s.db")).runs() == []
    assert [path.name for path in tmp_path.iterdir()] == ["s.db"]


def test_times_are_kept_in_utc_whatever_their_zone(tmp_path: Path) -> None:
    kolkata = timezone(timedelta(hours=5, minutes=30))
    finished = datetime(2026, 3, 1, 2, 15, 0, 250_000, kolkata)
    with Store.open(str(tmp_path / "s.db")) as store, store.start_run(material.run_start()) as run:
        row = run.record(material.record(started_at=finished - timedelta(seconds=2), finished_at=finished))
        with pytest.raises(ValueError, match="zone"):
            run.record(material.record(material.planned(material.case(1)), finished_at=datetime(2026, 3, 1)))  # noqa: DTZ001
    assert row.finished_at == "2026-02-28T20:45:00.250Z"
    reader = Reader.open(str(tmp_path / "s.db"))
    assert reader.results()[0].finished_at == row.finished_at
    started = datetime.fromisoformat(reader.runs()[0].started_at)
    assert abs(datetime.now(UTC) - started) < timedelta(minutes=1)


def test_counts_past_64_bits_are_exact(tmp_path: Path) -> None:
    m = 10**13 + 1
    work = Work(2 * m**3, 6 * m**2, "bf16", 7 * m**2)
    with Store.open(str(tmp_path / "s.db")) as store, store.start_run(material.run_start()) as run:
        refused = material.measurement(Outcome.OUT_OF_MEMORY)
        row = run.record(material.record(material.planned(work=work), refused))
    (got,) = Reader.open(str(tmp_path / "s.db")).results()
    assert (got.flops, got.compulsory_bytes) == (2 * m**3, 6 * m**2)
    assert got == row


def test_what_a_database_may_refuse_in_text_is_escaped(tmp_path: Path) -> None:
    argv = ["run", "bad\udcffname"]
    with Store.open(str(tmp_path / "s.db")) as store, store.start_run(material.run_start(argv=argv, note="a\udcffb\0c")) as run:
        run.record(material.record(measured=material.measurement(Outcome.ERROR, reason="line\0 \ud800 end")))
    reader = Reader.open(str(tmp_path / "s.db"))
    assert reader.runs()[0].note == "a\\udcffb\\x00c"
    assert reader.runs()[0].argv == tuple(argv)
    assert reader.results()[0].reason == "line\\x00 \\ud800 end"


def test_a_broken_blob_is_one_clear_line(tmp_path: Path) -> None:
    import sqlite3

    with Store.open(str(tmp_path / "s.db")) as store, store.start_run(material.run_start()) as run:
        row = run.record(material.record())
    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.execute("update sample_blob set durations = x'00'")
    connection.close()
    with pytest.raises(StoreUnusable, match=f"is damaged: result {row.result_id}: .*store check"):
        Reader.open(str(tmp_path / "s.db")).detail(row.result_id)
