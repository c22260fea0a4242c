"""What plan predicts for the devices of a case is what the process that has them takes."""

from contextlib import closing

import pytest

from backends.jax.collective.crew import Crew
from backends.jax.collective.kernel import XlaCollective
from backends.jax.collective.orders import Sample
from suite.case import Workload, items
from suite.collectives.choice import Choice
from suite.collectives.message import message
from suite.collectives.names import Algo, Op
from suite.collectives.transport import Transport
from suite.jobs.collective import CollectiveJob, Task
from suite.measure.verify import expect, probe
from tests.backends.collective.test_memory import most_resident_bytes

KIB, MIB = 2**10, 2**20


@pytest.mark.parametrize(
    ("op", "ring", "ranks", "size"),
    [
        (Op.ALL_REDUCE, False, 64, KIB),
        (Op.ALL_REDUCE, True, 32, KIB),
        (Op.ALL_TO_ALL, False, 8, 4 * MIB),
        pytest.param(Op.ALL_REDUCE, True, 4, 8 * MIB, marks=pytest.mark.thorough),
        pytest.param(Op.ALL_GATHER, True, 4, 16 * MIB, marks=pytest.mark.thorough),
        pytest.param(Op.ALL_REDUCE, False, 4, 24 * MIB, marks=pytest.mark.thorough),
        pytest.param(Op.REDUCE_SCATTER, False, 2, 48 * MIB, marks=pytest.mark.thorough),
        (Op.ALL_REDUCE, True, 2, 64 * MIB),
        pytest.param(Op.ALL_TO_ALL, False, 8, 64 * MIB, marks=pytest.mark.thorough),
        pytest.param(Op.ALL_REDUCE, True, 4, 128 * MIB, marks=pytest.mark.thorough),
    ],
)
def test_devices_of_one_process_take_no_more_than_predicted_and_not_much_less(
    op: Op, ring: bool, ranks: int, size: int
) -> None:
    in_place, choice = op is Op.ALL_REDUCE, Choice(Algo.RING) if ring else Choice()
    task = Task(message(op, "fp32", ranks, size), "own" if ring else "library", choice, in_place, Transport.HOST)
    workload = Workload("collective", "fp32", items({"op": op, "message_bytes": size, "world_size": ranks}))
    switches = items({"algo": "ring" if ring else "library", "proto": "library", "in_place": in_place, "transport": "host"})
    predicted = CollectiveJob().footprint(workload, switches).total_bytes(1, backend="xla")
    with closing(Crew(ranks)) as crew:
        kernel = XlaCollective(crew, task, 1)
        kernel.enqueue(0)
        expect(kernel, [probe(kernel.output_shape, 0, 4, 1)])
        crew.ask(Sample(3))
        kernel.refill(2)
        taken = most_resident_bytes(crew.pid)
    assert 0.35 * predicted < taken <= predicted
