"""A truth is true or false, and a number stands in the digits 0 to 9: nothing else is read as one, wherever it is written."""

import copy
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from suite.config import compose, from_stored, to_stored
from suite.config.schema import RunSchema
from suite.config.strict import structured
from suite.errors import UsageError

TRUTHS = ("measure.telemetry", "measure.energy", "jobs.collective.share_device")


def refusal(overrides: list[str], folder: Path | None = None) -> str:
    with pytest.raises(UsageError) as refused:
        compose([*overrides, "job=[gemm,collective]"], folder)
    return str(refused.value)


NO_TRUTHS = ("2", "1", "0", "-1", "1.0", "y", "yes", "on", "off", "t", "'1'", "maybe")
OF_EVERY_KEY = ("2", "yes")  # what is one is asked in one place, whatever the key


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(key, value, marks=() if key == TRUTHS[0] or value in OF_EVERY_KEY else pytest.mark.thorough)
        for key in TRUTHS
        for value in NO_TRUTHS
    ],
)
def test_a_number_or_a_word_is_no_truth(key: str, value: str) -> None:
    assert refusal([f"{key}={value}"]) == f"{key}={value.strip(chr(39))} is neither true nor false"


@pytest.mark.parametrize("value", ["2", *(pytest.param(each, marks=pytest.mark.thorough) for each in ("1", "on", "y"))])
def test_nor_is_it_one_in_a_list(value: str) -> None:
    assert refusal([f"jobs.collective.in_place=[true,{value}]"]) == (
        f"jobs.collective.in_place[1]={value} is neither true nor false"
    )


def test_true_and_false_are_taken_as_text_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFBENCH_TRUTH", "False")
    for written in ("false", "False", "'false'", "${oc.env:ROOFBENCH_TRUTH}"):
        assert compose([f"measure.telemetry={written}"]).measure.telemetry is False
    assert compose(["measure={telemetry:false}"]).measure.telemetry is False
    assert compose(["job=collective", "jobs.collective.in_place=[true,false]"]).jobs["collective"].in_place == [True, False]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("measure:\n  telemetry: 2\n", "experiment/mine: measure.telemetry=2 is neither true nor false"),
        ("seed: \u0663\n", "experiment/mine: seed=\u0663 is not a whole number; write digits from 0 to 9, as in 16"),
        ("max_time_s: '\u0663.\u0665'\n", "experiment/mine: max_time_s=\u0663.\u0665 is not a number"),
        (
            "jobs:\n  gemm:\n    shapes: ['\u0663x4x4']\n",
            "jobs.gemm.shapes[0]=\u0663x4x4: '\u0663' is none of the digits 0 to 9; write 3x4x4",
        ),
    ],
)
def test_a_file_is_held_to_it_as_the_command_line_is(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment/mine.yaml").write_text(f"# @package _global_\n{text}", encoding="utf-8")
    assert refusal(["experiment=mine"], tmp_path) == said


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("seed='\u0663'", "seed=\u0663 is not a whole number; write digits from 0 to 9, as in 16"),
        ("max_cases='\u0663\u0660'", "max_cases=\u0663\u0660 is not a whole number; write digits from 0 to 9, as in 16"),
        ("wait_s='\u0663.\u0665'", "wait_s=\u0663.\u0665 is not a number"),
        ("measure.target='\u0660.\u0660\u0661'", "measure.target=٠.٠١: '٠' is none of the digits 0 to 9; write 0.01"),
        ("jobs.gemm.m=[4,'\u0663']", "jobs.gemm.m[1]=\u0663: '\u0663' is none of the digits 0 to 9; write 3"),
        ("jobs.gemm.shapes=['\uff11x\uff12x3']", "jobs.gemm.shapes[0]=１x２x3: '１' is none of the digits 0 to 9; write 1x2x3"),
        ("measure.deadlines={start_s:'\u0663'}", "measure.deadlines.start_s=٣: '٣' is none of the digits 0 to 9; write 3"),
    ],
)
def test_digits_of_another_script_are_no_numbers(override: str, said: str) -> None:
    assert refusal([override]) == said


def test_what_is_text_takes_any_digit() -> None:
    composed = compose(["note='\u0663'", "store.url='\u0663.db'", "device='\u0663'"])
    assert (composed.note, composed.store.url, composed.device) == ("\u0663", "\u0663.db", "\u0663")


def test_a_number_that_is_text_is_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFBENCH_SEED", "12")
    assert compose(["seed=${oc.env:ROOFBENCH_SEED}", "max_time_s='2.5'"]).seed == 12


def test_what_a_store_has_is_held_to_it() -> None:
    stored = to_stored(compose([]))
    assert from_stored(stored).measure.telemetry is True
    with pytest.raises(UsageError, match=r"the stored configuration is not one of this version's: .*valid bool"):
        from_stored({**stored, "measure": {**stored["measure"], "telemetry": 2}})


def test_a_strict_schema_has_the_defaults_of_the_dataclass_and_stays_strict_when_copied() -> None:
    schema = copy.deepcopy(structured(RunSchema))
    assert OmegaConf.to_object(schema) == RunSchema()
    assert {type(schema._get_node(name)).__name__ for name in ("seed", "max_cases", "wait_s")} == {"Whole", "Number"}
    assert type(schema.measure._get_node("energy")).__name__ == "Truth"


@pytest.mark.parametrize("value", ["maybe", "1", "0.5"])
def test_a_list_is_no_remedy_for_a_value_that_none_can_hold(value: str) -> None:
    assert refusal([f"jobs.collective.in_place={value}"]) == (
        f"jobs.collective.in_place={value} is neither true nor false, and a list of these is expected; "
        "write jobs.collective.in_place=[true], [false] or [true,false]"
    )
    assert refusal(["jobs.collective.world_sizes=two"]) == (
        "jobs.collective.world_sizes=two is not a whole number, and a list of these is expected; "
        "write jobs.collective.world_sizes=[NUMBER,NUMBER]"
    )


@pytest.mark.parametrize("given", ["in_place=true", "world_sizes=4", "sizes=8", "sizes=64KiB", "ops=all_gather"])
def test_a_value_that_a_list_can_hold_is_to_be_put_in_brackets(given: str) -> None:
    name, value = given.split("=")
    assert refusal([f"jobs.collective.{given}"]).endswith(f"where a list is expected; write jobs.collective.{name}=[{value}]")
    compose(["job=collective", f"jobs.collective.{name}=[{value}]"])
