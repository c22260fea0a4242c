"""A CPU's spec follows from cores, clock and instruction set, and says on what assumption."""

import pytest

from suite.hardware.cpu import derive
from suite.hardware.match import match
from suite.hardware.spec import HardwareSpec
from tests.hardware.devices import device

ICE_LAKE = ("sse2", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512_vnni")
SAPPHIRE_RAPIDS = (*ICE_LAKE, "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8")


BARE_METAL = {"clock_source": "cpufreq cpuinfo_max_freq", "guest": "no"}


def cpu(
    isa: tuple[str, ...], cores: int | None = 2, clock_hz: float | None = 2.5e9, details: dict[str, str] = BARE_METAL
) -> HardwareSpec:
    facts = {"visible_units": cores, "max_clock_hz": clock_hz, "llc_bytes": 32 * 2**20, "details": details}
    return derive(device("some CPU", "cpu", 8192, isa=isa, **facts))


@pytest.mark.parametrize(
    ("isa", "rates"),
    [
        (SAPPHIRE_RAPIDS, {"fp64": 32, "fp32": 64, "fp16": 128, "bf16": 1024, "int8": 2048}),
        (ICE_LAKE, {"fp64": 32, "fp32": 64, "fp16": 64, "bf16": 64, "int8": 256}),
        (("avx512f", "avx512_bf16"), {"fp64": 32, "fp32": 64, "fp16": 64, "bf16": 128}),
        (("sse2", "avx", "avx2", "fma"), {"fp64": 16, "fp32": 32, "fp16": 32, "bf16": 32}),
        (("AVX2", "FMA", "avx_vnni"), {"fp64": 16, "fp32": 32, "fp16": 32, "bf16": 32, "int8": 128}),
        (("sse2",), {"fp64": 4, "fp32": 8, "fp16": 8, "bf16": 8}),
        (("asimd", "asimdhp", "asimddp"), {"fp64": 8, "fp32": 16, "fp16": 32, "bf16": 16, "int8": 64}),
        (("asimd", "asimdhp", "sve", "bf16", "i8mm"), {"fp64": 16, "fp32": 32, "fp16": 64, "bf16": 32, "int8": 128}),
    ],
)
def test_rates_per_clock_by_instruction_set(isa: tuple[str, ...], rates: dict[str, int]) -> None:
    spec = cpu(isa)
    for pipe in ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"):
        per_core = rates.get(pipe)
        assert spec.flop_per_clock(pipe) == (None if per_core is None else 2 * per_core)
        assert spec.peak_flop_s(pipe) == (None if per_core is None else 2 * per_core * 2.5e9)


def test_the_assumption_is_written_beside_the_figure() -> None:
    peak = cpu(ICE_LAKE).peaks["fp64"]
    assert peak.derived == (
        "2 cores x 32 a clock x 2.5 GHz; AVX-512 with two 512-bit FMA units: 8 lanes x 2 units x 2; parts with one unit do half"
    )
    assert peak.confidence == "low"
    assert cpu(ICE_LAKE).ops_per_clock["bf16"].derived.startswith("converted to fp32")


@pytest.mark.parametrize(
    ("details", "remark"),
    [
        (BARE_METAL, "2.5 GHz;"),
        ({**BARE_METAL, "guest": "yes"}, "2.5 GHz nominal clock;"),
        ({"clock_source": "/proc/cpuinfo cpu MHz: the clock at the time of reading", "guest": "no"}, "2.5 GHz nominal clock;"),
        ({}, "2.5 GHz nominal clock;"),
    ],
)
def test_a_clock_that_is_no_known_maximum_is_called_nominal(details: dict[str, str], remark: str) -> None:
    spec = cpu(ICE_LAKE, details=details)
    assert remark in spec.peaks["fp64"].derived
    assert spec.clocks.boost_hz.note == ("nominal clock" if "nominal" in remark else "")
    assert spec.clocks.boost_hz.value == 2.5e9
    found = match(device("some CPU", "cpu", 8192, visible_units=2, max_clock_hz=2.5e9, isa=ICE_LAKE, details=details))
    assert found.reason == f"derived from cores, {'nominal clock' if 'nominal' in remark else 'clock'} and vector width"


def test_a_derived_spec_says_so_and_claims_no_bandwidth() -> None:
    spec = cpu(ICE_LAKE)
    assert spec.derived
    assert spec.bandwidth_bytes_s is None
    assert "calibrated" in spec.memory.bandwidth_bytes_s.note
    assert spec.llc_bytes == 32 * 2**20
    assert spec.memory_bytes == 8192 * 2**20
    assert HardwareSpec.from_json(spec.to_json()) == spec, "the spec is stored with the run"


@pytest.mark.parametrize(
    ("cores", "clock_hz", "missing"), [(2, None, "maximum clock"), (None, 2e9, "core count"), (None, None, "core count")]
)
def test_without_clock_or_cores_there_is_no_peak(cores: int | None, clock_hz: float | None, missing: str) -> None:
    spec = cpu(ICE_LAKE, cores, clock_hz)
    assert spec.peak_flop_s("fp32") is None
    assert missing in spec.peaks["fp32"].note
    assert spec.ops_per_clock["fp32"].value == 64


def test_an_unknown_instruction_set_has_no_peak() -> None:
    assert cpu(("rv64gcv",)).peaks == {}
    assert cpu(()).peak_flop_s("fp32") is None


def test_match_derives_whatever_the_cpu_is_called() -> None:
    found = match(device("NVIDIA H200", "cpu", 8192, visible_units=2, max_clock_hz=2.5e9, isa=ICE_LAKE))
    assert found.hardware == "cpu"
    assert found.spec is not None
    assert found.spec.peak_flop_s("fp32") == 2 * 64 * 2.5e9
