"""torch/XLA: named so that whoever asks for it is told why it is not measured, and what measures the same compiler."""

from collections.abc import Mapping
from typing import Any

from suite.errors import DeviceNotFound

# Of the wheel's metadata: release 2.9.0 asks for this libtpu, and each release goes with the torch of its own number.
UNSUPPORTED = (
    "torch/XLA is unsupported: its release 2.9.0 goes with torch 2.9 and libtpu 0.0.21, and cannot be installed beside the "
    "torch and the libtpu that roofbench's other backends run; backend=xla measures the same compiler on the same devices "
    "through JAX"
)


class TorchXlaBackend:
    """Raises ``DeviceNotFound`` with the reason, whatever its options."""

    name = "torch_xla"

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        raise DeviceNotFound(UNSUPPORTED)
