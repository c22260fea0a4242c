"""Variables that a compiler does not take are said before anything is compiled, and asked about only where they are set."""

from collections.abc import Collection

import pytest

from suite.errors import UsageError
from suite.targets import checking
from suite.targets.checking import refuse_wrong_variables
from suite.targets.record import Place


def place(target: str, **versions: str) -> Place:
    return Place("key", "xla_gemm", "xla_gemm.bf16", target, {"jax": "0.10", **versions})


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What a child says by kind, and by ``kind without`` one that lacks the variables; one that nobody asks is missing here."""
    found: dict[str, str] = {}

    def said(kind: str, without: Collection[str] = ()) -> str:
        return found.get(f"{kind} without", "") if without else found[kind]

    monkeypatch.setattr(checking, "_what_is_said", said)
    return found


def test_nobody_is_asked_where_nothing_is_set_or_nothing_reads_it(said: dict[str, str]) -> None:
    refuse_wrong_variables([place("cpu"), place("v5e"), place("sm_90", TRITON_DEFAULT_FP_FUSION="0")])
    refuse_wrong_variables([place("cpu", LIBTPU_INIT_ARGS="--no_such=1")])
    refuse_wrong_variables([place("cpu", NPROC="4"), place("v5e", TPU_MEGACORE="megacore")])


@pytest.mark.parametrize(
    ("target", "name", "kind"), [("cpu", "XLA_FLAGS", "xla"), ("v5e", "XLA_FLAGS", "xla"), ("v5e", "LIBTPU_INIT_ARGS", "tpu")]
)
def test_the_variable_its_value_what_was_said_and_the_remedy_are_named(
    said: dict[str, str], target: str, name: str, kind: str
) -> None:
    said[kind] = "Unknown flag --no_such=1"
    with pytest.raises(UsageError) as refused:
        refuse_wrong_variables([place(target, **{name: "--no_such=1"})])
    assert str(refused.value) == (
        f"nothing can be compiled with {name}=--no_such=1: Unknown flag --no_such=1; correct it, or unset {name}"
    )


def test_what_ends_without_the_variables_too_is_not_laid_to_them(said: dict[str, str]) -> None:
    """Such as a libtpu that does not know the topology: then other targets can be compiled all the same."""
    said.update({"tpu": "no such topology", "tpu without": "no such topology"})
    refuse_wrong_variables([place("v5e", LIBTPU_INIT_ARGS="--a=1")])


def test_what_a_log_puts_before_an_error_is_left_out(said: dict[str, str]) -> None:
    said["tpu"] = "F1204 22:17:52.733730    3943 parse_flags_from_env.cc:171] Unknown flag in LIBTPU_INIT_ARGS: --no_such=1"
    with pytest.raises(UsageError, match=r"--no_such=1: Unknown flag in LIBTPU_INIT_ARGS: --no_such=1; correct it"):
        refuse_wrong_variables([place("v5e", LIBTPU_INIT_ARGS="--no_such=1")])


def test_variables_that_are_taken_are_not_refused(said: dict[str, str]) -> None:
    said.update(xla="", tpu="")
    refuse_wrong_variables([place("v5e", XLA_FLAGS="--xla_cpu_enable_fast_math=true", LIBTPU_INIT_ARGS="--a=1")])
