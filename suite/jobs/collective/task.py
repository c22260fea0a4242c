"""A case of the job in the terms of collectives, and which combinations there are."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

from suite.case import Case, Items, Workload
from suite.collectives.choice import LIBRARY, OWN_ALGOS, Choice
from suite.collectives.choice import misfit as choice_misfit
from suite.collectives.message import Message, has_in_place, message
from suite.collectives.names import Algo, Op, Proto
from suite.collectives.transport import Transport

OWN, XLA = "own", "xla"
# Operations that leave their result elsewhere, and those that can do nothing else: torch.distributed has one form of each.
_ONLY_IN_PLACE = (Op.ALL_REDUCE, Op.BROADCAST)
_ON_PROCESSORS = ("cpu", XLA)  # backends whose ranks are of the host: processes, or devices that XLA is made to see


class Task(NamedTuple):
    """What every rank is told.  ``choice`` is asked of the library, or is the algorithm of roofbench's own."""

    message: Message
    implementation: str
    choice: Choice
    in_place: bool
    transport: Transport
    joined: bool = False  # by ranks that a launcher started

    @classmethod
    def of(cls, case: Case) -> Self:
        """The task of a planned case."""
        return cls.read(case.workload, case.implementation, case.switches)

    @classmethod
    def read(cls, workload: Workload, implementation: str, switches: Items) -> Self:
        """The task of a workload with its switches."""
        given = dict(switches)
        transport = Transport(str(given["transport"]))
        joined = bool(given.get("joined", False))
        return cls(message_of(workload), implementation, _choice(given), bool(given["in_place"]), transport, joined)

    @property
    def op(self) -> Op:
        return self.message.op

    @property
    def ranks(self) -> int:
        return self.message.ranks

    def misfit(self) -> str | None:
        """Why there is no such combination; ``None`` where there is one."""
        if self.implementation == OWN:
            return _own_misfit(self.op, self.choice)
        if self.transport is Transport.HOST:
            return "gloo cannot be told an algorithm or a protocol" if self.choice != Choice() else None
        return choice_misfit(self.op, self.choice, ll128=self.transport is Transport.DEVICE_LINK)


def message_of(workload: Workload) -> Message:
    """What a workload moves."""
    size, ranks = int(workload.param("message_bytes")), int(workload.param("world_size"))
    return message(Op(workload.param("op")), workload.format, ranks, size)


def misfit(case: Case) -> str | None:
    """Why a case is none that its backend can have, empty for another backend's transport; ``None`` where it is one."""
    task = Task.of(case)
    if (task.transport is Transport.HOST) != (case.backend in _ON_PROCESSORS):
        return ""
    return (_xla_misfit(task) if case.backend == XLA else None) or task.misfit()


def _xla_misfit(task: Task) -> str | None:
    if task.implementation == OWN:
        return "roofbench has no tree of its own on XLA" if task.choice.algo is Algo.TREE else None
    return "XLA cannot be told an algorithm or a protocol" if task.choice != Choice() else None


def forms(op: Op, asked: Iterable[bool]) -> tuple[bool, ...]:
    """Whether in place, of what is asked; an operation that has one form only has that one."""
    only = True if op in _ONLY_IN_PLACE else None if has_in_place(op) else False
    return tuple(dict.fromkeys(asked)) if only is None else (only,)


def _choice(switches: Mapping[str, Any]) -> Choice:
    algo, proto = switches["algo"], switches["proto"]
    return Choice(None if algo == LIBRARY else Algo(algo), None if proto == LIBRARY else Proto(proto))


def _own_misfit(op: Op, choice: Choice) -> str | None:
    if choice.proto is not None:
        return f"roofbench's own algorithms are made of sends and receives, which have no {choice.proto} to choose"
    if choice.algo is None:
        return "roofbench's own algorithms are chosen by name"
    return None if choice.algo in OWN_ALGOS.get(op, ()) else f"roofbench has no {choice.algo} of its own for {op}"
