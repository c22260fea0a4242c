"""What a process of a launch makes of a run's configuration, and who of them measures."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from suite.errors import UsageError
from suite.jobs.collective import CollectiveJob, CollectiveSettings
from suite.jobs.gemm import GemmSettings
from suite.ranks.join import joined, record_path, stores_here, taking_part
from suite.ranks.places import RECORD_VARIABLE, VARIABLE, Place, Places
from suite.settings import RunConfig

LAUNCHERS = ("RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*LAUNCHERS, VARIABLE, RECORD_VARIABLE):
        monkeypatch.delenv(name, raising=False)


def config(*worlds: int) -> RunConfig:
    return RunConfig(jobs={"collective": CollectiveSettings(world_sizes=list(worlds or (2,)))})


def settings(found: RunConfig) -> CollectiveSettings:
    job = found.jobs["collective"]
    assert isinstance(job, CollectiveSettings)
    return job


def test_the_launchs_ranks_are_the_world_and_nothing_is_set_twice() -> None:
    found = settings(joined(config(), ["job=[collective]"], 300))
    assert (found.world_sizes, found.joined) == ([300], 300)  # more than one command would start


def test_smaller_worlds_can_be_named() -> None:
    override = "jobs.collective.world_sizes=[2,4,8]"
    found = settings(joined(config(2, 4, 8), [override], 8))
    assert (found.world_sizes, found.joined) == ([2, 4, 8], 8)


def test_a_larger_world_than_was_started_is_refused() -> None:
    override = "jobs.collective.world_sizes=[2,16]"
    with pytest.raises(UsageError, match="has 16, and the launcher started 8 ranks"):
        joined(config(2, 16), [override], 8)


def test_what_joined_ranks_measure_is_another_case() -> None:
    job, own = CollectiveJob(), settings(config(4))
    theirs = settings(joined(config(), [], 4))
    workload = next(iter(job.workloads(theirs)))
    assert workload in list(job.workloads(own))
    keys = [set(job.switches(each, workload)) for each in (own, theirs)]
    assert not keys[0] & keys[1]
    assert all(dict(switches)["joined"] is True for switches in keys[1])


def measured(found: RunConfig, overrides: Sequence[str]) -> int:
    return 40 + settings(found).joined if "collective" in found.jobs else 40


@pytest.mark.parametrize(("rank", "here"), [("0", True), ("1", False)])
def test_the_store_is_looked_at_where_the_first_rank_is(rank: str, here: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another host need not have its folder."""
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", rank)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert stores_here(config()) is here
    assert stores_here(RunConfig(jobs={"gemm": GemmSettings()}))


def test_without_a_launcher_and_for_other_jobs_a_run_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    assert taking_part(config(), [], measured) == 40
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert taking_part(RunConfig(jobs={"gemm": GemmSettings()}), [], measured) == 40


def test_a_file_a_rank_stands_beside_the_store(tmp_path: Path) -> None:
    assert record_path(f"sqlite:///{tmp_path}/a.db", 3) == tmp_path / "a.db.rank-3.jsonl"
    assert record_path("b.db", 0) == Path("b.db.rank-0.jsonl")


def test_places_are_told_to_children_and_to_nobody_after() -> None:
    places = Places("srun", "10.0.0.1", 29501, "secret", (Place("a", "10.0.0.1", 0), Place("b", "10.0.0.2", 0)))
    assert Places.told() is None
    with places.telling("/tmp/file"):
        assert Places.told() == places
        assert json.loads(os.environ[VARIABLE])[0] == "srun"
    assert Places.told() is None
    assert RECORD_VARIABLE not in os.environ
    assert (places.hosts, places.beside(1)) == (2, 1)
