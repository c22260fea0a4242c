"""What is set for NCCL, what its log must say, and that something else than asked for is never a number."""

import json
from collections.abc import Iterator

import pytest

from backends.failures import Classified
from backends.torch.collective import forced
from backends.torch.collective.crew import Crew
from backends.torch.collective.kernel import CollectiveKernel
from backends.torch.collective.sampler import SlowestRankSampler
from suite.collectives.choice import Choice
from suite.collectives.log.reader import read_log
from suite.collectives.names import Algo, Op, Proto
from suite.collectives.transport import Transport
from suite.collectives.version import NcclVersion
from suite.outcome import Outcome
from tests.backends.collective.helpers import STRANGE_RANK, checked, crew_of, prepared, task

NOW, BEFORE = NcclVersion(2, 28, 9), NcclVersion(2, 21, 5)
TREE = Choice(Algo.TREE, Proto.SIMPLE)
GRAPH = "h:1:1 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 16, bw 20.0/20.0, type {}/PIX, sameChannels 1\n"


# What the log says ran, by the bytes of the message; of another the log says nothing.
RAN = {4096: "TREE proto SIMPLE", 8192: "RING proto SIMPLE", 16384: "TREE proto LL"}
UNSEEN_BYTES = 12_288


@pytest.fixture(scope="module")
def strange() -> Iterator[Crew]:
    """Two ranks that log as NCCL does."""
    with pytest.MonkeyPatch.context() as patch:
        planted = [{"fault": "log", "bytes": size, "ran": ran} for size, ran in RAN.items()]
        patch.setenv("ROOFBENCH_PLANTED", json.dumps(planted))
        with crew_of(2, STRANGE_RANK) as crew:
            yield crew


def asked(choice: Choice, own: Algo | None = None, size: int = 4096):
    return task(Op.ALL_REDUCE, 2, size, own=own, asked=choice)


def test_a_choice_is_set_in_the_syntax_of_the_version_and_taken_away_for_the_next() -> None:
    now, before = dict(forced.group_environment(asked(TREE), NOW)), dict(forced.group_environment(asked(TREE), BEFORE))
    assert (now["NCCL_ALGO"], now["NCCL_PROTO"]) == ("allreduce:Tree", "allreduce:Simple")
    assert (before["NCCL_ALGO"], before["NCCL_PROTO"]) == ("Tree", "Simple")
    for free in (asked(Choice()), asked(Choice(), own=Algo.TREE)):
        left = dict(forced.group_environment(free, NOW))
        assert left["NCCL_ALGO"] is left["NCCL_PROTO"] is None


def test_ranks_that_share_a_gpu_have_a_host_name_each_and_talk_over_sockets() -> None:
    first, second = (forced.start_environment(Transport.SHARED_GPU, rank) for rank in range(2))
    assert first["NCCL_HOSTID"] != second["NCCL_HOSTID"]
    assert (first["NCCL_NET"], first["NCCL_P2P_DISABLE"], first["NCCL_SHM_DISABLE"]) == ("Socket", "1", "1")
    apart = forced.start_environment(Transport.DEVICE_LINK, 0)
    assert "NCCL_HOSTID" not in apart
    assert apart["NCCL_SOCKET_IFNAME"] == first["NCCL_SOCKET_IFNAME"] == "lo"
    assert apart["NCCL_NVLS_ENABLE"] == first["NCCL_NVLS_ENABLE"] == "0"
    assert "TUNING" in apart["NCCL_DEBUG_SUBSYS"]


@pytest.mark.parametrize(("path", "safe"), [("NVL", True), ("SYS", False)])
def test_ll128_is_asked_for_only_where_the_library_would_use_it(path: str, safe: bool) -> None:
    wanted, log = asked(Choice(None, Proto.LL128)), read_log(GRAPH.format(path))
    if safe:
        forced.refuse_ll128(wanted, log, (9, 0))
        return
    for capability, known in (((9, 0), log), ((9, 0), read_log("")), ((6, 0), read_log(GRAPH.format("NVL")))):
        with pytest.raises(Classified) as refused:
            forced.refuse_ll128(wanted, known, capability)
        assert refused.value.failure.outcome is Outcome.UNSUPPORTED


def test_a_log_that_names_what_was_asked_for_is_kept_with_the_result(strange: Crew) -> None:
    kernel = prepared(strange, asked(TREE))
    assert checked(kernel, 2).passed
    told = kernel.describe()
    kernel.close()
    assert told["observed"] == [{"algo": "tree", "proto": "simple", "channels": 4, "kernel": None}]
    assert (told["asked"], told["honoured"]) == ("tree/simple", True)


@pytest.mark.parametrize("size", [8192, 16384])
def test_what_ran_in_place_of_what_was_asked_for_is_not_honoured(strange: Crew, size: int) -> None:
    with pytest.raises(Classified) as refused:
        prepared(strange, asked(TREE, size=size))
    free = prepared(strange, asked(Choice(), size=size))  # left to itself the library may run what it likes
    assert free.describe()["honoured"] is True
    free.close()
    algo, _, proto = RAN[size].lower().split()
    assert refused.value.failure.outcome is Outcome.NOT_HONOURED
    assert refused.value.failure.reason == f"asked for tree/simple, ran {algo}/{proto}"


def test_a_forced_choice_that_nobody_saw_run_is_not_honoured(strange: Crew) -> None:
    """The log names the version, and nothing of this message."""
    with pytest.raises(Classified) as refused:
        prepared(strange, asked(TREE, size=UNSEEN_BYTES))
    for free in (asked(Choice(), size=UNSEEN_BYTES), asked(Choice(), own=Algo.TREE, size=UNSEEN_BYTES)):
        kernel = prepared(strange, free)
        assert kernel.describe().get("honoured") is None
        kernel.close()
    assert refused.value.failure.outcome is Outcome.NOT_HONOURED
    assert refused.value.failure.reason.startswith(f"the log has no choice for all_reduce of {UNSEEN_BYTES} bytes")


def test_a_forced_choice_of_a_library_that_logs_nothing_is_not_honoured(pair: Crew) -> None:
    with pytest.raises(Classified) as refused:
        prepared(pair, asked(TREE))
    assert refused.value.failure.outcome is Outcome.NOT_HONOURED
    assert refused.value.failure.reason == "gloo does not log what it chose"


def test_what_is_set_for_the_library_is_told_less_what_each_rank_has_for_itself() -> None:
    environment = forced.group_environment(asked(TREE), NOW)
    together = forced.variables_set(Transport.SHARED_GPU, environment)
    assert together == {
        "NCCL_ALGO": "allreduce:Tree", "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,GRAPH,TUNING", "NCCL_MAX_CTAS": "4",
        "NCCL_NET": "Socket", "NCCL_NVLS_ENABLE": "0", "NCCL_P2P_DISABLE": "1", "NCCL_PROTO": "allreduce:Simple",
        "NCCL_SHM_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo",
    }  # fmt: skip
    apart = forced.variables_set(Transport.DEVICE_LINK, forced.group_environment(asked(Choice()), NOW))
    assert set(apart) == {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_NVLS_ENABLE", "NCCL_SOCKET_IFNAME"}


def test_what_is_set_for_the_group_is_stored_with_the_result(pair: Crew) -> None:
    group = pair.group("gloo", (("NCCL_ALGO", "Tree"), ("NCCL_PROTO", None)))
    kernel = CollectiveKernel(pair, asked(Choice()), group, "gloo", 3)
    assert kernel.describe()["set"] == {"NCCL_ALGO": "Tree"}
    plain = prepared(pair, asked(Choice()))
    assert "set" not in plain.describe()
    for each in (kernel, plain):
        each.close()


def test_lines_that_the_library_writes_within_the_time_are_told(strange: Crew) -> None:
    kernels = [prepared(strange, asked(TREE)), prepared(strange, task(Op.ALL_REDUCE, 2, UNSEEN_BYTES))]
    seen, other = (SlowestRankSampler(kernel).details["logging"] for kernel in kernels)
    for kernel in kernels:
        kernel.close()
    assert seen == "NCCL writes a line for each launch on rank 0 within the time"
    assert other == "NCCL is told to log launches within the time; no line of one was seen"
