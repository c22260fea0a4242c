"""What nccl-tests and rccl-tests print, in every form since 2018: whole, cut, interleaved, doubled, or without its heading.

What is there is read and what is missing is said: a log has a status and warnings, never a row that was guessed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from suite.collectives.names import Op
from suite.importers.consistency import average_differs, complaints, expected_lines
from suite.importers.copies import without_copies
from suite.importers.header import Header, communicators, starts_run
from suite.importers.inference import is_single_rank, known_world, possible_ops, ranks_by_count, ranks_by_factor
from suite.importers.rows import CollectiveLog, CollectiveRow, LogStatus
from suite.importers.table import Table
from suite.importers.text_lines import Line, lines_by_process
from suite.importers.unproven import as_unchecked, contradiction

GB = 1e9


def read_nccl_tests(text: str, op: Op | None = None) -> tuple[CollectiveLog, ...]:
    """Every run in a text, in order; ``op`` is what the reader knows of it, from a file's name for instance.

    A text without any run gives none.
    """
    by_process = [list(_Run(lines).logs(op)) for lines in lines_by_process(text).values()]
    logs = [log for logs in by_process for log in logs]
    if sum(any(log.rows for log in logs) for logs in by_process) > 1:
        told = "several processes print tables: each ran on its own, as a build without MPI does"
        logs = [replace(log, warnings=(*log.warnings, told)) for log in logs]
    return without_copies(logs)


class _Run:
    """The lines of one process, which may have run several tests one after the other."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.parts: list[tuple[Header, Table]] = [(Header(), Table())]
        for line in lines:
            self._take(line)
        for _, table in self.parts:
            table.close()

    def _take(self, line: Line) -> None:
        header, table = self.parts[-1]
        if starts_run(line.text) and (table.headings or table.lines or header.average_gb_s is not None):
            self.parts.append((Header(), Table()))
            header, table = self.parts[-1]
        if not table.take(line):
            header.take(line.text)
        if " version" in line.message:
            header.take(line.message)

    def logs(self, op: Op | None) -> Iterator[CollectiveLog]:
        for header, table in self.parts:
            if table.rows or table.cut or table.headings or header.devices or header.options:
                yield _log(header, table, op)


def _log(header: Header, table: Table, known: Op | None) -> CollectiveLog:
    worlds = communicators(header.devices)
    ranks, ranks_source = _ranks_of_devices(header)
    if ranks is None and is_single_rank(table.rows):
        ranks, ranks_source = 1, "bus bandwidth of 0"
    op, op_source, op_warning = _op(header, table.rows, ranks, known)
    unproven = contradiction(table.rows, _option(header, "validation"), header.out_of_bounds)
    rows = tuple(_placed(row, op, ranks) for row in (as_unchecked(table.rows) if unproven else table.rows))
    if ranks is None:
        ranks, ranks_source = _ranks_of_rows(rows)
        rows = tuple(replace(row, ranks=row.ranks or ranks) for row in rows)
    log = CollectiveLog(
        tool=header.tool or "nccl-tests",
        tool_version=header.tool_version,
        library_version=header.library_version,
        headers_version=header.headers_version,
        op=op,
        op_source=op_source,
        ranks=ranks,
        ranks_source=ranks_source,
        parameters=header.options,
        devices=tuple(header.devices),
        rows=rows,
        average_busbw_bytes_s=None if header.average_gb_s is None else header.average_gb_s * GB,
        out_of_bounds=header.out_of_bounds,
        status=_status(header, table, max(1, len(worlds))),
    )
    return replace(log, warnings=tuple(filter(None, (op_warning, unproven, *complaints(header, table, log)))))


def _option(header: Header, name: str) -> int | None:
    value = header.options.get(name)
    return value if isinstance(value, int) else None


def _ranks_of_devices(header: Header) -> tuple[int | None, str | None]:
    """The largest rank of a communicator decides: a list may have lost its beginning."""
    worlds = communicators(header.devices)
    if not worlds:
        return None, None
    ranks = known_world(max(device.rank for device in worlds[0]) + 1)
    return ranks, "device list" if ranks else None


def _op(
    header: Header, rows: Sequence[CollectiveRow], ranks: int | None, known: Op | None
) -> tuple[Op | None, str | None, str | None]:
    """The operation, what says so, and a warning where columns say another thing or leave several."""
    possible = possible_ops(rows, ranks)
    if header.op is not None and (header.op in possible or not possible):
        return header.op, "program" if header.program else "command line", None
    if header.op is not None:  # a command that lost its beginning, or the name of another run in the same text
        told = f"named {header.op}, but the columns are those of {' or '.join(possible)}"
        return (possible[0], "columns", told) if len(possible) == 1 else (None, None, told)
    if known is not None and (known in possible or not rows or not possible):
        return known, "given", None
    if len(possible) == 1:
        contradicts = f"given as {known}, but the columns are those of {possible[0]}" if known else None
        return possible[0], "columns", contradicts
    return (
        None,
        None,
        f"the text does not name its operation; by its columns {' or '.join(possible) or 'none'} fits" if rows else None,
    )


def _ranks_of_rows(rows: Sequence[CollectiveRow]) -> tuple[int | None, str | None]:
    worlds: set[int | None] = {row.ranks for row in rows if row.ranks}
    worlds = worlds or {ranks_by_count(row) for row in rows if row.size_bytes}
    only = worlds.pop() if len(worlds) == 1 else None
    return (only, "columns") if only and only > 1 else (None, None)


def _placed(row: CollectiveRow, op: Op | None, ranks: int | None) -> CollectiveRow:
    """Give a row its operation and world, and take away bandwidths that are none."""
    found = ranks or (_ranks_of_row(op, row) if op else None)
    if found == 1 or not row.size_bytes:
        return replace(row, op=op, ranks=found, algbw_bytes_s=None, busbw_bytes_s=None)
    return replace(row, op=op, ranks=found)


def _ranks_of_row(op: Op, row: CollectiveRow) -> int | None:
    shared = op in (Op.ALL_GATHER, Op.REDUCE_SCATTER, Op.ALL_TO_ALL, Op.GATHER, Op.SCATTER)
    by_count = ranks_by_count(row) if shared else None
    return by_count if by_count and by_count > 1 else ranks_by_factor(op, row)


def _status(header: Header, table: Table, worlds: int) -> LogStatus:
    if header.failures:
        return LogStatus.FAILED
    if not table.rows:
        return LogStatus.EMPTY
    planned = expected_lines(header.options)
    missing = table.cut or header.average_gb_s is None or average_differs(table.rows, header.average_gb_s * GB)
    if planned is None:  # a heading and a footer whose average is that of the rows between are a whole table too
        return LogStatus.PARTIAL if missing or not table.headings else LogStatus.COMPLETE
    return LogStatus.PARTIAL if missing or table.lines < planned * worlds else LogStatus.COMPLETE
