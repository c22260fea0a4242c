"""How long a case under sustained load takes on a CPU: for a plan's total and the time left, never stored.

A CPU's samples spread more than an accelerator's, its load settles later, and float64 references are made by the same cores.
The figures are of two cores of an AMD EPYC (Zen 4, AVX-512) in a virtual machine that did little else, torch 2.13: 29 cases of
``quick`` and 84 of a sweep over seven shapes and six formats, measured so briefly that only preparing them took time.
"""

from typing import NamedTuple

from suite.case import Workload
from suite.measure.regimes import BRIEF_SHARE
from suite.roofline import Ceilings
from suite.settings import MeasureSettings
from suite.work import Work

# Half-second windows until two agreed: 2 in 15 of 29 cases, 3.3 on average.  Each ends with the readings under way.
SETTLING_WINDOWS = 3.3
WINDOW_OVERRUN = 1.06
# The standard deviation of a sample, relative, that the reached intervals came from: median 0.09, quartiles 0.03 and 0.30.
SPREAD = 0.09
HALF_WIDTH = 2.46  # of the 95 % interval of a median of n normal samples, in standard deviations over sqrt(n)
# Compiling, filling and both checks: 0.05 s for 6 MB of operands, 0.2 s for 34, 0.5 s for 118, and some launches beside.  A job
# whose check goes through more than its operands says so itself.
PREPARE_S = 0.05
PREPARE_S_PER_BYTE = 4e-9
LAUNCHES_BESIDE = 5
STAGED = "decode_step"  # the job whose check computes all of its stages anew: loaded where it is planned
# Median time of a launch over its floor at 1024^3 to 4096^3.  What has no instructions of its own is converted, fp16 slowly.
# The floor of 8 bits and fewer is that of the bf16 copies; those of 4 and 6 bits take about as long to make as those of fp8.
OVER_FLOOR = 2.0
OVER_FLOOR_CONVERTED = {"fp16": 17.0, "fp8": 7.0, "fp6": 7.0, "fp4": 7.0}
OVER_FLOOR_OF = {"int8": 5.0}


class Sampling(NamedTuple):
    """What sampling is bound by beside its target: how often it is done, at least how long, and what a sample costs more."""

    rounds: int
    least_s: float
    flush_s: float


def launch_s(floor_s: float | None, work: Work, limits: Ceilings) -> float:
    """Predicted seconds of one launch whose floor is ``floor_s``."""
    pipe = work.pipe or ""
    converted = limits.peak_flop_s(pipe) in (None, limits.peak_flop_s("fp32"))
    times = OVER_FLOOR_CONVERTED.get(pipe, OVER_FLOOR) if converted else OVER_FLOOR_OF.get(pipe, OVER_FLOOR)
    return times * (floor_s or 0.0)


def checking_s(workload: Workload, work: Work) -> float:
    """Predicted seconds of filling the inputs and of both checks, without launches."""
    if workload.job == STAGED:
        from suite.predict_stages import drawing_and_checking_s

        return drawing_and_checking_s(workload, work)
    return PREPARE_S_PER_BYTE * work.compulsory_bytes


def case_s(launch_s: float, checking_s: float, measure: MeasureSettings, sampling: Sampling) -> float:
    """Predicted seconds of a case."""
    preparing_s = PREPARE_S + checking_s + LAUNCHES_BESIDE * launch_s
    window_s = WINDOW_OVERRUN * max(measure.steady_window_s, launch_s)
    settling_s = min(SETTLING_WINDOWS * window_s, measure.steady_timeout_s + window_s)
    settling_s += (sampling.rounds - 1) * BRIEF_SHARE * window_s
    return preparing_s + settling_s + sampling.rounds * _sampling_s(launch_s, measure, sampling)


def _sampling_s(launch_s: float, measure: MeasureSettings, sampling: Sampling) -> float:
    """Until the interval is narrow enough for the target, or ``max_time_s`` is over."""
    each_s = max(measure.sample_s, launch_s + sampling.flush_s)
    samples = max(measure.min_batches, (HALF_WIDTH * SPREAD / measure.target) ** 2) if sampling.rounds == 1 else 1.0
    return max(sampling.least_s, each_s, min(measure.max_time_s, samples * each_s))
