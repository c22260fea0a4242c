"""How a run that a launcher started is started again, as far as its stored settings say."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from suite.ranks.launched import MPIRUN, SRUN, TORCHRUN

LAUNCHERS = f"{TORCHRUN}, {SRUN} or {MPIRUN}"
FIRST_HOST = "HOST:29500"  # a rendezvous is on one of the hosts, which are others now


class Launch(NamedTuple):
    """How many ranks there were; who started them and how many on each host, empty and 0 where that is not known."""

    ranks: int
    by: str = ""
    per_host: int = 0

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self | None:
        """The launch of a stored run, by its settings as JSON values; ``None`` for one that started its ranks itself."""
        jobs = config.get("jobs")
        settings = jobs.get("collective") if isinstance(jobs, Mapping) else None
        if not isinstance(settings, Mapping) or not isinstance(ranks := settings.get("joined"), int) or ranks < 2:
            return None
        by, per_host = settings.get("joined_by"), settings.get("joined_per_host")
        return cls(ranks, by if isinstance(by, str) else "", per_host if isinstance(per_host, int) else 0)

    @property
    def hosts(self) -> int:
        """0 where it is not known, or where they had different numbers of ranks."""
        return self.ranks // self.per_host if self.per_host > 0 and self.ranks % self.per_host == 0 else 0

    @property
    def start_again(self) -> str:
        """What to do to measure with as many ranks, under any launcher."""
        return f"start it again under {LAUNCHERS} with {self.ranks} ranks"

    @property
    def missing(self) -> str:
        """What no file of settings carries, as a clause, and what to do."""
        each = f"{self.per_host} a host" if self.hosts > 1 else "on one host" if self.hosts else ""
        known = ", ".join(filter(None, (self.by if self.by in LAUNCHERS else "", each)))
        return f"the launcher that started its {self.ranks} ranks{f' ({known})' if known else ''}; {self.start_again}"

    def under(self, line: str) -> str:
        """The shell line that has the launcher start ``line``; the line itself where the launcher's is not known.

        Over several hosts torchrun has to be started on each of them.
        """
        match self.by, self.hosts:
            case "torchrun", 1:
                return f"torchrun --standalone --nproc-per-node {self.ranks} --no-python {line}"
            case "torchrun", hosts if hosts > 1:
                where = f"--rdzv-backend c10d --rdzv-endpoint {FIRST_HOST}"
                return f"torchrun --nnodes {hosts} --nproc-per-node {self.per_host} {where} --no-python {line}"
            case "srun", 0:
                return f"srun --ntasks {self.ranks} {line}"
            case "srun", hosts:
                return f"srun --nodes {hosts} --ntasks-per-node {self.per_host} {line}"
            case "mpirun", _:
                return f"mpirun -n {self.ranks} {line}"
        return line


def under_launcher(config: Mapping[str, Any], line: str) -> str:
    """The shell line that repeats a stored run: ``line``, under the launcher that started it where one did."""
    launch = Launch.of(config)
    return line if launch is None else launch.under(line)
