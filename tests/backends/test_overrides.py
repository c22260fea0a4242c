"""Variables of the environment that would make another computation of a case, and the workspaces that torch reads from them."""

import pytest

from backends.torch.overrides import OVERRIDES, Workspaces, overridden, workspace_reason, workspaces
from suite.environment import VARIABLES
from tests.backends.cases import EVERY_FORMAT, calibration_case, gemm_case

MIB = 2**20


def case(format_name: str, **switches: object):
    return gemm_case(format_name, 64, 64, 64, backend="cuda", switches=switches)


@pytest.mark.parametrize(
    ("variable", "value", "refused", "allowed"),
    [
        ("NVIDIA_TF32_OVERRIDE", "0", [("tf32", {})], [("fp32", {}), ("bf16", {})]),
        ("NVIDIA_TF32_OVERRIDE", "1", [("fp32", {})], [("tf32", {}), ("fp64", {})]),
        (
            "CUBLAS_EMULATE_SINGLE_PRECISION",
            "1",
            [("fp32", {}), ("tf32", {})],
            [("fp32", {"emulation": "bf16x9"}), ("fp64", {}), ("bf16", {})],
        ),
        ("CUBLAS_EMULATE_SINGLE_PRECISION", "0", [("fp32", {"emulation": "bf16x9"})], [("fp32", {}), ("tf32", {})]),
        ("CUBLAS_EMULATE_DOUBLE_PRECISION", "1", [("fp64", {})], [("fp64", {"emulation": "int8"}), ("fp32", {})]),
        ("CUBLAS_EMULATE_DOUBLE_PRECISION", "0", [("fp64", {"emulation": "int8"})], [("fp64", {})]),
        ("CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT", "39", [("fp64", {"emulation": "int8"})], [("fp64", {})]),
        ("PYTORCH_TUNABLEOP_ENABLED", "1", [("bf16", {}), ("fp8_e4m3", {})], [("bf16", {"tunable_op": True}), ("int8", {})]),
        ("PYTORCH_TUNABLEOP_ENABLED", "0", [], [("bf16", {}), ("bf16", {"tunable_op": True})]),
        ("PYTORCH_TUNABLEOP_TUNING", "0", [("bf16", {"tunable_op": True})], [("bf16", {})]),
        ("PYTORCH_TUNABLEOP_RECORD_UNTUNED", "1", [("bf16", {"tunable_op": True})], [("bf16", {})]),
    ],
)
def test_a_variable_refuses_what_it_changes_and_nothing_else(variable, value, refused, allowed) -> None:
    for format_name, switches in refused:
        reason = overridden(case(format_name, **switches), {variable: value})
        assert reason is not None, (format_name, switches)
        assert reason.startswith(f"{variable}={value} ")
        assert reason.endswith("; unset it")
        assert "\n" not in reason
    for format_name, switches in allowed:
        assert overridden(case(format_name, **switches), {variable: value}) is None, (format_name, switches)


@pytest.mark.parametrize("variable", ["ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"])
def test_a_looser_mode_of_onednn_refuses_fp32_on_a_cpu_and_nothing_else(variable) -> None:
    fp32, bf16 = (gemm_case(name, 64, 64, 64, backend="cpu") for name in ("fp32", "bf16"))
    assert overridden(fp32, {variable: "BF16"}) == f"{variable}=BF16 lets oneDNN compute fp32 with fewer bits; unset it"
    assert overridden(fp32, {variable: "strict"}) is None
    assert overridden(bf16, {variable: "BF16"}) is None
    assert overridden(case("fp32"), {variable: "BF16"}) is None  # of a GPU


def test_a_clean_environment_refuses_nothing() -> None:
    assert all(overridden(case(name), {"PATH": "/bin", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}) is None for name in EVERY_FORMAT)


def test_every_variable_that_can_refuse_a_case_is_recorded_with_the_run() -> None:
    assert {each.variable for each in OVERRIDES} <= set(VARIABLES)
    assert {"CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "TORCH_CUBLASLT_UNIFIED_WORKSPACE"} <= set(VARIABLES)


def test_what_multiplies_no_matrices_is_left_alone() -> None:
    """Read, copy and triad are fp32 too, and no matrix library computes them."""
    assert overridden(calibration_case("copy", 4096, backend="cuda"), {"NVIDIA_TF32_OVERRIDE": "1"}) is None


@pytest.mark.parametrize(
    ("capability", "variables", "cublas_mib", "cublaslt_mib"),
    [
        ((9, 0), {}, 32, 32),
        ((10, 0), {}, 32, 32),
        ((8, 0), {}, 8.125, 8.125),
        ((8, 0), {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}, 32, 32),
        ((9, 0), {"CUBLAS_WORKSPACE_CONFIG": ":4096:2:16:8"}, 8.125, 8.125),
        ((9, 0), {"CUBLAS_WORKSPACE_CONFIG": "what"}, 32, 32),
        ((9, 0), {"CUBLASLT_WORKSPACE_SIZE": "16384"}, 32, 16),
        ((9, 0), {"CUBLASLT_WORKSPACE_SIZE": "65536"}, 32, 32),  # one buffer for both: no more than cuBLAS has
        ((9, 0), {"CUBLASLT_WORKSPACE_SIZE": "65536", "TORCH_CUBLASLT_UNIFIED_WORKSPACE": "0"}, 32, 64),
        ((9, 0), {"TORCH_CUBLASLT_UNIFIED_WORKSPACE": "0"}, 32, 1),
        ((9, 0), {"CUBLASLT_WORKSPACE_SIZE": "lots"}, 32, 32),
    ],
)
def test_workspaces_are_read_as_torch_reads_them(capability, variables, cublas_mib, cublaslt_mib) -> None:
    assert workspaces(capability, variables) == Workspaces(round(cublas_mib * MIB), round(cublaslt_mib * MIB))


def test_a_workspace_that_the_process_has_not_is_refused_with_what_to_set() -> None:
    have = Workspaces(32 * MIB, 32 * MIB)
    assert workspace_reason({}, lambda: have) is None
    assert workspace_reason({"workspace_mib": 32}, lambda: have) is None
    reason = workspace_reason({"workspace_mib": 64}, lambda: have)
    assert reason is not None
    assert "CUBLAS_WORKSPACE_CONFIG=:65536:1" in reason
    # What the reason says to set is what is then found.
    assert workspace_reason({"workspace_mib": 64}, lambda: workspaces((9, 0), {"CUBLAS_WORKSPACE_CONFIG": ":65536:1"})) is None
