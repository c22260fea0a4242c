"""The spec catalogue: every accelerator with its sources, what fits on it, and what an hour of it is worth at a given price."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.address import choose, choose_one, given, is_elsewhere, put
from dashboard.figure import show
from dashboard.frames import frame_with_downloads, small_frame
from dashboard.stores import Stores
from dashboard.text import plain
from dashboard.theme import theme
from suite.hardware.catalogue import all_specs
from suite.hardware.fits import CONTEXTS, RESERVE, WEIGHT_BITS, fits
from suite.hardware.models import all_models
from suite.hardware.spec import PIPES, HardwareSpec
from suite.report.hardware_figure import catalogue_figure
from suite.report.hardware_sheet import cited, documents, fit_lines, sheet_lines
from suite.report.value import MOST, parse_prices, worth
from suite.report.words import counted, rate_unit

TITLE = "Hardware"
ORDER = 80
MOST_PRICED = 12


def render_stores(stores: Stores) -> None:
    """Draw the page; what stores hold is not needed, but their devices come first."""
    specs = all_specs()
    present = _present(stores)
    st.caption(_about(specs))
    with st.container(horizontal=True):
        makers = choose("Makers", "maker", sorted({spec.vendor for spec in specs}))
        shown = [spec for spec in specs if not makers or spec.vendor in makers]
        known = [name for name in ("bf16", *PIPES) if any(spec.peak_flop_s(name) for spec in shown)]
        pipe = choose_one("Peak of", "pipe", list(PIPES), default=next(iter(known), None), follows=True)
    figure = catalogue_figure(shown, pipe, present, theme())
    if figure is not None:
        show(figure, "catalogue", f"{pipe} peak against memory bandwidth of {len(shown)} accelerators", "roofbench-hardware")
    else:
        st.info(f"None of these sheets has a peak of {pipe} and a memory bandwidth: choose another, or other makers.")
    _table(shown, pipe, present)
    _prices(shown, pipe)
    _sheet(specs, present)


def _about(specs: Sequence[HardwareSpec]) -> str:
    """What the sheets are, and how many of their figures have no source that was recorded: not all of them do."""
    lines = [line for spec in specs for line in sheet_lines(spec)]
    without = sum(not documents([line]) for line in lines)
    but = f", but for {without} of {len(lines):,} whose source was not recorded" if without else ""
    return (
        f"{counted(len(specs), 'spec sheet')}: declared by the makers, dense, each figure with its source{but}. "
        "What was not found is left empty, never guessed."
    )


def _present(stores: Stores) -> set[str]:
    """The sheets of the devices in the open stores."""
    found = set()
    for shelf in stores.shelves:
        for uid in list(shelf.device_names())[:200]:
            hardware = shelf.device(uid).hardware
            if hardware:
                found.add(hardware)
    return found


def _table(specs: Sequence[HardwareSpec], pipe: str, present: set[str]) -> None:
    number = st.column_config.NumberColumn
    frame = pd.DataFrame([_line(spec, pipe, present) for spec in specs])
    columns = {
        "Name": st.column_config.TextColumn(pinned=True),
        "GB": number(format="%.4g", help="Memory capacity, in GB of 10^9 bytes"),
        "GB/s": number(format="%.5g", help="Memory bandwidth"),
        "Ridge": number(format="%.4g", help="Operations per byte from which arithmetic is the limit"),
        "TDP (W)": number(format="%.0f"),
        "Here": st.column_config.CheckboxColumn(help="A device of an open store was matched to this sheet"),
    }
    frame_with_downloads(frame, "hardware", "The spec catalogue", columns)


def _line(spec: HardwareSpec, pipe: str, present: set[str]) -> dict[str, Any]:
    peak, width, capacity = spec.peak_flop_s(pipe), spec.bandwidth_bytes_s, spec.memory.capacity_bytes.value
    rates = {name: spec.peak_flop_s(name) for name in dict.fromkeys((pipe, "bf16", "fp8", "fp4", "fp64", "int8"))}
    return {
        "Name": spec.name,
        "Maker": spec.vendor,
        "Year": str(round(spec.release.value)) if spec.release.value else None,
        "GB": capacity / 1e9 if capacity else None,
        "GB/s": width / 1e9 if width else None,
        **{f"{name} T{rate_unit(name)}": rate / 1e12 if rate else None for name, rate in rates.items()},
        "Ridge": peak / width if peak and width else None,
        "TDP (W)": spec.tdp_w.value,
        "Units": spec.units.value,
        "Status": spec.status,
        "Id": spec.id,
        "Here": spec.id in present,
    }


def _prices(specs: Sequence[HardwareSpec], pipe: str) -> None:
    st.subheader("For the money")
    st.caption("Give what an hour of a device costs you, in any currency: prices stay in this page's address and nowhere else.")
    prices = parse_prices(given("price"))
    by_id = {spec.id: spec for spec in specs}
    chosen = choose(
        "Devices with a price", "priced", list(by_id), lambda name: by_id[name].name, empty="None", most=MOST_PRICED
    )
    if not chosen:
        return
    with st.container(horizontal=True):
        for name in chosen:
            prices[name] = _price(by_id[name], prices.get(name))
    put("price", [f"{name}:{prices[name]:g}" for name in chosen if prices[name]])
    tokens = _tokens_of()
    lines = [_worth_line(by_id[name], pipe, tokens, prices[name]) for name in chosen if prices[name]]
    if lines:
        st.caption(
            "At most, by the sheets: at the declared peak or bandwidth all the time. A token is of one sequence, and reads "
            "every weight once; there is none where the weights do not fit beside a context of 4,096 tokens."
        )
        small_frame(lines, "What one unit of money buys")


def _price(spec: HardwareSpec, before: float | None) -> float:
    said, key = "What one hour of one device costs", f"price-{spec.id}"
    if key not in st.session_state or is_elsewhere("price"):
        st.session_state[key] = before or 0.0
    value = st.number_input(f"{plain(spec.name)}, an hour", 0.0, MOST, format="%.4f", key=key, help=said)
    return float(value or 0.0)


def _tokens_of() -> tuple[str, str]:
    """A model and the format of its weights; of a mixture of experts a token reads a part that is not counted here."""
    dense = [model.name for model in all_models() if not model.feed_forward.experts]
    pairs = {f"{name} in {format}": (name, format) for name in dense for format in WEIGHT_BITS}
    return pairs[choose_one("Tokens of", "tokens", list(pairs))]


def _tokens(spec: HardwareSpec, of: tuple[str, str], moved: float | None) -> float | None:
    """How many tokens so many bytes are, on a device that the model fits on."""
    found = fits(spec)
    rows = [row for row in found.rows if (row.model.name, row.format) == of and row.contexts[CONTEXTS[0]]] if found else []
    return moved / rows[0].weight_bytes if rows and moved else None


def _worth_line(spec: HardwareSpec, pipe: str, of: tuple[str, str], price: float) -> dict[str, Any]:
    peak, width = spec.peak_flop_s(pipe), spec.bandwidth_bytes_s
    found = worth(price, peak, width)
    unit = rate_unit(pipe).removesuffix("/s")
    return {
        "Name": spec.name,
        "Price of an hour": price,
        f"T{unit}/s for one unit an hour": peak / 1e12 / price if peak else None,
        "GB/s for one unit an hour": width / 1e9 / price if width else None,
        f"P{unit} for one unit": found.flop / 1e15 if found.flop else None,
        "TB moved for one unit": found.bytes / 1e12 if found.bytes else None,
        "Tokens for one unit": _tokens(spec, of, found.bytes),
    }


def _sheet(specs: Sequence[HardwareSpec], present: set[str]) -> None:
    st.subheader("One sheet")
    by_id: Mapping[str, HardwareSpec] = {spec.id: spec for spec in specs}
    first = next((name for name in by_id if name in present), next(iter(by_id)))
    spec = by_id[choose_one("Accelerator", "sheet", list(by_id), lambda name: by_id[name].name, default=first)]
    st.caption(plain(", ".join(filter(None, (spec.vendor, spec.architecture, spec.form_factor, spec.status, spec.id)))))
    lines = sheet_lines(spec)
    numbers = documents(lines)
    frame = pd.DataFrame(
        {
            "Part": line.part,
            "Figure": line.name,
            "Value": line.value,
            "Trust": line.confidence,
            "Sources": cited(line, numbers),
            "Remark": line.remark,
        }
        for line in lines
    )
    frame_with_downloads(frame, "spec-sheet", f"Spec sheet of {spec.name}")
    for source, number in numbers.items():
        address = f" <{source.url}>" if source.url and source.url.startswith(("https://", "http://")) else ""
        st.caption(f"\\[{number}\\] {plain(source.title)}{address}")
    for note in spec.notes:
        st.caption(plain(note, 1000))
    _fits(spec)


def _fits(spec: HardwareSpec) -> None:
    st.subheader("What fits")
    found = fits(spec)
    if found is None:
        st.caption("The memory size is not known.")
        return
    st.caption(
        f"One sequence with a cache in 16 bits, in {found.usable_bytes / 1e9:.1f} GB: the memory less {100 * RESERVE:.0f} % "
        "for activations, workspaces, the runtime and fragmentation."
    )
    frame = pd.DataFrame(
        {
            "Model": line.model,
            "Weights in": line.format,
            "Weights": line.weights,
            **{f"{at // 1024}k": answer for at, answer in zip(CONTEXTS, line.contexts, strict=True)},
            "Longest context": line.longest,
        }
        for line in fit_lines(found)
    )
    small_frame(frame, f"Models that fit on {spec.name}")
