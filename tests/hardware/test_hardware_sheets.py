"""The files of configs/hardware: complete, sourced, consistent."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from suite.hardware.catalogue import all_specs, builtin, ids, load
from suite.hardware.figure import Figure
from suite.hardware.spec import HardwareSpec

FILES = sorted(builtin("hardware").glob("*.yaml"))


def figures(value: Any, path: str = "") -> list[tuple[str, Figure]]:
    """Every figure of a spec with where it stands."""
    if isinstance(value, Figure):
        return [(path, value)]
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in figures(item, f"{path}.{key}")]
    slots = getattr(value, "__slots__", ())
    return [found for name in slots for found in figures(getattr(value, name), f"{path}.{name}")]


def known_figures(spec: HardwareSpec) -> list[tuple[str, Figure]]:
    return [(path, figure) for path, figure in figures(spec) if figure != Figure()]


def test_there_is_a_file_for_each_of_the_58_accelerators() -> None:
    assert len(ids()) == len(FILES) == 58
    vendors = {spec.vendor for spec in all_specs()}
    assert vendors == {"NVIDIA", "AMD", "Google", "Intel", "AWS"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_file_is_valid_and_every_figure_names_a_document(file: Path) -> None:
    spec = load(file.stem)
    found = known_figures(spec)
    assert len(found) >= 6
    for path, figure in found:
        assert figure.sources, path
        assert all(source.title for source in figure.sources), path
        if any(source.kind == "none" for source in figure.sources):
            assert figure.confidence == "low", f"{path} has no recorded source but is called {figure.confidence}"
    assert spec.memory.capacity_bytes.value, "what is on the card is on every data sheet"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_documents_are_titles_that_can_be_looked_up_and_all_are_used(file: Path) -> None:
    text = file.read_text()
    for source in yaml.safe_load(text)["sources"]:
        assert source["title"] == "not recorded" or len(re.findall(r"\w+", source["title"])) > 1, "a key is no title"
        assert source["url"] is None or re.match(r"https?://[^ ]+\.[^ ]+", source["url"])
        assert (source["kind"] == "none") == (source["title"] == "not recorded")
    for anchor in re.findall(r"^  - &([a-z0-9-]+)", text, re.MULTILINE):
        assert f"*{anchor}" in text, f"{anchor} is cited nowhere"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_figures_that_only_quote_a_vendor_are_not_called_high_without_a_second_source(file: Path) -> None:
    cards = re.compile(
        r"datasheet|data sheet|whitepaper v1.04|Product Brief|brochure|A100 Tensor Core|EC2 Trn|NKI|Technical Brief"
    )
    for path, figure in known_figures(load(file.stem)):
        quoted = [source.kind == "vendor-quoted" and cards.search(source.title) for source in figure.sources]
        assert not (quoted and all(quoted) and figure.confidence == "high"), path


def test_an_unknown_figure_keeps_its_reason() -> None:
    a10g = load("nvidia-a10g")
    assert a10g.peaks["bf16"].value is None
    assert "contradicted" in a10g.units.note
    assert a10g.peak_flop_s("bf16") is None
    assert a10g.flop_per_clock("bf16") is None


@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.id)
def test_units_times_operations_times_clock_meets_the_published_peak_or_the_file_says_why(spec: HardwareSpec) -> None:
    for check in spec.checks:
        clock_hz = check.clock_hz
        assert check.published_flop_s == pytest.approx(spec.peaks[check.pipe].value), "the check is of the sheet's own peak"
        if clock_hz is None:
            assert check.reason
        elif abs(check.units * check.ops_per_clock * clock_hz / check.published_flop_s - 1) > 0.02:
            assert check.reason, f"{check.pipe} is off without a reason"
        else:
            assert not check.reason, f"{check.pipe} fits and still has a reason"


@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.id)
def test_the_rate_per_clock_is_one_that_was_checked(spec: HardwareSpec) -> None:
    """At the clock of its check the rate gives the published peak; what has no check follows from the ratio of peaks."""
    for pipe, rate in spec.ops_per_clock.items():
        checks = [check for check in spec.checks if check.pipe == pipe and check.ops_per_clock == rate.value]
        assert checks or rate.derived or rate.value is None, pipe
        if rate.value is None:
            assert rate.note


@pytest.mark.parametrize(
    ("name", "pipe", "tflop_s"),
    [
        ("nvidia-h100-sxm5-80gb", "bf16", 989.4),
        ("nvidia-h200-sxm5-141gb", "bf16", 989.5),
        ("nvidia-b300-sxm", "bf16", 2250),
        ("amd-mi300x", "bf16", 1307.4),
        ("amd-mi250x", "bf16", 383),
        ("nvidia-h20-96gb", "bf16", 148),
        ("nvidia-a100-sxm4-80gb", "tf32", 156),
    ],
)
def test_peaks_are_dense(name: str, pipe: str, tflop_s: float) -> None:
    """Tables in the wild hold with-sparsity rates, another card's row, or half a package."""
    spec = load(name)
    assert spec.peak_flop_s(pipe) == pytest.approx(tflop_s * 1e12)
    if pipe in spec.sparse_peaks:
        assert spec.sparse_peaks[pipe].value == pytest.approx(2 * tflop_s * 1e12, rel=0.01)


def test_the_h20_does_not_run_at_the_hopper_rate() -> None:
    h20, h200 = load("nvidia-h20-96gb"), load("nvidia-h200-sxm5-141gb")
    assert (h200.ops_per_clock["bf16"].value, h20.ops_per_clock["bf16"].value) == (4096, 1024)
    assert h20.boost_flop_s("bf16", 1830e6) == pytest.approx(148e12, rel=0.02)


def test_a_tpu_whose_documented_units_cannot_reach_the_peak_has_no_rate_per_clock() -> None:
    for name in ("google-tpu-v6e", "google-tpu-v7x"):
        assert load(name).flop_per_clock("bf16") is None
        assert "GHz" in load(name).ops_per_clock["bf16"].note


def test_runtime_names_are_exact_and_belong_to_one_sheet() -> None:
    owners: dict[str, str] = {}
    for spec in all_specs():
        for name in spec.device_names:
            assert name == name.strip()
            assert owners.setdefault(name, spec.id) == spec.id, name
            assert not name.startswith("gfx"), "a target names an instruction set, not a device"
