"""What `roofbench hardware` prints."""

import json
import re

import pytest

from suite.hardware.catalogue import all_specs, load
from suite.hardware.cpu import derive
from suite.hardware.figure import CONFIDENCES
from suite.hardware.match import match
from suite.hardware.spec import HardwareSpec
from suite.hardware.table import detail_json, detail_lines, list_json, list_lines
from suite.report.words import rate_unit
from tests.hardware.devices import device

QUOTED = re.compile(r"([\w./'-]+) (?:prints?|lists?|uses?|says?|computes|derives|models|stores|sees|maps|rounds|reads)\b")
PLAIN = (
    "table page others file brief brochure text book vendor column whitepaper guide database also named not p.1 peaks read "
    "scaling-book device_info.py TechPowerUp-derived L40/L4 DGX"
)


def test_the_list_has_a_line_for_each_sheet_with_its_figures() -> None:
    lines = list_lines()
    assert len(lines) == 1 + len(all_specs())
    row = next(line for line in lines if line.startswith("nvidia-h200-sxm5-141gb"))
    assert row.split() == [
        "nvidia-h200-sxm5-141gb",
        "132",
        "SM",
        "141",
        "4800",
        "989.5",
        "1979",
        "NVIDIA",
        "H200",
        "SXM5",
        "141GB",
    ]
    assert "n/a" in next(line for line in lines if line.startswith("nvidia-a10g"))
    name_columns = {line.index(spec.name) for line, spec in zip(lines[1:], all_specs(), strict=True) if spec.name in line}
    assert len({len(line) - len(line.lstrip()) for line in lines}) == 1
    assert name_columns


def test_the_list_as_json_is_in_base_units() -> None:
    rows = {row["id"]: row for row in json.loads(json.dumps(list_json(), allow_nan=False))}
    assert rows["amd-mi300x"]["bf16_flop_s"] == 1307.4e12
    assert rows["amd-mi300x"]["bandwidth_bytes_s"] == 5300e9
    assert rows["nvidia-v100-sxm2-16gb"]["bf16_flop_s"] is None


@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.id)
def test_every_figure_is_shown_with_its_confidence_and_sources(spec: HardwareSpec) -> None:
    lines = detail_lines(spec)
    text, peaks = "\n".join(lines), lines[lines.index("dense peaks") :] if spec.peaks else []
    for pipe, figure in spec.peaks.items():
        line = next(line for line in peaks if line.startswith(f"  {pipe} "))
        assert figure.confidence in line
        assert "[" in line
        assert figure.note in line
        if figure.value is not None:
            assert f"{figure.value / 1e12:.7g} T{rate_unit(pipe)}" in line
    for source in {source for figure in spec.peaks.values() for source in figure.sources}:
        assert source.title in text
        assert (source.url or "") in text
    for check in spec.checks:
        assert check.reason in text
    assert "what fits" in text
    assert not any("\n" in line for line in detail_lines(spec))


@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.id)
def test_the_detail_as_json_holds_the_whole_sheet(spec: HardwareSpec) -> None:
    data = json.loads(json.dumps(detail_json(spec), allow_nan=False))
    assert HardwareSpec.from_json(data["hardware"]) == spec
    assert data["peaks_flop_s"]["bf16"] == spec.peak_flop_s("bf16")
    assert len(data["cross_check"]) == len(spec.checks)
    assert set(data["fits"]["largest"]) == {"bf16", "fp8", "4-bit"}


def test_a_reason_for_what_is_unknown_is_shown() -> None:
    text = "\n".join(detail_lines(load("nvidia-a10g")))
    assert "125 in Lightning" in text
    assert "contradicted" in text


def test_a_part_and_a_cpu_can_be_shown_too() -> None:
    gcd = match(device("AMD Instinct MI250X", "rocm", 65520, visible_units=110)).spec
    cpu = match(device("some CPU", "cpu", 8192, visible_units=2, max_clock_hz=2.5e9, isa=("avx2",))).spec
    assert gcd is not None
    assert cpu is not None
    assert "(one GCD of 2)" in detail_lines(gcd)[0]
    assert any("AVX2 with two 256-bit FMA units" in line for line in detail_lines(cpu))
    assert detail_json(cpu)["hardware"]["derived"] is True


def test_a_context_beyond_the_models_own_is_neither_yes_nor_no() -> None:
    lines = detail_lines(load("nvidia-h200-sxm5-141gb"))
    line = next(line for line in lines if line.startswith("  Llama-3-8B      bf16 "))
    assert line.startswith(
        "  Llama-3-8B      bf16   4k yes 32k -   128k -    8,192 tokens, the model's limit (memory for 917,032): "
    )
    assert any(line.startswith("  largest in bf16: Llama-3-8B, 8,192 tokens, the model's limit") for line in lines)
    assert any("Llama-3.3-70B   fp8    4k yes 32k yes 128k yes  131,072 tokens, the model's limit" in line for line in lines)
    less = detail_lines(load("nvidia-a100-sxm4-80gb"))
    assert any("Llama-3.3-70B   4-bit  4k yes 32k yes 128k no   up to 95,916 tokens: " in line for line in less)


def test_why_more_is_visible_than_the_capacity_is_said_only_where_that_is_so() -> None:
    above = [line for line in detail_lines(load("nvidia-h200-sxm5-141gb")) if line.startswith("  visible")]
    assert above[0].endswith("above the capacity: makers write GB for 2^30 bytes, and 141 of those are 151.4 GB here")
    below = [line for line in detail_lines(load("nvidia-a10")) if line.startswith("  visible")]
    assert below
    assert "2^30" not in below[0]


def test_the_grades_and_the_words_of_the_remarks_are_explained_where_they_are_shown() -> None:
    lines = detail_lines(load("intel-gaudi2"))
    grades = lines[lines.index("how far each figure is to be trusted") + 1 :][:3]
    assert [line.split(":")[0].strip() for line in grades] == list(CONFIDENCES)
    words = [line.split(":")[0].strip() for line in lines[lines.index("words in the remarks") + 1 : lines.index("sources") - 1]]
    assert words == ["ml-engineering", "MME", "TPC"]
    assert "words in the remarks" not in detail_lines(match(device("some CPU", "cpu", 8192)).spec or load("nvidia-t4"))


@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.id)
def test_whoever_a_remark_quotes_is_explained(spec: HardwareSpec) -> None:
    """A name that another document goes by says nothing to a reader who has not read it."""
    lines = detail_lines(spec)
    explained = "\n".join(lines[lines.index("words in the remarks") :] if "words in the remarks" in lines else [])
    for line in lines[: lines.index("how far each figure is to be trusted")]:
        for name in QUOTED.findall(line):
            assert name.rstrip("s").removesuffix("'") in explained or name in PLAIN.split(), f"who is {name}? {line}"


def test_a_maker_s_document_at_second_hand_is_said_to_be_so() -> None:
    (datasheet,) = (line for line in detail_lines(load("nvidia-h200-sxm5-141gb")) if "NVIDIA H200 datasheet" in line)
    assert datasheet.endswith("NVIDIA H200 datasheet 3512650, the maker's document as others quote it")


def test_the_sheet_of_an_h200_has_the_cache_that_an_h200_reports() -> None:
    figure = load("nvidia-h200-sxm5-141gb").caches.l2_bytes
    assert (figure.value, figure.sources[0].kind) == (60 * 2**20, "device")


def test_integer_rates_are_operations_of_no_float() -> None:
    lines = [line for line in detail_lines(load("nvidia-h200-sxm5-141gb")) if line.startswith("  int8 ") and "/s" in line]
    assert len(lines) == 3  # dense, sparse, and as it follows from units and clock
    assert all(" TOP/s" in line and "TFLOP/s" not in line for line in lines)


def test_a_cpu_s_cache_is_its_last_level_and_an_accelerator_s_is_what_its_sheet_says() -> None:
    lines = detail_lines(derive(device("Two cores", backend="cpu", llc_bytes=32 * 2**20)))
    (caches,) = (lines[n + 1] for n, line in enumerate(lines) if line == "caches")
    assert caches.split()[:4] == ["last-level", "cache", "32", "MiB"]
    assert not any(line.startswith("  L2") for line in lines)
    assert any(line.startswith("  L2 ") for line in detail_lines(load("amd-mi300x")))
    assert any(line.startswith("  memory-side cache ") for line in detail_lines(load("amd-mi300x")))
