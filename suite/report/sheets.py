"""The spec sheet behind a stored device."""

from suite.errors import UsageError
from suite.hardware.catalogue import load
from suite.hardware.match import match
from suite.hardware.spec import HardwareSpec
from suite.rows import DeviceRow


def sheet_of(device: DeviceRow) -> HardwareSpec | None:
    """The spec a run's device was held against; ``None`` where none was matched or its sheet is no longer here.

    A spec stored with the run (a CPU's derived one) comes first; then the sheet as matching scales it to the part that
    the device is; then, where ``hardware=`` overruled matching, the sheet of that name.
    """
    if device.spec is not None:
        return HardwareSpec.from_json(device.spec)
    if device.hardware is None:
        return None
    matched = match(device.info)
    if matched.hardware == device.hardware:
        return matched.spec
    try:
        return load(device.hardware)
    except UsageError:
        return None
