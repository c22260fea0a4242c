"""What one rank does in an algorithm of roofbench's own: in every step some sends and some receives.

The step numbers are those of the whole algorithm.  A message is sent and received in the step of the same number, all of a
step is posted before any of it is waited for, and no step needs what it receives itself: so no rank can wait for ever.
"""

from collections.abc import Iterable
from typing import NamedTuple

from suite.collectives.part import Part


class Send(NamedTuple):
    """To ``peer`` goes ``part`` of the buffer, as it stands when the step begins."""

    peer: int
    part: Part


class Receive(NamedTuple):
    """From ``peer`` comes ``part``: it is added to the buffer, or replaces it there."""

    peer: int
    part: Part
    add: bool


class Step(NamedTuple):
    """What a rank posts at once; ``number`` counts the algorithm's steps from 0, idle ones are left out."""

    number: int
    sends: tuple[Send, ...]
    receives: tuple[Receive, ...]


class Traffic(NamedTuple):
    """What one rank moves in all."""

    sent_elements: int
    received_elements: int
    messages: int  # sent


def traffic(steps: Iterable[Step]) -> Traffic:
    """Count what the steps of one rank move."""
    sent = received = messages = 0
    for step in steps:
        sent += sum(each.part.elements for each in step.sends)
        received += sum(each.part.elements for each in step.receives)
        messages += len(step.sends)
    return Traffic(sent, received, messages)
