"""Clocks, power and energy under load."""

import time

import pytest

from backends.cuda import CudaBackend
from tests.backends.cuda.helpers import NEEDS_DEVICE, WARM, graph_of, on_cuda, prepared

pytestmark = NEEDS_DEVICE


@pytest.mark.alone
def test_a_window_under_load(backend: CudaBackend) -> None:
    case = on_cuda("bf16", 4096, 4096, 4096, regime=WARM)
    sampler = graph_of(backend, prepared(backend, case, 1), case)
    telemetry = backend.telemetry()
    telemetry.start()
    began_s = time.perf_counter()
    while time.perf_counter() - began_s < 2.5:
        sampler.sample(50)
    clock_now = telemetry.now("sm_clock")
    channels = telemetry.stop()
    for name, channel in channels.items():
        print(name, channel.unit, len(channel.values), channel.values[-3:], channel.unavailable)
        assert channel.values or channel.unavailable
    limit_hz = backend.devices()[0].max_clock_hz or 0.0
    assert clock_now is not None
    assert 0.1 * limit_hz < clock_now <= 1.01 * limit_hz
    assert len(channels["sm_clock"].values) > 50
    power, energy = channels["power"], channels["energy"]
    assert max(power.values) > 50
    mean_w = sum(power.values) / len(power.values)
    assert energy.values[1] / energy.times_s[1] == pytest.approx(mean_w, rel=0.2)


@pytest.mark.alone
def test_the_device_counts_its_own_clock(backend: CudaBackend) -> None:
    case = on_cuda("bf16", 4096, 4096, 4096, regime=WARM)
    sampler = graph_of(backend, prepared(backend, case, 1), case)
    telemetry = backend.telemetry()
    telemetry.start()
    for _ in range(2):
        telemetry.mark()
        sampler.sample(50)
        telemetry.mark()
    channel = telemetry.stop()["device_clock"]
    limit_hz = backend.devices()[0].max_clock_hz or 0.0
    print("device clock (MHz):", [round(hz / 1e6) for hz in channel.values])
    assert len(channel.values) == 2
    assert all(0.3 * limit_hz < hz <= 1.01 * limit_hz for hz in channel.values)


def test_a_short_window_has_no_energy(backend: CudaBackend) -> None:
    telemetry = backend.telemetry()
    telemetry.start()
    time.sleep(0.1)
    assert "2 s" in telemetry.stop()["energy"].unavailable


def test_processes_of_others_can_be_told_or_not(backend: CudaBackend) -> None:
    others = backend.telemetry().other_processes()
    print("other processes:", others)
    assert others is None or others >= 0
