"""A job and a backend from outside the tree: planned, measured, stored, compared and reported like the rest."""

import json
from pathlib import Path
from typing import Any

import pytest

from suite.errors import UsageError
from suite.store.queries import Reader
from tests.plugins.conftest import QUICK, SHORT, STORE
from tests.plugins.installed import outside_devices, roofbench

OWNER = "roofbench-example 1.0"
CASES = 8  # a product by two implementations cold and by one warm, and five of calibration


def rows(folder: Path, site: Path, *arguments: str) -> list[dict[str, Any]]:
    said = roofbench(folder, site, *arguments, "--json")
    assert said.status == 0, said.err
    found: list[dict[str, Any]] = json.loads(said.out)
    return found


def first_run(folder: Path) -> str:
    with Reader.open(str(folder / STORE)) as reader:
        return min(info.run for info in reader.runs())


def test_every_case_is_right_and_has_its_work(measured: Path, site: Path) -> None:
    found = rows(measured, site, "show", first_run(measured))
    assert [row["outcome"] for row in found] == ["ok"] * CASES
    assert {(row["backend"], row["evidence"], row["execution"]) for row in found} == {("numpy", "measured", "native")}
    products = [row for row in found if row["job"] == "matvec"]
    assert [(row["implementation"], row["regime"]["cache"]) for row in products] == [
        ("library", "cold"), ("einsum", "cold"), ("library", "warm"),
    ]  # fmt: skip
    for row in products:
        assert (row["params"], row["flops"], row["pipe"]) == ({"m": 64, "k": 128}, 2 * 64 * 128, "fp32")
        assert row["compulsory_bytes"] == 4 * (64 * 128 + 128 + 64)
        assert 0 <= row["error_rel"] <= row["tolerance"]
        assert row["flop_s"] == pytest.approx(row["flops"] / row["p50_s"])
        assert row["bound"] in ("memory", "cache", "compute", "launch")


def test_a_plan_names_what_a_run_then_stores(measured: Path, site: Path) -> None:
    planned = rows(measured, site, "plan", *QUICK, f"store.url={measured / 'none.db'}")
    stored = rows(measured, site, "show", first_run(measured))
    assert [row["case_key"] for row in planned] == [row["case_key"] for row in stored]
    assert all(row["memory_bytes"] > 0 for row in planned)


def test_settings_are_held_against_the_jobs_own(measured: Path, site: Path) -> None:
    for override, message in {
        "jobs.matvec.shaps=[64x64]": "unknown key 'jobs.matvec.shaps'; did you mean 'shapes'?",
        "jobs.matvec.formats=[fp63]": "unknown format 'fp63' in jobs.matvec.formats; did you mean 'fp64'?",
        "jobs.matvec.shapes=5": "jobs.matvec.shapes=5 is one value where a list is expected; write jobs.matvec.shapes=[5]",
        "jobs.matvek.shapes=[64x64]": "unknown job 'matvek' in jobs.matvek; did you mean 'matvec'?",
        "job=matvek": "unknown job 'matvek'; did you mean 'matvec'?",
    }.items():
        said = roofbench(measured, site, "plan", "experiment=null", "job=matvec", "backend=numpy", override)
        assert (said.status, said.err) == (2, f"roofbench: {message}\n"), override


def test_the_package_is_a_fact_of_the_system_and_of_every_case(measured: Path, site: Path) -> None:
    run = first_run(measured)
    with Reader.open(str(measured / STORE)) as reader:
        assert reader.resolve(run).config["plugins"] == {"jobs.matvec": OWNER, "backends.numpy": OWNER}
    case = rows(measured, site, "show", run)[-1]["case_key"]
    said = roofbench(measured, site, "show", run, case)
    assert "environment: plugins\n  roofbench-example" in said.out


def test_two_runs_are_compared_and_the_versions_said_to_differ(measured: Path, nothing: Path) -> None:
    said = roofbench(measured, nothing, "compare", first_run(measured), "latest")
    assert said.status == 0, said.err
    assert "matvec" in said.out
    found = json.loads(roofbench(measured, nothing, "compare", first_run(measured), "latest", "--json").out)
    assert [each for each in found["differing"] if each["group"] == "plugins"] == [
        {"group": "plugins", "name": "roofbench-example", "a": "1.0", "b": "1.1", "where": ""}
    ]


@pytest.mark.thorough
def test_an_interrupted_run_goes_on(tmp_path: Path, site: Path) -> None:
    said = roofbench(tmp_path, site, "run", *QUICK, "max_time_s=0.3")  # each part of the run has at least one case
    parts = 1
    while "to go on: roofbench run resume=" in said.out:
        said = roofbench(tmp_path, site, "run", "resume=latest")
        parts += 1
        assert parts <= CASES
    assert said.status == 0, said.err
    assert f"complete, {CASES} of {CASES} cases" in said.out
    assert parts > 1


def test_the_devices_of_an_outside_backend_are_listed(tmp_path: Path, site: Path) -> None:
    found, _ = outside_devices(site)
    only = rows(tmp_path, site, "devices", "backend=numpy")
    assert [(row["backend"], row["device"]["details"]["platform"]) for row in only] == [("numpy", "cpu")]
    assert found == only


def test_hydra_shows_where_its_files_are_and_that_they_stand_after_ours(tmp_path: Path, site: Path) -> None:
    said = roofbench(tmp_path, site, "run", "--info", "searchpath")
    providers = [line.split("|")[1].strip() for line in said.out.splitlines() if line.startswith("|")]
    assert providers == ["Provider", "hydra", "main", OWNER, "schema"]


def test_a_job_of_ours_on_an_outside_backend_is_recorded_as_unsupported(tmp_path: Path, site: Path) -> None:
    of_gemm = ("job=gemm", "jobs.gemm.formats=[fp32]", "jobs.gemm.shapes=[64]")
    said = roofbench(tmp_path, site, "run", "experiment=null", "backend=numpy", *of_gemm, *SHORT)
    assert said.status == 0, said.err
    reasons = {row["reason"] for row in rows(tmp_path, site, "show") if row["job"] == "gemm"}
    assert reasons == {"backend numpy computes matvec and calibration, not gemm"}


WITHOUT = (
    ("show",),
    ("show", "--runs"),
    ("report", "latest", "--output", "page.md", "--force"),
    ("report", "latest", "--output", "page.html", "--force"),
    ("store", "check"),
)


@pytest.mark.parametrize("command", WITHOUT, ids=" ".join)
def test_its_results_are_read_where_the_package_is_not_installed(
    measured: Path, nothing: Path, command: tuple[str, ...]
) -> None:
    said = roofbench(measured, nothing, *command)
    assert said.status == 0, said.err
    if command[0] == "show" and "--runs" not in command:
        assert "64x128" in said.out or "m=64" in said.out
    if command[-1] == "page.md":
        page = (measured / "page.md").read_text()
        assert "matvec" in page
        assert "| plugins: roofbench-example | 1.1 | measured |" in page
        assert "job matvec is of roofbench-example 1.1, a plugin that has to be installed" in page


def test_a_store_is_merged_where_the_package_is_not_installed(measured: Path, nothing: Path, tmp_path: Path) -> None:
    merged = str(tmp_path / "merged.db")
    said = roofbench(measured, nothing, "store", "merge", STORE, "--store", merged)
    assert said.status == 0, said.err
    assert rows(measured, nothing, "show", "--store", merged) == rows(measured, nothing, "show")


@pytest.mark.parametrize("command", ["run", "plan"])
def test_going_on_without_the_package_names_it(measured: Path, nothing: Path, command: str) -> None:
    said = roofbench(measured, nothing, command, "resume=latest")
    why = "the run measured with job 'matvec' of roofbench-example 1.1, which is not installed; install it to go on"
    assert (said.status, said.err) == (2, f"roofbench: {why}\n")


def test_the_experiment_file_says_which_package_it_needs(measured: Path, site: Path, tmp_path: Path) -> None:
    said = roofbench(measured, site, "run", "--cfg", "experiment", f"resume={first_run(measured)}")
    missing = f"job matvec is of {OWNER}, a plugin that has to be installed"
    assert f"roofbench: not in this file: {missing}\n" in said.err
    assert "plugins:" not in said.out
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment/again.yaml").write_text(said.out)
    planned = rows(
        measured, site, "plan", "--config-dir", str(tmp_path), "experiment=again", f"store.url={tmp_path / 'none.db'}"
    )
    stored = rows(measured, site, "show", first_run(measured))
    assert [row["case_key"] for row in planned] == [row["case_key"] for row in stored]


def test_a_run_kept_without_owners_still_names_the_job() -> None:
    """A store of before there were plugins, or a run composed by hand."""
    from suite.config import compose, from_stored, to_stored

    stored = to_stored(compose(["job=gemm", "backend=cpu"]))
    stored["jobs"] = {"matvec": {"name": "matvec"}}
    with pytest.raises(UsageError, match="unknown job 'matvec'"):
        from_stored(stored)
