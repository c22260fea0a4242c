"""What is wrong with a log, in words: what is missing, what contradicts itself, what must not be read as a result."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from suite.importers.header import Header, communicators
from suite.importers.inference import ranks_by_factor
from suite.importers.rows import Checked, CollectiveLog, CollectiveRow
from suite.importers.table import Table
from suite.importers.table_values import rate_error

_GB = 1e9


def complaints(header: Header, table: Table, log: CollectiveLog) -> Iterator[str | None]:
    """One sentence a finding; ``None`` for none."""
    yield from _of_processes(header, table, log)
    yield from _of_rows(header, table, log)
    yield from _of_values(table, log)
    for text in dict.fromkeys((*header.failures, *header.errors)):
        yield f"the tool reports: {text}"


def expected_lines(options: Mapping[str, int | str]) -> int | None:
    """How many sizes a run of these options has; ``None`` where they are not all there."""
    least, most, step = (options.get(name) for name in ("minBytes", "maxBytes", "step"))
    if not isinstance(least, int) or not isinstance(most, int) or not isinstance(step, int) or step < 1 or most < least:
        return None
    if options.get("step kind") == "bytes":
        return (most - least) // step + 1
    lines, size = 1, max(1, least)
    while step > 1 and size * step <= most:
        lines, size = lines + 1, size * step
    return lines


def average_differs(rows: Sequence[CollectiveRow], printed_bytes_s: float) -> bool:
    """Whether the printed average is of other rows than these, beyond what two decimals of each explain."""
    return bool(rows) and abs(_mean_busbw(rows) - printed_bytes_s) > max(0.01 * _GB, 0.002 * printed_bytes_s)


def _mean_busbw(rows: Sequence[CollectiveRow]) -> float:
    """The tool counts rows without bandwidth as 0."""
    return sum(row.busbw_bytes_s or 0.0 for row in rows) / len(rows)


def _of_processes(header: Header, table: Table, log: CollectiveLog) -> Iterator[str | None]:
    worlds = communicators(header.devices)
    if len(worlds) > 1:
        ranks = max(device.rank for device in worlds[0]) + 1
        yield f"{len(worlds)} communicators of {ranks} rank{'s' * (ranks > 1)} each, not one: each process ran on its own"
    elif header.option_lines > 1 or table.headings > 1:
        yield "the heading stands there twice: two processes may have printed into one text"
    if log.ranks == 1 and log.rows:
        yield "a single rank: nothing crossed a link, so that no row has a bandwidth"
    if len(log.device_names) > 1:
        yield f"different devices in one run: {', '.join(log.device_names)}"
    listed = sum(map(len, worlds[:1]))
    if listed and log.ranks_source == "device list" and log.ranks != listed:
        yield f"{listed} of {log.ranks} devices are listed"
    if log.rows and log.ranks is None:
        worlds_found = sorted({row.ranks for row in log.rows if row.ranks})
        yield f"the number of ranks is not known{f'; rows fit {worlds_found}' if worlds_found else ''}"


def _of_rows(header: Header, table: Table, log: CollectiveLog) -> Iterator[str | None]:
    planned = expected_lines(header.options)
    if table.foreign:
        yield f"a column '{table.foreign}' stands in front that no tool prints: edited by hand"
    if table.cut:
        yield f"{table.cut} row{'s' * (table.cut > 1)} cut, dropped"
    if table.split:
        yield f"{table.split} row{'s' * (table.split > 1)} split by messages, put together again"
    if table.repeated:
        yield f"{table.repeated} row{'s' * (table.repeated > 1)} printed twice, kept once"
    if planned is not None and table.lines < planned and not header.failures:
        yield f"{table.lines} of {planned} sizes are there"
    if log.rows and header.average_gb_s is None:
        yield "no footer: the run ended early or the text is cut"
    elif log.rows and not table.headings:
        yield "no heading: the text is an excerpt"


def _falls(one: CollectiveRow, larger: CollectiveRow) -> bool:
    """Whether a larger message took less than two thirds of the time: something else was going on during the smaller."""
    if one.time_s is None or larger.time_s is None:
        return False
    return one.size_bytes < larger.size_bytes and one.time_s > 1.5 * larger.time_s


def _of_values(table: Table, log: CollectiveLog) -> Iterator[str | None]:
    printed = log.average_busbw_bytes_s
    if printed is not None and average_differs(log.rows, printed):
        own = _mean_busbw(log.rows) / _GB
        yield f"the printed average of {printed / _GB:g} GB/s is not that of the rows, {own:.2f}: it is of others too"
    for in_place in (False, True):
        slow = [str(one.size_bytes) for one, larger in pairwise(log.placed(in_place)) if _falls(one, larger)]
        if slow and log.ranks != 1:
            where = "in place" if in_place else "out of place"
            yield f"{where}, some sizes took much longer than the next larger one: {', '.join(slow)} bytes"
    if any(rate_error(row) for row in log.rows if row.ranks != 1):
        yield "size over time is not the printed bandwidth in some rows"
    if log.op is not None and log.ranks_source == "device list":
        told = {found for row in log.rows if (found := ranks_by_factor(log.op, row))} - {log.ranks}
        if told:
            worlds = ", ".join(map(str, sorted(told)))
            yield f"the device list is of {log.ranks} ranks, and bandwidths of some rows are those of {worlds}"
    bad = sum(row.checked is Checked.BAD for row in log.rows)
    unchecked = sum(row.checked is Checked.UNCHECKED for row in log.rows)
    if bad or log.out_of_bounds:
        yield f"wrong results: {bad} of {len(log.rows)} rows, {log.out_of_bounds or 0} values out of bounds"
    if unchecked:
        yield f"{unchecked} of {len(log.rows)} rows were not checked"
