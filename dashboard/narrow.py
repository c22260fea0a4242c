"""Choices among the workloads of a job: by properties that have several values, each offered with what the ones before left."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import streamlit as st

from dashboard.address import choose_one
from dashboard.selection import Asked, Picked, Selection
from dashboard.shelf import Device
from suite.case import sizes_of

ALL = "all"
MOST_TOGETHER = 6  # combinations of values that are shown together where nothing is chosen
_HEADS = ("num_q_heads", "num_kv_heads", "head_dim", "v_head_dim")

Params = Mapping[str, Any]


class Property(NamedTuple):
    """Something by which workloads differ: its parameter in the address, its title, and its value in words.

    One that is ``alone`` is always one value: lines of two would not be rivals.  At first it is the value that most workloads
    have, or the largest where ``is_last``.
    """

    name: str
    title: str
    value: Callable[[Params], str]
    alone: bool = True
    is_last: bool = False


def heads_of(params: Params) -> str:
    """``32/8x128``: heads as they are written on the command line."""
    return sizes_of({name: params[name] for name in _HEADS if name in params})[0]


def param(name: str) -> Callable[[Params], str]:
    """A parameter in words; empty where a workload has none."""
    return lambda params: str(params.get(name, ""))[:60]


def asked_of(selection: Selection) -> list[Asked]:
    """The workloads that any of the devices of a figure has results of."""
    return [each for device in selection.shown for each in selection.asked(device)]


def narrowed(asked: Sequence[Asked], properties: Sequence[Property], prefix: str) -> list[Asked]:
    """Draw a choice for each property that has several values, and keep the workloads of the chosen ones."""
    left, together = list(asked), 1
    with st.container(horizontal=True):
        for each in properties:
            counts: dict[str, int] = {}
            for one in left:
                counts[each.value(one.params)] = counts.get(each.value(one.params), 0) + 1
            if len(counts) < 2:
                continue
            options = sorted(counts, key=natural)
            usual = options[-1] if each.is_last else max(options, key=lambda option: counts[option])
            if not each.alone:
                is_few = together * len(options) <= MOST_TOGETHER
                usual, together = (ALL, together * len(options)) if is_few else (usual, together)
                options = [ALL, *options]
            chosen = choose_one(each.title, f"{prefix}{each.name}", options, _worded, usual)
            left = [one for one in left if chosen == ALL or each.value(one.params) == chosen]
    return left


def natural(text: str) -> tuple[tuple[float, str], ...]:
    """Numbers in a text by their size: ``batch 8`` before ``batch 32``."""
    parts = text.replace("/", " ").replace("x", " ").split()
    return tuple((float(part), "") if part.isdecimal() and len(part) < 16 else (float("inf"), part) for part in parts)


def choose_device(selection: Selection) -> Device:
    """One device of a page that shows one at a time: at first the one that was measured last."""
    names = {f"{device.store}.{device.uid}": selection.names[device] for device in selection.devices}
    latest = selection.latest[0]
    if len(names) == 1:
        return selection.devices[0]
    chosen = choose_one("Device", "of", list(names), names.__getitem__, default=f"{latest.store}.{latest.uid}")
    store, _, uid = chosen.partition(".")
    return Device(int(store), uid)


def picked_of(selection: Selection, asked: Sequence[Asked]) -> dict[Device, Picked]:
    """The newest results of some workloads, by device; devices that have none are left out."""
    found = {}
    for device in selection.shown:
        own = sorted({each.workload_id for each in asked if each.store == device.store})
        if own and (picked := selection.pick(device, workloads=own)).rows:
            found[device] = picked
    return found


def _worded(option: str) -> str:
    return option or "none"
