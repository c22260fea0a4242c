"""JAX and torch on one CPU: the same experiment through real workers, every product checked, in one view of the dashboard."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.backends import small_cache
from tests.backends.xla import small_cache as small_cache_xla
from tests.cli.command import roofbench
from tests.dashboard.opened import opened, table, words

SHAPES = ("64x64x64", "48x32x80")
FORMATS = ("fp32", "bf16", "int8")
COLD, WARM = "cold/sustained/device", "warm/sustained/device"
QUICK = ("measure.steady_window_s=0.01", "measure.min_time_s=0.005", "measure.max_time_s=0.05", "measure.interleave=2")

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run of both."""
    folder = tmp_path_factory.mktemp("beside")
    said = roofbench(
        folder,
        *("run", "backend=[cpu,xla]", "job=gemm", "measure=fast", *QUICK),
        *(f"backends.cpu.target={small_cache.TARGET}", f"backends.xla.target={small_cache_xla.TARGET}"),
        *("+backends.cpu.options.threads=1", "+backends.xla.options.platform=cpu"),
        *(f"jobs.gemm.shapes=[{','.join(SHAPES)}]", f"jobs.gemm.formats=[{','.join(FORMATS)}]"),
        f"measure.regimes=[{COLD},{WARM}]",
    )
    assert said.status == 0, said.err or said.out
    return folder


def rows_of(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(roofbench(folder, "show", "--json").out)
    return [row for row in found if row["job"] == "gemm"]


def test_both_compute_the_same_cases_and_every_one_is_right(measured: Path) -> None:
    rows = rows_of(measured)
    by_backend = {
        backend: {(row["workload_key"], row["regime"]["cache"]): row for row in rows if row["backend"] == backend}
        for backend in ("cpu", "xla")
    }
    assert by_backend["cpu"].keys() == by_backend["xla"].keys()
    assert len(rows) == 2 * len(SHAPES) * len(FORMATS) * 2
    for row in rows:
        assert (row["outcome"], row["reason"]) == ("ok", "")
        assert 0 <= row["error_rel"] <= row["tolerance"]
    for key, mine in by_backend["xla"].items():
        theirs = by_backend["cpu"][key]
        assert (mine["flops"], mine["compulsory_bytes"], mine["params"]) == (
            theirs["flops"], theirs["compulsory_bytes"], theirs["params"],
        )  # fmt: skip


def test_they_are_of_one_chip(measured: Path) -> None:
    assert len({row["device"] for row in rows_of(measured)}) == 1
    said = roofbench(measured, "show").out
    assert all(f"device {index}: {backend} " in said for index, backend in enumerate(("cpu", "xla")))


def test_one_page_of_the_dashboard_has_both(monkeypatch: pytest.MonkeyPatch, measured: Path) -> None:
    app = opened(monkeypatch, measured / "roofbench.db", page="gemm")
    assert not app.exception
    assert not app.error
    shown = table(app)
    assert set(shown["Backend"]) == {"cpu", "xla"}
    for shape in SHAPES:
        assert {"cpu", "xla"} == set(shown[shown.apply(lambda row, shape=shape: shape in str(list(row)), axis=1)]["Backend"])
    assert words(app)
