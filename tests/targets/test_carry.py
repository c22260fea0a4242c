"""A matrix carried out: from the store what is there, compiled what is not, and no cell left out."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from suite.errors import UsageError
from suite.targets.carry import carry_out, cells
from suite.targets.listing import Listing
from suite.targets.names import BY_NAME, TARGETS, Program, chosen_programs, chosen_targets, refuse_without_partner
from suite.targets.pool import Asked
from suite.targets.record import Compiled
from tests.targets.scripted import answer

PROGRAMS = (
    Program("gemm.bf16", "gemm", "triton", "1"),
    Program("gemm.bf16.odd", "gemm", "triton", "2"),
    Program("gemm.bf162", "gemm", "triton", "3"),
    Program("xla_gemm.bf16", "xla_gemm", "xla", "4"),
)
WHOLE = Listing(PROGRAMS, {"triton": {"triton": "3.7.1"}, "xla": {"jax": "0.10"}}, {"triton": "", "xla": "", "tpu": ""}, "EPYC")


class Compiler:
    """A pool that answers at once, with ``answers`` by program."""

    def __init__(self, **answers: dict[str, Any]) -> None:
        self.asked: list[Asked] = []
        self._answers = answers

    def __call__(self, jobs: int, limit_s: float, environment: Any) -> "Compiler":
        assert "TRITON_CACHE_DIR" in environment
        return self

    def run(self, wanted: Sequence[Asked]) -> Iterator[tuple[Asked, dict[str, Any]]]:
        for each in wanted:
            self.asked.append(each)
            yield each, self._answers.get(each.program, answer())


def carried(
    listing: Listing = WHOLE, known: Any = None, compiler: Compiler | None = None, targets: Any = TARGETS, limit_s: float = 10.0
) -> tuple[list[Compiled], list[Compiled], Compiler]:
    compiler, kept = compiler or Compiler(), []
    wanted = cells(listing, listing.programs, targets)
    ended = list(carry_out(wanted, known or {}, kept.append, jobs=1, limit_s=limit_s, make_pool=compiler))
    assert sorted(each.compiled.key for each in ended) == sorted(cell.place.key for cell in wanted)  # each once, none left out
    return [each.compiled for each in ended], kept, compiler


def test_every_program_meets_every_target_of_its_kind() -> None:
    found, kept, _ = carried()
    assert len(found) == 3 * 11 + 5
    assert found == kept


def test_what_the_store_has_is_not_compiled_again() -> None:
    first, _, _ = carried()
    second, kept, compiler = carried(known={each.key: each for each in first})
    assert (second, kept, compiler.asked) == (first, [], [])


@pytest.mark.parametrize(
    "changed",
    [
        WHOLE._replace(programs=tuple(each._replace(digest=f"new {each.digest}") for each in PROGRAMS)),
        WHOLE._replace(versions={"triton": {"triton": "3.8"}, "xla": {"jax": "0.11"}}),
    ],
    ids=["sources", "tools"],
)
def test_what_a_cell_depends_on_decides_whether_it_is_known(changed: Listing) -> None:
    first, _, _ = carried()
    _, kept, _ = carried(changed, known={each.key: each for each in first})
    assert len(kept) == len(first)


def test_another_cpu_is_another_cell_for_the_cpu_alone() -> None:
    first, _, _ = carried()
    _, kept, _ = carried(WHOLE._replace(host="Xeon"), known={each.key: each for each in first})
    assert [each.target for each in kept] == ["cpu"]


def test_what_is_not_installed_is_said_with_the_remedy_and_nothing_is_kept_of_it() -> None:
    remedy = "libtpu not installed; pip install 'roofbench[targets]'"
    found, kept, _ = carried(WHOLE._replace(missing={**WHOLE.missing, "tpu": remedy}))
    told = {each.target: each.reason for each in found if each.outcome == "unsupported"}
    assert told == dict.fromkeys(("v5e", "v5p", "v6e", "tpu7x"), remedy)
    assert {"v5e", "v5p", "v6e", "tpu7x"}.isdisjoint(each.target for each in kept)


@pytest.mark.parametrize(("limit_s", "again"), [(10.0, False), (20.0, True)])
def test_a_cell_that_ran_out_of_time_is_tried_again_with_more(limit_s: float, again: bool) -> None:
    late = answer(outcome="timeout", reason="not compiled", facts={"limit_s": 10.0})
    first, _, _ = carried(compiler=Compiler(**{"xla_gemm.bf16": late}))
    _, kept, _ = carried(known={each.key: each for each in first}, limit_s=limit_s)
    assert bool(kept) == again


@pytest.mark.parametrize("outcome", ["crashed", "error"])
def test_a_cell_that_failed_is_tried_again(outcome: str) -> None:
    failed = answer(outcome=outcome, reason="No space left on device")
    first, _, _ = carried(compiler=Compiler(**{"xla_gemm.bf16": failed}), targets=[BY_NAME["cpu"]])
    assert first[0].failed
    second, kept, _ = carried(known={each.key: each for each in first}, targets=[BY_NAME["cpu"]])
    assert [each.outcome for each in second] == ["ok"]
    assert second == kept


def test_names_choose_a_kernel_or_a_program_and_the_nearest_is_named() -> None:
    assert [each.name for each in chosen_programs(PROGRAMS, ["gemm.bf16"])] == ["gemm.bf16", "gemm.bf16.odd"]
    assert len(chosen_programs(PROGRAMS, ["gemm"])) == 3
    assert chosen_programs(PROGRAMS, []) == list(PROGRAMS)
    with pytest.raises(UsageError, match=r"unknown kernel 'gem'; did you mean 'gemm'\?"):
        chosen_programs(PROGRAMS, ["gem"])
    with pytest.raises(UsageError, match=r"unknown kernel 'gemm\.bf16\.od'; did you mean 'gemm\.bf16\.odd'\?"):
        chosen_programs(PROGRAMS, ["gemm.bf16.od"])
    with pytest.raises(UsageError, match=r"unknown target 'sm90'; did you mean 'sm_90'\?"):
        chosen_targets(["sm90"])
    assert chosen_targets(["cpu", "sm_80"]) == [BY_NAME["sm_80"], BY_NAME["cpu"]]


@pytest.mark.parametrize(
    ("kernels", "targets", "told"),
    [
        (["gemm.bf16"], ["v5e", "sm_90"], r"--kernel gemm\.bf16 is not compiled for v5e: .*; leave v5e out"),
        (["gemm", "xla_gemm"], ["sm_90"], r"--kernel xla_gemm is not compiled for sm_90: .*; leave xla_gemm out"),
        (
            ["xla_gemm", "gemm.bf16"],
            ["cpu", "v5e"],
            r"--kernel gemm\.bf16 is not compiled for v5e, cpu: .*; leave gemm\.bf16 out",
        ),
    ],
)
def test_nothing_that_was_named_is_left_out_without_a_word(kernels: list[str], targets: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        refuse_without_partner(chosen_programs(PROGRAMS, kernels), chosen_targets(targets), kernels)


def test_a_target_for_each_kind_of_kernel_that_was_named_is_taken() -> None:
    kernels = ["gemm.bf16", "xla_gemm"]
    refuse_without_partner(chosen_programs(PROGRAMS, kernels), chosen_targets(["sm_90", "cpu"]), kernels)
