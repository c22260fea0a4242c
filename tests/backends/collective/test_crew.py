"""The crew of ranks: kept from case to case, exchanged for another world, and never left behind."""

import io
import json
import os
import re
import signal
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from backends.failures import Classified
from backends.host.cpuinfo import processors
from backends.torch.collective import debug_file, port
from backends.torch.collective.crew import Crew
from backends.torch.collective.debug_file import DebugFile
from backends.torch.collective.kernel import hosts_of
from backends.torch.collective.naming import Names
from backends.torch.collective.orders import OUTSIDE, CloseGroup, Discard, Order, Sample, Waits
from backends.torch.collective.port import Crews
from backends.torch.collective.watch import LOOKS, SILENCE_S, STALE_S, Watch
from backends.torch.target import cpu_target, cuda_target
from suite.case import Case, Regime, Workload, items
from suite.collectives.cores import Host, mark
from suite.collectives.names import Algo, Op
from suite.collectives.transport import Transport
from suite.outcome import Outcome
from suite.ranks.places import Place, Places
from tests.backends.collective.helpers import STRANGE_RANK, crew_of, prepared, task, world
from tests.patience import PATIENCE_S, until
from tests.processes.bench import gone_within

CALL = Regime("warm", "sustained", "call")


@pytest.fixture(scope="module")
def crews() -> Iterator[Crews]:
    made = Crews()
    yield made
    made.dismiss()


def case(backend: str = "cpu", *, ranks: int = 2, fmt: str = "fp32", regime: Regime = CALL, transport: str = "host") -> Case:
    switches = items({"algo": "library", "proto": "library", "in_place": True, "transport": transport})
    params = items({"op": "all_reduce", "message_bytes": 1024, "world_size": ranks})
    return Case(Workload("collective", fmt, params), "library", backend, regime, switches)


def named(rank: int, pids: Sequence[int], said: str) -> str:
    """What begins with a rank of this process's own, as a pattern."""
    return re.escape(f"rank {rank} of {len(pids)} (host 1 of 1, pid {pids[rank]}) {said}") + "$"


def test_one_world_has_its_ranks_until_another_is_asked_for(crews: Crews) -> None:
    first = crews.of(world(2))
    assert crews.of(world(2)) is first
    pids = first.pids
    assert crews.of(world(1)).pids != pids
    assert all(gone_within(pid, PATIENCE_S) for pid in pids)
    assert not first.alive


def test_ranks_that_were_given_up_are_started_anew(crews: Crews) -> None:
    first = crews.of(world(2))
    # whether a group is there already depends on what ran before on this crew
    prepared(first, task(Op.ALL_REDUCE, 2, 1000)).close()
    os.kill(first.pids[1], 9)
    unanswered = "died with SIGKILL before it answered Make of all_reduce 1000 B fp32 (library)"
    with pytest.raises(Classified, match=named(1, first.pids, unanswered)):
        prepared(first, task(Op.ALL_REDUCE, 2, 1000))
    again = crews.of(world(2))
    assert again is not first
    prepared(again, task(Op.ALL_REDUCE, 2, 1000)).close()


@pytest.mark.parametrize(
    ("number", "how"),
    [
        (signal.SIGKILL, "died with SIGKILL"),
        # how a signal without a name is told is shown in tests/ranks/test_ending.py
        pytest.param(signal.SIGRTMIN + 2, f"died with signal {signal.SIGRTMIN + 2}", marks=pytest.mark.thorough),
    ],
)
def test_a_rank_that_dies_between_two_cases_is_told_of_and_costs_neither(
    crews: Crews, capfd: pytest.CaptureFixture[str], number: int, how: str
) -> None:
    first = crews.of(world(2))
    prepared(first, task(Op.ALL_REDUCE, 2, 1000)).close()
    pids = first.pids
    os.kill(pids[1], number)
    until(lambda: first.lost)
    again = crews.of(world(2))
    assert again is not first
    assert re.search(named(1, pids, f"{how} between two cases; its world is started anew").rstrip("$"), capfd.readouterr().err)
    assert all(gone_within(pid, PATIENCE_S) for pid in pids)
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


def test_what_was_logged_of_a_group_is_known_after_it_is_destroyed(pair: Crew) -> None:
    plain, forced = (("NCCL_ALGO", None),), (("NCCL_ALGO", "Tree"),)
    log = pair.log("gloo", plain)
    pair.group("gloo", forced)
    made = pair.number()
    assert pair.log("gloo", plain) is log
    assert pair.number() == made + 1, "a group was made again"


def test_a_result_says_that_its_ranks_shared_cores(pair: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = prepared(pair, task(Op.ALL_REDUCE, 2, 1000))
    for cores, said in ((1, "ranks share cores: 2 ranks on 1 core"), (2, "")):
        found = replace(processors(), cores=cores)
        monkeypatch.setattr("backends.torch.collective.kernel.processors", lambda found=found: found)
        assert mark(kernel.describe()) == said
    kernel.close()
    over_devices = task(Op.ALL_REDUCE, 2, 1000)._replace(transport=Transport.SHARED_GPU)
    assert hosts_of(over_devices) == ()
    joined = task(Op.ALL_REDUCE, 3, 1000)._replace(joined=True)
    places = (Place("a", "10.0.0.1", 0, 1), Place("b", "10.0.0.2", 0, 2), Place("b", "10.0.0.2", 1, 2))
    with Places("srun", "10.0.0.1", 1, "secret", places).telling("/tmp/nothing"):
        assert hosts_of(joined) == (Host(1, 1), Host(2, 2))


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
        pids = crew.pids
        with pytest.raises(Classified) as raised:
            kernel.enqueue(0)
    found = raised.value.failure
    assert (found.outcome, found.fatal) == (Outcome.TIMEOUT, False)
    said = "stood still: stopped by a signal, and did not answer Launch of all_reduce 1000 B fp32 (library)"
    assert re.match(named(1, pids, said), found.reason)
    assert not crew.alive


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.thorough)])  # one waits for it, or two
def test_a_rank_that_is_killed_while_the_others_wait_for_it_is_named_with_what_it_was_told(crews: Crews, ranks: int) -> None:
    crew = crews.of(world(ranks))
    kernel = prepared(crew, task(Op.ALL_GATHER, ranks, ranks * 2**10, own=Algo.RING))
    pids = crew.pids
    os.kill(pids[-1], signal.SIGKILL)
    with pytest.raises(Classified) as raised:
        kernel.enqueue(0)
    assert raised.value.failure.outcome is Outcome.CRASHED
    said = f"died with SIGKILL before it answered Launch of all_gather {ranks} KiB fp32 (own ring/library)"
    assert re.match(named(ranks - 1, pids, said), raised.value.failure.reason)


def test_a_rank_that_the_kernel_killed_for_memory_ran_out_of_it(crews: Crews, monkeypatch: pytest.MonkeyPatch) -> None:
    crew = crews.of(world(2))
    kernel = prepared(crew, task(Op.ALL_REDUCE, 2, 1000))
    pids = crew.pids
    os.kill(pids[1], signal.SIGKILL)
    monkeypatch.setattr("backends.torch.collective.crew.oom_kill_count", lambda: crew._oom_kills + 1)
    with pytest.raises(Classified) as raised:
        kernel.enqueue(0)
    assert raised.value.failure.outcome is Outcome.OUT_OF_MEMORY
    said = "died with SIGKILL before it answered Launch of all_reduce 1000 B fp32 (library): the kernel killed it for lack of "
    assert re.match(named(1, pids, f"{said}host memory"), raised.value.failure.reason)


LATE_BYTES = 4000


class Log(io.StringIO):
    """What is written on errors, and a file that is there once a rank has been named in it."""

    def __init__(self, named: Path) -> None:
        super().__init__()
        self._named = named

    def write(self, text: str) -> int:
        if text.startswith("rank"):
            self._named.touch()
        return super().write(text)


@pytest.mark.parametrize(
    ("at", "iteration", "where"),
    [pytest.param("Launch", 0, "", marks=pytest.mark.thorough), ("Sample", 5, "iteration 6 of ")],
)
def test_a_rank_that_does_not_come_to_a_collective_is_named_while_the_others_wait(
    at: str, iteration: int, where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It lives and nobody has stopped it; once it comes, all goes on."""
    log = Log(tmp_path / "named")
    late = {"fault": "late", "rank": 1, "bytes": LATE_BYTES, "at": at, "iteration": iteration, "until": str(tmp_path / "named")}
    monkeypatch.setenv("ROOFBENCH_PLANTED", json.dumps([late]))
    with crew_of(3, STRANGE_RANK) as crew:
        monkeypatch.setattr("sys.stderr", log)
        kernel = prepared(crew, task(Op.ALL_REDUCE, 3, LATE_BYTES))
        assert len(crew.ask(Sample(kernel.ticket, 8))[1]) == 8
        (line,) = [line for line in log.getvalue().splitlines() if line.startswith("rank")]
        said = f"did not come to {where}{at} of all_reduce 4000 B fp32 (library), others wait there"
        assert re.match(named(1, crew.pids, said), line)


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


class Clock:
    """Of the crew's process, in a test's hands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        monkeypatch.setattr("backends.torch.collective.watch.time.monotonic", lambda: self.now_s)


def told(watch: Watch, clock: Clock, waits: dict[int, int], looks: int, answered: Sequence[int] = ()) -> None:
    """So many looks a second apart, before each of which those ranks say where they wait."""
    for _ in range(looks):
        clock.now_s += SILENCE_S
        for number, iteration in waits.items():
            watch.heard(number, Waits(iteration))
        watch.look(answered)


@pytest.mark.parametrize(
    ("waits", "answered", "said"),
    [
        ({0: 4, 1: 3, 2: 4}, [], "rank 1 of 3 did not come to iteration 5 of Sample of x, others wait there"),
        ({0: 4}, [], "ranks 1, 2 of 3 did not come to iteration 5 of Sample of x, others wait there"),  # they say nothing
        ({0: 0, 1: OUTSIDE}, [2], "rank 1 of 3 did not come to Sample of x, others wait there"),
        ({0: 7, 1: 7, 2: 7}, [], "ranks 0, 1, 2 of 3 have come to iteration 8 of Sample of x, and none goes on"),
        ({0: OUTSIDE, 1: OUTSIDE, 2: OUTSIDE}, [], ""),  # each has work of its own
        ({0: OUTSIDE}, [1, 2], "rank 0 of 3 did not answer Sample of x within 3 s, others did"),
        ({0: 2}, [1, 2], "rank 0 of 3 did not answer Sample of x within 3 s, others did"),
        ({}, [], ""),
    ],
)
def test_who_is_waited_for_is_whoever_is_not_where_others_are(
    waits: dict[int, int],
    answered: list[int],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    watch, clock = Watch([Seen() for _ in range(3)], "Sample of x"), Clock(monkeypatch)
    told(watch, clock, waits, LOOKS - 1, answered)
    assert capsys.readouterr().err == ""
    told(watch, clock, waits, 2 * LOOKS, answered)
    assert capsys.readouterr().err == (f"{said}\n" if said else "")


def test_ranks_that_go_on_are_not_waited_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    watch, clock = Watch([Seen(), Seen()], "Sample"), Clock(monkeypatch)
    for iteration in range(5):  # of a second each, in which one or the other stands still for a moment
        told(watch, clock, {iteration % 2: iteration}, 1)
    clock.now_s += STALE_S  # what was said has passed since
    told(watch, clock, {}, LOOKS)
    assert capsys.readouterr().err == ""


def test_a_rank_of_a_launcher_is_named_with_its_host() -> None:
    places = [Place("a", "10.0.0.1", 0), Place("b", "10.0.0.2", 0), Place("b", "10.0.0.2", 1)]
    names = Names([0, 0, 0], places)
    assert names.of([2]) == "rank 2 of 3 (host 2 of 2, local rank 1)"
    assert names.of([1, 2]) == "ranks 1, 2 of 3 (host 2 of 2)"
    assert names.of([0, 1]) == "ranks 0, 1 of 3 (hosts 1, 2 of 2)"
    assert Names([7, 8]).of([0, 1]) == "ranks 0, 1 of 2"
