import pytest

from suite.jobs.calibration import CalibrationJob, CalibrationSettings, working_set_bytes

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
