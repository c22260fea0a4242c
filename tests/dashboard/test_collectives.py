"""The page of collectives: which of its points and fits are of ranks that shared cores."""

import json
from dataclasses import replace

import pytest

from dashboard.text import plain
from suite.collectives.cores import Host, described
from suite.report.palette import DOUBTFUL_OPACITY
from tests.dashboard.builders import OLD_UID, collective, other_device
from tests.dashboard.opened import charts, opened, words
from tests.report.builders import UID, run_info, sustained
from tests.report.stores import write_store

SIZES = [2**power for power in range(18, 28, 2)]


def rows(uid=UID, **fields):
    """Two ranks on two cores, and four that share them."""
    switches = {"algo": "ring", "proto": "library", "in_place": True, "transport": "host"}
    given = [
        collective(size, ranks=ranks, p50_s=2 * (ranks - 1) * (1e-4 + size / ranks / 1e9)) for ranks in (2, 4) for size in SIZES
    ]
    return [replace(row, switches=switches, pipe="host", device_uid=uid, **fields) for row in given]


def measured_on(cores):
    def measured(row):
        shared = described([Host(row.params.get("world_size", 1), cores)])
        return replace(sustained(row.p50_s, 40 * row.p50_s), description=shared)

    return measured


def curves(app, number=0):
    return [trace for trace in json.loads(charts(app)[number].proto.spec)["data"] if trace.get("meta") == "measured"]


@pytest.mark.parametrize(("ranks", "is_shared"), [("4", True), ("2", False)])
def test_points_and_fits_of_ranks_that_share_cores_say_so(monkeypatch, tmp_path, ranks, is_shared):
    write_store(tmp_path / "s.db", rows(), info=run_info(), measured=measured_on(2))
    app = opened(monkeypatch, tmp_path / "s.db", page="collectives")
    app.selectbox(key="c_ranks").select(ranks).run()
    for trace in curves(app):
        assert set(trace["marker"]["opacity"]) == {DOUBTFUL_OPACITY if is_shared else 1}
        assert all("ranks share cores" in text for text in trace["hovertext"]) is is_shared
    assert "5 results of Testium T1 are of ranks that share cores (4 ranks on 2 cores)" in words(app)
    fits = app.table[-1].value
    assert fits["Points"][0] == plain("10; 5 of ranks that share cores")


def test_devices_side_by_side_are_told_apart_by_it(monkeypatch, tmp_path):
    other = other_device()
    write_store(tmp_path / "a.db", rows(), info=run_info(), measured=measured_on(2))
    write_store(tmp_path / "b.db", rows(OLD_UID, device=other.info.name), [other], run_info(), measured_on(8))
    app = opened(monkeypatch, tmp_path / "a.db", tmp_path / "b.db", page="collectives")
    app.selectbox(key="c_ranks").select("4").run()
    entries = {trace.get("name", "") for trace in json.loads(charts(app)[0].proto.spec)["data"]}
    assert {"ranks share cores: 4 ranks on 2 cores", "cores not known to be shared"} <= entries
    said = words(app)
    assert "5 results of Testium T1 are of ranks that share cores (4 ranks on 2 cores)" in said
    assert "Testium T0 are of ranks that share cores" not in said
