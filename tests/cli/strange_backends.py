"""Variants of the scripted backend: taken for a real one, not to be started, with another device than it listed."""

from dataclasses import replace

from suite.backend import DeviceInfo
from suite.outcome import Evidence
from tests.fake.backend import FakeBackend


class MeasuredFake(FakeBackend):
    """Its numbers count as measurements: a store calibrates devices by nothing else."""

    evidence = Evidence.MEASURED


class Unstartable(FakeBackend):
    """Lists its devices and cannot open one."""

    def select(self, index: int) -> DeviceInfo:
        raise RuntimeError(f"device {index} fell off the bus")


class Exchanged(FakeBackend):
    """Another part of the chip is there when the worker opens the device."""

    def select(self, index: int) -> DeviceInfo:
        return replace(super().select(index), uid="ffff", partition="MIG 3g.71gb")
