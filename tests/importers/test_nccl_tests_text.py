"""Every form in which nccl-tests and rccl-tests print a table, against the values that stand in it."""

from typing import NamedTuple

import pytest

from suite.collectives.names import Op
from suite.importers.read import op_of_name, read_collectives
from suite.importers.rows import Checked, CollectiveLog, LogStatus
from suite.outcome import Evidence
from tests.importers.fixtures import text

GB = 1e9


def only(name: str) -> CollectiveLog:
    (log,) = read_collectives(text(name), name)
    return log


class Table(NamedTuple):
    """What a fixture holds: lines of the table, the last line's size, time and bus bandwidths, and what is known of the run."""

    op: Op | None
    ranks: int | None
    lines: int
    last_bytes: int
    last_us: float
    busbw: float | None
    busbw_in_place: float | None
    average: float | None
    status: LogStatus


COMPLETE, PARTIAL = LogStatus.COMPLETE, LogStatus.PARTIAL
GIB = 2**30
TABLES = {
    "nccl/all_gather_16ranks_headerless.log": Table(Op.ALL_GATHER, 16, 11, 2 * GIB, 10854, 185.48, 185.80, None, PARTIAL),
    "nccl/all_gather_8xA100_no_redop_column.log": Table(
        Op.ALL_GATHER, 8, 34, 8 * GIB, 33646, 223.39, 230.07, 58.2651, COMPLETE
    ),
    "nccl/all_gather_bf16_step_bytes.log": Table(Op.ALL_GATHER, 2, 7, 117440512, 490.8, 119.64, 140.24, None, PARTIAL),
    "nccl/all_reduce_2xGH200_wide_columns.log": Table(Op.ALL_REDUCE, 2, 8, 134217728, 5871.07, 22.86, 22.88, 14.9966, COMPLETE),
    "nccl/all_reduce_8xA100_info_line_in_table.log": Table(
        Op.ALL_REDUCE, 8, 34, 8 * GIB, 63896, 235.26, 235.03, 68.4048, COMPLETE
    ),
    "nccl/all_reduce_8xGH200_good.log": Table(Op.ALL_REDUCE, 8, 25, 134217728, 1916.4, 122.57, 123.11, 19.7866, COMPLETE),
    "nccl/all_reduce_GB200_one_rack_device_line_cut.log": Table(
        Op.ALL_REDUCE, 72, 5, 8 * GIB, 20299, 834.57, 846.82, 745.53, COMPLETE
    ),
    "nccl/all_reduce_GB200_two_racks.log": Table(Op.ALL_REDUCE, 144, 6, 16 * GIB, 42067, 810.41, 820.36, 688.487, COMPLETE),
    "nccl/all_reduce_error_1e-06_truncated.log": Table(Op.ALL_REDUCE, None, 6, 131072, 120.9, 2.15, 2.22, None, PARTIAL),
    "nccl/all_reduce_p5_mpirun_tag_output.log": Table(Op.ALL_REDUCE, 8, 32, 16 * GIB, 62239, 483.05, 483.35, 156.742, COMPLETE),
    "nccl/alltoall_16ranks_mca_noise.log": Table(Op.ALL_TO_ALL, 16, 24, 8 * GIB, 235696, 34.17, 38.31, 7.39538, COMPLETE),
    "nccl/alltoall_one_gpu_meaningless.log": Table(Op.ALL_TO_ALL, 1, 1, 33554432, 19.56, None, None, 0, COMPLETE),
    "nccl/broadcast_8xA100_root_no_redop.log": Table(Op.BROADCAST, 8, 34, 8 * GIB, 36896, 232.81, 234.70, 64.8653, COMPLETE),
    "nccl/broadcast_warn_between_header_lines.log": Table(Op.BROADCAST, 2, 1, 8, 45.82, 0, 0, None, PARTIAL),
    "nccl/gb10_version_with_git_hash.log": Table(Op.ALL_REDUCE, 2, 4, 65536, 67.93, 0.96, 1.01, None, PARTIAL),
    "nccl/indented_quote_rows.log": Table(Op.ALL_REDUCE, 4, 3, GIB, 62077, 25.95, 25.95, None, PARTIAL),
    "nccl/one_gpu_a6000_truncated.log": Table(None, 1, 3, 32, 122.2, None, None, None, PARTIAL),
    "nccl/reduce_8xA100_redop_and_root.log": Table(Op.REDUCE, 8, 34, 8 * GIB, 37613, 228.38, 228.83, 65.018, COMPLETE),
    "nccl/rows_headerless_8ranks.log": Table(Op.ALL_REDUCE, 8, 11, 33554432, 195.40, 300.51, 300.52, None, PARTIAL),
    "nccl/sendrecv_inplace_NA_truncated.log": Table(Op.SEND_RECV, 2, 5, 4096, 30.74, 0.13, 0.13, None, PARTIAL),
    "nccl/single_gpu_scientific_notation.log": Table(Op.ALL_REDUCE, 1, 12, 134217728, 176.33, None, None, 0, PARTIAL),
    "nccl/step_bytes_tail_headerless.log": Table(Op.ALL_REDUCE, 24, 6, 133169160, 2666.0, 95.74, 95.94, 84.8558, PARTIAL),
    "nccl/very_old_milliseconds.log": Table(None, 1, 1, 134217728, 2237, None, None, 0, PARTIAL),
    "rccl/all_reduce_MI300X_VF_8gpu.log": Table(Op.ALL_REDUCE, 8, 25, 134217728, 801.4, 293.07, 289.60, 54.8575, COMPLETE),
    "rccl/all_reduce_MI355X_rows_removed.log": Table(Op.ALL_REDUCE, 8, 2, 16 * GIB, 73913, 406.76, 406.73, 273.886, PARTIAL),
    "rccl/all_reduce_R9700_two_nodes.log": Table(Op.ALL_REDUCE, 2, 25, 134217728, 12463, 10.77, 10.77, 3.51213, COMPLETE),
    "rccl/zero_size_rows_gfx1151.log": Table(None, 2, 11, 8192, 18.01, 0.23, 0.27, None, PARTIAL),
    "constructed/nccl_tests_per_iteration_columns.log": Table(
        Op.ALL_REDUCE, 4, 4, 16777216, 461.70, 54.51, 55.43, 14.4001, COMPLETE
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_read_to_its_last_digit(name: str) -> None:
    log, expected = only(name), TABLES[name]
    apart, in_place = log.placed(False)[-1], log.placed(True)[-1]
    assert (log.op, log.ranks, log.status) == (expected.op, expected.ranks, expected.status)
    assert len(log.placed(False)) == len(log.placed(True)) == expected.lines
    assert apart.size_bytes == in_place.size_bytes == expected.last_bytes
    assert apart.time_s == pytest.approx(expected.last_us * 1e-6, rel=1e-12)
    assert apart.busbw_bytes_s == (None if expected.busbw is None else pytest.approx(expected.busbw * GB))
    assert in_place.busbw_bytes_s == (None if expected.busbw_in_place is None else pytest.approx(expected.busbw_in_place * GB))
    assert log.average_busbw_bytes_s == (None if expected.average is None else pytest.approx(expected.average * GB))
    assert {row.evidence for row in log.rows} == {Evidence.IMPORTED}


EMPTY = {
    "nccl/abort_before_table_8ranks.log": (8, LogStatus.FAILED),
    "nccl/device_list_only_all_rank0.log": (1, LogStatus.EMPTY),
    "nccl/duplicate_headers_non_mpi.log": (1, LogStatus.EMPTY),
    "nccl/duplicate_headers_two_gpus_each.log": (2, LogStatus.EMPTY),
    "nccl/warn_only_no_rows.log": (2, LogStatus.EMPTY),
}


@pytest.mark.parametrize("name", EMPTY)
def test_a_log_without_a_row_has_no_bandwidth_not_a_bandwidth_of_zero(name: str) -> None:
    log = only(name)
    assert (log.rows, log.average_busbw_bytes_s) == ((), None)
    assert (log.ranks, log.status) == EMPTY[name]
    assert log.warnings


def test_a_failed_run_says_what_failed_where() -> None:
    log = only("nccl/abort_before_table_8ranks.log")
    assert (log.tool_version, log.library_version, log.headers_version, log.hosts) == ("2.17.8", "2.26.6", "2.26.6", 2)
    assert len(log.devices) == 8
    assert any("CUDA-capable device(s) is/are busy" in warning for warning in log.warnings)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nccl/device_list_only_all_rank0.log", "12 communicators of 1 rank each"),
        ("nccl/duplicate_headers_non_mpi.log", "2 communicators of 1 rank each"),
        ("nccl/duplicate_headers_two_gpus_each.log", "2 communicators of 2 ranks each"),
    ],
)
def test_processes_that_each_ran_alone_are_not_one_run(name: str, told: str) -> None:
    assert told in only(name).warnings[0]


UNCHECKED = {
    "nccl/all_reduce_8xA100_info_line_in_table.log": (34, 34),
    "nccl/all_gather_8xA100_no_redop_column.log": (34, 34),
    "nccl/broadcast_warn_between_header_lines.log": (1, 1),
    "nccl/alltoall_16ranks_mca_noise.log": (0, 24),
    "nccl/sendrecv_inplace_NA_truncated.log": (0, 5),
    "nccl/alltoall_one_gpu_meaningless.log": (0, 1),
}


@pytest.mark.parametrize("name", UNCHECKED)
def test_what_was_not_checked_is_never_counted_as_correct(name: str) -> None:
    log = only(name)
    unchecked = [row for row in log.rows if row.checked is Checked.UNCHECKED]
    assert (sum(not row.in_place for row in unchecked), sum(row.in_place for row in unchecked)) == UNCHECKED[name]
    assert {row.wrong for row in unchecked} == {None}
    assert f"{len(unchecked)} of {len(log.rows)} rows were not checked" in log.warnings


@pytest.mark.parametrize("name", ["nccl/all_reduce_error_1e-06_truncated.log", "nccl/extra_leading_column.log"])
def test_the_old_error_column_is_a_difference_and_no_count(name: str) -> None:
    for row in only(name).rows:
        assert row.wrong is None
        assert row.error_delta is not None
        assert 0 < row.error_delta <= 1e-6
        assert row.checked is Checked.GOOD


def test_a_difference_that_the_tool_marks_or_that_is_too_large_is_wrong() -> None:
    line = "   1024    256   float   sum   9.73   0.11   0.18  {}   9.15   0.11   0.20  2e-07\n"
    for cell in ("1e+00", "3e-07*"):
        (log,) = read_collectives(line.format(cell))
        assert [row.checked for row in log.rows] == [Checked.BAD, Checked.GOOD]
        assert any("wrong results: 1 of 2 rows" in warning for warning in log.warnings)


def test_a_foreign_column_in_front_is_passed_over_and_every_line_has_its_own_world() -> None:
    log = only("nccl/extra_leading_column.log")
    apart = log.placed(False)
    assert [row.size_bytes for row in apart] == [GIB] * 4
    assert [row.busbw_bytes_s for row in apart] == pytest.approx([230.77 * GB, 57.17 * GB, 31.77 * GB, 29.61 * GB])
    assert [row.ranks for row in apart] == [8, 16, 24, 32]
    assert log.ranks is None
    assert any("edited by hand" in warning for warning in log.warnings)


def test_sizes_of_zero_are_kept_without_a_bandwidth() -> None:
    log = only("rccl/zero_size_rows_gfx1151.log")
    empty = [row for row in log.placed(False) if not row.size_bytes]
    assert [row.time_s for row in empty] == pytest.approx([10.96e-6, 10.34e-6])
    assert {(row.algbw_bytes_s, row.busbw_bytes_s) for row in empty} == {(None, None)}
    assert sum(not row.size_bytes for row in only("nccl/all_gather_8xA100_no_redop_column.log").placed(False)) == 5


def test_times_of_single_iterations_stand_beside_the_mean() -> None:
    apart = only("constructed/nccl_tests_per_iteration_columns.log").placed(False)
    spreads = {row.size_bytes: row.iterations for row in apart}
    smallest, middle = spreads[8], spreads[131072]
    assert smallest is not None
    assert middle is not None
    assert smallest.max_s == pytest.approx(2210.40e-6)
    assert (smallest.cv, middle.cv) == (pytest.approx(1.3120), pytest.approx(1.8840))


def test_peaks_and_outliers_stand_where_they_were_measured() -> None:
    reduce = only("nccl/reduce_8xA100_redop_and_root.log").placed(False)
    assert max(reduce, key=lambda row: row.busbw_bytes_s or 0).size_bytes == 4 * GIB
    assert {row.root for row in reduce} == {0}
    good = only("nccl/all_reduce_8xGH200_good.log")
    times = [row.time_s for row in good.rows if row.size_bytes == 524288]
    assert times == pytest.approx([170.3e-6, 349.6e-6])
    steps = only("nccl/all_gather_bf16_step_bytes.log").placed(False)
    assert {row.format for row in steps} == {"bf16"}
    assert {row.redop for row in steps} == {"none"}
    assert max(steps, key=lambda row: row.busbw_bytes_s or 0).size_bytes == 100663296


def test_a_rate_in_scientific_notation_over_one_rank_is_no_bandwidth() -> None:
    log = only("nccl/single_gpu_scientific_notation.log")
    assert {(row.algbw_bytes_s, row.busbw_bytes_s) for row in log.rows} == {(None, None)}
    assert any("a single rank" in warning for warning in log.warnings)
    assert log.placed(True)[-1].time_s == pytest.approx(0.10e-6)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nccl/step_bytes_tail_headerless.log", "is not that of the rows, 96.05"),
        ("rccl/all_reduce_MI355X_rows_removed.log", "2 of 16 sizes are there"),
        ("nccl/gb10_version_with_git_hash.log", "1 row cut, dropped"),
        ("nccl/all_reduce_GB200_one_rack_device_line_cut.log", "1 of 72 devices are listed"),
        ("nccl/warn_only_no_rows.log", "different devices in one run: NVIDIA GeForce GTX 1050 Ti, NVIDIA GeForce GTX 950"),
        ("nccl/single_gpu_scientific_notation.log", "12 of 25 sizes are there"),
        ("nccl/all_reduce_8xGH200_good.log", "in place, some sizes took much longer than the next larger one: 524288 bytes"),
    ],
)
def test_what_is_missing_is_said(name: str, told: str) -> None:
    assert any(told in warning for warning in only(name).warnings)


def test_a_complete_log_has_no_warning() -> None:
    for name in ("nccl/all_reduce_2xGH200_wide_columns.log", "rccl/all_reduce_R9700_two_nodes.log"):
        assert only(name).warnings == ()


def test_versions_and_devices_are_as_printed() -> None:
    mi300x, mi355x = only("rccl/all_reduce_MI300X_VF_8gpu.log"), only("rccl/all_reduce_MI355X_rows_removed.log")
    assert (mi300x.tool, mi300x.tool_version, mi355x.tool_version) == ("rccl-tests", None, "HEAD:e1b8a3a")
    assert mi300x.device_names == ("AMD Instinct MI300X VF",)
    assert mi300x.devices[0].pci == "0002:00:00.0"
    gb10 = only("nccl/gb10_version_with_git_hash.log")
    assert (gb10.tool_version, gb10.library_version, gb10.hosts) == ("2.20.0", "2.31.2", 2)
    assert gb10.devices[0].pci == "000f:01:00"
    assert only("nccl/duplicate_headers_two_gpus_each.log").library_version == "2.19.3"
    assert only("nccl/broadcast_warn_between_header_lines.log").parameters["iters"] == 100
    assert only("nccl/broadcast_warn_between_header_lines.log").parameters["warmup iters"] == 10


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("all_reduce_perf.log", Op.ALL_REDUCE),
        ("nccl-alltoall.txt", Op.ALL_TO_ALL),
        ("reduce_scatter_8.log", Op.REDUCE_SCATTER),
        ("runs/2024/nccl_allgather.log", Op.ALL_GATHER),
        ("results.log", None),
    ],
)
def test_a_file_name_names_the_longest_operation_in_it(name: str, op: Op | None) -> None:
    assert op_of_name(name) is op


def test_columns_that_contradict_a_file_name_are_believed() -> None:
    (log,) = read_collectives(text("nccl/broadcast_8xA100_root_no_redop.log"), "all_reduce.log")
    assert log.op is Op.BROADCAST
    assert "given as all_reduce, but the columns are those of broadcast" in log.warnings
