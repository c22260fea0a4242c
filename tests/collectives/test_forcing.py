"""What exists is planned, and is forced in the syntax that the loaded version reads."""

import pytest

from suite.collectives.choice import Choice, ll128_supported, misfit
from suite.collectives.forcing import forcing
from suite.collectives.names import NCCL_ALGOS, Algo, Op, Proto, algo_of, op_of, proto_of
from suite.collectives.version import NcclVersion
from suite.errors import UsageError

OLD, NEW = NcclVersion(2, 23, 4), NcclVersion(2, 28, 9)
ALGOS = [None, Algo.RING, Algo.TREE]
PROTOS = [None, Proto.LL, Proto.LL128, Proto.SIMPLE]


def labels(op: Op, ll128: bool = False) -> list[str]:
    asked = (Choice(algo, proto) for algo in ALGOS for proto in PROTOS)
    return [choice.label for choice in asked if misfit(op, choice, ll128) is None]


def test_a_tree_is_planned_for_all_reduce_only() -> None:
    assert "tree/simple" in labels(Op.ALL_REDUCE)
    for op in (Op.ALL_GATHER, Op.REDUCE_SCATTER, Op.BROADCAST, Op.REDUCE):
        assert labels(op) == ["library", "library/ll", "library/simple", "ring/library", "ring/ll", "ring/simple"]


def test_sends_and_receives_have_nothing_to_force() -> None:
    assert labels(Op.ALL_TO_ALL) == labels(Op.SEND_RECV) == ["library"]


def test_ll128_is_planned_where_it_is_supported() -> None:
    assert not any("ll128" in label for label in labels(Op.ALL_REDUCE))
    assert {"ring/ll128", "tree/ll128"} <= set(labels(Op.ALL_REDUCE, ll128=True))


@pytest.mark.parametrize(
    ("capability", "intra", "inter", "supported"),
    [
        (90, "NVL", "NVL", True),
        (90, "NVL", "PXN", True),
        (80, "NVL", "PXN", False),
        (80, "NVL", "PXB", True),
        (90, "PHB", "PHB", False),
        (90, "NVL", "PHB", False),
        (60, "NVL", "NVL", False),
        (120, "SYS", "SYS", False),
    ],
)
def test_ll128_goes_over_paths_that_keep_its_stores_whole(capability: int, intra: str, inter: str, supported: bool) -> None:
    assert ll128_supported(capability, intra, inter) is supported


def test_ll128_between_different_devices_takes_hopper() -> None:
    assert not ll128_supported(80, "NVL", "NVL", one_capability=False)
    assert ll128_supported(90, "NVL", "NVL", one_capability=False)


def test_a_misfit_says_what_there_is_instead() -> None:
    assert misfit(Op.BROADCAST, Choice(Algo.TREE)) == "broadcast has no tree: it has ring"
    assert "corrupt" in str(misfit(Op.ALL_REDUCE, Choice(Algo.RING, Proto.LL128)))
    assert misfit(Op.ALL_REDUCE, Choice(Algo.NVLS, Proto.LL)) == "nvls has no ll: it has simple only"
    assert misfit(Op.ALL_REDUCE, Choice(Algo.TREE, Proto.LL)) is None


def test_from_2_24_a_choice_is_scoped_to_its_operation() -> None:
    environment = forcing(NEW, Op.ALL_REDUCE, Choice(Algo.TREE, Proto.LL))
    assert (environment["NCCL_ALGO"], environment["NCCL_PROTO"]) == ("allreduce:Tree", "allreduce:LL")
    assert {"INIT", "TUNING"} <= set(environment["NCCL_DEBUG_SUBSYS"].split(","))


def test_before_2_24_it_is_not() -> None:
    environment = forcing(OLD, Op.ALL_REDUCE, Choice(Algo.TREE, Proto.SIMPLE))
    assert (environment["NCCL_ALGO"], environment["NCCL_PROTO"]) == ("Tree", "Simple")


def test_the_librarys_choice_sets_nothing_but_the_log() -> None:
    environment = forcing(NEW, Op.ALL_REDUCE, Choice())
    assert set(environment) == {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS"}


def test_what_does_not_exist_is_not_forced() -> None:
    for op, choice in ((Op.BROADCAST, Choice(Algo.TREE)), (Op.ALL_REDUCE, Choice(Algo.RING, Proto.LL128))):
        with pytest.raises(UsageError, match="leave the combination out"):
            forcing(NEW, op, choice)


@pytest.mark.parametrize(
    ("code", "text"), [(22809, "2.28.9"), (23007, "2.30.7"), (2804, "2.8.4"), (21005, "2.10.5"), (23102, "2.31.2")]
)
def test_a_version_is_its_code(code: int, text: str) -> None:
    assert NcclVersion.of_code(code) == NcclVersion.parse(f"{text}+cuda12.9")
    assert str(NcclVersion.of_code(code)) == text


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="is no NCCL version"):
        NcclVersion.parse("latest")


def test_names_are_known_in_every_spelling() -> None:
    assert {algo_of(name) for name in ("TREE", "Tree", "tree")} == {Algo.TREE}
    assert algo_of("NVLS_TREE") is algo_of("NVLSTree") is Algo.NVLS_TREE
    assert [algo_of(name) for name in NCCL_ALGOS.values()] == list(Algo)
    assert proto_of("SIMPLE") is Proto.SIMPLE
    assert {op_of(name) for name in ("alltoall_perf", "AllToAll", "all_to_all")} == {Op.ALL_TO_ALL}
    assert op_of("sendrecv_perf") is op_of("SendRecv") is Op.SEND_RECV
    assert op_of("hypercube_perf") is None
