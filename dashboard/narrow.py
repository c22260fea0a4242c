"""Choices among the workloads of a job: by properties that have several values, each offered with what the ones before left."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import streamlit as st

from dashboard.address import choose_one
from dashboard.opening import as_asked
from dashboard.selection import Asked, Picked, Selection
from dashboard.shelf import Device
from dashboard.text import plain
from suite.case import sizes_of
from suite.hardware.models import Attention, all_models
from suite.outcome import Outcome
from suite.report.printable import shortened
from suite.rows import ResultRow

ALL = "all"
MOST_SHOWN = 48  # characters of a chosen name, of which a telephone shows one line
MOST_TOGETHER = 6  # combinations of values that are shown together where nothing is chosen
_HEADS = ("num_q_heads", "num_kv_heads", "head_dim", "v_head_dim")

Params = Mapping[str, Any]


class Property(NamedTuple):
    """Something by which workloads differ: its parameter in the address, its title, and its value in words.

    One that is ``alone`` is always one value: lines of two would not be rivals.  At first it is the value that most workloads
    have, or the largest where ``is_last``.  ``words`` is what an option is called.
    """

    name: str
    title: str
    value: Callable[[Params], str]
    alone: bool = True
    is_last: bool = False
    words: Callable[[str], str] = lambda option: option or "none"


def heads_of(params: Params) -> str:
    """``32/8x128``: heads as they are written on the command line."""
    return sizes_of({name: params[name] for name in _HEADS if name in params})[0]


@cache
def models_with(heads: str) -> tuple[str, ...]:
    """The named models whose attention has these heads."""
    known = ((model, model.attention) for model in all_models())
    return tuple(model.name for model, own in known if own.kind == "gqa" and heads == _written(own))


def _written(own: Attention) -> str:
    return heads_of(dict(zip(_HEADS, (own.query_heads, own.kv_heads, own.head_dim, own.head_dim), strict=True)))


def heads_words(heads: str) -> str:
    """``64/8x128: Llama-3.3-70B``: people ask by a model, a result knows its heads."""
    models = ", ".join(models_with(heads))
    return f"{heads}: {models}" if models else heads or "none"


def param(name: str) -> Callable[[Params], str]:
    """A parameter in words; empty where a workload has none."""
    return lambda params: str(params.get(name, ""))[:60]


def asked_of(selection: Selection) -> list[Asked]:
    """The workloads that any of the devices of a figure has results of."""
    return [each for device in selection.shown for each in selection.asked(device)]


def rows_of(selection: Selection, asked: Sequence[Asked]) -> list[ResultRow]:
    """Results of all these workloads: among them a page finds what it opens with."""
    return [row for picked in picked_of(selection, asked).values() for row in picked.rows]


def fields_of(properties: Sequence[Property], prefix: str) -> dict[str, Callable[[ResultRow], str]]:
    """Properties of rows, by their names in the address."""
    return {f"{prefix}{each.name}": partial(_value, each) for each in properties}


def _value(each: Property, row: ResultRow) -> str:
    return each.value(row.params)


def narrowed(
    asked: Sequence[Asked],
    properties: Sequence[Property],
    prefix: str,
    told: Sequence[ResultRow] = (),
    is_said: bool = True,
) -> list[Asked]:
    """Draw a choice for each property that has several values, and keep the workloads of the chosen ones.

    ``told`` are the rows that have what the page shows: at first a choice is one that leaves some of them.  What has one value
    only is no choice, and is said below them where it ``is_said``.
    """
    left, together, rows, fields = list(asked), 1, list(told), fields_of(properties, prefix)
    same: list[str] = []
    with st.container(horizontal=True):
        for each in properties:
            counts: dict[str, int] = {}
            for one in left:
                counts[each.value(one.params)] = counts.get(each.value(one.params), 0) + 1
            if len(counts) < 2:
                same += [f"{each.title.lower()} {each.words(value)}" for value in counts if value]
                continue
            options = sorted(counts, key=natural)
            found = {each.value(row.params) for row in as_asked(rows, fields, besides=f"{prefix}{each.name}")}
            among = [option for option in options if option in found] or options
            usual = among[-1] if each.is_last else max(among, key=lambda option: counts[option])
            if not each.alone:
                is_few = together * len(options) <= MOST_TOGETHER
                usual, together = (ALL, together * len(options)) if is_few else (usual, together)
                options = [ALL, *options]
            chosen = choose_one(each.title, f"{prefix}{each.name}", options, each.words, usual, follows=True)
            left = [one for one in left if chosen == ALL or each.value(one.params) == chosen]
            rows = [row for row in rows if chosen == ALL or each.value(row.params) == chosen]
    if same and is_said:
        st.caption(plain(f"All of them: {'; '.join(same)}."))
    return left


def natural(text: str) -> tuple[tuple[float, str], ...]:
    """Numbers in a text by their size: ``batch 8`` before ``batch 32``."""
    parts = text.replace("/", " ").replace("x", " ").split()
    return tuple((float(part), "") if part.isdecimal() and len(part) < 16 else (float("inf"), part) for part in parts)


def choose_device(selection: Selection) -> Device:
    """One device of a page that shows one at a time: at first the one that was last measured with any result."""
    names = {f"{device.store}.{device.uid}": selection.names[device] for device in selection.devices}
    measured = {device for device, group in selection.groups if group.outcome == Outcome.OK}
    latest = next((device for device in selection.latest if device in measured), selection.latest[0])
    if len(names) == 1:
        return selection.devices[0]
    shown = {name: shortened(text, MOST_SHOWN) for name, text in names.items()}
    chosen = choose_one("Device", "of", list(names), shown.__getitem__, default=f"{latest.store}.{latest.uid}")
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
