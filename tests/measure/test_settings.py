"""Settings of which one keeps the other from ever being met are refused by name, before anything runs."""

from pathlib import Path

import pytest
import yaml

import configs
from suite.config import compose
from suite.errors import UsageError
from suite.settings import MeasureSettings

FOLDER = Path(configs.__file__).parent

NEVER = [
    (
        {"steady_window_s": 50.0},
        "measure.steady_timeout_s=10.0 is not above measure.steady_window_s=50.0: steady is what two windows in a row agree "
        "on; take a shorter window or a longer timeout",
    ),
    (
        {"steady_window_s": 1.0, "steady_timeout_s": 1.0},
        "measure.steady_timeout_s=1.0 is not above measure.steady_window_s=1.0: ",
    ),
    (
        {"sample_s": 5.0, "max_time_s": 1.0},
        "measure.sample_s=5.0 is above measure.max_time_s=1.0: time would be up within the first sample; take shorter samples "
        "or more time",
    ),
    (
        {"sample_s": 5.0, "steady_timeout_s": 3.0},
        "measure.sample_s=5.0 is above measure.steady_timeout_s=3.0: time to settle would be up within the first sample; take "
        "shorter samples or a longer timeout",
    ),
    ({"min_time_s": 11.0}, "measure.max_time_s=10.0 is below measure.min_time_s=11.0"),
]


@pytest.mark.parametrize(("given", "message"), NEVER, ids=lambda each: " ".join(each) if isinstance(each, dict) else "")
def test_what_can_never_be_met_is_refused_by_name(given: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        MeasureSettings(**given).check()  # type: ignore[arg-type]
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    "given",
    [
        {"steady_window_s": 1.0, "steady_timeout_s": 1.01},
        {"steady_window_s": 50.0, "steady_timeout_s": 0.0},
        {"sample_s": 1.0, "max_time_s": 1.0, "steady_timeout_s": 1.0},
    ],
    ids=["just above", "no waiting is asked for", "as long"],
)
def test_what_can_be_met_is_taken(given: dict[str, float]) -> None:
    MeasureSettings(**given).check()  # type: ignore[arg-type]


def test_a_refusal_comes_before_anything_runs() -> None:
    with pytest.raises(UsageError, match=r"steady_window_s=50"):
        compose(["measure.steady_window_s=50"])


def names(group: str) -> list[str]:
    return sorted(path.stem for path in (FOLDER / group).glob("*.yaml"))


NO_LIMITS = {"regimes", "interleave", "energy"}


def sets_limits(experiment: str) -> bool:
    """Whether the experiment has limits of its own, which another way to measure may contradict."""
    settings = yaml.safe_load((FOLDER / "experiment" / f"{experiment}.yaml").read_text())
    return not settings.get("measure", {}).keys() <= NO_LIMITS


# Each file by itself is composed in ``tests/config/test_every_yaml.py``.
@pytest.mark.parametrize(
    ("experiment", "measure"),
    [
        pytest.param(experiment, measure, marks=() if sets_limits(experiment) else pytest.mark.thorough)
        for experiment in names("experiment")
        for measure in names("measure")
    ],
)
def test_every_experiment_composes_with_every_way_to_measure(experiment: str, measure: str) -> None:
    compose([f"experiment={experiment}", f"measure={measure}"])
