"""What a rank and what it was told are called in the reason of a case, which has room for one line."""

from collections.abc import Mapping, Sequence

from backends.torch.collective.orders import Order
from suite.jobs.collective import Task
from suite.jobs.collective.sizes import size_text
from suite.ranks.places import Place


def order_words(order: Order, tasks: Mapping[int, Task]) -> str:
    """``Sample of all_reduce 4 KiB fp32 (own ring/library)``; ``tasks`` are the collectives by ticket."""
    task = tasks.get(getattr(order, "ticket", -1))
    name = type(order).__name__
    return name if task is None else f"{name} of {task_words(task)}"


def task_words(task: Task) -> str:
    """Operation, size, format and who computes it by what."""
    by = task.implementation if task.implementation == task.choice.label else f"{task.implementation} {task.choice.label}"
    return f"{task.op} {size_text(task.message.message_bytes)} {task.message.format} ({by})"


class Names:
    """Ranks by number, with the host where each is: a number too, as no store keeps hosts' names, and a run says whose it is.

    ``places`` are those of a launcher's ranks, else empty: all are children of this process then, and have a ``pid``.
    """

    def __init__(self, pids: Sequence[int], places: Sequence[Place] = ()) -> None:
        self._pids, self._places = pids, places
        self._hosts = list(dict.fromkeys(place.host for place in places))

    def of(self, numbers: Sequence[int]) -> str:
        """``rank 1 of 4 (host 2 of 2, local rank 0)``, ``rank 0 of 2 (host 1 of 1, pid 77)``, ``ranks 0, 2 of 3``."""
        ranks = f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))} of {len(self._pids)}"
        where = self._where(numbers)
        return f"{ranks} ({where})" if where else ranks

    def _where(self, numbers: Sequence[int]) -> str:
        if not self._places:
            return f"host 1 of 1, pid {self._pids[numbers[0]]}" if len(numbers) == 1 and self._pids[numbers[0]] else ""
        hosts = sorted({self._hosts.index(self._places[number].host) + 1 for number in numbers})
        said = f"host{'s' if len(hosts) > 1 else ''} {', '.join(map(str, hosts))} of {len(self._hosts)}"
        return f"{said}, local rank {self._places[numbers[0]].local_rank}" if len(numbers) == 1 else said
