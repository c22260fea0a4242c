"""Rows that results share: workloads and cases of the whole store, devices and environments of one run."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, bindparam, select

from suite.backend import Fact
from suite.case import Case, Workload
from suite.hardware.spec import HardwareSpec
from suite.rows import DeviceRow
from suite.store import tables
from suite.store.columns import SafeText, dump_json, refuse_non_count
from suite.store.damage import converting, json_object
from suite.store.device_info import read_info
from suite.store.prepared import Prepared, new_id, prepared_insert

Facts = Mapping[str, Mapping[str, Fact]]

_CASE = tables.table_of(tables.Case)
_WORKLOAD = tables.table_of(tables.Workload)
_DEVICE = tables.table_of(tables.Device)
_ENVIRONMENT = tables.table_of(tables.Environment)

_KEY = {"key": SafeText()}
_FIND_CASE = Prepared(select(_CASE.c.id).where(_CASE.c.key == bindparam("key")), _KEY)
_FIND_WORKLOAD = Prepared(select(_WORKLOAD.c.id).where(_WORKLOAD.c.key == bindparam("key")), _KEY)
_ADD_CASE = prepared_insert(_CASE)
_ADD_WORKLOAD = prepared_insert(_WORKLOAD)
_ADD_DEVICE = prepared_insert(_DEVICE)
_ADD_ENVIRONMENT = prepared_insert(_ENVIRONMENT)


class Catalogue:
    """Remembers which row each case and workload has, so that a result costs no look-up; forgets what was taken back."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._pending: dict[str, int] = {}

    def case_id(self, connection: Connection, key: str, case: Case) -> int:
        """The row of a case, added with its workload where the store has none yet."""
        return self._id_of(key) or self._find(connection, _FIND_CASE, key) or self._add_case(connection, key, case)

    def committed(self) -> None:
        """What was added since the last call is there to stay."""
        self._known |= self._pending
        self._pending.clear()

    def rolled_back(self) -> None:
        """What was added since the last call is gone."""
        self._pending.clear()

    def forget(self) -> None:
        """Look everything up again: another process may have removed rows that no result used."""
        self._known.clear()
        self._pending.clear()

    def _workload_id(self, connection: Connection, workload: Workload) -> int:
        key = workload.key
        found = self._id_of(key) or self._find(connection, _FIND_WORKLOAD, key)
        return found or self._keep(key, new_id(_ADD_WORKLOAD.run(connection, {"key": key, **workload.to_json()})))

    def _add_case(self, connection: Connection, key: str, case: Case) -> int:
        columns = {
            "key": key,
            "workload_id": self._workload_id(connection, case.workload),
            "implementation": case.implementation,
            "backend": case.backend,
            **case.regime._asdict(),
            "method_version": case.method_version,
            "switches": dict(case.switches),
        }
        return self._keep(key, new_id(_ADD_CASE.run(connection, columns)))

    def _id_of(self, key: str) -> int | None:
        return self._known.get(key) or self._pending.get(key)

    def _find(self, connection: Connection, find: Prepared, key: str) -> int | None:
        found = find.run(connection, {"key": key}).fetchone()
        return None if found is None else self._keep(key, int(found[0]))

    def _keep(self, key: str, row_id: int) -> int:
        self._pending[key] = row_id
        return row_id


def add_device(connection: Connection, run_id: int, device: DeviceRow) -> int:
    """Find or add a device slot of a run; a chip that differs in anything reported is another row."""
    content = {
        "hardware": device.hardware,
        "match_reason": device.match_reason,
        "info": device.info.to_json(),
        "spec": device.spec,
    }
    digest = _digest(content)
    same = (_DEVICE.c.run_id == run_id, _DEVICE.c.slot == device.slot, _DEVICE.c.digest == digest)
    found = connection.scalar(select(_DEVICE.c.id).where(*same))
    if found is not None:
        return int(found)
    names = {"uid": device.info.uid, "name": device.info.name, "backend": device.info.backend}
    place = {"run_id": run_id, "slot": device.slot, "digest": digest, "recorded_at": datetime.now(UTC)}
    return new_id(_ADD_DEVICE.run(connection, {**place, **names, **content}))


def add_environment(connection: Connection, run_id: int, facts: Facts) -> int:
    """Find or add a description of the system for a run."""
    content = {section: {name: list(fact) for name, fact in named.items()} for section, named in facts.items()}
    digest = _digest(content)
    same = (_ENVIRONMENT.c.run_id == run_id, _ENVIRONMENT.c.digest == digest)
    found = connection.scalar(select(_ENVIRONMENT.c.id).where(*same))
    if found is not None:
        return int(found)
    place = {"run_id": run_id, "digest": digest, "recorded_at": datetime.now(UTC)}
    return new_id(_ADD_ENVIRONMENT.run(connection, {**place, "facts": content}))


def to_device_row(columns: Any) -> DeviceRow:
    """A ``device`` row as the rest of the code sees it; ``Damaged`` where it cannot be read."""
    with converting(f"device {columns.id}"):
        refuse_non_count(columns.slot, "slot")
        info = read_info(json_object(columns.info, "info"))
        for name in ("backend", "name", "uid"):
            if getattr(info, name) != getattr(columns, name):
                raise ValueError(f"info {name} is not that of its column")
        if columns.spec is not None:
            HardwareSpec.from_json(json_object(columns.spec, "spec"))
        return DeviceRow(columns.slot, info, columns.hardware, columns.match_reason, columns.spec)


def to_facts(stored: Mapping[str, Any]) -> dict[str, dict[str, Fact]]:
    """The ``facts`` of an ``environment`` row as the rest of the code sees them."""
    return {
        section: {name: Fact(*fact) for name, fact in json_object(named, section).items()}
        for section, named in json_object(stored, "facts").items()
    }


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(dump_json({name: content[name] for name in sorted(content)}).encode()).hexdigest()[:16]
