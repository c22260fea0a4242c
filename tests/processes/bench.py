"""Planned cases on the fake backend, quick settings, and a launcher run over them."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from suite.case import Case, Regime, Workload, items
from suite.jobs.registry import find
from suite.launcher.happenings import CaseEnded, Happening
from suite.launcher.launch import Launcher
from suite.measurement import Measurement
from suite.planned import DeviceSlot, PlannedCase
from suite.settings import BackendSettings, DeadlineSettings, MeasureSettings
from tests.fake.backend import FakeBackend
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parent.parent.parent
TARGET = "tests.fake.backend:FakeBackend"
COLD = Regime("cold", "sustained", "device")
BURST = Regime("cold", "burst", "device")


def planned(
    shape: str = "64x64x64",
    *,
    format: str = "bf16",
    slot: int = 0,
    cohort: int = 0,
    implementation: str = "library",
    backend: str = "fake",
    regime: Regime = COLD,
) -> PlannedCase:
    """One gemm case, planned as plan does it."""
    m, n, k = (int(size) for size in shape.split("x"))
    workload = Workload("gemm", format, items({"m": m, "n": n, "k": k, "layout": "nt"}))
    job = find("gemm")
    case = Case(workload, implementation, backend, regime)
    return PlannedCase(slot, cohort, case, job.work(workload), job.tolerance(workload, ()), 2, 2**20, 0.1)


def quick(interleave: int = 1, **deadlines: float) -> MeasureSettings:
    """Settings under which a case of the fake backend takes milliseconds."""
    return MeasureSettings(
        target=0.05,
        min_batches=5,
        min_time_s=0.001,
        max_time_s=0.05,
        interleave=interleave,
        burst_first_idle_s=0.0,
        burst_idle_s=0.0,
        steady_window_s=0.002,
        steady_timeout_s=0.02,
        deadlines=DeadlineSettings(
            **{**dict.fromkeys(("start_s", "compile_s", "verify_s", "measure_s"), PATIENCE_S), **deadlines}
        ),
    )


def slots(options: Mapping[str, Any], target: str = TARGET) -> list[DeviceSlot]:
    """A slot for every device of the fake backend."""
    backend = FakeBackend({**options, "start": None})
    return [DeviceSlot(info.index, backend.name, target, info) for info in backend.devices()]


def run(
    cases: Sequence[PlannedCase],
    settings: MeasureSettings | None = None,
    *,
    target: str = TARGET,
    until: float | None = None,
    **options: Any,
) -> list[Happening]:
    """Measure the cases in real worker processes and return everything that happened."""
    backends = {"fake": BackendSettings("fake", target, options)}
    with Launcher(slots(options, target), backends, settings or quick(), {}) as launcher:
        launcher.start()
        return list(launcher.run(cases, lambda _: 1, until))


def ends(happenings: Sequence[Happening]) -> dict[str, Measurement]:
    """How each case ended, by shape and format (and implementation); a case that ended twice is an error."""
    found: dict[str, Measurement] = {}
    for happening in happenings:
        if isinstance(happening, CaseEnded):
            assert name(happening.planned) not in found, "a case ended twice"
            found[name(happening.planned)] = happening.measurement
    return found


def name(case: PlannedCase) -> str:
    size = case.case.workload.param("m")
    return str(size) if case.case.implementation == "library" else f"{size} {case.case.implementation}"


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone_within(pid: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while alive(pid):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
