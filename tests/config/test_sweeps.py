"""What ``-m`` cannot list, or would never be done with, is refused in one line before anything is composed or run."""

import time
from pathlib import Path

import pytest

from suite.config.multirun import sweep
from suite.config.overrides import parse, refuse_sweeps
from suite.config.sweeps import MOST_RUNS, refuse_uncountable
from suite.errors import UsageError
from tests.patience import PATIENCE_S

BY_COMMAS = "write its values with commas"
TOO_MANY = f"and -m makes at most {MOST_RUNS} runs; take a larger step"
NO_RANGE = "is no range; write range(START,STOP,STEP) with finite numbers and a STEP other than 0"
REFUSED = [
    ("experiment=glob(*)", f"leaves it to Hydra to find names, which it does not do here; {BY_COMMAS}"),
    ("seed=glob(a*,exclude=b)", f"leaves it to Hydra to find names, which it does not do here; {BY_COMMAS}"),
    ("seed=interval(0,1)", f"is an interval, of which only a sweeper that chooses as it goes takes values; {BY_COMMAS}"),
    ("seed=range(0,1e9)", f"gives 1,000,000,000 values, {TOO_MANY}"),
    ("seed=range(1000000000)", f"gives 1,000,000,000 values, {TOO_MANY}"),
    ("seed=shuffle(range(0,100000000))", f"gives 100,000,000 values, {TOO_MANY}"),
    ("seed=sort(range(0,100000000),reverse=true)", f"gives 100,000,000 values, {TOO_MANY}"),
    ("seed=int(range(0,1e9))", f"gives 1,000,000,000 values, {TOO_MANY}"),
    ("measure.target=range(0,1,1e-30)", f"gives 1e+30 values, {TOO_MANY}"),
    ("measure.target=range(0,inf)", f"gives endlessly many values, {TOO_MANY}"),
    ("measure.target=range(0,1e300,1e-300)", f"gives endlessly many values, {TOO_MANY}"),
    ("seed=range(5,5)", f"is empty: no value lies from 5 to below 5 by 1; {BY_COMMAS}"),
    ("seed=range(0,3,-1)", f"is empty: no value lies from 0 to below 3 by -1; {BY_COMMAS}"),
    ("seed=range(0)", f"is empty: no value lies from 0 to below 0 by 1; {BY_COMMAS}"),
    ("seed=range(0,3,0)", NO_RANGE),
    ("measure.target=range(0.0,1.0,0.0)", NO_RANGE),
    ("measure.target=range(nan,1)", NO_RANGE),
    ("measure.target=range(0,nan)", NO_RANGE),
    ("measure.target=range(0,1,inf)", NO_RANGE),
    (f"seed=range({10**400},{10**401})", NO_RANGE),
]


def never(*_: object) -> None:
    raise AssertionError("something ran")


def refusal(overrides: list[str], folder: Path | None = None) -> str:
    began = time.monotonic()
    with pytest.raises(UsageError) as refused:
        sweep(overrides, folder, never, never)
    assert time.monotonic() - began < PATIENCE_S
    return str(refused.value)


@pytest.mark.parametrize(("override", "said"), REFUSED, ids=[override[:40] for override, _ in REFUSED])
def test_a_sweep_without_an_end_or_a_value_is_refused_by_name(override: str, said: str) -> None:
    assert refusal([override, "note=a"]) == f"{override} {said}"
    with pytest.raises(UsageError) as without_m:
        refuse_sweeps([override])
    assert str(without_m.value) == f"{override} {said}", "and -m is not offered as a remedy"


def test_combinations_are_counted_before_they_are_listed() -> None:
    swept = [f"seed=range({MOST_RUNS})", f"max_cases=range(1,{MOST_RUNS})", f"wait_s=range({MOST_RUNS})"]
    said = refusal(swept)
    assert said == f"-m would make 999,000,000 runs, one for each combination, of at most {MOST_RUNS}; sweep in parts"


def test_of_two_of_a_key_both_are_looked_at() -> None:
    assert "1,000,000,000 values" in refusal(["seed=range(0,1e9)", "seed=1"])


def test_what_can_be_listed_is_taken() -> None:
    taken = ["seed=1,2", "note=choice(a,b)", "max_cases=range(1,11)", "wait_s=range(0,1,0.1)", "store.url=x.db", "~max_time_s"]
    refuse_uncountable([parse(text) for text in taken])
    refuse_uncountable([parse(f"seed=range({MOST_RUNS})"), parse("seed=range(3,0,-1)")])


def test_a_file_that_sweeps_without_end_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment/mine.yaml").write_text(
        "# @package _global_\nhydra:\n  sweeper:\n    params:\n      seed: range(0,1e9)\n", encoding="utf-8"
    )
    assert refusal(["experiment=mine", "note=a,b"], tmp_path).startswith("seed=range(0,1e9) gives 1,000,000,000 values")
