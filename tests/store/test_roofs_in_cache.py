"""Data that lies in the cache is not held against the memory's bandwidth, on any backend (ROCm/iris 119).

JAX reports no last-level cache of an AMD GPU or a TPU; the sheet has it: 256 MB of Infinity Cache on an MI300X.
"""

from pathlib import Path

import pytest

from suite.backend import DeviceInfo
from suite.case import Regime
from suite.rows import DeviceRow
from suite.store.queries import Reader
from suite.store.writer import Store
from suite.work import Work
from tests.store import material

WARM = Regime("warm", "sustained", "device")


@pytest.mark.parametrize("backend", ["rocm", "xla"])
def test_what_fits_in_the_infinity_cache_has_no_memory_roof(tmp_path: Path, backend: str) -> None:
    info = DeviceInfo(backend, 0, "AMD Instinct MI300X", "a1b2", 206_000_000_000, "gfx942", visible_units=304)
    device = DeviceRow(0, info, "amd-mi300x", "exact name", None)
    path = str(tmp_path / "store.db")
    copy = material.record(
        material.planned(material.calibration_case("copy"), work=Work(0, 2**32, None)),
        summary=material.summary(flop_s=0.0, bytes_s=4.0e12, p50_s=1e-3),
    )
    # 64 MB of operands at intensity 50: 278 TFLOP/s are 5.56 TB/s, above the 4.0 of the memory and under the 600 of the pipe.
    thin = material.planned(material.case(0, regime=WARM), work=Work(50 * 64_000_000, 64_000_000, "bf16"))
    square = material.planned(material.case(1, regime=WARM), work=Work(2**40, 2**30, "bf16"))
    with Store.open(path) as store, store.start_run(material.run_start(device)) as run:
        for each in (
            copy,
            material.record(thin, summary=material.summary(flop_s=278e12, bytes_s=5.56e12)),
            material.record(square, summary=material.summary(flop_s=600e12, bytes_s=1e12)),
        ):
            run.record(each)
        run.finish("complete")
    with Reader.open(path) as reader:
        shares = {row.params["m"]: row.fractions.empirical for row in reader.results() if row.job == "gemm"}
    assert shares[128] == pytest.approx(278 / 600)
