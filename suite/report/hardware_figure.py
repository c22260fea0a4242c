"""The catalogue in one figure: what each accelerator computes and moves by its sheet."""

from collections.abc import Collection, Sequence

import plotly.graph_objects as go

from suite.hardware.spec import HardwareSpec
from suite.report.axes import around
from suite.report.figures import frame, legend_above, legend_px, log_axis
from suite.report.heat import label
from suite.report.palette import DEVICE_COLOURS, INKS, Theme
from suite.report.words import rate_unit, si

_MARKER_PX, _CHOSEN_PX = 9, 14


def catalogue_figure(
    specs: Sequence[HardwareSpec], pipe: str, chosen: Collection[str] = (), theme: Theme = "light"
) -> go.Figure | None:
    """Dense peak on ``pipe`` against memory bandwidth, colour by maker; ``None`` where no sheet has both.

    Those in ``chosen`` (ids) are larger and named.
    """
    ink = INKS[theme]
    known = [(spec, peak, width) for spec in specs if (peak := spec.peak_flop_s(pipe)) and (width := spec.bandwidth_bytes_s)]
    if not known:
        return None
    makers = sorted({spec.vendor for spec, _, _ in known})
    figure = go.Figure()
    for number, maker in enumerate(makers):
        own = [each for each in known if each[0].vendor == maker]
        figure.add_trace(
            go.Scatter(
                x=[width for _, _, width in own],
                y=[peak for _, peak, _ in own],
                mode="markers+text",
                text=[label(spec.name) if spec.id in chosen else "" for spec, _, _ in own],
                textposition="top center",
                marker={
                    "color": DEVICE_COLOURS[number % len(DEVICE_COLOURS)],
                    "size": [_CHOSEN_PX if spec.id in chosen else _MARKER_PX for spec, _, _ in own],
                    "line": {"width": 0.7, "color": ink.background},
                },
                hovertext=[_hover(spec, pipe, peak, width) for spec, peak, width in own],
                hoverinfo="text",
                customdata=[spec.id for spec, _, _ in own],
                name=label(maker),
                meta="sheets",
            )
        )
    above_px = legend_px(makers)
    layout = frame(ink, ["declared by the makers, dense"], above_px)
    figure.update_layout(layout, legend=legend_above(above_px, layout["height"]), uirevision="kept")
    widths = around((width for _, _, width in known), below=1.6, above=1.6)
    figure.update_xaxes(log_axis("Memory bandwidth (B/s)", widths, ink, "~s"))
    peaks = around((peak for _, peak, _ in known), below=2.0, above=2.0)
    figure.update_yaxes(log_axis(f"{pipe} peak ({rate_unit(pipe)})", peaks, ink, "~s"))
    return figure


def _hover(spec: HardwareSpec, pipe: str, peak: float, width: float) -> str:
    ridge = f"ridge point {peak / width:.4g} {rate_unit(pipe).removesuffix('/s')}/B"
    lines = (f"{pipe} {si(peak, rate_unit(pipe))}, {si(width, 'B/s')}", ridge, spec.status)
    return "<br>".join([f"<b>{label(spec.name, 60)}</b>", *(label(line, 80) for line in lines if line)])
