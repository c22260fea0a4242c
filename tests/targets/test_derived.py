"""What follows from facts: XLA's estimate where it means something, and no occupancy where there is no kernel."""

import pytest

from suite.targets.derived import estimate_of, occupancy_of
from tests.targets.cells import cell, estimated, failed


def test_xlas_estimate_for_a_v5e_is_its_declared_peak() -> None:
    found = estimate_of(estimated())
    assert found is not None
    assert found.flop_s == pytest.approx(197e12, rel=0.01)
    assert found.of_roof == pytest.approx(1.0, rel=0.01)


def test_one_of_the_two_devices_of_a_chip_has_half_its_roof() -> None:
    """What libtpu 0.0.42 gives for a TPU7x, whose topology has two devices a chip."""
    found = estimate_of(estimated(target="tpu7x", optimal_s=0.0011039272649213672, devices_of_chip=2))
    assert found is not None
    assert found.of_roof == pytest.approx(0.863, abs=0.002)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("xla_gemm.int8", "int8 for bf16"),
        ("xla_gemm.fp8_e4m3", "fp8_e4m3 for bf16"),
        ("xla_calibration.read", "only that of matrix products"),
        ("xla_collective.all_reduce", "only that of matrix products"),
    ],
)
def test_an_estimate_that_means_nothing_is_not_shown_and_says_why(program: str, why: str) -> None:
    found = estimate_of(estimated(program))
    assert found is not None
    assert (found.flop_s, found.of_roof) == (None, None)
    assert why in found.why_not


def test_what_has_no_estimate_or_occupancy_has_none() -> None:
    assert estimate_of(estimated(target="cpu")) is None
    assert estimate_of(cell()) is None
    assert occupancy_of(estimated()) is None
    assert occupancy_of(failed("unsupported", "why")) is None


def test_occupancy_is_of_the_targets_own_limits() -> None:
    shares = {target: found.share for target in ("sm_80", "sm_86", "gfx942") if (found := occupancy_of(cell(target=target)))}
    assert shares == {"sm_80": 0.5, "sm_86": pytest.approx(32 / 48), "gfx942": 1.0}
