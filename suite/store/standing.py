"""What the next results of a run are taken on: one device a slot, and one environment."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, select

from suite.rows import DeviceRow
from suite.store import tables
from suite.store.catalogue import Facts, add_device, add_environment, to_device_row, to_facts
from suite.store.damage import converting

_DEVICE = tables.table_of(tables.Device)
_ENVIRONMENT = tables.table_of(tables.Environment)


class Place(NamedTuple):
    """A device as results refer to it."""

    device_id: int
    device: DeviceRow


class Standing(NamedTuple):
    """Devices by slot, and the environment with its row."""

    places: Mapping[int, Place]
    environment_id: int
    environment: Facts


def add(connection: Connection, run_id: int, devices: Sequence[DeviceRow], environment: Facts) -> Standing:
    """Store what a run starts on."""
    environment_id = add_environment(connection, run_id, environment)
    return change(connection, run_id, Standing({}, environment_id, environment), devices, None)


def change(
    connection: Connection, run_id: int, before: Standing, devices: Sequence[DeviceRow], environment: Facts | None
) -> Standing:
    """Store what a run goes on with: a device replaces what its slot had, an environment the one before."""
    places = {device.slot: Place(add_device(connection, run_id, device), device) for device in devices}
    environment_id = before.environment_id if environment is None else add_environment(connection, run_id, environment)
    facts = before.environment if environment is None else environment
    return Standing({**before.places, **places}, environment_id, facts)


@converting("its devices and environments")
def latest(connection: Connection, run_id: int) -> Standing:
    """What a stored run stood on last."""
    rows = connection.execute(select(_DEVICE).where(_DEVICE.c.run_id == run_id).order_by(_DEVICE.c.id))
    environments = select(_ENVIRONMENT).where(_ENVIRONMENT.c.run_id == run_id)
    environment = connection.execute(environments.order_by(_ENVIRONMENT.c.id.desc()).limit(1)).one()
    return Standing(
        {row.slot: Place(row.id, to_device_row(row)) for row in rows},
        environment.id,
        to_facts(environment.facts),
    )
