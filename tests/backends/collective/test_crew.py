"""The crew of ranks: kept from case to case, exchanged for another world, and never left behind."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from backends.failures import Classified
from backends.torch.collective import debug_file, port
from backends.torch.collective.crew import LOOKS, SILENCE_S, Crew, Watch
from backends.torch.collective.debug_file import DebugFile
from backends.torch.collective.orders import CloseGroup, Discard, Order
from backends.torch.collective.port import Crews
from backends.torch.target import cpu_target, cuda_target
from suite.case import Case, Regime, Workload, items
from suite.collectives.names import Algo, Op
from suite.outcome import Outcome
from tests.backends.collective.helpers import crew_of, prepared, task, world
from tests.processes.bench import gone_within

CALL = Regime("warm", "sustained", "call")
PATIENCE_S = 30.0


@pytest.fixture
def crews() -> Iterator[Crews]:
    made = Crews()
    yield made
    made.dismiss()


def case(backend: str = "cpu", *, ranks: int = 2, fmt: str = "fp32", regime: Regime = CALL, transport: str = "host") -> Case:
    switches = items({"algo": "library", "proto": "library", "in_place": True, "transport": transport})
    params = items({"op": "all_reduce", "message_bytes": 1024, "world_size": ranks})
    return Case(Workload("collective", fmt, params), "library", backend, regime, switches)


def test_one_world_has_its_ranks_until_another_is_asked_for(crews: Crews) -> None:
    first = crews.of(world(2))
    assert crews.of(world(2)) is first
    pids = first.pids
    assert crews.of(world(1)).pids != pids
    assert all(gone_within(pid, PATIENCE_S) for pid in pids)
    assert not first.alive


def test_ranks_that_were_given_up_are_started_anew(crews: Crews) -> None:
    first = crews.of(world(2))
    os.kill(first.pids[1], 9)
    with pytest.raises(Classified, match="rank 1 of 2 died with SIGKILL"):
        prepared(first, task(Op.ALL_REDUCE, 2, 1000))
    again = crews.of(world(2))
    assert again is not first
    prepared(again, task(Op.ALL_REDUCE, 2, 1000)).close()


def test_a_group_is_shared_while_it_is_used_and_destroyed_for_the_next(pair: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Order] = []
    asks = Crew.ask

    def spied(self: Crew, order: Order) -> list[object]:
        told.append(order)
        return asks(self, order)

    kernel = prepared(pair, task(Op.ALL_REDUCE, 2, 1000))
    group = pair.group("gloo", ())
    monkeypatch.setattr(Crew, "ask", spied)
    ring = pair.group("gloo", (("NCCL_ALGO", "Ring"),))
    assert group.number not in [each.group for each in told if isinstance(each, CloseGroup)]
    kernel.close()
    told.clear()
    pair.group("gloo", (("NCCL_ALGO", "Tree"),))
    assert {each.group for each in told if isinstance(each, CloseGroup)} == {group.number, ring.number}


def test_a_kernel_that_cannot_be_made_leaves_no_buffers(pair: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Order] = []
    asks = pair.ask
    monkeypatch.setattr(pair, "ask", lambda order: (told.append(order), asks(order))[1])
    monkeypatch.setattr("backends.torch.collective.kernel.own.expected", lambda *_: (1, 1, 1))
    with pytest.raises(Classified):
        prepared(pair, task(Op.ALL_REDUCE, 2, 1000, own=Algo.RING))
    assert pair.group("gloo", ()).users == 0
    assert any(isinstance(each, Discard) for each in told)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (case(), None),
        (case(regime=Regime("warm", "burst", "call")), None),
        (case(regime=Regime("cold", "sustained", "device")), "warm/sustained/call, not cold/sustained/device"),
        (case(fmt="fp8_e4m3"), "gloo does not move fp8_e4m3"),
        (case(transport="device_link"), "over the host, not over device_link"),
    ],
)
def test_what_a_cpu_cannot_do_is_told_with_the_reason(asked: Case, why: str | None) -> None:
    found = port.reason(asked, cpu_target(()))
    assert found is None if why is None else why in str(found)


@pytest.mark.parametrize(
    ("transport", "ranks", "why"),
    [
        ("device_link", 2, None),
        ("device_link", 4, "4 ranks need a device each and torch sees 2; jobs.collective.share_device=true"),
        ("shared_gpu", 4, None),
        ("host", 2, "not over the host"),
    ],
)
def test_ranks_need_a_device_each_unless_they_share_one(
    monkeypatch: pytest.MonkeyPatch, transport: str, ranks: int, why: str | None
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(dist, "is_nccl_available", lambda: True)
    found = port.reason(case("cuda", ranks=ranks, transport=transport), cuda_target(1, (9, 0)))
    assert found is None if why is None else why in str(found)


def test_ranks_begin_at_the_selected_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    target = cuda_target(3, (9, 0))
    apart, together = (
        port.devices(port.Task.of(case("cuda", transport=name)), target) for name in ("device_link", "shared_gpu")
    )
    assert (apart, together) == (("cuda:3", "cuda:0"), ("cuda:3", "cuda:3"))


@pytest.mark.parametrize("named", [False, True])
def test_a_debug_file_is_read_by_whole_lines_and_has_no_name_where_descriptors_open_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, named: bool
) -> None:
    monkeypatch.setenv("NCCL_DEBUG_FILE", "")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if named:
        monkeypatch.setattr(debug_file, "OPEN_FILES", tmp_path / "missing")
    read = DebugFile()
    assert len(list(tmp_path.iterdir())) == named
    with Path(os.environ["NCCL_DEBUG_FILE"]).open("w") as written:
        assert read.new_text() == ""
        written.write("one\ntwo\nthr")
        written.flush()
        assert read.new_text() == "one\ntwo\n"
        written.write("ee\n")
        written.flush()
        assert read.new_text() == "three\n"
    assert not list(tmp_path.iterdir())
    read.close()


@pytest.mark.thorough
def test_a_rank_that_a_signal_stopped_is_named_while_the_others_wait_for_it() -> None:
    with crew_of(3) as crew:
        kernel = prepared(crew, task(Op.ALL_REDUCE, 3, 1000))
        os.kill(crew.pids[1], signal.SIGSTOP)
        with pytest.raises(Classified) as raised:
            kernel.enqueue(0)
    found = raised.value.failure
    assert (found.outcome, found.fatal) == (Outcome.TIMEOUT, False)
    assert found.reason == "rank 1 of 3 stood still: stopped by a signal, and did not answer Launch"
    assert not crew.alive


class Seen:
    """A rank's process that a test stops and continues."""

    pid = 0
    stopped = False

    def poll(self) -> str | None:
        return None

    def is_stopped(self) -> bool:
        return self.stopped

    def kill(self) -> None:
        """Nothing is there."""


def test_only_a_rank_that_stays_stopped_is_given_up() -> None:
    ranks = [Seen() for _ in range(3)]
    watch = Watch(ranks, "Launch")
    ranks[0].stopped = ranks[2].stopped = True
    assert [watch.look({}) for _ in range(LOOKS - 1)] == [""] * (LOOKS - 1)
    ranks[0].stopped = False
    assert watch.look({}) == "rank 2 of 3 stood still: stopped by a signal, and did not answer Launch"
    assert watch.look({2}) == ""  # it had answered before
    ranks[0].stopped = True
    assert watch.look({}) == ""


def test_ranks_that_others_answered_without_are_named_in_the_log_once(capsys: pytest.CaptureFixture[str]) -> None:
    silent, waiting = Watch([Seen() for _ in range(3)], "Observe"), Watch([Seen(), Seen()], "Sample")
    assert [silent.look({1}) for _ in range(2 * LOOKS)] == [""] * 2 * LOOKS
    assert [waiting.look({}) for _ in range(LOOKS)] == [""] * LOOKS  # of an order for which all wait nobody can tell
    assert capsys.readouterr().err == f"ranks 0, 2 of 3 did not answer Observe within {LOOKS * SILENCE_S:g} s, others did\n"
