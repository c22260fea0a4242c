import pytest

from suite.report.document import build
from suite.store.queries import Reader
from tests.report.builders import BANDWIDTH, sweep
from tests.report.stores import write_store


def test_a_report_of_a_stored_run_holds_every_row_and_the_devices_own_roofs(tmp_path):
    rows = sweep()
    run = write_store(tmp_path / "results.db", rows)
    with Reader.open(str(tmp_path / "results.db")) as reader:
        (report,) = build(reader, ["latest"]).runs
        assert report.info.run == run
        assert list(report.rows) == reader.results(run)
    (device,) = report.devices
    best = max(row.flop_s for row in rows if row.format == "bf16" and row.load == "sustained" and row.outcome == "ok")
    (roof,) = (roof for roof in device.roofs.of_kind("empirical") if (roof.pipes, roof.load) == (("bf16",), "sustained"))
    assert roof.peak_flop_s == best
    assert roof.bandwidth_bytes_s == pytest.approx(0.9 * BANDWIDTH)
    assert {headline.format for headline in device.headlines} == {row.format for row in rows}


def test_runs_of_one_store_are_reported_in_the_order_asked_for(tmp_path):
    names = [write_store(tmp_path / "results.db", sweep()[:2]) for _ in range(2)]
    with Reader.open(str(tmp_path / "results.db")) as reader:
        document = build(reader, names[::-1])
    assert [run.info.run for run in document.runs] == names[::-1]
