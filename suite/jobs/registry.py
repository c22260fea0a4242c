"""Which jobs there are.  A new job is one file beside this one and one line here."""

from suite.errors import UsageError, nearest
from suite.jobs.attention import AttentionJob
from suite.jobs.calibration import CalibrationJob
from suite.jobs.collective import CollectiveJob
from suite.jobs.decode import DecodeJob
from suite.jobs.decode_step import DecodeStepJob
from suite.jobs.gemm import GemmJob
from suite.jobs.grouped_gemm import GroupedGemmJob
from suite.jobs.job import Job

JOBS: dict[str, Job] = {
    job.name: job
    for job in (
        GemmJob(),
        GroupedGemmJob(),
        AttentionJob(),
        DecodeJob(),
        DecodeStepJob(),
        CollectiveJob(),
        CalibrationJob(),
    )
}


def find(name: str) -> Job:
    """Return a job by name; an unknown one is named with its nearest neighbour."""
    if name not in JOBS:
        raise UsageError(f"unknown job '{name}'{nearest(name, JOBS)}")
    return JOBS[name]
