"""A report as one HTML file that needs nothing else: no network, no server, no other file.

Scripts run by their hash only (Content-Security-Policy), so that text from a store could not run even if it got
past the escaping.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import plotly.graph_objects as go

from suite.outcome import Outcome
from suite.report.cases import DIGITS, POINTS
from suite.report.collective_html import collective_figures, collective_sections
from suite.report.contest_html import contest_section
from suite.report.derived import roof_name
from suite.report.document import DeviceReport, ReportDocument, RunReport
from suite.report.figures import CHART_CONFIG, roofline_figure
from suite.report.glossary import GLOSSARY
from suite.report.headlines import NO_RESULT, Headline, about, rate
from suite.report.ladder import ABOUT, Ladder
from suite.report.ladder_figure import drawn, ladder_figure
from suite.report.lever_html import lever_figures, lever_sections
from suite.report.method import METHOD, OUTCOMES
from suite.report.palette import DOTTED, INKS, THEMES, Theme, format_colour
from suite.report.roofs import NO_ROOF, drawable
from suite.report.system import together
from suite.report.tables import ladder_table, results_table, system_table
from suite.report.tags import Html, figure_place, join, script_json, tag
from suite.report.targets_html import targets_section
from suite.report.words import case_detail, counted, marks, moment, percent
from suite.rows import ResultRow

_NOWHERE = "form-action 'none'; base-uri 'none'"
DATA_ID = "roofbench-data"
CASES_ID = "roofbench-cases"
_SIMULATED = "Not all numbers in this report are measured: some are {kinds}. They are drawn differently and make no headline."


def render_html(document: ReportDocument) -> str:
    """One self-contained page; the same document gives the same bytes."""
    scripts = (_plotly(), _asset("report.js"), _asset("cases.js"))
    devices = [device for run in document.runs for device in run.devices]
    body = tag(
        "body",
        _header(document),
        tag(
            "main",
            *contest_section(document.contests, document.several_devices),
            *(_run(document, run) for run in document.runs),
            *_compiled(document),
            _method(),
        ),
        tag("footer", tag("p", f"Made by roofbench {document.runs[0].info.version} from the run's stored samples.")),
        tag("script", script_json(document.data()), type="application/json", id=DATA_ID),
        *(data for index, device in enumerate(devices) for data in _device_data(index, device)),
        tag("script", script_json(_cases(devices)), type="application/json", id=CASES_ID),
        *(Html(f"<script>{script}</script>") for script in scripts),
    )
    page = tag("html", _head(document.title, scripts), body, lang="en")
    return f"<!doctype html>\n{page}\n"


def _compiled(document: ReportDocument) -> list[Html]:
    return [targets_section(document.compiled)] if document.compiled else []


def _head(title: str, scripts: tuple[str, ...]) -> Html:
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    policy = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; {_NOWHERE}"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        Html(f"<style>{_asset('report.css')}</style>"),
    )


def _header(document: ReportDocument) -> Html:
    notice = _SIMULATED.format(kinds=", ".join(document.evidence))
    return tag(
        "header",
        tag("p", "roofbench report", class_="kicker"),
        tag("h1", document.title),
        *([tag("p", notice, class_="notice", role="note")] if document.evidence else []),
    )


def _run(document: ReportDocument, run: RunReport) -> Html:
    first = sum(len(earlier.devices) for earlier in document.runs[: document.runs.index(run)])
    return tag(
        "article",
        tag("h2", f"Run {run.info.run}"),
        tag("p", _run_line(run), class_="meta"),
        *([tag("p", run.info.note, class_="meta")] if run.info.note else []),
        *(_device(run, device, first + index) for index, device in enumerate(run.devices)),
        _system(run),
        _again(run),
    )


def _run_line(run: RunReport) -> str:
    info = run.info
    parts = (
        f"experiment {info.experiment}" if info.experiment else "",
        info.status,
        f"started {moment(info.started_at)}",
        run.counts,
    )
    return " · ".join(part for part in parts if part)


def _device(run: RunReport, device: DeviceReport, index: int) -> Html:
    title = f"Roofline of {device.label}"
    heading = tag("h3", title, id=f"device-{index}")
    warned = [tag("p", _sentence(device.distrust), class_="notice", role="note")] if device.distrust else []
    levers = lever_sections(device.rows, device.label, index)
    parts = (*warned, _headlines(device), _figure(device, index), *_ladders(device, index), *levers)
    collectives = collective_sections(device.rows, device.label, index, device.shared_cores)
    parts = (*parts, *collectives, *_peaks(device), _results(run, device, index))
    return tag("section", heading, *parts)


def _headlines(device: DeviceReport) -> Html:
    if not device.headlines:
        if all(row.outcome == Outcome.OK and not row.flop_s for row in device.rows):
            return join(())  # collectives and calibrations have no place on it
        return tag("p", "No measured result reached the roofline; the table says how each case ended.", class_="notice")
    cards = (_card(headline) for headline in device.headlines)
    listed = tag("ul", *cards, class_="cards", aria_label="Best result of each format")
    return join((tag("p", about(device.headlines), class_="small"), listed))


def _card(headline: Headline) -> Html:
    colour = tag("i", style=_swatch(headline.format.split()[0]))
    second = headline.second
    return tag(
        "li",
        tag("span", colour, headline.format, class_="format"),
        *(_figures_of(headline.best, headline.source, headline.chosen_as) if headline.best else [tag("span", NO_RESULT)]),
        *([tag("span", second, class_="small second")] if second else []),
    )


def _swatch(name: str) -> str:
    """The format's colour of the theme, or of the light one where a browser does not know ``light-dark``."""
    light, dark = (format_colour(name, INKS[theme]) for theme in THEMES)
    drawn = (
        f"radial-gradient(circle,Canvas 25%,{colour} 30%)" if name in DOTTED else colour
        for colour in (light, _both(light, dark))
    )
    return ";".join(f"background:{each}" for each in drawn)


def _both(light: str, dark: str) -> str:
    return f"light-dark({light},{dark})"


def _figures_of(row: ResultRow, source: str, count: str) -> Iterator[Html]:
    known = row.fractions.spec is not None
    bound = f"{row.bound or 'unknown'} bound"
    yield tag("strong", percent(row.fractions.spec) if known else rate(row))
    yield tag("span", f"of {roof_name(row)}" if known else "share of spec n/a")
    yield tag("span", f"{rate(row)}, {bound}" if known else bound, class_="small")
    yield tag("span", ", ".join(filter(None, (case_detail(row), source))), class_="small")
    yield tag("span", _breakable(row.regime), class_="regime")
    if found := marks(row):
        yield tag("span", "; ".join(found), class_="small doubt")
    yield tag("span", count, class_="small")


def _breakable(regime: str) -> Html:
    """May wrap after each slash."""
    return Html(Html("/<wbr>").join(join([part]) for part in regime.split("/")))


def _has_roofline(device: DeviceReport) -> bool:
    return bool(device.roofs.lines) or any(map(drawable, device.rows))


def _figure(device: DeviceReport, index: int) -> Html:
    if not _has_roofline(device):
        return tag("p", NO_ROOF, class_="notice")
    drawn = sum(map(drawable, device.rows))
    text = (
        f"Attainable and achieved rate against arithmetic intensity, both logarithmic: {drawn} of {len(device.rows)} cases "
        "are points. The table below holds the same results as numbers."
    )
    plot = tag("div", class_="plot", id=f"plot-{index}", role="group", aria_label="Roofline")
    return tag("figure", plot, tag("figcaption", text))


def _ladders(device: DeviceReport, index: int) -> Iterator[Html]:
    """The first is open, the others are a click away: an experiment of many shapes has one for each regime of each."""
    if not device.ladders:
        return
    yield tag("h3", f"Precision ladder of {device.label}")
    yield tag("p", ABOUT, class_="small")
    for number, ladder in enumerate(device.ladders):
        parts = (*_ladder_plot(ladder, f"ladder-{index}-{number}"), tag("p", ladder.note, class_="small"), ladder_table(ladder))
        yield tag("details", tag("summary", ladder.title), *parts, class_="rungs", open=number == 0)


def _peaks(device: DeviceReport) -> Iterator[Html]:
    if device.peaks:
        yield tag("h3", f"Search for the maximum of {device.label}")
        yield tag("ul", *(tag("li", _sentence(line)) for line in device.peaks))


def _ladder_plot(ladder: Ladder, identity: str) -> Iterator[Html]:
    if ladder_figure(ladder) is None:
        return
    text = (
        f"Speed against quantisation error, both logarithmic: {len(drawn(ladder))} of {len(ladder.rungs)} lines of the table "
        "below are points, by its numbers."
    )
    yield figure_place(identity, text)


def _device_data(index: int, device: DeviceReport) -> Iterator[Html]:
    """The figures of a device as data, each for the place that waits for it."""
    if _has_roofline(device):
        yield _figure_data(f"plot-{index}", {theme: roofline_figure(device.rows, device.roofs, theme) for theme in THEMES})
    for number, ladder in enumerate(device.ladders):
        figures = {theme: ladder_figure(ladder, theme) for theme in THEMES}
        drawable_ones = {theme: figure for theme, figure in figures.items() if figure is not None}
        if drawable_ones:
            yield _figure_data(f"ladder-{index}-{number}", drawable_ones)
    collectives = collective_figures(device.rows, index, device.shared_cores)
    for target, drawings in (*lever_figures(device.rows, device.roofs, index), *collectives):
        yield _figure_data(target, drawings)


def _figure_data(target: str, figures: Mapping[Theme, go.Figure]) -> Html:
    content = {
        "data": json.loads(figures["light"].to_json())["data"],
        "themes": {name: _theme(figure) for name, figure in figures.items()},
        "config": CHART_CONFIG,
    }
    return tag("script", script_json(content), type="application/json", class_="figure", data_target=target)


def _cases(devices: Sequence[DeviceReport]) -> dict[str, Any]:
    """Every case that can be opened, by its result's id, how its series are packed, and the colours of both themes."""
    cases = {str(number): case for device in devices for number, case in device.cases.items()}
    return {"cases": cases, "digits": DIGITS, "points": POINTS, "themes": {name: ink._asdict() for name, ink in INKS.items()}}


def _theme(figure: go.Figure) -> dict[str, Any]:
    """What differs between themes: the layout, and the colours of each trace."""
    traces = json.loads(figure.to_json())
    return {"layout": traces["layout"], "colours": [_colours(trace) for trace in traces["data"]]}


def _colours(trace: dict[str, Any]) -> dict[str, Any]:
    marker, line, error = (trace.get(name, {}) for name in ("marker", "line", "error_y"))
    of_marker = {"marker": marker.get("color"), "outline": marker.get("line", {}).get("color")}
    return {**of_marker, "line": line.get("color"), "error": error.get("color")}


def _results(run: RunReport, device: DeviceReport, index: int) -> Html:
    identity = f"results-{index}"
    search = tag("input", type="search", class_="filter", data_table=identity, id=f"filter-{index}")
    caption = f"Every case of run {run.info.run} on {device.label}"
    return join(
        (
            tag("h3", f"Results of {device.label}"),
            *(tag("p", text, class_="small") for text in _opening(device)),
            tag("p", tag("label", "Show only rows with ", for_=f"filter-{index}"), search, class_="controls"),
            results_table(device.rows, caption, identity, device.cases),
        )
    )


def _opening(device: DeviceReport) -> Iterator[str]:
    if device.cases:
        yield (
            "Choose a case's name to see it over time: its samples, with clock, power and temperature beneath. "
            f"Series are drawn as at most {POINTS} values; the store keeps them whole."
        )
    if device.joules:
        yield f"{_sentence(device.joules)}."
    if device.unreadable:
        yield f"The samples of {counted(device.unreadable, 'case')} cannot be read; `roofbench store check` says what is wrong."


def _system(run: RunReport) -> Html:
    environment = (group._replace(fields=together(group.fields)) for group in run.system)
    groups = [*(group for device in run.devices for group in device.system), *environment]
    return tag("section", tag("h3", "System"), system_table(groups, "System description, each field with how it is known"))


def _again(run: RunReport) -> Html:
    info, command = run.info, run.command
    version = f"roofbench {info.version}" + (f", commit {info.commit}" if info.commit else ", commit not recorded")
    copy = tag("button", "Copy", type="button", class_="copy", aria_label="Copy the command")
    return tag(
        "section",
        tag("h3", "Run it again"),
        tag("p", f"In a clone of {version}, with the package installed:"),
        tag("div", tag("pre", tag("code", command.line), tabindex=0), copy, class_="command"),
        *(tag("p", f"Note: {caution}.", class_="small") for caution in command.cautions),
        tag("details", tag("summary", "The settings, as a file"), tag("pre", tag("code", command.file), tabindex=0), open=True),
    )


def _method() -> Html:
    return tag(
        "section",
        tag("h2", "Words used here"),
        tag("dl", *_definitions((term.name, _sentence(term.text)) for term in GLOSSARY), class_="method glossary"),
        tag("h2", "How it was measured"),
        tag("dl", *_definitions((topic.name, topic.text) for topic in METHOD), class_="method"),
        tag("h3", "How a case can end"),
        tag("dl", *_definitions((name.replace("_", " "), text) for name, text in OUTCOMES.items()), class_="outcomes"),
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _definitions(pairs: Iterator[tuple[str, str]]) -> Iterator[Html]:
    for name, text in pairs:
        yield tag("div", tag("dt", name), tag("dd", text))


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _asset(name: str) -> str:
    return files("suite.report").joinpath("assets", name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
