"""Every file of configs/ composes, alone and in the combinations that people type."""

import importlib
import re
from collections.abc import Iterator
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import configs
from suite.config import compose
from suite.config.compose import compose_node
from suite.config.schema import GROUPS, RunSchema
from suite.jobs.gemm import GemmSettings
from suite.settings import MeasureSettings, RunConfig, SearchSettings

FOLDER = Path(configs.__file__).parent

# Of a sheet a run keeps the name alone, and ``tests/hardware`` reads every one of them: one of each maker is composed.
MAKERS = ("amd-mi300x", "aws-trainium2", "google-tpu-v6e", "intel-gaudi3", "nvidia-h100-pcie-80gb")


def options() -> Iterator[Any]:
    for group in GROUPS:
        for path in sorted((FOLDER / group).glob("*.yaml")):
            more_of_the_same = group == "hardware" and path.stem not in MAKERS
            yield pytest.param(group, path.stem, marks=[pytest.mark.thorough] if more_of_the_same else [])


OPTIONS = list(options())


@pytest.mark.parametrize(("group", "name"), OPTIONS)
def test_each_option_composes_into_a_checked_run(group: str, name: str) -> None:
    config = compose([f"{group}={name}"])
    assert isinstance(config, RunConfig)
    assert config.hardware == (name if group == "hardware" else None)
    assert config.experiment == (name if group == "experiment" else "quick")


def test_the_default_is_the_quick_experiment_on_the_best_device() -> None:
    config = compose([])
    assert (config.experiment, list(config.jobs), list(config.backends)) == ("quick", ["gemm"], ["auto"])
    assert list(config.backends["auto"].options["candidates"]) == ["cuda", "rocm", "xla", "cpu"]


@pytest.mark.parametrize("override", ["job=gemm", "job=[gemm]"])
def test_one_job_and_a_list_of_jobs_are_written_alike(override: str) -> None:
    assert compose([override]) == compose([])


def test_several_backends_stand_in_the_order_given() -> None:
    assert list(compose(["backend=[cuda,cpu]"]).backends) == ["cuda", "cpu"]


def test_the_command_line_outranks_the_experiment_and_the_experiment_its_groups() -> None:
    assert compose(["experiment=quick"]).measure.target == 0.01
    assert compose(["experiment=quick", "measure=precise"]).measure.target == 0.002
    assert compose(["experiment=quick", "measure=precise", "measure.target=0.1"]).measure.target == 0.1


@pytest.mark.parametrize("leaving_out", ["experiment=null", "~experiment"])
def test_without_an_experiment_the_groups_stand_as_they_are(leaving_out: str) -> None:
    config = compose([leaving_out])
    assert (config.experiment, config.max_cases, config.measure.target) == ("", None, 0.005)
    gemm = config.jobs["gemm"]
    assert isinstance(gemm, GemmSettings)
    assert gemm.shapes == ["4096x4096x4096"]


@pytest.mark.parametrize("name", ["mi300x", "NVIDIA H100 PCIe", "nvidia-h100-pcie-80gb"])
def test_hardware_is_named_as_people_name_it(name: str) -> None:
    expected = {"mi300x": "amd-mi300x"}.get(name, "nvidia-h100-pcie-80gb")
    assert compose([f"hardware='{name}'"]).hardware == expected


def test_nothing_of_the_libraries_is_left_in_the_result() -> None:
    for value in _everything(compose(["backend=[cpu,cuda]", "device=[0,1]"])):
        assert type(value).__module__.split(".")[0] not in ("omegaconf", "hydra"), value


def test_the_schema_has_the_fields_of_the_settings() -> None:
    """The experiment's name comes from the choice, the user's sheets from ``--config-dir``, plugins from their entry points;
    everything else is a key.
    """
    derived = {"experiment", "hardware_folders", "plugins"}
    assert {field.name for field in fields(RunSchema)} == {field.name for field in fields(RunConfig)} - derived


def test_schemas_are_no_options_of_their_groups() -> None:
    branch = compose_node([]).hydra
    assert set(branch.runtime.choices) >= {"measure", "experiment", "hardware"}
    with pytest.raises(Exception, match="choose from: fast, precise, standard"):
        compose(["measure=gemm_schema"])


def _everything(value: Any) -> list[Any]:
    if is_dataclass(value):
        return [value, *(each for field in fields(value) for each in _everything(getattr(value, field.name)))]
    if isinstance(value, dict):
        return [value, *(each for item in value.values() for each in _everything(item))]
    if isinstance(value, list | tuple):
        return [value, *(each for item in value for each in _everything(item))]
    return [value]


def test_the_standard_measure_file_shows_every_setting_with_its_default_and_what_it_means() -> None:
    """Readers are pointed to it: a setting that is not there has no explanation outside the source."""
    text = (FOLDER / "measure" / "standard.yaml").read_text()
    shown = yaml.safe_load(text)
    del shown["defaults"]
    assert shown == asdict(MeasureSettings())
    remarked = re.findall(r"^(\w+):.*# \S", text, re.MULTILINE)
    in_blocks = {"burst_windows", "burst_window_s", "deadlines"}  # explained above their block
    assert set(remarked) == {field.name for field in fields(MeasureSettings)} - in_blocks


def test_every_setting_of_a_run_is_explained_where_it_stands() -> None:
    text = (FOLDER / "run.yaml").read_text()
    groups = {"jobs", "backends", "measure", "store", "search", "hardware"}
    for name in {field.name for field in fields(RunSchema)} - groups:
        assert re.search(rf"^{name}:.*# \S", text, re.MULTILINE), name


def test_every_setting_of_a_search_stands_in_the_experiment_that_has_one() -> None:
    shown = yaml.safe_load((FOLDER / "experiment" / "peak.yaml").read_text())["search"]
    assert shown == asdict(SearchSettings())


@pytest.mark.parametrize("name", ["cpu", "cuda", "rocm", "xla"])
def test_every_option_of_a_backend_is_explained_in_its_file_with_its_default(name: str) -> None:
    options: dict[str, Any] = importlib.import_module(f"backends.{name}").OPTIONS
    text = (FOLDER / "backend" / f"{name}.yaml").read_text()
    explained = {option: first.rstrip(":") for option, first in re.findall(r"^#   (\w+) +(\S+)", text, re.MULTILINE)}
    assert explained.keys() == options.keys()
    assert all(default is None or explained[option] == str(default) for option, default in options.items())
