"""Which jobs there are.  A new job is one package beside this file and one function here.

The names are known without importing a job: a plan of one of them loads no other.  What plugins offer is looked for only
when a name is none of these.
"""

from collections.abc import Callable, Iterator, Mapping

from suite.errors import UsageError, nearest
from suite.jobs.job import Job


def _gemm() -> Job:
    from suite.jobs.gemm import GemmJob

    return GemmJob()


def _grouped_gemm() -> Job:
    from suite.jobs.grouped_gemm import GroupedGemmJob

    return GroupedGemmJob()


def _attention() -> Job:
    from suite.jobs.attention import AttentionJob

    return AttentionJob()


def _decode() -> Job:
    from suite.jobs.decode import DecodeJob

    return DecodeJob()


def _decode_step() -> Job:
    from suite.jobs.decode_step import DecodeStepJob

    return DecodeStepJob()


def _collective() -> Job:
    from suite.jobs.collective import CollectiveJob

    return CollectiveJob()


def _calibration() -> Job:
    from suite.jobs.calibration import CalibrationJob

    return CalibrationJob()


class Jobs(Mapping[str, Job]):
    """Jobs by name, each imported when it is first looked up; iterating over them gives names and imports none."""

    def __init__(self, makers: Mapping[str, Callable[[], Job]]) -> None:
        self._makers = makers
        self._made: dict[str, Job] = {}

    def __getitem__(self, name: str) -> Job:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._makers  # Mapping's own would look the job up

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


JOBS = Jobs(
    {
        "gemm": _gemm,
        "grouped_gemm": _grouped_gemm,
        "attention": _attention,
        "decode": _decode,
        "decode_step": _decode_step,
        "collective": _collective,
        "calibration": _calibration,
    }
)


def find(name: str) -> Job:
    """Return a job by name, a plugin's too; an unknown one is named with its nearest neighbour.

    ``UsageError`` also for a plugin's that cannot be loaded.
    """
    if name in JOBS:
        return JOBS[name]
    from suite.plugins.jobs import outside_job
    from suite.plugins.offers import names

    job = outside_job(name)
    if job is None:
        raise UsageError(f"unknown job '{name}'{nearest(name, [*JOBS, *names('job')])}")
    return job
