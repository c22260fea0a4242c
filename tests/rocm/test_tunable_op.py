"""What bounds TunableOp's trials and keeps their results: options of the backend that reach torch and the environment."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from backends.rocm import RocmBackend
from backends.torch import hip_libraries, precision, tunable_op
from backends.torch.precision import Precision, enforce
from suite.errors import UsageError
from tests.backends.preserving import preserved
from tests.rocm.conftest import Attach


class FakeTunable:
    """TunableOp of a ROCm build: variables of the environment have precedence over what a program sets."""

    def __init__(self) -> None:
        self.on, self.tuning = False, False
        self.own: dict[str, Any] = {"duration": 30, "iterations": 100, "file": "tunableop_results0.csv"}

    def set_filename(self, name: str, insert_device_ordinal: bool = False) -> None:
        assert not insert_device_ordinal
        self.own["file"] = name

    def write_file_on_exit(self, on: bool) -> None:
        self.own["writes"] = on

    def record_untuned_enable(self, on: bool = True) -> None:
        """Nothing is recorded."""

    def tuning_enable(self, on: bool = True) -> None:
        self.tuning = on

    def tuning_is_enabled(self) -> bool:
        return self.tuning

    def enable(self, on: bool = True) -> None:
        self.on = on

    def is_enabled(self) -> bool:
        return self.on

    def set_max_tuning_duration(self, milliseconds: int) -> None:
        self.own["duration"] = milliseconds

    def get_max_tuning_duration(self) -> int:
        return int(os.environ.get("PYTORCH_TUNABLEOP_MAX_TUNING_DURATION_MS", self.own["duration"]))

    def set_max_tuning_iterations(self, count: int) -> None:
        self.own["iterations"] = count

    def get_max_tuning_iterations(self) -> int:
        return int(os.environ.get("PYTORCH_TUNABLEOP_MAX_TUNING_ITERATIONS", self.own["iterations"]))

    def get_rotating_buffer_size(self) -> int:
        return 512


@pytest.fixture
def tunable(attach: Attach, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTunable]:
    attach("mi300x")
    fake = FakeTunable()
    monkeypatch.setattr(torch.cuda, "tunable", fake)
    for module in (precision, hip_libraries):
        monkeypatch.setattr(module, "HAS_TUNABLE_OP", True)
    with preserved():
        yield fake
    tunable_op.apply(tunable_op.Bounds(), "rocm", is_built=True)


def facts_with(**options: Any) -> dict[str, Any]:
    """What the environment of a run says of TunableOp, with these options."""
    backend = RocmBackend({f"tunable_op_{name}": value for name, value in options.items()})
    backend.select(0)
    return {name: fact.value for name, fact in backend.environment().items() if name.startswith("tunable_op_")}


def test_bounds_reach_torch_and_the_environment(tunable: FakeTunable) -> None:
    facts = facts_with(trial_ms=7, trials=20)
    assert (tunable.own["duration"], tunable.own["iterations"]) == (7, 20)
    assert (facts["tunable_op_trial_ms"], facts["tunable_op_trials"], facts["tunable_op_file"]) == (7, 20, "in memory")


def test_left_out_they_are_torchs_own(tunable: FakeTunable) -> None:
    facts = facts_with()
    assert (facts["tunable_op_trial_ms"], facts["tunable_op_trials"], facts["tunable_op_file"]) == (30, 100, "in memory")
    assert (tunable.own["file"], tunable.own["writes"]) == (os.devnull, False)


def test_a_file_is_read_and_added_to_and_the_environment_says_what_it_held(tunable: FakeTunable, tmp_path: Path) -> None:
    file = tmp_path / "tuned.csv"
    assert facts_with(file=str(file))["tunable_op_file"] == "tuned.csv, new"
    file.write_text("Validator,PT_VERSION,2.11.0\n")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    assert facts_with(file=str(file))["tunable_op_file"] == f"tuned.csv, 28 B, sha256 {digest}"
    assert (tunable.own["file"], tunable.own["writes"]) == (str(file), True)
    tunable.own["file"] = ""
    enforce(Precision(tunable_op=True))  # as a case that asks for it does
    assert (tunable.own["file"], tunable.on) == (str(file), True)
    facts_with()
    assert tunable.own["file"] == os.devnull


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("trial_ms", 0, "backends.rocm.options.tunable_op_trial_ms=0 is not a whole number above 0"),
        ("trial_ms", 1.5, "backends.rocm.options.tunable_op_trial_ms=1.5 is not a whole number above 0"),
        ("trials", True, "backends.rocm.options.tunable_op_trials=True is not a whole number above 0"),
        ("trial_ms", 10_001, "backends.rocm.options.tunable_op_trial_ms=10001 is above 10000"),
        ("trials", 10_001, "backends.rocm.options.tunable_op_trials=10001 is above 10000"),
        ("file", 3, "backends.rocm.options.tunable_op_file=3 is not a word; the default is memory"),
        (
            "file",
            "/nowhere/at/all.csv",
            "tunable_op_file=/nowhere/at/all.csv cannot be written: there is no directory /nowhere/at",
        ),
        ("file", "/", "tunable_op_file=/ cannot be written: it is a directory"),
        ("file", "~no-such-user/x.csv", "tunable_op_file=~no-such-user/x.csv cannot be written: there is no directory"),
    ],
)
def test_what_bounds_nothing_is_refused(option: str, value: Any, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        RocmBackend({f"tunable_op_{option}": value})
    assert told in str(refused.value)


@pytest.mark.parametrize(("option", "variable"), [("trial_ms", "MAX_TUNING_DURATION_MS"), ("trials", "MAX_TUNING_ITERATIONS")])
def test_a_variable_that_overrides_an_option_is_refused(
    option: str, variable: str, tunable: FakeTunable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"PYTORCH_TUNABLEOP_{variable}", "3")
    with pytest.raises(UsageError) as refused:
        facts_with(**{option: 50})
    assert str(refused.value) == (
        f"backends.rocm.options.tunable_op_{option}=50 was given and TunableOp keeps to 3: PYTORCH_TUNABLEOP_{variable}=3 is "
        "set; unset it, or leave the option out"
    )
    assert facts_with()[f"tunable_op_{option}"] == 3


def test_a_build_without_it_refuses_bounds_and_wants_none(tunable: FakeTunable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "HAS_TUNABLE_OP", False)
    with pytest.raises(UsageError, match=r"has no TunableOp for backends\.rocm\.options\.tunable_op_trials=9; leave it out"):
        facts_with(trials=9)
    assert facts_with()["tunable_op_file"] == "in memory"
