"""Result rows and other lines as files: CSV for spreadsheets, Parquet for programs."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from suite.rows import ResultRow

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # what spreadsheets take for the beginning of a formula


def flat(row: ResultRow) -> dict[str, Any]:
    """A row without anything nested: parameters, semantics and switches are JSON, the rest has a column each."""
    try:
        values = row.to_json()
    except (TypeError, ValueError, OverflowError):  # what it counts is no number in a file that holds anything
        values = replace(row, params={}).to_json() | {"params": row.params}
    regime, fractions = values.pop("regime"), values.pop("fractions")
    low, high = values.pop("interval_s") or (None, None)
    for name in ("params", "semantics", "switches"):
        values[name] = json.dumps(values[name], sort_keys=True)
    for name in ("flops", "compulsory_bytes"):
        values[name] = float(values[name])  # counts of refused giants pass 2^63
    shares = {f"fraction_{name}": share for name, share in fractions.items()}
    return {**values, **regime, **shares, "interval_low_s": low, "interval_high_s": high}


def as_csv(rows: Iterable[ResultRow]) -> bytes:
    """One line a row; see ``lines_as_csv``."""
    return lines_as_csv([flat(row) for row in rows])


def as_parquet(rows: Iterable[ResultRow]) -> bytes:
    """One row each; columns that nothing fills keep their place."""
    return lines_as_parquet([flat(row) for row in rows])


def lines_as_csv(lines: Sequence[Mapping[str, Any]]) -> bytes:
    """Lines of the same names; a text that a spreadsheet would run as a formula begins with an apostrophe."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(lines[0]) if lines else ["result_id"])
    writer.writeheader()
    writer.writerows({name: _harmless(value) for name, value in line.items()} for line in lines)
    return out.getvalue().encode("utf-8", "replace")


def lines_as_parquet(lines: Sequence[Mapping[str, Any]]) -> bytes:
    """Lines of the same names."""
    out = io.BytesIO()
    pq.write_table(_table(lines), out)
    return out.getvalue()


def _table(lines: Sequence[Mapping[str, Any]]) -> pa.Table:
    names = list(lines[0]) if lines else ["result_id"]
    return pa.table({name: [_unicode(line[name]) for line in lines] for name in names})


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULAS) else value


def _unicode(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
