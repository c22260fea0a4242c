"""The ROCm backend: torch on AMD devices, with AMD SMI for clocks and power."""

import os
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.host.amdgpu import DriverFiles
from backends.telemetry.amd import amdsmi_telemetry
from backends.telemetry.amd_parts import Modes, dies_of, part_of
from backends.telemetry.amdsmi import Amdsmi, AmdsmiDevice, load_amdsmi, told
from backends.telemetry.clocked import ClockedTelemetry
from backends.torch import gpu
from suite.backend import DeviceInfo, Fact, Telemetry
from suite.case import Case
from suite.errors import DeviceNotFound, UsageError
from suite.telemetry import NoTelemetry

if TYPE_CHECKING:
    from backends.torch.hip_identity import HipIdentity

MEMORY = "memory"
OPTIONS: dict[str, Any] = {
    **gpu.OPTIONS, "blas": "auto", "tunable_op_trial_ms": None, "tunable_op_trials": None, "tunable_op_file": MEMORY,
}  # fmt: skip
# Of one kernel of one product, of which TunableOp tries hundreds before a case is timed.
MOST_TRIALS = {"tunable_op_trial_ms": 10_000, "tunable_op_trials": 10_000}
# The libraries that torch may prefer, and its names for them.
BLAS = {"hipblaslt": "cublaslt", "rocblas": "cublas", "ck": "ck"}
# Nothing lies between the L2 of these and their memory; later chips have a cache there that only AMD SMI tells of.
LAST_IS_L2 = ("gfx908", "gfx90a")


class RocmBackend(gpu.TorchGpu):
    """Measures one AMD device through torch; options as ``TorchGpu`` has them.

    Beside them ``blas``: the library that torch is to prefer (``hipblaslt``, ``rocblas``, ``ck``; ``auto`` leaves it to torch).
    ``tunable_op_trial_ms`` and ``tunable_op_trials`` bound TunableOp's trials of one kernel, where a case asks for it (torch's
    own are 30 ms and 100); ``tunable_op_file`` has it keep what they found in a file, for later runs.
    """

    name = "rocm"
    defaults = OPTIONS

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        if self._options["blas"] not in ("auto", *BLAS):
            raise UsageError(f"backends.rocm.options.blas={self._options['blas']!r} is none of auto, {', '.join(BLAS)}")
        _refuse_trials(self._options)
        self._options["tunable_op_file"] = _results_file(self._options["tunable_op_file"])

    def devices(self) -> Sequence[DeviceInfo]:
        import torch

        if torch.version.hip is None or not torch.cuda.is_available():
            return ()
        return tuple(self._describe(index) for index in range(torch.cuda.device_count()))

    def select(self, index: int) -> DeviceInfo:
        import torch

        from backends.torch import tunable_op
        from backends.torch.hip_target import hip_target, preferred_blas
        from backends.torch.precision import HAS_TUNABLE_OP, place_tuning_results

        found = self.devices()
        if not 0 <= index < len(found):
            raise DeviceNotFound(f"backend rocm has no device {index}: torch sees {len(found)} AMD device(s)")
        torch.cuda.set_device(index)
        tunable_op.apply(tunable_op.Bounds.of(self._options), self.name, HAS_TUNABLE_OP)
        place_tuning_results()
        self._prefer(self._options["blas"])
        self._device = found[index]
        self._target = hip_target(index, str(found[index].architecture), preferred_blas())
        return self._device

    def environment(self) -> Mapping[str, Fact]:
        from backends.torch.hip_libraries import hip_facts
        from backends.torch.libraries import torch_facts

        device = self._amdsmi_device(self._identity(self._selected_info().index))
        settings = device.facts() if isinstance(device, AmdsmiDevice) else {"driver": Fact.unavailable(device)}
        return {**torch_facts(), **hip_facts(), **settings}

    def supports(self, case: Case) -> str | None:
        if "workspace_mib" in dict(case.switches):
            return "workspace_mib is given to cuBLAS; the libraries of ROCm take their own"
        return super().supports(case)

    def telemetry(self) -> Telemetry:
        device = self._amdsmi_device(self._identity(self._selected_info().index), self._selected_info().partition)
        driver: Telemetry
        if isinstance(device, AmdsmiDevice):
            driver = amdsmi_telemetry(device, self._options["telemetry_period_s"], self._no_clock)
        else:
            driver = NoTelemetry(device)
        return driver if self._no_clock else ClockedTelemetry(driver, self._clock)

    @cached_property
    def _amdsmi(self) -> Amdsmi:
        return load_amdsmi()

    def _amdsmi_device(self, identity: "HipIdentity", part: str | None = None) -> AmdsmiDevice | str:
        """AMD SMI's handle of a device, or why there is none; of a ``part`` with the clocks of its own dies."""
        if self._amdsmi.library is None:
            return self._amdsmi.reason
        if identity.pci_bus_id is None:
            return "this version of torch does not tell a device's PCI address, by which AMD SMI knows it"
        found = AmdsmiDevice.find(self._amdsmi.library, identity.pci_bus_id)
        if found is None:
            return f"AMD SMI does not know the device at {identity.pci_bus_id}"
        if part is None:
            return found
        dies = dies_of(_modes(found, identity), identity.ordinal, identity.siblings, told(found, AmdsmiDevice.dies) or 0)
        return AmdsmiDevice.find(self._amdsmi.library, identity.pci_bus_id, part, dies) or found

    def _identity(self, index: int) -> "HipIdentity":
        from backends.torch.hip_identity import identify

        return identify(index)

    def _describe(self, index: int) -> DeviceInfo:
        identity = self._identity(index)
        amdsmi = self._amdsmi_device(identity)
        pci_device_id = told(amdsmi, AmdsmiDevice.pci_device_id) or _files(identity, DriverFiles.pci_device_id)
        partition = part_of(identity.name, pci_device_id, _modes(amdsmi, identity))
        return DeviceInfo(
            backend=self.name,
            index=index,
            name=identity.name,
            uid=identity.uid,
            memory_bytes=identity.memory_bytes,
            architecture=identity.architecture,
            visible_units=identity.units,
            max_clock_hz=told(amdsmi, AmdsmiDevice.max_sm_clock_hz),
            max_memory_clock_hz=told(amdsmi, AmdsmiDevice.max_memory_clock_hz),
            llc_bytes=_llc_bytes(amdsmi, identity),
            power_limit_w=told(amdsmi, AmdsmiDevice.power_limit_w) if partition is None else None,
            pci_bus_id=identity.pci_bus_id,
            driver=told(amdsmi, AmdsmiDevice.driver),
            partition=partition,
            details=_details(amdsmi, pci_device_id),
            places=gpu.PLACES,
        )

    def _prefer(self, blas: str) -> None:
        if blas == "auto":
            return
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls the choice experimental
            torch.backends.cuda.preferred_blas_library(BLAS[blas])


def _refuse_trials(options: Mapping[str, Any]) -> None:
    for name, most in MOST_TRIALS.items():
        if (options[name] or 0) > most:
            raise UsageError(
                f"backends.rocm.options.{name}={options[name]} is above {most}, for each of the kernels that TunableOp tries; "
                "the phase of a case would end first"
            )


def _results_file(given: str) -> str:
    """The whole path of the file that TunableOp is to keep its results in, empty for memory.

    ``UsageError`` for one that cannot be written, which would be found out when the process ends and all was measured.
    """
    if given == MEMORY:
        return ""
    path = Path(os.path.expanduser(given)).absolute()  # noqa: PTH111  # leaves an unknown user's as it is
    if path.is_dir() or not path.parent.is_dir():
        why = "it is a directory" if path.is_dir() else f"there is no directory {path.parent}"
        raise UsageError(f"backends.rocm.options.tunable_op_file={given} cannot be written: {why}; name another")
    return str(path)


def _modes(device: AmdsmiDevice | str, identity: "HipIdentity") -> Modes:
    return Modes(
        told(device, AmdsmiDevice.compute_partition) or _files(identity, DriverFiles.compute_partition),
        told(device, AmdsmiDevice.memory_partition) or _files(identity, DriverFiles.memory_partition),
    )


def _files(identity: "HipIdentity", read: Any) -> str | None:
    said: str | None = None if identity.pci_bus_id is None else read(DriverFiles(identity.pci_bus_id))
    return said


def _llc_bytes(device: AmdsmiDevice | str, identity: "HipIdentity") -> int | None:
    """What is known to be the last cache: HIP tells the L2 of one die alone, 4 MB of an MI300X with 256 behind them."""
    if identity.architecture in LAST_IS_L2:
        return identity.l2_bytes
    behind = told(device, AmdsmiDevice.memory_side_cache_bytes)
    return None if behind is None else int(behind)


def _details(device: AmdsmiDevice | str, pci_device_id: str | None) -> dict[str, str]:
    said = {
        "pci_device_id": pci_device_id,
        "virtualization": told(device, AmdsmiDevice.virtualization),
        "amdsmi": device if isinstance(device, str) else None,
    }
    return {name: value for name, value in said.items() if value is not None}
