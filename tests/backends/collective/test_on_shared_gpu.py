"""Real NCCL with two ranks on one GPU: what is asked for runs and is seen, and what is not never becomes a number."""

from collections.abc import Iterator

import pytest
import torch
import torch.distributed

from backends.failures import Classified
from backends.torch.collective.crew import Crew
from backends.torch.collective.forced import group_environment, nccl_version
from backends.torch.collective.kernel import CollectiveKernel
from backends.torch.collective.port import Crews
from backends.torch.collective.starting import World
from suite.collectives.choice import Choice
from suite.collectives.message import message
from suite.collectives.names import Algo, Op, Proto
from suite.collectives.transport import Transport
from suite.jobs.collective import Task
from suite.outcome import Outcome
from tests.backends.collective.helpers import checked

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not (torch.cuda.is_available() and torch.distributed.is_nccl_available()), reason="no CUDA device with NCCL"
    ),
]
RANKS, SIZE = 2, 65_536
RING = Choice(Algo.RING, Proto.SIMPLE)


@pytest.fixture(scope="module")
def crews() -> Iterator[Crews]:
    found = Crews()
    yield found
    found.dismiss()


@pytest.fixture
def crew(crews: Crews) -> Crew:
    """The ranks of the test before, or others where those were lost."""
    return crews.of(World(Transport.SHARED_GPU, ("cuda:0",) * RANKS))


def asked(choice: Choice) -> Task:
    return Task(message(Op.ALL_REDUCE, "fp32", RANKS, SIZE), "library", choice, True, Transport.SHARED_GPU)


def made(crew: Crew, task: Task, **variables: str) -> CollectiveKernel:
    """On a group of the variables that the task wants, or of others in their place."""
    environment = dict(group_environment(task, nccl_version())) | variables
    return CollectiveKernel(crew, task, crew.group("nccl", tuple(sorted(environment.items()))), "NCCL", 3)


@pytest.mark.parametrize("algo", [Algo.RING, Algo.TREE])
@pytest.mark.parametrize("proto", [Proto.LL, Proto.SIMPLE])
def test_what_is_asked_for_runs_and_is_right(crew: Crew, algo: Algo, proto: Proto) -> None:
    kernel = made(crew, asked(Choice(algo, proto)))
    assert checked(kernel, 2).passed
    told = kernel.describe()
    kernel.close()
    assert (told["asked"], told["honoured"]) == (f"{algo}/{proto}", True)
    assert {(ran["algo"], ran["proto"]) for ran in told["observed"]} == {(algo, proto)}


def test_the_cost_table_of_the_communicator_is_stored(crew: Crew) -> None:
    kernel = made(crew, asked(RING))
    table = kernel.describe()["model of the library"]
    kernel.close()
    assert table["ring/simple"][1] > 0


@pytest.mark.parametrize("name", ["NCCL_ALGO", "NCCL_PROTO"])
def test_a_token_that_the_library_does_not_know_is_an_error_and_no_number(crew: Crew, name: str) -> None:
    with pytest.raises(Classified) as refused:
        made(crew, asked(RING), **{name: "allreduce:sideways"})
    assert refused.value.failure.outcome not in (Outcome.OK, Outcome.TIMEOUT)
    assert refused.value.failure.reason.startswith("rank ")


def test_another_algorithm_than_asked_for_is_not_honoured(crew: Crew) -> None:
    with pytest.raises(Classified) as refused:
        made(crew, asked(RING), NCCL_ALGO="allreduce:Tree")
    assert refused.value.failure.outcome is Outcome.NOT_HONOURED
    assert refused.value.failure.reason == "asked for ring/simple, ran tree/simple"


def test_the_syntax_of_older_versions_is_named_by_what_ran(crew: Crew) -> None:
    """``^`` takes away: what is left is the ring, which was not asked for."""
    with pytest.raises(Classified) as refused:
        made(crew, asked(Choice(Algo.TREE, Proto.SIMPLE)), NCCL_ALGO="^Tree", NCCL_PROTO="Simple")
    assert refused.value.failure.outcome is Outcome.NOT_HONOURED
    assert refused.value.failure.reason == "asked for tree/simple, ran ring/simple"
