"""Cases of the precision ladder: every format with every scaling and zero point that it has."""

from suite.case import Case, Regime
from suite.jobs.gemm import FORMATS, GemmJob, GemmSettings
from tests.backends.cases import COLD

JOB = GemmJob()
PLAIN = ("fp64", "fp32", "tf32", "bf16", "fp16")
EVERYTHING = {"scaling": ["none", "tensor", "row", "block"], "zero_point": [False, True]}


def title(case: Case) -> str:
    """Format, scaling and zero point, for the name of a test."""
    semantics = dict(case.workload.semantics)
    parts = [case.workload.format, str(semantics.get("scaling", "")), "shifted" if semantics.get("zero_point") else ""]
    return "-".join(part for part in parts if part)


def ladder(
    m: int, n: int, k: int, *, distribution: str = "normal", backend: str = "cpu", regime: Regime = COLD, switch: str = ""
) -> list[Case]:
    """One case for each way of storing operands, with the switches that are planned first."""
    settings = GemmSettings(
        formats=[name for name in FORMATS if name not in PLAIN],
        shapes=[f"{m}x{n}x{k}"],
        distributions=[distribution],
        scaling=EVERYTHING["scaling"],
        zero_point=EVERYTHING["zero_point"],
    )
    JOB.check(settings)
    cases = []
    for workload in JOB.workloads(settings):
        switches, *_ = JOB.switches(settings, workload)
        cases.append(Case(workload, "library", backend, regime, switches, JOB.method_version))
    return cases
