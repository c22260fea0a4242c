"""Collectives of XLA over forced devices: every operation right on every rank, counted, and caught where it is wrong."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backends.failures import Classified
from backends.host.cpuinfo import processors
from backends.jax.collective import port, rows
from backends.jax.collective.crew import Crew, Crews
from backends.jax.collective.kernel import XlaCollective
from backends.jax.collective.orders import Make
from backends.jax.target import Target
from suite.case import Case, Regime, Workload, items
from suite.collectives import own
from suite.collectives.choice import Choice
from suite.collectives.cores import mark
from suite.collectives.data import Inputs
from suite.collectives.message import message
from suite.collectives.names import Algo, Op
from suite.collectives.part import Part
from suite.collectives.tolerance import tolerance
from suite.collectives.transport import Transport
from suite.devices import resolve
from suite.jobs.collective import CollectiveJob, CollectiveSettings, Task
from suite.measure.verify import check, expect, probe
from suite.measurement import Check
from suite.outcome import Outcome
from suite.plan import plan
from suite.settings import BackendSettings, RunConfig
from suite.store.queries import Reader
from suite.store.writer import Store
from suite.sweep import Sweep, sweep
from tests.patience import PATIENCE_S
from tests.processes.bench import gone_within, quick

RANKS = 4
CPU = Target("cpu")
LIBRARY = [Op.ALL_REDUCE, Op.ALL_GATHER, Op.REDUCE_SCATTER, Op.ALL_TO_ALL, Op.SEND_RECV]
OWN = [Op.ALL_REDUCE, Op.ALL_GATHER, Op.REDUCE_SCATTER]


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    made = Crew(RANKS)
    yield made
    made.close()


def task(op: Op, size: int, fmt: str = "fp32", own_ring: bool = False) -> Task:
    implementation, choice = ("own", Choice(Algo.RING)) if own_ring else ("library", Choice())
    return Task(message(op, fmt, RANKS, size), implementation, choice, op is Op.ALL_REDUCE, Transport.HOST)


def checked(kernel: XlaCollective, seed: int, launch: Callable[[], None] | None = None) -> Check:
    """As the measuring spine does it: fresh data, poison, launch, compare."""
    kernel.refill(seed)
    given = kernel.task.message
    expected = expect(kernel, [probe(kernel.output_shape, 0, 4, seed)])
    return check(kernel, expected, tolerance(given.op, given.format, RANKS), launch or (lambda: kernel.enqueue(0)))


@pytest.mark.parametrize("size", [8, 5_000, 1_000_004])
@pytest.mark.parametrize(("op", "own_ring"), [*((op, False) for op in LIBRARY), *((op, True) for op in OWN)])
def test_every_operation_is_right_on_every_rank(crew: Crew, op: Op, own_ring: bool, size: int) -> None:
    kernel = XlaCollective(crew, task(op, size, own_ring=own_ring), 3)
    assert checked(kernel, 7).passed
    assert len(port.sampler(kernel).sample(3)) == 3


@pytest.mark.parametrize("fmt", ["bf16", "fp8_e4m3", "int8", "int64", "fp64"])
def test_every_format_is_summed_within_its_tolerance(crew: Crew, fmt: str) -> None:
    for own_ring in (False, True):
        assert checked(XlaCollective(crew, task(Op.ALL_REDUCE, 4096, fmt, own_ring), 3), 5).passed


@pytest.mark.parametrize("op", OWN)
def test_the_ring_moves_what_its_formula_says(crew: Crew, op: Op) -> None:
    given = task(op, 4_000, own_ring=True)
    described = XlaCollective(crew, given, 3).describe()
    elements = max(given.message.send_elements, given.message.receive_elements)
    due = own.expected(op, Algo.RING, RANKS, 0, elements, 4)
    assert (described["sent_bytes"], described["steps"]) == ([4 * due.sent_elements] * RANKS, due.messages)
    assert described["sent_bytes"][0] == (6_000 if op is Op.ALL_REDUCE else 3_000)
    assert described["operations"] == ["collective-permute"]
    assert described["algorithm_source"] == "own"


def test_a_result_says_that_its_ranks_shared_cores(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    made = XlaCollective(crew, task(Op.ALL_REDUCE, 4096), 3)
    for cores, said in ((RANKS - 1, "ranks share cores: 4 ranks on 3 cores"), (RANKS, "")):
        found = replace(processors(), cores=cores)
        monkeypatch.setattr("backends.jax.collective.kernel.processors", lambda found=found: found)
        assert mark(made.describe()) == said


def test_what_the_library_made_of_it_is_told(crew: Crew) -> None:
    described = XlaCollective(crew, task(Op.ALL_REDUCE, 4096), 3).describe()
    assert described["operations"] == ["all-reduce"]
    assert described["transport"] == "host"
    assert described["algorithm_source"] == "library"
    assert described["devices"] == "4 forced devices of the host, in one process"
    assert described["compile_s"] > 0
    assert described["memory_analysis"]["output_bytes"] > 0
    assert described["cost_analysis"]["bytes_accessed"] > 0
    json.dumps(described)


def test_another_count_of_permutes_is_an_error(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backends.jax.collective.kernel.own.expected", lambda *_: own.Traffic(1, 1, 1))
    with pytest.raises(Classified, match="by the formula of the ring 1 in 1"):
        XlaCollective(crew, task(Op.ALL_REDUCE, 4096, own_ring=True), 3)


def test_a_result_that_was_dropped_is_not_looked_at(crew: Crew) -> None:
    kernel = XlaCollective(crew, task(Op.ALL_REDUCE, 4096), 3)
    with pytest.raises(Classified, match="nothing was launched"):
        checked(kernel, 5, launch=lambda: None)


def test_wrong_and_missing_elements_are_counted_and_seen() -> None:
    given = Inputs(message(Op.ALL_REDUCE, "fp32", RANKS, 4096), "integers", 3)
    right = given.received(1, Part(0, 1024)).astype(np.float32)
    assert rows.count_wrong(right, given, 1) == 0
    bad = right.copy()
    bad[[5, 1023]] += 1, np.nan
    assert rows.count_wrong(bad, given, 1) == 2
    slices = (Part(0, 8), Part(1000, 24))
    seen, due = rows.observed(right, given, slices, 9), rows.expected(given, 1, slices, 9)
    assert seen.projection == due.projection
    assert all((one == other).all() for one, other in zip(seen.slices, due.slices, strict=True))
    assert rows.observed(bad, given, slices, 9).nonfinite == 1


def test_a_process_that_dies_is_a_crash_and_the_next_case_has_another() -> None:
    crews = Crews()
    first = crews.of(2)
    assert crews.of(2) is first
    first._process.kill()
    two = task(Op.ALL_REDUCE, 64)._replace(message=message(Op.ALL_REDUCE, "fp32", 2, 64))
    with pytest.raises(Classified) as died:
        first.ask(Make(two))
    assert died.value.failure.outcome is Outcome.CRASHED
    assert died.value.failure.reason == "the process with the 2 devices died with SIGKILL"
    again = crews.of(2)
    assert again is not first
    crews.dismiss()
    assert gone_within(again.pid, PATIENCE_S)


def case(target: str = "xla", **changed: Any) -> Case:
    switches = {"algo": "library", "proto": "library", "in_place": True, "transport": "host", **changed.pop("switches", {})}
    params = items({"op": changed.pop("op", "all_reduce"), "message_bytes": 1024, "world_size": 4})
    regime = changed.pop("regime", Regime("warm", "sustained", "call"))
    return Case(
        Workload("collective", "fp32", params), changed.pop("implementation", "library"), target, regime, items(switches)
    )


@pytest.mark.parametrize(
    ("given", "target", "told"),
    [
        (case(), CPU, None),
        (case(op="all_gather", switches={"in_place": False}), CPU, None),
        (case(op="all_gather"), CPU, "out of place only, jobs.collective.in_place=[false]"),
        (case(op="broadcast"), CPU, "no collective broadcast on a CPU"),
        (case(), Target("cuda", (9, 0)), "+backends.xla.options.platform=cpu"),
        (case(switches={"joined": True}), CPU, "are torch's"),
        (case(regime=Regime("cold", "sustained", "device")), CPU, "warm/sustained/call, not cold/sustained/device"),
    ],
)
def test_what_xla_cannot_do_is_told_with_the_reason(given: Case, target: Target, told: str | None) -> None:
    found = port.reason(given, target)
    assert found is None if told is None else told in str(found)


def test_only_what_there_is_on_xla_is_planned() -> None:
    job = CollectiveJob()
    settings = CollectiveSettings(ops=["all_reduce"], world_sizes=[4])
    workload = next(iter(job.workloads(settings)))
    planned = {
        (implementation, dict(switches)["algo"])
        for implementation in settings.implementations
        for switches in job.switches(settings, workload)
        if job.misfit(Case(workload, implementation, "xla", Regime("warm", "sustained", "call"), switches)) is None
    }
    assert planned == {("library", "library"), ("own", "ring")}


def test_a_sweep_stores_collectives_of_xla(tmp_path: Path) -> None:
    job = CollectiveSettings(ops=["all_reduce", "send_recv"], sizes=["64KiB"], world_sizes=[2])
    options = {"platform": "cpu"}
    config = RunConfig(
        jobs={"collective": job},
        backends={"xla": BackendSettings("xla", "backends.xla:XlaBackend", options)},
        measure=quick(1, start_s=PATIENCE_S, compile_s=PATIENCE_S),
    )
    resolved = resolve(config)
    config, slots = resolved.config, resolved.slots
    url = str(tmp_path / "store.db")
    with Store.open(url) as store:
        assert sweep(Sweep(config, slots, plan(config, slots, {0})), store, lambda _: None).status == "complete"
    with Reader.open(url) as reader:
        found = reader.results()
    assert [(row.params["op"], row.implementation, row.switches["algo"]) for row in found] == [
        ("all_reduce", "library", "library"), ("all_reduce", "own", "ring"), ("send_recv", "library", "library"),
    ]  # fmt: skip
    for row in found:
        assert (row.outcome, row.bound, row.method, row.pipe, row.evidence) == (
            "ok", "link", "program over all ranks", "host", "measured",
        )  # fmt: skip
        assert row.p50_s is not None
        assert row.bytes_s == pytest.approx(2**16 / row.p50_s)  # busbw's factor is 1 for two ranks, and for a send
