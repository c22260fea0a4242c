"""What a process of a launch makes of a run's configuration, and who of them measures."""

import json
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import UsageError
from suite.jobs.collective import CollectiveJob, CollectiveSettings
from suite.jobs.gemm import GemmSettings
from suite.ranks import join
from suite.ranks.join import is_first, joined, placed, record_path, refuse_elsewhere, refuse_joined_by_hand, taking_part
from suite.ranks.launched import Part
from suite.ranks.places import RECORD_VARIABLE, VARIABLE, Place, Places
from suite.settings import RunConfig

LAUNCHERS = ("RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
GEMM = RunConfig(jobs={"gemm": GemmSettings()})


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


def part_of(world: int, rank: int = 0, watched: bool = True) -> Part:
    return Part("srun", rank, world, watched)


def of_ranks(count: int, *worlds: int) -> RunConfig:
    """What a run of so many ranks of a launcher has stored, and what a file that repeats it says."""
    job = CollectiveSettings(world_sizes=list(worlds or (count,)), joined=count)
    return RunConfig(jobs={"collective": job})


def set_rank(patch: pytest.MonkeyPatch, rank: int, *, watched: bool = True) -> None:
    for name, value in {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2}.items():
        patch.setenv(name, str(value))
    if watched:
        patch.setenv("TORCHELASTIC_RUN_ID", "a launch")


@pytest.mark.parametrize(("rank", "first"), [(0, True), (1, False)])
def test_the_store_is_looked_at_where_the_first_rank_is(rank: int, first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another host need not have its folder."""
    assert is_first()
    set_rank(monkeypatch, rank)
    assert is_first() is first


def test_without_a_launcher_a_run_is_as_it_was() -> None:
    assert taking_part(config(), [], measured) == 40
    assert taking_part(GEMM, [], measured) == 40


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("watched", [True, False])
def test_without_collectives_a_launch_is_refused_in_one_line(rank: int, watched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ranks would race for a device.  With variables that are only set there may be no rank 0 to say so."""
    waited: list[float] = []
    monkeypatch.setattr("suite.ranks.join.time.sleep", waited.append)
    set_rank(monkeypatch, rank, watched=watched)
    if rank == 1 and watched:
        with pytest.raises(SystemExit) as left:
            taking_part(GEMM, [], measured)
        assert (left.value.code, waited) == (2, [join.QUIET_S])
        return
    with pytest.raises(UsageError) as refused:
        taking_part(GEMM, [], measured)
    assert waited == []
    assert str(refused.value).startswith(
        "torchrun started 2 ranks, and there are no collectives for them (gemm): each would be a run of its own; start it "
        "once, without torchrun"
    )
    assert str(refused.value).endswith("where none of it is running)") is not watched


@pytest.mark.parametrize("rank", ["0", "3"])
def test_one_rank_a_host_measures_its_host(rank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``srun --ntasks-per-node=1`` sweeps nodes."""
    for name, value in {"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NUM_NODES": "4"}.items():
        monkeypatch.setenv(name, value)
    assert taking_part(GEMM, [], measured) == 40


def test_a_file_that_repeats_a_launched_run_keeps_its_worlds_and_takes_as_many_ranks() -> None:
    assert settings(placed(of_ranks(4, 2, 4), [], part_of(4))) == replace(settings(of_ranks(4, 2, 4)), joined_by="srun")
    with pytest.raises(UsageError, match=r"joined=4 is of a run of 4 ranks .*, and none of them started this; start it again"):
        placed(of_ranks(4), [], None)
    with pytest.raises(UsageError, match=r"and srun started 2; start it again under torchrun, srun or mpirun with 4 ranks"):
        placed(of_ranks(4), [], part_of(2))


@pytest.mark.parametrize(
    "override",
    [
        "jobs.collective.joined=4",
        "+jobs.collective.joined=2",
        "~jobs.collective.joined",
        "jobs.collective.joined_by=srun",
        "++jobs.collective.joined_per_host=2",
    ],
)
def test_nobody_says_how_many_joined(override: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be set: jobs\.collective\.joined is how many ranks torchrun, srun or mpirun"):
        refuse_joined_by_hand(["job=collective", override])
    refuse_joined_by_hand(["jobs.collective.world_sizes=[2]"])


@pytest.mark.parametrize("joined_ranks", [-1, 1])
def test_a_number_that_no_launcher_joins_is_refused(joined_ranks: int) -> None:
    with pytest.raises(UsageError, match="is no number of ranks that a launcher started; leave it out"):
        CollectiveJob().check(CollectiveSettings(joined=joined_ranks))


def test_a_run_goes_on_with_the_ranks_that_it_was_started_with() -> None:
    """Otherwise what it has left would be stored as cases that cannot run."""
    command = "roofbench run resume=X store.url=s.db"
    for stored, own in [(of_ranks(2), part_of(2)), (config(2), None), (GEMM, None)]:
        refuse_elsewhere(stored, "X", own, command)
    for own, told in [(None, "none of them started this"), (part_of(3), "srun started 3")]:
        with pytest.raises(UsageError) as refused:
            refuse_elsewhere(of_ranks(2), "X", own, command)
        assert str(refused.value) == (
            f"run X was started under torchrun, srun or mpirun with 2 ranks, and {told}; start it again under torchrun, srun "
            f"or mpirun with 2 ranks, for instance torchrun --nproc-per-node 2 --no-python {command}"
        )
    for stored in (config(2), GEMM):
        with pytest.raises(UsageError, match="run X was started without a launcher, and srun started 2; start it once"):
            refuse_elsewhere(stored, "X", part_of(2), command)


@pytest.mark.parametrize("told_already", [True, False])
def test_a_run_without_a_rank_is_ended_by_its_launcher_or_ends_itself(
    told_already: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second signal would cut it short."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(join, "ENDED_BY_LAUNCHER_S", 0.1)
    monkeypatch.setattr(join, "was_told_to_end", lambda: told_already)
    monkeypatch.setattr("suite.ranks.join.os.kill", lambda *given: sent.append(given))
    join.end_without(1, 2)
    assert sent == ([] if told_already else [(os.getpid(), signal.SIGTERM)])
    said = "" if told_already else "roofbench: rank 1 of 2 is gone, and the cases that are left want it: the run ends here\n"
    assert capsys.readouterr().err == said


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
    assert places.hosts_words == "host 1 is a, rank 0; host 2 is b, rank 1"
    more = places._replace(ranks=tuple(Place(host, "", 0) for host in "aaaabcb"))
    assert more.hosts_words == "host 1 is a, ranks 0 to 3; host 2 is b, ranks 4, 6; host 3 is c, rank 5"
