"""Variables that a compiler does not take are said before anything is compiled, and asked about only where they are set."""

import pytest

from suite.errors import UsageError
from suite.targets import checking
from suite.targets.checking import refuse_wrong_variables
from suite.targets.record import Place


def place(target: str, **versions: str) -> Place:
    return Place("key", "xla_gemm", "xla_gemm.bf16", target, {"jax": "0.10", **versions})


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What a child says by kind; one that nobody had to ask is missing here."""
    found: dict[str, str] = {}
    monkeypatch.setattr(checking, "_what_is_said", lambda kind: found[kind])
    return found


def test_nobody_is_asked_where_nothing_is_set_or_nothing_reads_it(said: dict[str, str]) -> None:
    refuse_wrong_variables([place("cpu"), place("v5e"), place("sm_90", TRITON_DEFAULT_FP_FUSION="0")])
    refuse_wrong_variables([place("cpu", LIBTPU_INIT_ARGS="--no_such=1")])


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


def test_variables_that_are_taken_are_not_refused(said: dict[str, str]) -> None:
    said.update(xla="", tpu="")
    refuse_wrong_variables([place("v5e", XLA_FLAGS="--xla_cpu_enable_fast_math=true", LIBTPU_INIT_ARGS="--a=1")])
