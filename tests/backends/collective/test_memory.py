"""What plan predicts for the ranks of a case is what they take."""

from pathlib import Path

import pytest

from backends.torch.collective.crew import Crew
from suite.case import Workload, items
from suite.collectives.names import Algo, Op
from suite.jobs.collective import CollectiveJob
from suite.measure.verify import expect, probe
from tests.backends.collective.helpers import prepared, task

SIZE = 48 * 2**20


def forget_peak(pid: int) -> None:
    """Have the kernel count the most that was resident from here on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def most_resident_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


@pytest.mark.parametrize(
    ("op", "algo", "in_place"),
    [
        pytest.param(Op.ALL_REDUCE, None, True, marks=pytest.mark.thorough),
        pytest.param(Op.ALL_REDUCE, Algo.RING, True, marks=pytest.mark.thorough),
        (Op.ALL_REDUCE, Algo.TREE, True),
        pytest.param(Op.ALL_GATHER, None, False, marks=pytest.mark.thorough),
        pytest.param(Op.REDUCE_SCATTER, None, False, marks=pytest.mark.thorough),
        (Op.REDUCE_SCATTER, Algo.RING, False),
        (Op.ALL_TO_ALL, None, False),
    ],
)
def test_two_ranks_take_no_more_than_predicted_and_not_much_less(pair: Crew, op: Op, algo: Algo | None, in_place: bool) -> None:
    switches = items({"algo": algo or "library", "proto": "library", "in_place": in_place, "transport": "host"})
    workload = Workload("collective", "fp32", items({"op": op, "message_bytes": SIZE, "world_size": 2}))
    predicted = CollectiveJob().footprint(workload, switches).total_bytes(1)
    for pid in pair.pids:
        forget_peak(pid)
    kernel = prepared(pair, task(op, 2, SIZE, own=algo, in_place=in_place))
    kernel.enqueue(0)
    expect(kernel, [probe(kernel.output_shape, 0, 4, 1)])
    taken = sum(map(most_resident_bytes, pair.pids))
    kernel.close()
    assert 0.7 * predicted < taken <= predicted
