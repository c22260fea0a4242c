"""Whether the summary of a result says what the formulas of this version can give, as far as that needs no samples.

Summaries of other versions are not looked at: their formulas are not here.  Which calibration bound a result when it was
recorded may not be told any more (runs are merged and pruned), so that only what holds under any calibration is asked.
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, Double, Row, Text, cast, select, type_coerce

from suite.hardware.spec import LINKS, HardwareSpec
from suite.outcome import Bound
from suite.roofline import FORMULAS_VERSION, Ceilings, fraction
from suite.rows import DeviceRow
from suite.store import tables
from suite.store.catalogue import to_device_row
from suite.store.columns import SafeText
from suite.store.damage import UNREADABLE, Damaged, one_line
from suite.work import Work

NEAR = 1e-9  # relative: the same formulas by another build of the mathematics

_DEVICE = tables.table_of(tables.Device)
_RESULT = tables.table_of(tables.Result)
_SUMMARY = tables.table_of(tables.Summary)

_NUMBERS = ("flop_s", "bytes_s", "clock_hz", "fraction_spec", "fraction_boost", "fraction_at_clock")


def summary_flaws(connection: Connection) -> Iterator[tuple[int, str]]:
    """The id of each result whose summary cannot be what is derived, and why; once a result."""
    devices: dict[int, Ceilings | None] = {}
    told = (type_coerce(_SUMMARY.c[name], Double).label(name) for name in _NUMBERS)
    work = (cast(_RESULT.c.flops, Text).label("flops"), cast(_RESULT.c.compulsory_bytes, Text).label("compulsory_bytes"))
    statement = (
        select(_RESULT.c.id, _RESULT.c.device_id, type_coerce(_RESULT.c.pipe, SafeText()).label("pipe"), *work, *told)
        .add_columns(_SUMMARY.c.bound)
        .join(_SUMMARY, _SUMMARY.c.result_id == _RESULT.c.id)
        .where(_SUMMARY.c.formulas_version == FORMULAS_VERSION)
    )
    known_bounds = {each.value for each in Bound}
    for row in connection.execute(statement):
        if isinstance(row.bound, str) and row.bound not in known_bounds:
            yield row.id, f"bound: '{one_line(row.bound)}' is none of {', '.join(Bound)}"
            continue
        with suppress(Damaged, *UNREADABLE):  # what cannot be read is found where columns are
            if row.device_id not in devices:
                devices[row.device_id] = None
                devices[row.device_id] = _ceilings(connection, row.device_id)
            ceilings = devices[row.device_id]
            if ceilings is not None and (wrong := _wrong_fraction(row, ceilings)):
                yield row.id, wrong


def _ceilings(connection: Connection, device_id: int) -> Ceilings | None:
    """``None`` where the spec that was used is not in the store, as of a sheet of the table in older ones."""
    found = connection.execute(select(_DEVICE).where(_DEVICE.c.id == device_id)).one_or_none()
    device: DeviceRow | None = to_device_row(found) if found is not None else None
    if device is None or (device.spec is None and device.hardware is not None):
        return None
    return Ceilings(device.info, HardwareSpec.from_json(device.spec) if device.spec is not None else None)


def _wrong_fraction(row: Row[Any], ceilings: Ceilings) -> str:
    work = Work(int(row.flops), int(row.compulsory_bytes), row.pipe)
    peaks = {
        "fraction_spec": ceilings.peak_flop_s(work.pipe),
        "fraction_boost": ceilings.boost_flop_s(work.pipe),
        "fraction_at_clock": ceilings.boost_flop_s(work.pipe, row.clock_hz) if row.clock_hz else None,
    }
    for name, peak in peaks.items():
        stored = getattr(row, name)
        if stored is None:
            continue
        possible = [
            share
            for bandwidth in (None, ceilings.link_bytes_s(work.pipe) if work.pipe in LINKS else ceilings.bandwidth_bytes_s)
            if (share := fraction(row.flop_s, row.bytes_s, work.arithmetic_intensity, peak, bandwidth)) is not None
        ]
        if not any(math.isclose(stored, share, rel_tol=NEAR) for share in possible):
            meant = " or ".join(f"{share:.4g}" for share in dict.fromkeys(possible)) or "none, as no ceiling is known"
            return f"{name}: {stored:.4g} is not what follows from its rate, {meant}"
    return ""
