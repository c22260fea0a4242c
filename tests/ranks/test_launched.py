"""What launchers say to their processes, each in its own words, and what is refused."""

import pytest

from suite.errors import UsageError
from suite.ranks.launched import Launched, first_host, launched, part

TORCHRUN = {
    "RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "node7", "MASTER_PORT": "29511",
    "TORCHELASTIC_RUN_ID": "none",
}  # fmt: skip
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "4", "PMIX_NAMESPACE": "1234@1",
}  # fmt: skip
HYDRA = {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "2", "MPI_LOCALNRANKS": "4"}
SLURM = {
    "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "16", "SLURM_LOCALID": "1", "SLURM_STEP_NUM_NODES": "4",
    "SLURM_STEP_NODELIST": "gpu[07-09,12]", "SLURM_JOB_ID": "99", "SLURM_STEP_ID": "0",
}  # fmt: skip


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (TORCHRUN, ("torchrun", 3, 8, 1, "node7", 29511)),
        ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "10.0.0.1"}, ("torchrun", 1, 2, 0, "10.0.0.1", 29500)),
        (OPEN_MPI, ("mpirun", 0, 4, 0, "127.0.0.1", 29500)),
        (HYDRA, ("mpirun", 2, 4, 2, "127.0.0.1", 29500)),
        (SLURM, ("srun", 5, 16, 1, "gpu07", 29500)),
        ({**SLURM, "SLURM_STEP_NUM_NODES": "1"}, ("srun", 5, 16, 1, "127.0.0.1", 29500)),
        ({**SLURM, "MASTER_ADDR": "head", "MASTER_PORT": "4000"}, ("srun", 5, 16, 1, "head", 4000)),
        ({**SLURM, **TORCHRUN}, ("torchrun", 3, 8, 1, "node7", 29511)),  # torchrun inside a step
    ],
)
def test_every_launcher_is_understood(environment: dict[str, str], expected: tuple[object, ...]) -> None:
    found = launched(environment)
    assert found is not None
    assert found[:6] == expected


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"RANK": "0"},
        {"RANK": "0", "WORLD_SIZE": "1"},
        {"SLURM_PROCID": "0", "SLURM_JOB_ID": "99", "SLURM_NTASKS": "8"},  # a batch script, which is no step
        {**SLURM, "SLURM_STEP_NUM_TASKS": "1"},
    ],
)
def test_who_was_started_alone_starts_its_own_ranks(environment: dict[str, str]) -> None:
    assert launched(environment) is None


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({**TORCHRUN, "RANK": "8"}, "RANK=8 is no rank of WORLD_SIZE=8"),
        ({**TORCHRUN, "WORLD_SIZE": "many"}, "WORLD_SIZE=many is not a number"),
        ({**TORCHRUN, "MASTER_PORT": "70000"}, "MASTER_PORT=70000 is no port"),
        ({**TORCHRUN, "MASTER_PORT": "65535"}, "MASTER_PORT=65535 is no port with another above it"),
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE=2 is set and RANK is not"),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, "does not say where rank 0 is; set MASTER_ADDR"),
    ],
)
def test_what_contradicts_itself_or_is_missing_is_refused(environment: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        launched(environment)


@pytest.mark.parametrize(
    ("environment", "is_alone"),
    [
        (TORCHRUN, False),
        ({**TORCHRUN, "LOCAL_WORLD_SIZE": "1"}, True),
        ({"RANK": "1", "WORLD_SIZE": "2"}, False),  # nobody says who else is here
        (OPEN_MPI, False),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, True),
        (SLURM, False),
        ({**SLURM, "SLURM_STEP_NUM_NODES": "16"}, True),
    ],
)
def test_a_rank_knows_whether_it_has_its_host_to_itself(environment: dict[str, str], is_alone: bool) -> None:
    own = part(environment)
    assert own is not None
    assert own.alone is is_alone


def test_processes_of_one_launch_alone_have_the_same_job() -> None:
    def job(**changed: str) -> str:
        found = launched({**TORCHRUN, **changed})
        assert isinstance(found, Launched)
        return found.job

    assert job(RANK="0", LOCAL_RANK="0") == job(RANK="7", LOCAL_RANK="1")
    assert len({job(), job(MASTER_PORT="29512"), job(WORLD_SIZE="16"), job(TORCHELASTIC_RUN_ID="other")}) == 4


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("gpu07", "gpu07"), ("gpu[07-09,12],cpu1", "gpu07"), ("a,b", "a"), ("rack1-n[3]-ib,rack2", "rack1-n3-ib")],
)
def test_the_first_of_a_list_of_nodes(nodes: str, first: str) -> None:
    assert first_host(nodes) == first
