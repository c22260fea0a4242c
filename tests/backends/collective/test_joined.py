"""A crew whose ranks somebody else keeps: verified, recorded by each rank, given up and started anew."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backends.failures import Classified
from backends.torch.collective import port
from backends.torch.collective.crew import Crew
from backends.torch.collective.kernel import joined_description
from backends.torch.collective.sampler import SlowestRankSampler
from backends.torch.collective.starting import World
from backends.torch.target import cpu_target
from suite.case import Case, Regime, Workload, items
from suite.collectives.names import Algo, Op
from suite.collectives.transport import Transport
from suite.outcome import Outcome
from suite.ranks.hub import Hub
from suite.ranks.keeper import Keeper, find_hub
from suite.ranks.launched import Launched
from suite.ranks.places import Place, Places
from tests.backends.collective.helpers import STRANGE_RANK, checked, prepared, task
from tests.patience import PATIENCE_S

DEADLY_BYTES = 12_000
DIED = (
    "rank 1 of 2 (host 1 of 1, local rank 1) died with SIGKILL before it answered Sample of all_reduce 12000 B fp32 (library)"
)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    """A launch of two ranks, of which the other is kept by a thread of this process."""
    planted = [{"fault": "kill", "rank": 1, "bytes": DEADLY_BYTES, "at": "Sample"}]
    monkeypatch.setenv("ROOFBENCH_PLANTED", json.dumps(planted))
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        free = int(found.getsockname()[1]) % 60_000
    launches = [Launched("torchrun", rank, 2, rank, "127.0.0.1", free, "job") for rank in range(2)]
    threads = []
    with Hub(launches[0]) as hub:
        for launch in launches[1:]:
            line = find_hub(launch, "here", PATIENCE_S)
            keeper = Keeper(line, str(tmp_path / f"rank-{launch.rank}"), STRANGE_RANK)
            threads.append(threading.Thread(target=keeper.serve))
            threads[-1].start()
        told = hub.wait(PATIENCE_S, "here")
        with told.telling(str(tmp_path / "rank-0")):
            yield told
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def test_joined_ranks_are_verified_write_their_files_and_are_started_anew_when_one_dies(places: Places, tmp_path: Path) -> None:
    world = World(Transport.HOST, ("cpu", "cpu"), joined=True)
    crew = Crew(world)
    kernel = prepared(crew, task(Op.ALL_REDUCE, 2, 4096, own=Algo.RING))
    assert checked(kernel, 5).passed
    assert len(SlowestRankSampler(kernel).sample(4)) == 4
    kernel.close()
    lines = [json.loads(line) for line in (tmp_path / "rank-1").read_text().splitlines()]
    assert [(line["rank"], line["world_size"], line["op"], line["asked"], line["iterations"]) for line in lines] == [
        (1, 2, "all_reduce", "ring/library", 4)
    ]
    assert len(lines[0]["times_ns"]) == 4

    deadly = prepared(crew, task(Op.ALL_REDUCE, 2, DEADLY_BYTES))
    with pytest.raises(Classified) as died:
        SlowestRankSampler(deadly).sample(4)
    assert (died.value.failure.outcome, died.value.failure.reason) == (Outcome.CRASHED, DIED)
    assert not crew.alive

    again = Crew(world)
    kernel = prepared(again, task(Op.ALL_GATHER, 2, 4096))
    assert checked(kernel, 6).passed
    again.close()


def case(joined: bool, ranks: int = 2) -> Case:
    switches = {
        "algo": "library",
        "proto": "library",
        "in_place": True,
        "transport": "host",
        **({"joined": True} if joined else {}),
    }
    params = items({"op": "all_reduce", "message_bytes": 1024, "world_size": ranks})
    return Case(Workload("collective", "fp32", params), "library", "cpu", Regime("warm", "sustained", "call"), items(switches))


def test_cases_of_ranks_that_nobody_started_are_told_with_the_reason() -> None:
    assert "ROOFBENCH_RANKS" not in os.environ
    assert "none did; start the run under one of them" in str(port.reason(case(joined=True), cpu_target(())))
    two = Places("srun", "127.0.0.1", 1, "secret", (Place("a", "127.0.0.1", 0), Place("b", "127.0.0.2", 3)))
    with two.telling("/tmp/nothing"):
        assert port.reason(case(joined=True), cpu_target(())) is None
        assert "takes 4 ranks and srun started 2" in str(port.reason(case(joined=True, ranks=4), cpu_target(())))
        given = task(Op.ALL_REDUCE, 2, 1024)._replace(joined=True)
        assert joined_description(given) == {"ranks_from": "srun", "hosts": 2}
        assert joined_description(given._replace(joined=False)) == {}
        on_devices = given._replace(transport=Transport.DEVICE_LINK)
        target = cpu_target(())
        assert port.devices(given, target) == ("cpu", "cpu")
        assert port.devices(on_devices, target.__class__(**{**_fields(target), "kind": "cuda"})) == ("cuda:0", "cuda:3")


def _fields(target: object) -> dict[str, object]:
    return {name: getattr(target, name) for name in ("device", "kind", "emulated", "missing", "architecture")}
