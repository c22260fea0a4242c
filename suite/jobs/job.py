"""The contract of a job: it names workloads, counts their work, and says how exact a right answer is."""

from collections.abc import Hashable, Iterator
from typing import Any, Protocol, runtime_checkable

from suite.case import Case, Items, Regime, Workload
from suite.settings import JobSettings
from suite.work import Footprint, Work


class Job(Protocol):
    """One kind of kernel.  Stateless: everything is a pure function of settings or of a workload."""

    @property
    def name(self) -> str: ...

    @property
    def method_version(self) -> int:
        """Raised when a formula or the timing method changes: old results are then other cases."""
        ...

    @property
    def settings_type(self) -> type[JobSettings]: ...

    @property
    def formats(self) -> tuple[str, ...]: ...

    @property
    def implementations(self) -> tuple[str, ...]: ...

    @property
    def usual_regimes(self) -> tuple[Regime, ...]:
        """What ``standard`` means for this job; empty where it is the profile of kernels: cold, one warm, burst if it tells."""
        ...

    def check(self, settings: Any) -> None:
        """Raise ``UsageError`` for settings that name nothing measurable."""
        ...

    def workloads(self, settings: Any) -> Iterator[Workload]:
        """Expand the axes, in a fixed order and without repeats."""
        ...

    def switches(self, settings: Any, workload: Workload) -> tuple[Items, ...]:
        """The sets of precision and library switches to measure this workload with: at least one, without repeats."""
        ...

    def misfit(self, case: Case) -> str | None:
        """Why implementation, backend and switches do not go together, so that there is no such case to plan; else ``None``.

        Empty where that follows from the backend alone and is nobody's wish.
        """
        ...

    def work(self, workload: Workload, switches: Items = ()) -> Work:
        """``pipe`` is the one that executes with these switches."""
        ...

    def footprint(self, workload: Workload, switches: Items = ()) -> Footprint: ...

    def tolerance(self, workload: Workload, switches: Items) -> float:
        """Largest acceptable norm(out - ref) / norm(ref); 0 where the result must be exact."""
        ...


@runtime_checkable
class MadeOnce(Protocol):
    """A job some of whose cases need the same to be made for them, which takes longer than to measure one."""

    def made_for(self, case: Case) -> Hashable:
        """What is made: cases with an equal answer are measured one after the other."""
        ...
