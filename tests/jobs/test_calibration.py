import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.matrix import matrix_shape
from suite.jobs.calibration import CalibrationJob, CalibrationSettings, elements_of, working_set_bytes

JOB = CalibrationJob()
GIB = 2**30


def test_read_copy_and_triad_count_bytes_read_and_written():
    work = {w.param("op"): JOB.work(w) for w in JOB.workloads(CalibrationSettings(bytes=12 * 2**20))}
    assert all(work[op].compulsory_bytes == 12 * 2**20 for op in ("read", "copy", "triad"))
    assert (work["empty"].compulsory_bytes, work["empty"].flops, work["empty"].pipe) == (0, 0, None)


def test_footprints_split_inputs_and_outputs():
    prints = {w.param("op"): JOB.footprint(w) for w in JOB.workloads(CalibrationSettings(bytes=12 * 2**20))}
    assert prints["copy"].output_bytes == 6 * 2**20
    assert prints["triad"].output_bytes == 4 * 2**20
    assert prints["read"].output_bytes == 0


def test_a_third_of_the_working_set_is_no_odd_number_but_rows_of_whole_vectors():
    elements = elements_of("triad", 4 * GIB)
    assert elements == 357_892_096
    assert 12 * elements > 0.9999 * 4 * GIB
    assert matrix_shape(elements) == (16384, 21844)
    work = {w.param("op"): JOB.work(w).compulsory_bytes for w in JOB.workloads(CalibrationSettings())}
    assert work == {"read": 4 * GIB, "copy": 4 * GIB, "triad": 12 * elements, "empty": 0}


@given(st.sampled_from(["read", "copy", "triad"]), st.integers(4, 2**36))
def test_at_most_a_thousandth_of_an_operand_is_given_up_for_that(op, size_bytes):
    fit = size_bytes // (4 * {"read": 1, "copy": 2, "triad": 3}[op])
    assert fit - fit // 1024 <= elements_of(op, size_bytes) <= fit


@pytest.mark.parametrize(
    ("memory", "llc", "is_cpu", "expected"),
    [
        (141 * GIB, 60 * 2**20, False, 4 * GIB),
        (64 * GIB, 32 * 2**20, True, 256 * 2**20),
        (8 * GIB, 480 * 2**20, True, 2 * GIB),  # a guest that reports its host's cache: memory bounds it
        (8 * GIB, None, False, 2 * GIB),
        (8 * GIB, None, True, 256 * 2**20),
    ],
)
def test_the_working_set_passes_the_cache_and_fits_the_memory(memory, llc, is_cpu, expected):
    assert working_set_bytes(memory, llc, is_cpu) == expected
