"""How a launched run is started again, from what is stored of it: the launcher's own line, or that it needs one."""

from typing import Any

import pytest

from suite.experiment_file import command_of, experiment_file, missing_elsewhere
from suite.jobs.collective import CollectiveSettings
from suite.ranks.again import Launch, under_launcher
from suite.ranks.join import placed, refuse_elsewhere
from suite.ranks.launched import Part, part
from suite.settings import RunConfig
from tests.ranks.test_launched import HYDRA, OPEN_MPI, SLURM, TORCHRUN

LINE = "roofbench run job=collective"
ANY = "start it again under torchrun, srun or mpirun with 8 ranks"


def stored(joined: object = 8, by: object = "", per_host: object = 0) -> dict[str, Any]:
    return {"jobs": {"collective": {"joined": joined, "joined_by": by, "joined_per_host": per_host}}}


@pytest.mark.parametrize(
    ("by", "per_host", "line"),
    [
        ("torchrun", 8, "torchrun --standalone --nproc-per-node 8 --no-python "),
        (
            "torchrun",
            4,
            "torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint HOST:29500 --no-python ",
        ),
        ("torchrun", 0, ""),  # variables that something else set: on how many hosts is not known
        ("srun", 2, "srun --nodes 4 --ntasks-per-node 2 "),
        ("srun", 0, "srun --ntasks 8 "),
        ("mpirun", 8, "mpirun -n 8 "),
        ("mpirun", 0, "mpirun -n 8 "),
        ("", 0, ""),  # of a version that did not store it
        ("srun; rm -r x", 2, ""),
        (["srun"], "2", ""),
    ],
)
def test_the_line_is_the_launchers_as_far_as_it_is_known(by: object, per_host: object, line: str) -> None:
    assert under_launcher(stored(8, by, per_host), LINE) == line + LINE


@pytest.mark.parametrize("config", [{}, {"jobs": {}}, {"jobs": 3}, stored(0), stored(1), stored("8"), stored(-2)])
def test_a_run_that_started_its_ranks_itself_needs_no_launcher(config: dict[str, Any]) -> None:
    assert under_launcher(config, LINE) == LINE
    assert missing_elsewhere(config) == []


@pytest.mark.parametrize(
    ("by", "per_host", "known"),
    [
        ("srun", 2, " (srun, 2 a host)"),
        ("mpirun", 8, " (mpirun, on one host)"),
        ("torchrun", 0, " (torchrun)"),
        ("", 0, ""),
        ("srun; rm", 3, ""),
    ],
)
def test_whoever_repeats_it_is_told_how_many_ranks_it_takes(by: str, per_host: int, known: str) -> None:
    config = stored(8, by, per_host)
    (told,) = missing_elsewhere(config)
    assert told == f"the launcher that started its 8 ranks{known}; {ANY}"
    header = experiment_file(config, "a run").partition("defaults")[0]
    assert f"# Not in this file: {told}." in header.replace("\n#  ", "")
    assert header.splitlines()[2] == f"#   {command_of(config)}"


@pytest.mark.parametrize(
    ("environment", "by", "per_host"),
    [
        (TORCHRUN, "torchrun", 2),
        ({"RANK": "0", "WORLD_SIZE": "8"}, "torchrun", 0),
        ({**TORCHRUN, "LOCAL_WORLD_SIZE": "3"}, "torchrun", 0),  # other hosts have others
        (OPEN_MPI, "mpirun", 4),
        (HYDRA, "mpirun", 4),
        (SLURM, "srun", 4),
        ({**SLURM, "SLURM_STEP_NUM_NODES": "3"}, "srun", 0),
    ],
)
def test_a_run_stores_who_started_its_ranks(environment: dict[str, str], by: str, per_host: int) -> None:
    own = part(environment)
    found = placed(RunConfig(jobs={"collective": CollectiveSettings()}), [], own).jobs["collective"]
    assert own is not None
    assert (found.joined, found.joined_by, found.joined_per_host) == (own.world, by, per_host)


def test_a_file_of_a_launched_run_stores_the_launcher_that_repeats_it() -> None:
    before = CollectiveSettings(world_sizes=[8], joined=8, joined_by="srun", joined_per_host=2)
    again = placed(RunConfig(jobs={"collective": before}), [], Part("mpirun", 0, 8, watched=True, per_host=8))
    found = again.jobs["collective"]
    assert (found.joined_by, found.joined_per_host, found.world_sizes) == ("mpirun", 8, [8])


def test_a_run_that_cannot_go_on_here_says_the_line_that_it_was_started_with() -> None:
    settings = CollectiveSettings(world_sizes=[8], joined=8, joined_by="srun", joined_per_host=4)
    with pytest.raises(Exception, match=r"for instance srun --nodes 2 --ntasks-per-node 4 roofbench run resume=r$"):
        refuse_elsewhere(RunConfig(jobs={"collective": settings}), "r", None, "roofbench run resume=r")


def test_ranks_of_different_hosts_may_differ_in_number() -> None:
    assert (Launch(8, "srun", 3).hosts, Launch(8, "srun", 4).hosts, Launch(8, "srun", -4).hosts) == (0, 2, 0)
