"""The collective job: what is planned of its axes on which backend, what it counts, and what it refuses."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from suite.backend import DeviceInfo
from suite.case import Regime, Workload, items
from suite.collectives.transport import Transport
from suite.errors import UsageError
from suite.hardware.spec import LINKS
from suite.jobs.collective import CollectiveJob, CollectiveSettings, Task
from suite.outcome import Bound, Outcome
from suite.plan import plan
from suite.planned import DeviceSlot, PlannedCase
from suite.roofline import Ceilings, bound
from suite.rows import Calibration
from suite.settings import MeasureSettings, RunConfig

JOB = CollectiveJob()
CALL = Regime("warm", "sustained", "call")
CPU = DeviceInfo(
    "cpu", 0, "Some CPU", "c" * 16, 24 * 2**30, visible_units=2, max_clock_hz=2e9, llc_bytes=2**25, cold_by="flush"
)
XLA = replace(CPU, backend="xla")
H200 = DeviceInfo("cuda", 0, "NVIDIA H200", "f" * 16, 150_754_820_096, architecture="sm_90", visible_units=132)


def planned(
    info: DeviceInfo = CPU, measure: MeasureSettings | None = None, oversize: str = "refuse", slots: int = 1, **axes: Any
) -> tuple[PlannedCase, ...]:
    settings = CollectiveSettings(**axes)
    JOB.check(settings)
    config = RunConfig(jobs={"collective": settings}, measure=measure or MeasureSettings(), oversize=oversize)
    return plan(config, [DeviceSlot(slot, info.backend, "x:X", info) for slot in range(slots)], set(range(slots)))


def choices(cases: tuple[PlannedCase, ...], op: str) -> list[str]:
    of_op = [each.case for each in cases if each.case.workload.param("op") == op]
    switches = [(case.implementation, dict(case.switches)) for case in of_op]
    return [f"{implementation} {each['algo']}/{each['proto']}" for implementation, each in switches]


def test_on_processors_only_the_own_algorithms_are_chosen_by_name() -> None:
    cases = planned(sizes=["1KiB"], protos=["library", "ll", "ll128", "simple"])
    assert choices(cases, "all_reduce") == ["library library/library", "own ring/library", "own tree/library"]
    assert choices(cases, "all_gather") == choices(cases, "reduce_scatter") == ["library library/library", "own ring/library"]
    for op in ("all_to_all", "broadcast", "send_recv"):
        assert choices(cases, op) == ["library library/library"]
    assert {dict(each.case.switches)["transport"] for each in cases} == {"host"}


def test_on_devices_each_algorithm_and_protocol_that_exists_is_forced() -> None:
    cases = planned(H200, sizes=["1KiB"], algos=["ring", "tree"], protos=["ll", "ll128", "simple"], implementations=["library"])
    both = [f"library {algo}/{proto}" for algo in ("ring", "tree") for proto in ("ll", "ll128", "simple")]
    assert choices(cases, "all_reduce") == both
    assert choices(cases, "all_gather") == choices(cases, "broadcast") == both[:3]
    assert choices(cases, "all_to_all") == choices(cases, "send_recv") == []
    assert {dict(each.case.switches)["transport"] for each in cases} == {"device_link"}


def test_over_a_shared_device_ll128_is_never_forced_and_no_byte_is_a_links() -> None:
    cases = planned(H200, sizes=["1KiB"], protos=["ll", "ll128"], share_device=True)
    assert not [choice for choice in choices(cases, "all_reduce") if "ll128" in choice]
    assert {(each.work.compulsory_bytes, each.work.pipe) for each in cases} == {(0, "shared_gpu")}


def test_ranks_on_a_device_each_are_planned_once_however_many_devices_are_held() -> None:
    assert {each.slot for each in planned(H200, slots=2, sizes=["1KiB"])} == {0}
    assert {each.slot for each in planned(H200, slots=2, sizes=["1KiB"], share_device=True)} == {0, 1}


def test_where_an_operation_has_one_form_only_it_has_that_one() -> None:
    cases = planned(sizes=["1KiB"], implementations=["library"], in_place=[False, True])
    forms: dict[str, set[bool]] = {}
    for each in cases:
        forms.setdefault(each.case.workload.param("op"), set()).add(dict(each.case.switches)["in_place"])
    assert forms == {
        "all_reduce": {True}, "broadcast": {True}, "all_gather": {True, False}, "reduce_scatter": {True, False},
        "all_to_all": {False}, "send_recv": {False},
    }  # fmt: skip


def test_the_standard_profile_is_what_a_caller_waits() -> None:
    assert {each.case.regime for each in planned()} == {CALL}
    asked = MeasureSettings(regimes=["warm/burst/call"])
    assert {each.case.regime.load for each in planned(measure=asked)} == {"burst"}


def test_worlds_stand_together_so_that_their_ranks_are_started_once() -> None:
    worlds = [each.case.workload.param("world_size") for each in planned(world_sizes=[4, 2], formats=["fp32", "bf16"])]
    assert worlds == sorted(worlds, reverse=True)
    assert set(worlds) == {2, 4}


FORCED = {
    "world_sizes": [4, 2],
    "sizes": ["8", "64KiB", "1MiB"],
    "algos": ["library", "ring", "tree"],
    "protos": ["ll", "simple"],
}


def changes(cases: tuple[PlannedCase, ...]) -> int:
    """How often the next case needs another process group."""
    groups = [JOB.made_for(each.case) for each in cases]
    return sum(one != other for one, other in pairwise(groups))


def test_sizes_stand_together_so_that_a_forced_group_is_made_once() -> None:
    """It takes as long to make one as to measure several sizes on it."""
    cases = planned(H200, **FORCED)
    assert changes(cases) == len({JOB.made_for(each.case) for each in cases}) - 1
    of_tree = [
        each.case for each in cases if dict(each.case.switches) | {"algo": "tree", "proto": "ll"} == dict(each.case.switches)
    ]
    assert [case.workload.param("message_bytes") for case in of_tree if case.implementation == "library"] == [
        8,
        65_536,
        2**20,
    ] * 2
    assert len({each.case.key for each in cases}) == len(cases)


def test_in_alternating_rounds_a_size_keeps_its_choices_together() -> None:
    alternating = planned(H200, MeasureSettings(interleave=3), **FORCED)
    assert {each.case.key for each in alternating} == {each.case.key for each in planned(H200, **FORCED)}
    cohorts = [each.cohort for each in alternating]
    assert cohorts == sorted(cohorts)


@pytest.mark.parametrize(
    ("op", "ranks", "size", "over_link"),
    [
        ("all_reduce", 8, 2**20, 2 * 7 * 2**17),
        ("all_gather", 4, 2**20, 3 * 2**18),
        ("all_to_all", 2, 1000, 500),
        ("broadcast", 8, 4096, 4096),
        ("all_reduce", 4, 10, 12),  # 8 bytes are 2 elements: the message has the rounded size
    ],
)
def test_the_work_is_the_bytes_of_busbw(op: str, ranks: int, size: int, over_link: int) -> None:
    workloads = list(JOB.workloads(CollectiveSettings(ops=[op], world_sizes=[ranks], sizes=[str(size)])))
    assert len(workloads) == 1
    work = JOB.work(workloads[0], items({"transport": "host"}))
    assert (work.flops, work.compulsory_bytes, work.pipe) == (0, over_link, "host")


def test_memory_is_that_of_all_ranks_that_share_it() -> None:
    workload = Workload("collective", "fp32", items({"op": "all_to_all", "message_bytes": 2**30, "world_size": 8}))
    needed = {
        transport: JOB.footprint(
            workload, items({"algo": "library", "proto": "library", "in_place": False, "transport": transport})
        ).total_bytes(1)
        for transport in LINKS
    }
    assert needed["host"] == needed["shared_gpu"] == 8 * needed["device_link"]
    assert 2 * 2**30 < needed["device_link"] < 3 * 2**30


def test_ranks_of_xla_are_devices_of_one_process() -> None:
    """A process each would be 22 GB for 64 ranks, and 64 devices took 0.34 GB at most."""
    workload = Workload("collective", "fp32", items({"op": "all_reduce", "message_bytes": 2**10, "world_size": 64}))
    switches = items({"algo": "library", "proto": "library", "in_place": True, "transport": "host"})
    footprint = JOB.footprint(workload, switches)
    assert footprint.total_bytes(1, backend="cpu") > 64 * 352 * 2**20
    assert 0.34e9 < footprint.total_bytes(1, backend="xla") < 0.7e9


def test_what_does_not_fit_is_refused_or_recorded() -> None:
    sizes, ops = ["8GiB"], ["all_to_all"]
    with pytest.raises(UsageError, match=r"needs .* GB, predicted; .*oversize=record"):
        planned(sizes=sizes, ops=ops)
    assert [each.verdict for each in planned(sizes=sizes, ops=ops, oversize="record")] == [Outcome.OUT_OF_MEMORY]


REFUSED = [
    ({"ops": ["allreduce"]}, "unknown op 'allreduce' in jobs.collective.ops; did you mean 'all_reduce'?"),
    ({"algos": ["nvls"]}, "unknown algo 'nvls' in jobs.collective.algos; choose from: library, ring, tree"),
    ({"protos": ["ll64"]}, "unknown proto 'll64' in jobs.collective.protos; did you mean 'll'?"),
    ({"formats": ["fp31"]}, "unknown format 'fp31' in jobs.collective.formats; did you mean 'fp32'?"),
    ({"implementations": ["mine"]},
     "unknown implementation 'mine' in jobs.collective.implementations; choose from: library, own"),
    ({"sizes": ["0"]}, "size '0' in jobs.collective.sizes is 0 bytes; sizes go from 1 B to 8 GiB"),
    ({"sizes": ["-8"]}, "size '-8' in jobs.collective.sizes is -8 bytes; sizes go from 1 B to 8 GiB"),
    ({"sizes": ["9GiB"]}, "size '9GiB' in jobs.collective.sizes is 9663676416 bytes; sizes go from 1 B to 8 GiB"),
    (
        {"sizes": ["64KB"]},
        "size '64KB' in jobs.collective.sizes is not a number of bytes; write for instance 8, 64KiB or 1GiB",
    ),
    ({"world_sizes": [1]}, "jobs.collective.world_sizes has 1: a rank alone moves nothing over a link; take 2 or more"),
    ({"world_sizes": [1000]}, "jobs.collective.world_sizes has 1000; one command starts at most 256 ranks"),
    ({"sizes": []}, "jobs.collective.sizes is empty; write for instance jobs.collective.sizes=[8,64KiB]"),
    ({"ops": []}, "jobs.collective.ops is empty; name at least one of all_reduce, all_gather, reduce_scatter, all_to_all, "
                  "broadcast, send_recv"),
    ({"implementations": ["own"], "algos": ["library"]},
     "jobs.collective.implementations=[own] needs an algorithm; write jobs.collective.algos=[ring,tree]"),
]  # fmt: skip


@pytest.mark.parametrize(("axes", "message"), REFUSED)
def test_what_names_nothing_is_refused_with_the_remedy(axes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        JOB.check(CollectiveSettings(**axes))
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("info", "axes", "why"),
    [
        (CPU, {"algos": ["ring"]}, "exists on backend cpu: gloo cannot be told an algorithm or a protocol; ask for"),
        (H200, {"algos": ["tree"], "ops": ["all_gather"]}, "exists on backend cuda: all_gather has no tree: it has ring, "),
        (H200, {"protos": ["ll"], "ops": ["send_recv"]}, "send_recv is made of sends and receives, whose protocol "),
        (CPU, {"share_device": True}, "backend cpu: jobs.collective.share_device=true has all ranks share one GPU, and the "),
        (XLA, {"share_device": True}, "backend xla: jobs.collective.share_device=true has all ranks share one GPU, and the "),
    ],
)
def test_a_job_of_which_nothing_exists_is_refused_with_the_reason(info: DeviceInfo, axes: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        planned(info, implementations=["library"], **axes)


def test_sizes_that_round_to_the_same_message_are_one_case() -> None:
    cases = planned(ops=["all_gather"], sizes=["8", "16", "17"], world_sizes=[4], implementations=["library"])
    assert [each.case.workload.param("message_bytes") for each in cases] == [16]


def test_every_transport_is_a_link_that_bounds_and_only_between_devices_does_a_sheet_say_how_fast() -> None:
    assert set(LINKS) == set(Transport)
    cases = planned(H200, ops=["all_reduce"], sizes=["64MiB"], implementations=["library"], algos=["library"])
    ceilings = Ceilings(H200, None)
    assert bound(cases[0].work, 1e-3, CALL, ceilings, Calibration()) is Bound.LINK
    assert [ceilings.link_bytes_s(link) for link in LINKS] == [None] * 3


def test_the_vendors_link_is_the_roof_between_devices() -> None:
    from suite.hardware.assign import assign
    from suite.roofline import floors_s

    ceilings = Ceilings(H200, assign(H200, "nvidia-h200-sxm5-141gb", []).spec)
    assert [ceilings.link_bytes_s(link) for link in LINKS] == [450e9, None, None]
    workload = next(JOB.workloads(CollectiveSettings(sizes=["1GiB"])))
    times = [floors_s(JOB.work(workload, items({"transport": link})), CALL, ceilings, Calibration())[1] for link in LINKS]
    assert times == [2**30 / 450e9, None, None]


def test_a_task_is_what_its_case_says() -> None:
    case = planned(H200, ops=["all_reduce"], sizes=["64KiB"], algos=["tree"], protos=["simple"], implementations=["library"])[0]
    task = Task.of(case.case)
    assert (task.op, task.ranks, task.message.message_bytes, task.choice.label) == ("all_reduce", 2, 65536, "tree/simple")
    assert (task.in_place, task.transport, task.misfit()) == (True, Transport.DEVICE_LINK, None)
