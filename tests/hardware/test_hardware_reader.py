"""A broken user file ends as one line that names the file, the key and what is wrong."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.errors import UsageError
from suite.hardware.catalogue import load
from suite.hardware.sheet import parse

GOOD = """
id: mine
name: My accelerator
vendor: Me
units: {name: SM, count: {value: 10, source: [My datasheet], confidence: high}}
memory:
  capacity: {value: 16, unit: GB, source: [My datasheet], confidence: high}
  bandwidth_gb_s: {value: 500, source: [{title: My datasheet, url: https://example.org/x}], confidence: low}
peaks_tflop_s:
  bf16: {value: 100, source: [My datasheet], confidence: high}
  fp8: null
"""


def written(folder: Path, text: str) -> list[Path]:
    (folder / "mine.yaml").write_text(text)
    return [folder]


def test_a_small_file_is_enough(tmp_path: Path) -> None:
    spec = load("mine", written(tmp_path, GOOD))
    assert spec.peak_flop_s("bf16") == 100e12
    assert spec.bandwidth_bytes_s == 500e9
    assert spec.memory_bytes == 16e9
    assert spec.peak_flop_s("fp8") is None
    assert spec.peaks["bf16"].sources[0].title == "My datasheet"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("id: mine", "id: other", "id is 'other'; it has to be the file's name, 'mine'"),
        ("vendor: Me\n", "", "vendor is missing"),
        ("value: 10,", "value: ten,", "units.count.value is 'ten', not a number"),
        ("value: 10,", "", "units.count.value is missing; write null where it is not known"),
        ("value: 10,", "value: -3,", "units.count.value is -3, not above 0"),
        ("value: 10,", "value: .nan,", "units.count.value is nan, not above 0"),
        ("value: 10,", "value: true,", "units.count.value is True, not a number"),
        ("unit: GB", "unit: KB", "memory.capacity.unit is 'KB'; "),
        ("unit: GB, ", "", "memory.capacity.unit is missing"),
        ("bf16: {value: 100, source: [My datasheet]", "bf16: {value: 100, source: []", "peaks_tflop_s.bf16.source is missing"),
        (
            "bf16: {value: 100, source: [My datasheet]",
            "bf16: {value: 100, source: me",
            "peaks_tflop_s.bf16.source is 'me', not a list",
        ),
        ("  bf16:", "  bf61:", "peaks_tflop_s.bf61 is not known; did you mean 'bf16'?"),
        ("confidence: low", "confidence: sure", "memory.bandwidth_gb_s.confidence is 'sure'; choose from: high, low, medium"),
        ("title: My datasheet, ", "", "memory.bandwidth_gb_s.source[0].title is missing"),
        ("bandwidth_gb_s:", "bandwith_gb_s:", "memory.bandwith_gb_s is not known; did you mean 'bandwidth_gb_s'?"),
        ("peaks_tflop_s:", "peaks_tflops:", "peaks_tflops is not known; did you mean 'peaks_tflop_s'?"),
        ("units: {name: SM", "units: [SM", "not valid YAML"),
        ("memory:\n", "memory: 16\nextra:\n", "memory is 16, not a mapping"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(UsageError) as failure:
        load("mine", written(tmp_path, GOOD.replace(old, new, 1)))
    message = str(failure.value)
    assert message.startswith(f"{tmp_path / 'mine.yaml'}: ")  # of a user's folder, which the name alone does not tell
    assert said in message
    assert "\n" not in message


def test_a_peak_that_its_own_units_and_clock_do_not_give_needs_a_reason(tmp_path: Path) -> None:
    check = (
        "cross_check: [{pipe: bf16, units: 10, ops_per_clock: 4096, clock: boost, clock_mhz: 1000, published_tflop_s: 100%s}]\n"
    )
    with pytest.raises(UsageError, match=r"cross_check\[0\].reason is missing: .* -59.0% off the published peak"):
        load("mine", written(tmp_path, GOOD + check % ""))
    (tmp_path / "said").mkdir()
    (tmp_path / "said" / "mine.yaml").write_text(GOOD + check % ", reason: a misprint")
    assert load("mine", [tmp_path / "said"]).checks[0].reason == "a misprint"


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words", "\t: {"])
def test_a_file_that_holds_no_mapping(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=rf"^{re.escape(str(tmp_path / 'mine.yaml'))}: "):
        load("mine", written(tmp_path, text))


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_bytes(b"\xff\xfe\x00id")
    with pytest.raises(UsageError, match=r"mine\.yaml: cannot be read"):
        load("mine", [tmp_path])


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("id", "name", "vendor", "units", "memory", "peaks_tflop_s", "runtime", "caches", "cross_check", "formats", "notes")


@given(st.dictionaries(st.sampled_from(KEYS), JSON_VALUES))
def test_whatever_a_file_holds_without_its_required_keys_ends_in_one_line(data: dict[str, object]) -> None:
    data.pop("vendor", None)
    with pytest.raises(UsageError, match=r"^mine\.yaml: [^\n]+$"):
        parse(data, "mine.yaml")
