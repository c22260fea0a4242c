"""Real programs on targets that are not there, by the children that the product starts."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("triton")

from backends.targets.choosing import became, unfit
from backends.targets.devices import DEVICES
from backends.targets.made import Made
from backends.targets.refused import NothingFits
from suite.targets.pool import Asked, Pool


def answers(cache: Path, *cells: tuple[str, str], kind: str = "triton") -> dict[tuple[str, str], Any]:
    environment = {**os.environ, "TRITON_CACHE_DIR": str(cache)}
    asked = [Asked(program, target, kind) for program, target in cells]
    return {(each.program, each.target): answer for each, answer in Pool(1, 200.0, environment).run(asked)}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    wanted = [
        ("clock", "sm_90"),
        ("clock", "gfx942"),
        ("clock", "gfx1100"),
        ("read", "gfx1201"),
        ("quantised.w8a16.few", "sm_90"),
        ("gemm.fp8_e4m3", "gfx942"),
        ("attention.gluon.bf16", "sm_80"),
    ]
    return answers(tmp_path_factory.mktemp("triton"), *wanted)


def test_a_small_kernel_has_its_facts_on_both_vendors(found: dict[tuple[str, str], Any]) -> None:
    for place in (("clock", "sm_90"), ("clock", "gfx942"), ("read", "gfx1201")):
        facts = found[place]["facts"]
        assert found[place]["outcome"] == "ok", found[place]
        assert 0 < facts["registers"] < 128
        assert (facts["spilled_bytes"], facts["instructions"], facts["execution"]) == (0, [], "")
        assert facts["code_bytes"] > 100
        assert facts["warps"] == (8 if place[0] == "read" else 1)


def test_a_product_is_native_where_its_instructions_are_the_formats_own(found: dict[tuple[str, str], Any]) -> None:
    native = found["quantised.w8a16.few", "sm_90"]
    assert (native["outcome"], native["facts"]["execution"]) == ("ok", "native")
    assert all("bf16.bf16" in name for name in native["facts"]["instructions"])
    assert native["configuration"].startswith("64x16")
    upcast = found["gemm.fp8_e4m3", "gfx942"]
    assert upcast["facts"]["execution"] == "upcast"
    assert upcast["facts"]["instead"].startswith("operands converted, then multiplied by v_mfma_f32")


def test_what_is_not_made_for_a_target_says_so(found: dict[tuple[str, str], Any]) -> None:
    assert found["attention.gluon.bf16", "sm_80"]["outcome"] == "unsupported"
    assert "written for sm_90" in found["attention.gluon.bf16", "sm_80"]["reason"]
    assert found["clock", "gfx1100"]["reason"].startswith("gfx1100 has no cycle counter")


def test_a_kernel_that_does_not_fit_is_passed_over_or_refused() -> None:
    device = DEVICES["sm_89"]
    facts = {"shared_bytes": 120_000, "spilled_bytes": 0}
    assert unfit(facts, device, None) == "takes 120000 bytes of shared memory, of 101376"
    spilling = {"shared_bytes": 1, "spilled_bytes": 8}
    assert unfit(spilling, device, 4) == "spills 8 bytes of each thread's registers"
    assert unfit(spilling, device, 8) is None
    assert unfit(spilling, device, None) is None


def test_where_no_configuration_fits_each_says_why() -> None:
    def calls(config: Any) -> list[Any]:
        raise RuntimeError(f"loc(fused)\nout of registers by {config.label}")

    configs = [SimpleNamespace(label=label) for label in "ab"]
    told = "no configuration fits, of 2: a: out of registers by a; b: out of registers by b"
    with pytest.raises(NothingFits, match=told):
        became(Made(configs, calls, first_fitting=True), DEVICES["sm_90"])
    with pytest.raises(RuntimeError, match="by a"):
        became(Made(configs, calls), DEVICES["sm_90"])


def test_xla_compiles_for_the_cpu(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    found = answers(
        tmp_path, ("xla_gemm.fp32", "cpu"), ("xla_gemm.tf32", "cpu"), ("xla_collective.all_reduce", "cpu"), kind="xla"
    )
    gemm = found["xla_gemm.fp32", "cpu"]
    assert gemm["facts"]["flops"] == pytest.approx(2 * 4096**3, rel=0.01)
    assert (gemm["facts"]["execution"], gemm["facts"]["instructions"]) == ("native", ["f32 operands in the HLO"])
    assert gemm["facts"]["peak_bytes"] >= 3 * 4 * 4096**2
    assert found["xla_gemm.tf32", "cpu"]["outcome"] == "unsupported"
    assert found["xla_collective.all_reduce", "cpu"]["facts"]["bytes_accessed"] > 0


def test_xla_compiles_attention_and_decoding_for_the_cpu(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    attention, decode = "xla_attention.naive.fp32", "xla_decode.naive.int8"
    flash = ("xla_attention.library_flash.bf16", "xla_decode.library_flash.bf16")
    found = answers(tmp_path, *((name, "cpu") for name in (attention, decode, *flash)), kind="xla")
    assert found[attention, "cpu"]["facts"]["execution"] == "native", found[attention, "cpu"]
    assert found[attention, "cpu"]["facts"]["flops"] >= 2 * 32 * 2048**2 * 2 * 2 * 128  # of all pairs: a mask leaves none out
    # A score of every pair is a temporary, and so part of the peak.
    facts = found[attention, "cpu"]["facts"]
    assert facts["temporary_bytes"] >= 4 * 2 * 32 * 2048**2
    assert facts["peak_bytes"] == pytest.approx(facts["temporary_bytes"] + 4 * 2 * 2048 * (32 + 8 + 8 + 32) * 128, rel=0.01)
    assert found[decode, "cpu"]["facts"]["peak_bytes"] >= 2 * 32 * 4096 * 8 * 128  # keys and values of one byte
    for name in flash:
        assert found[name, "cpu"]["outcome"] == "unsupported"
        assert "Pallas kernel for TPUs" in found[name, "cpu"]["reason"]


def test_the_kernels_that_jax_ships_for_tpus_compile_for_one(tmp_path: Path) -> None:
    pytest.importorskip("libtpu")
    wanted = {"xla_attention.library_flash.bf16": "flash_attention", "xla_decode.library_flash.bf16": "paged_attention"}
    found = answers(tmp_path, *((name, "v5e") for name in wanted), kind="xla")
    for name, kernel in wanted.items():
        facts = found[name, "v5e"]["facts"]
        assert (facts["execution"], facts["instructions"]) == ("native", [kernel])


def test_xlas_estimate_for_a_v5e_that_is_not_there_is_its_declared_peak(tmp_path: Path) -> None:
    """Within 1 %: the figure that shows that XLA reckons for the chip that was asked for."""
    pytest.importorskip("libtpu")
    facts = answers(tmp_path, ("xla_gemm.bf16", "v5e"), kind="xla")["xla_gemm.bf16", "v5e"]["facts"]
    assert facts["flops"] / facts["optimal_s"] == pytest.approx(197e12, rel=0.01)
    assert facts["execution"] == "native"


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_the_whole_matrix_has_no_gap_and_no_failure(tmp_path: Path) -> None:
    from suite.targets.carry import carry_out, cells
    from suite.targets.listing import listing
    from suite.targets.names import TARGETS

    told = listing()
    wanted = cells(told, told.programs, TARGETS)
    ended = [each.compiled for each in carry_out(wanted, {}, lambda each: None, jobs=os.cpu_count() or 1, limit_s=600.0)]
    assert {(each.program, each.target) for each in ended} == {(cell.place.program, cell.place.target) for cell in wanted}
    assert all(each.reason for each in ended if each.outcome != "ok")
    assert [(each.program, each.target, each.reason) for each in ended if each.failed] == []
