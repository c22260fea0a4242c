"""What the ranks of a measured collective talk over: numbers of different transports never stand on one curve.

Each is also the ``pipe`` of its cases: what a result is held against.
"""

from enum import StrEnum


class Transport(StrEnum):
    """``shared_gpu`` proves forcing, logs and correctness of the real library; its times are those of taking turns."""

    DEVICE_LINK = "device_link"  # a device a rank
    SHARED_GPU = "shared_gpu"  # all ranks on one device, which talk over sockets
    HOST = "host"  # ranks on processors

    @property
    def together(self) -> bool:
        """Whether all ranks take their memory from the same place."""
        return self is not Transport.DEVICE_LINK

    @property
    def has_bandwidth(self) -> bool:
        """Whether bytes over time say anything of a link."""
        return self is not Transport.SHARED_GPU
