"""Kernels without a product: the device's clock, and what reads memory for its calibration."""

import torch

from backends.targets.made import Made, empty
from backends.targets.refused import Refused
from backends.triton import read
from backends.triton.clock_kernels import FIELDS, clock_kernel
from backends.triton.gemm.call import Call
from backends.triton.gemm.device import Device


def clock(device: Device) -> Made:
    """Reads a unit's counters."""
    try:
        kernel, constants = clock_kernel(device.architecture if device.is_amd else None)
    except RuntimeError as error:
        raise Refused(str(error)) from error
    readings = torch.empty(device.units, FIELDS, dtype=torch.int64, device="meta")
    return Made([None], lambda _: [Call(kernel, (device.units, 1, 1), (readings,), constants, {"num_warps": 1})])


def row_sums(device: Device, rows: int, columns: int) -> Made:
    """Reads a matrix once."""
    constants = {"BLOCK": read.BLOCK, "UNROLL": read.UNROLL}
    arguments = (empty(rows, columns), empty(rows), columns)
    return Made([None], lambda _: [Call(read._row_sums, (rows, 1, 1), arguments, constants, {"num_warps": read.WARPS})])
