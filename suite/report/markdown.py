"""A report as Markdown: the same content without the interactive figure, for a repository or a comment."""

import re
from collections.abc import Iterable, Iterator, Sequence

from suite.report.collective_markdown import collective_blocks
from suite.report.columns import COLUMNS, told
from suite.report.contest_markdown import contest_blocks
from suite.report.document import DeviceReport, ReportDocument, RunReport
from suite.report.glossary import GLOSSARY
from suite.report.headlines import NO_RESULT, Headline, about, rate
from suite.report.ladder import ABOUT, Ladder
from suite.report.ladder_columns import columns
from suite.report.lever_markdown import lever_blocks
from suite.report.method import METHOD, OUTCOMES
from suite.report.roofs import NO_ROOF, Roof
from suite.report.system import Group, together
from suite.report.targets_markdown import targets_blocks
from suite.report.words import UNKNOWN, case_detail, counted, marks, moment, percent, rate_unit, si
from suite.rows import ResultRow

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~$#])")
_SPACE = re.compile(r"\s+")


def render_markdown(document: ReportDocument) -> str:
    """GitHub-flavoured Markdown; text from the store is escaped, so that it stays text."""
    blocks = [f"# {_text(document.title)}", *_evidence(document)]
    blocks += contest_blocks(document.contests, document.several_devices, _table, _text)
    for run in document.runs:
        blocks += _run(run)
    blocks += targets_blocks(document.compiled, _table, _text)
    blocks += ["## Words used here", "\n".join(f"- {_text(term.name)}: {_text(term.text)}" for term in GLOSSARY)]
    blocks += ["## How it was measured", *(f"**{topic.name}.** {_text(topic.text)}" for topic in METHOD)]
    blocks += [
        "### How a case can end",
        "\n".join(f"- {_text(name.replace('_', ' '))}: {text}" for name, text in OUTCOMES.items()),
    ]
    return "\n\n".join(blocks) + "\n"


def _evidence(document: ReportDocument) -> Iterator[str]:
    if document.evidence:
        kinds = ", ".join(document.evidence)
        yield f"> Not all numbers in this report are measured: some are {_text(kinds)}. They make no headline."


def _run(run: RunReport) -> Iterator[str]:
    info = run.info
    facts = [
        info.status,
        f"started {moment(info.started_at)}",
        run.counts,
    ]
    yield f"## Run {_text(info.run)}"
    yield _text(", ".join([f"experiment {info.experiment}", *facts] if info.experiment else facts))
    if info.note:
        yield _text(info.note)
    for device in run.devices:
        yield from _device(device)
    yield "### System"
    environment = (group._replace(fields=together(group.fields)) for group in run.system)
    groups = [*(group for device in run.devices for group in device.system), *environment]
    yield _table(("Field", "Value", "Known by", "Remark"), _system_rows(groups))
    yield from _again(run)


def _device(device: DeviceReport) -> Iterator[str]:
    yield f"### Roofline of {_text(device.label)}"
    if device.distrust:
        yield f"> {_text(device.distrust)}"
    if device.headlines:
        yield _text(about(device.headlines))
        titles = ("Format", "Of spec", "Rate", "Bound", "Case", "Regime", "Marks", "Chosen as", "Beside it")
        yield _table(titles, (_headline(headline) for headline in device.headlines))
    yield _roofs(device)
    yield from (_text(f"Note: {note}.") for note in device.roofs.notes)
    yield from _ladders(device)
    yield from lever_blocks(device.rows, device.label, _table, _text)
    yield from collective_blocks(device.rows, device.label, _table, _text, device.shared_cores)
    if device.peaks:
        yield f"### Search for the maximum of {_text(device.label)}"
        yield "\n".join(f"- {_text(line)}" for line in device.peaks)
    yield f"### Results of {_text(device.label)}"
    if device.joules:
        yield _text(f"Note: {device.joules}.")
    if device.unreadable:
        cases = counted(device.unreadable, "case")
        yield _text(f"The samples of {cases} cannot be read; `roofbench store check` says what is wrong.")
    shown = told(COLUMNS, device.rows)
    rows = [[column.text(row) for column in shown] for row in device.rows]
    yield _table([column.title for column in shown], rows) if rows else "No case has finished yet."


def _ladders(device: DeviceReport) -> Iterator[str]:
    if not device.ladders:
        return
    yield f"### Precision ladder of {_text(device.label)}"
    yield _text(ABOUT)
    for ladder in device.ladders:
        yield f"#### {_text(ladder.title)}"
        yield _text(ladder.note)
        yield _ladder(ladder)


def _ladder(ladder: Ladder) -> str:
    shown = columns(ladder)
    return _table([column.title for column in shown], ([column.text(rung) for column in shown] for rung in ladder.rungs))


def _headline(headline: Headline) -> Sequence[str]:
    row = headline.best
    if row is None:
        return (headline.format, *[""] * 6, NO_RESULT, headline.second)
    figures = (percent(row.fractions.spec), rate(row), row.bound or "unknown", _case(headline, row), row.regime)
    return (headline.format, *figures, "; ".join(marks(row)), headline.chosen_as, headline.second)


def _case(headline: Headline, row: ResultRow) -> str:
    return ", ".join(filter(None, (case_detail(row), headline.source)))


def _roofs(device: DeviceReport) -> str:
    memory = device.roofs.memory_alone
    alone = [] if memory is None else [("empirical", "memory", "", UNKNOWN, si(memory.bandwidth_bytes_s, "B/s"), UNKNOWN)]
    if not device.roofs.lines and not alone:
        return _text(NO_ROOF)
    return _table(("Roof", "Pipe", "Load", "Peak", "Bandwidth", "Ridge"), [*map(_roof, device.roofs.lines), *alone])


def _roof(roof: Roof) -> Sequence[str]:
    peak, bandwidth = si(roof.peak_flop_s, rate_unit(*roof.pipes)), si(roof.bandwidth_bytes_s, "B/s")
    return (
        roof.kind,
        ", ".join(roof.pipes),
        roof.load or "",
        peak,
        bandwidth,
        si(roof.ridge, rate_unit(*roof.pipes).replace("/s", "/B")),
    )


def _system_rows(groups: Iterable[Group]) -> Iterator[Sequence[str]]:
    for group in groups:
        for field in group.fields:
            yield (f"{group.title}: {field.name}", field.value, field.status, field.reason)


def _again(run: RunReport) -> Iterator[str]:
    commit = f"commit {run.info.commit}" if run.info.commit else "commit not recorded"
    yield "### Run it again"
    yield _text(f"In a clone of roofbench {run.info.version}, {commit}, with the package installed:")
    yield _fenced(run.command.line, "sh")
    yield from (_text(f"Note: {caution}.") for caution in run.command.cautions)
    yield "The settings, as a file:"
    yield _fenced(run.command.file.rstrip(), "yaml")


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *([_text(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(text: str) -> str:
    """On one line, with everything escaped that Markdown would read as markup."""
    return _SPECIAL.sub(r"\\\1", _SPACE.sub(" ", text)).replace("://", "\\://")


def _fenced(code: str, language: str) -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"
