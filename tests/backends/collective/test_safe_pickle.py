"""What comes from another host is an order, an answer, or nothing: a pickle that would call something is refused."""

import os
import pickle
import socket
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from backends.torch.collective.orders import Broke, Done, Expect, Fill, Make, Moves, OpenGroup, Row, Sample
from backends.torch.collective.safe_pickle import NetworkConnection, loads
from suite.collectives.log.reader import read_log
from suite.collectives.names import Algo, Op
from suite.collectives.part import Part
from suite.outcome import Outcome
from tests.backends.collective.helpers import task

LOG = "host:7:7 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\nhost:7:7 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RING proto LL\n"


@pytest.mark.parametrize(
    "said",
    [
        OpenGroup(3, "gloo", {"NCCL_ALGO": None}),
        Make(1, task(Op.ALL_REDUCE, 4, 4096, own=Algo.TREE), 3),
        Fill(1, "integers", 7),
        Sample(1, 20),
        Expect(1, (Part(0, 8),), 5),
        Broke(Outcome.CRASHED, "reason"),
        Done(Moves(6, 12, 12, 6)),
        Done([1, 2, 3]),
        Done(read_log(LOG)),
    ],
)
def test_orders_and_answers_pass(said: Any) -> None:
    assert loads(pickle.dumps(said)) == said


def test_arrays_of_numbers_pass() -> None:
    row = loads(pickle.dumps(Done(Row((np.arange(5.0),), float(np.float64(2)), 1, 0)))).value
    assert row.slices[0].tolist() == [0, 1, 2, 3, 4]
    assert loads(pickle.dumps(np.float64(2.5))) == 2.5


class Calls:
    def __init__(self, call: Callable[..., Any], *given: Any) -> None:
        self._reduced = call, given

    def __reduce__(self) -> Any:
        return self._reduced


def test_a_member_comes_through_however_a_version_of_python_writes_it_down() -> None:
    """Debian 12's, 3.11.2, names the class and has its attribute read: of ranks under it no order came through."""
    for written in (Calls(Algo, "tree"), Calls(getattr, Algo, "TREE")):
        assert loads(pickle.dumps([written])) == [Algo.TREE]


@pytest.mark.parametrize(
    "call",
    [
        Calls(os.system, "true"),
        Calls(eval, "1"),
        Calls(getattr, "a", "upper"),
        Calls(getattr, Algo, "mro"),
        Calls(getattr, Algo, "__class__"),
        Calls(getattr, Algo, "_member_map_"),
        Calls(getattr, Part, "_make"),
        Calls(getattr, Algo, 1),
        Calls(read_log, LOG),  # a function of roofbench's own room
        Calls(np.load, "/etc/passwd"),
    ],
)
def test_whatever_would_be_called_is_refused(call: Calls) -> None:
    with pytest.raises(pickle.UnpicklingError, match="is nothing that ranks tell each other"):
        loads(pickle.dumps(call))


@pytest.mark.parametrize("dotted", ["Enum.mro", "StrEnum"])
def test_nothing_is_reached_through_what_a_module_imports(dotted: str) -> None:
    """Protocol 4 resolves dots, and a module of ours names classes of others."""
    content = pickle.PROTO + b"\x04" + b"\x8c" + bytes([len("suite.outcome")]) + b"suite.outcome"
    content += b"\x8c" + bytes([len(dotted)]) + dotted.encode() + pickle.STACK_GLOBAL + pickle.STOP
    with pytest.raises(pickle.UnpicklingError):
        loads(content)


def test_a_connection_ends_where_nonsense_comes() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        connection = NetworkConnection(ours.detach())
        content = pickle.dumps(Calls(os.system, "true"))
        theirs.sendall(len(content).to_bytes(4, "big") + content)
        with pytest.raises(ConnectionError, match="no order or answer"):
            connection.recv()
        connection.close()
