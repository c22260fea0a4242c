"""The stores that a browser is shown: results of every job, one that grows, one made to do harm, one with a fit."""

from dataclasses import replace

from suite.store.writer import Store
from tests.dashboard.builders import attention, collective, decode, grouped, measured, other_device, step
from tests.dashboard.test_hostile import EVIL, evil_store
from tests.dashboard.test_targets import CELLS
from tests.report.builders import device, result, run_info, sweep
from tests.report.stores import write_store

FITTED_UID = "fee10000"
STORES = ("results.db", "growing.db", "evil.db", "fits.db")


def write_stores(folder):
    """A store of every job, one that is written while pages are open, one that is made to do harm, and one of collectives by
    two algorithms: no one formula explains the first one's times, so that their fit is refused.
    """
    rows = [*sweep(), *(attention(n) for n in (512, 1024)), *(decode(n) for n in (1024, 4096)), *(step(n) for n in (1, 8))]
    rows += [grouped(64, 8 * m, implementation=by) for m in (512, 1024) for by in ("library", "triton")]
    rows += [collective(2**power, p50_s=1e-5 + 2**power / 1e11) for power in (10, 20)]
    write_store(folder / "results.db", rows, info=run_info(experiment="everything"), measured=measured)
    with Store.open(str(folder / "results.db")) as store:
        for each in CELLS:
            store.record_compiled(each)
    write_store(folder / "growing.db", [result()], devices=(other_device(),), info=run_info(experiment="growing"))
    evil_store(folder / "evil.db", EVIL)
    times = {2: (3e-3, 2e6), 4: (10e-6, 1e11)}  # of ranks: latency, bandwidth
    rows = [
        collective(2**power, ranks=ranks, p50_s=alpha_s + 2**power / bandwidth)
        for ranks, (alpha_s, bandwidth) in times.items()
        for power in range(3, 28, 4)
    ]
    rows += [
        collective(2**n, "tree", ranks=ranks, p50_s=5e-6 * ranks + 2**n / 5e10) for ranks in (2, 4) for n in range(3, 28, 4)
    ]
    fitted = device(info=replace(device().info, uid=FITTED_UID, name="Testium T9"))
    write_store(folder / "fits.db", rows, devices=(fitted,), info=run_info(experiment="collectives"))
