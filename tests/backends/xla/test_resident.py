"""A case on XLA takes the memory that its plan says: a host gives out more than it has, and ends the process that uses it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from backends.jax import check, data, kernel
from backends.jax.data import drawn, windows
from backends.jax.program import Compiled, temporary_bytes
from backends.xla import XlaBackend
from suite.jobs.calibration import CalibrationJob
from suite.jobs.gemm import GemmJob
from suite.outcome import Outcome
from tests.backends.cases import gemm_case
from tests.backends.xla.resident_cases import CASES, DRAWS

ROOT = Path(__file__).parents[3]
SCRATCH_BYTES = 64 * 2**20
LARGE = (1 << 15, 1 << 13)
JOBS = {job.name: job for job in (CalibrationJob(), GemmJob())}


@pytest.fixture(scope="module")
def backend() -> XlaBackend:
    made = XlaBackend({"platform": "cpu"})
    made.select(0)
    return made


def grown_bytes(name: str) -> tuple[int, int]:
    """By how much a process of its own grows, and how much of that a launch takes for itself."""
    command = [sys.executable, "-m", "tests.backends.xla.resident", name]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=300).stdout
    grown, temporary = map(int, told.split())
    return grown, temporary


@pytest.mark.thorough
@pytest.mark.parametrize("name", DRAWS)
def test_drawing_takes_the_operand_and_little_beside(name: str) -> None:
    draw = DRAWS[name]
    operand_bytes = draw.shape[0] * draw.shape[1] * jnp.dtype(draw.dtype).itemsize
    grown, _ = grown_bytes(name)
    assert operand_bytes * 0.9 < grown < 1.3 * (operand_bytes + SCRATCH_BYTES)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_a_case_takes_what_its_plan_says(name: str) -> None:
    """And what XLA converts narrow operands into, which is known only of a compiled launch: without room it is refused."""
    workload = CASES[name].workload
    footprint = JOBS[workload.job].footprint(workload)
    grown, temporary = grown_bytes(name)
    assert temporary == 0 or name in ("bf16", "fp8_e4m3")
    assert footprint.set_bytes * 0.9 < grown < 1.3 * (footprint.total_bytes(1) + temporary)


@pytest.mark.parametrize("distribution", ["normal", "outliers"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn"])
def test_a_program_that_draws_holds_no_second_copy(backend: XlaBackend, dtype: str, distribution: str) -> None:
    """Compiled and not run."""
    as_bits = jnp.dtype(dtype) in data.WIDENED_ON_A_CPU
    lowered = data._drawn.lower(
        jax.random.key(1), shape=LARGE, dtype=jnp.dtype(dtype), distribution=distribution, as_bits=as_bits
    )
    program = Compiled(lowered.compile(), "", 0.0)
    assert 0 < temporary_bytes(program) < SCRATCH_BYTES


def test_a_type_that_is_converted_to_be_written_is_drawn_as_its_bits(backend: XlaBackend) -> None:
    """Seen in what XLA makes of the program: all of the array in a wider type."""
    for dtype, as_bits in (("bfloat16", True), ("float16", False), ("int8", False)):
        lowered = data._drawn.lower(
            jax.random.key(1), shape=LARGE, dtype=jnp.dtype(dtype), distribution="normal", as_bits=as_bits
        )
        assert f"f32[{LARGE[0]},{LARGE[1]}]" not in lowered.compile().as_text(), dtype


def test_poison_is_written_without_a_second_copy(backend: XlaBackend) -> None:
    for dtype in check.POISON:
        lowered = check._poisoned.lower(shape=LARGE, dtype=jnp.dtype(dtype))
        assert temporary_bytes(Compiled(lowered.compile(), "", 0.0)) < SCRATCH_BYTES, dtype


def test_numbers_drawn_as_bits_lie_where_they_were_drawn(backend: XlaBackend) -> None:
    bits = jnp.arange(1 << 16).astype(jnp.uint16)
    seen = data.viewed(bits, jnp.dtype(jnp.bfloat16))
    assert seen.unsafe_buffer_pointer() == bits.unsafe_buffer_pointer()
    assert seen.dtype == jnp.bfloat16


@pytest.mark.parametrize("block", [30, 64])
@pytest.mark.parametrize("shape", [(13, 9), (64, 10), (1, 50), (17, 1)])
def test_blocks_of_any_size_leave_no_hole_and_repeat_nothing(
    backend: XlaBackend, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int], block: int
) -> None:
    monkeypatch.setattr(data, "BLOCK_ELEMENTS", block)
    with jax.disable_jit():
        whole = np.asarray(drawn(shape, jnp.dtype(jnp.float32), "normal", 3).data)
        window = ((shape[0] // 3, shape[0]), (shape[1] // 2, shape[1]))
        (part,) = windows(shape, "normal", 3, [window])
    assert np.all(whole != 0)
    assert len(np.unique(whole)) == whole.size
    np.testing.assert_array_equal(part, whole[slice(*window[0]), slice(*window[1])])


def test_a_scale_is_that_of_the_numbers_that_stand(backend: XlaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 3 rows in 7: of these seeds, the largest number is among those that the last block writes over."""
    monkeypatch.setattr(data, "BLOCK_ELEMENTS", 3)
    with jax.disable_jit():
        for seed in (6, 11):
            whole = np.asarray(drawn((7, 1), jnp.dtype(jnp.float32), "normal", seed).data)
            scale = drawn((7, 1), jnp.dtype(jnp.float8_e4m3fn), "normal", seed).scale
            assert scale is not None
            assert float(scale) == pytest.approx(np.abs(whole).max() / 448)


def test_what_a_launch_has_no_room_for_is_refused(backend: XlaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of bf16 XLA converts both operands and the result."""
    case: Any = gemm_case("bf16", 256, 256, 256, backend="xla")
    monkeypatch.setattr(kernel, "memory_available_bytes", lambda: 3 * 4 * 256 * 256 - 1)
    with pytest.raises(MemoryError, match=r"needs 0.000786 GB beside its operands and output") as lost:
        backend.prepare(case, 1, seed=3)
    assert backend.classify(lost.value).outcome is Outcome.OUT_OF_MEMORY
    monkeypatch.setattr(kernel, "memory_available_bytes", lambda: 1 << 30)
    backend.prepare(case, 1, seed=3).close()
