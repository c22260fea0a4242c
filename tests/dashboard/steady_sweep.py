"""A sweep that stores results at a steady rate, and says how long each commit took:

    python -m tests.dashboard.steady_sweep STORE RESULTS RESULTS_S

One JSON object at the end: ``stored``, ``took_s`` from the first result to the last, and ``commits_s``, one for each result.
"""

import json
import sys
import time

from suite.store.writer import Store
from tests.store.material import case, planned, record, run_start


def sweep(path: str, results: int, results_s: float) -> dict[str, object]:
    """Store ``results`` of different cases, each when its turn has come; one that is late makes none after it later."""
    commits_s: list[float] = []
    with Store.open(path) as store, store.start_run(run_start(planned=results)) as run:
        began_s = time.monotonic()
        for number in range(results):
            ready = record(planned(case(number)))
            time.sleep(max(0.0, began_s + number / results_s - time.monotonic()))
            before_s = time.monotonic()
            run.record(ready)
            commits_s.append(time.monotonic() - before_s)
        took_s = time.monotonic() - began_s
    return {"stored": results, "took_s": took_s, "commits_s": commits_s}


if __name__ == "__main__":
    print(json.dumps(sweep(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
