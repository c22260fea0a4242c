"""The record says that a device is one die of a package, not the package (ml-engineering 76)."""

import pytest

from suite.backend import DeviceInfo
from suite.hardware.match import match
from suite.report.system import device_group

GCD = DeviceInfo("rocm", 0, "AMD Instinct MI250X", "u" * 16, 65_520 << 20, "gfx90a", visible_units=110)
CORE = DeviceInfo("xla", 0, "TPU v3", "u" * 16, 15_850 << 20, visible_units=1)


@pytest.mark.parametrize(("info", "part"), [(GCD, "one GCD of 2"), (CORE, "one TensorCore of 2")], ids=["GCD", "TensorCore"])
def test_a_die_of_a_package_is_not_described_as_the_whole_device(info: DeviceInfo, part: str) -> None:
    found = match(info)
    assert found.spec is not None
    assert found.spec.part == part
    fields = {field.name: field for field in device_group(info, found.spec, found.reason).fields}
    assert fields["partition"].value == part
