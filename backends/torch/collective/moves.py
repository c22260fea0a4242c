"""How a rank carries a collective out: one call of the library, or the steps of an algorithm of roofbench's own."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from backends.torch.collective.buffers import ROOT, Buffers
from backends.torch.collective.orders import Moves
from suite.collectives import own
from suite.collectives.names import Op
from suite.collectives.part import Part
from suite.collectives.schedule import Step
from suite.jobs.collective import Task
from suite.jobs.collective.task import OWN

LARGEST_TAG = 2**30


class Launch(NamedTuple):
    """``call`` moves the data once; on a GPU it returns before they are there.  ``moves`` is known of own algorithms."""

    call: Callable[[], object]
    moves: Moves | None


def launch(task: Task, rank: int, buffers: Buffers, group: Any) -> Launch:
    """Make everything ready that a launch needs: nothing is allocated in it."""
    if task.implementation == OWN:
        return _own(task, rank, buffers, group)
    return Launch(_library(task.op, rank, task.ranks, buffers, group), None)


def _library(op: Op, rank: int, ranks: int, buffers: Buffers, group: Any) -> Callable[[], object]:
    sent, received = buffers.sent, buffers.received
    match op:
        case Op.ALL_REDUCE:
            return partial(dist.all_reduce, received, group=group)
        case Op.ALL_GATHER:
            return partial(_renamed("all_gather_single", "all_gather_into_tensor"), received, sent, group=group)
        case Op.REDUCE_SCATTER:
            return partial(_renamed("reduce_scatter_single", "reduce_scatter_tensor"), received, sent, group=group)
        case Op.ALL_TO_ALL:
            return partial(dist.all_to_all_single, received, sent, group=group)
        case Op.BROADCAST:
            return partial(dist.broadcast, received, src=ROOT, group=group)
        case _:
            from_last = dist.P2POp(dist.irecv, received, (rank - 1) % ranks, group=group)
            return partial(_exchange, [from_last, dist.P2POp(dist.isend, sent, (rank + 1) % ranks, group=group)])


def _renamed(now: str, before: str) -> Callable[..., object]:
    """A function of torch.distributed by its name from torch 2.12 on, where the one before warns, or by that."""
    found: Callable[..., object] = getattr(dist, now, None) or getattr(dist, before)
    return found


class _Posted(NamedTuple):
    """One step, ready to be posted: the messages, and what is added to the data once they are there."""

    messages: list[Any]
    added: list[tuple[torch.Tensor, torch.Tensor]]


def _own(task: Task, rank: int, buffers: Buffers, group: Any) -> Launch:
    data, into = _data(task.op, buffers), _share(task, rank)
    assert task.choice.algo is not None, "such a task does not exist"
    steps = list(own.steps(task.op, task.choice.algo, task.ranks, rank, data.numel(), data.element_size()))
    staged = data.new_empty(own.staged_elements(steps))
    posted = [_post(step, data, staged, group) for step in steps]
    run = partial(_run, posted)
    moves = _count(steps, posted)
    if task.op is Op.ALL_GATHER and not buffers.in_place:
        return Launch(partial(_after_copy, data[into.start : into.stop], buffers.sent, run), moves)
    if task.op is Op.REDUCE_SCATTER and not buffers.in_place:
        return Launch(partial(_between_copies, data, buffers, into, run), moves)
    return Launch(run, moves)


def _data(op: Op, buffers: Buffers) -> torch.Tensor:
    """What the steps work on.  A reduce_scatter that is not in place must leave what is sent as it is."""
    copied = op is Op.REDUCE_SCATTER and not buffers.in_place
    return torch.empty_like(buffers.sent) if copied else buffers.whole


def _share(task: Task, rank: int) -> Part:
    elements = min(task.message.send_elements, task.message.receive_elements)
    return Part(rank * elements, elements)


def _post(step: Step, data: torch.Tensor, staged: torch.Tensor, group: Any) -> _Posted:
    """Both ends of a pair order their messages by where the elements stand, as NCCL matches by order alone.

    What is received is posted first: gloo's word that a receiver is ready goes over the connection that carries the data the
    other way, and behind them two ranks would take turns instead of sending at once.
    """
    messages, added, at = [], [], 0
    for receive in sorted(step.receives, key=lambda each: each.part):
        target = _slice(data, receive.part)
        if receive.add:
            arriving = staged[at : at + receive.part.elements]
            at += receive.part.elements
            added.append((target, arriving))
        else:
            arriving = target
        messages.append(dist.P2POp(dist.irecv, arriving, receive.peer, group=group, tag=_tag(receive.part)))
    for send in sorted(step.sends, key=lambda each: each.part):
        messages.append(dist.P2POp(dist.isend, _slice(data, send.part), send.peer, group=group, tag=_tag(send.part)))
    return _Posted(messages, added)


def _run(steps: Sequence[_Posted]) -> None:
    for step in steps:
        _exchange(step.messages)
        for target, arrived in step.added:
            target.add_(arrived)


def _exchange(messages: list[Any]) -> None:
    for work in dist.batch_isend_irecv(messages):
        work.wait()


def _after_copy(into: torch.Tensor, sent: torch.Tensor, run: Callable[[], None]) -> None:
    into.copy_(sent)
    run()


def _between_copies(data: torch.Tensor, buffers: Buffers, share: Part, run: Callable[[], None]) -> None:
    data.copy_(buffers.sent)
    run()
    buffers.received.copy_(_slice(data, share))


def _count(steps: Sequence[Step], posted: Sequence[_Posted]) -> Moves:
    """Count what is handed to the library, message by message."""
    messages = [message for step in posted for message in step.messages]
    sent = [message.tensor.numel() for message in messages if message.op is dist.isend]
    received = sum(message.tensor.numel() for message in messages if message.op is dist.irecv)
    return Moves(max((step.number for step in steps), default=-1) + 1, sum(sent), received, len(sent))


def _slice(data: torch.Tensor, part: Part) -> torch.Tensor:
    return data[part.start : part.stop]


def _tag(part: Part) -> int:
    return part.start % LARGEST_TAG
