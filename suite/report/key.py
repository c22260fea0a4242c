"""The key under a figure: symbols and line styles in words, and what is not drawn.

It is text and not a second Plotly legend because its height has to be known before it is drawn.  A key is paragraphs, each of
entries or a note; a figure has them wrapped for a telephone, and a page that knows its width wraps them anew.
"""

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from suite.outcome import Evidence, Outcome
from suite.report.palette import KIND_STROKES, LOAD_STROKES, OTHER_REGIME_GLYPH, REGIME_GLYPHS, RIM_WORDS, RIMS
from suite.report.roofs import RoofSet, Setter, drawable
from suite.report.sources import sources_of
from suite.report.words import doubtful
from suite.rows import ResultRow

COLUMNS = 50  # what a screen of 390 px holds
GAP = "\u2002\u2002"  # between entries
_HELD = "\u00a0"  # keeps a glyph with its words


def key_lines(rows: Sequence[ResultRow], roofs: RoofSet) -> list[str]:
    """The roofline's: a paragraph of entries, then one for each note."""
    points = [row for row in rows if drawable(row)]
    entries = [*_regimes(points), *_evidence(points), *_sources(points), *_doubt(points), *_lines(roofs)]
    return [*listed(entries), *set_by(roofs), *_left_out(rows, len(points)), *roofs.notes]


def _regimes(points: Sequence[ResultRow]) -> Iterator[str]:
    """In the palette's order, cold, sustained, device first; regimes it does not know last."""
    found = {(row.cache, row.load, row.dispatch) for row in points}
    for regime in [*(known for known in REGIME_GLYPHS if known in found), *sorted(found - set(REGIME_GLYPHS))]:
        yield f"{REGIME_GLYPHS.get(regime, OTHER_REGIME_GLYPH)} {'/'.join(regime)}"


def _evidence(points: Sequence[ResultRow]) -> Iterator[str]:
    for kind in sorted({row.evidence for row in points} - {Evidence.MEASURED.value}):
        yield f"○ hollow: {kind}" if kind == Evidence.SIMULATED else f"◉ {kind}"


def _sources(points: Sequence[ResultRow]) -> Iterator[str]:
    """Which backend or execution has which rim; the last rim is for all the rest."""
    sources = sources_of(points)
    if sources.several:
        rest = "; ".join(sources.names[len(RIMS) - 1 :])
        named = [*sources.names[: len(RIMS) - 1], *([rest] if rest else [])]
        yield from (f"{word}: {name}" for word, name in zip(RIM_WORDS, named, strict=False))


def _doubt(points: Sequence[ResultRow]) -> Iterator[str]:
    if any(map(doubtful, points)):
        yield "faded: not resolved, not converged, not steady or contended"


def _lines(roofs: RoofSet) -> Iterator[str]:
    if roofs.of_kind("spec"):
        yield "solid: spec roof"
    yield from (f"{stroke}: {kind}" for kind, stroke in KIND_STROKES.items() if roofs.of_kind(kind))
    for load in sorted({roof.load or "" for roof in roofs.of_kind("empirical")}, reverse=True):
        yield f"{LOAD_STROKES.get(load, 'dashed')}: empirical, {load}"
    if roofs.memory_alone is not None:
        yield "dashed: empirical memory roof"


def set_by(roofs: RoofSet, whole: bool = True) -> Iterator[str]:
    """What set the empirical roofs, those of one case together: each is a result, and may be in doubt.

    Not ``whole``: only those that are in doubt or of another format than their pipe's name.
    """
    names: dict[Setter, list[str]] = {}
    lines = roofs.of_kind("empirical")
    setters: dict[str, set[Setter | None]] = {}
    for line in lines:
        setters.setdefault(", ".join(line.pipes), set()).add(line.set_by)
    for line in lines:
        if line.set_by is not None:
            pipes = ", ".join(line.pipes)
            name = pipes if len(setters[pipes]) == 1 else f"{pipes} {line.load}"
            names.setdefault(line.set_by, []).append(name)
    memories = [line.memory_set_by for line in lines]
    memories += [roofs.memory_alone.set_by] if roofs.memory_alone is not None else []
    for memory in dict.fromkeys(each for each in memories if each is not None):
        names.setdefault(memory, []).append("memory")
    for setter, whose in names.items():
        if whole or setter.doubt or setter.of:
            yield f"empirical {', '.join(dict.fromkeys(whose))} by {setter.words}"
    if any(setter.doubt for setter in names):
        yield "an empirical roof that a result in doubt has set may be wrong"


def _left_out(rows: Sequence[ResultRow], drawn: int) -> Iterator[str]:
    """What is in the results and not in the figure: counted, never silent."""
    failed = Counter(row.outcome for row in rows if row.outcome != Outcome.OK)
    counts = [f"{count} {name.replace('_', ' ')}" for name, count in sorted(failed.items())]
    without = len(rows) - failed.total() - drawn
    if without:
        counts.append(f"{without} without arithmetic")
    if counts:
        yield f"not drawn: {', '.join(counts)}"


def listed(entries: Sequence[str]) -> Iterator[str]:
    """The paragraph of these entries, whose words stay together where a line holds them; none where there are none."""
    if entries:
        yield GAP.join(" ".join(entry.split()).replace(" ", _HELD) for entry in entries)


def wrapped(paragraphs: Iterable[str], columns: int = COLUMNS) -> list[str]:
    """As many entries on a line of ``columns`` characters as fit; one that is longer has lines of its own."""
    lines: list[str] = []
    for paragraph in paragraphs:
        begun = len(lines)
        for part in (part for entry in paragraph.split(GAP) for part in _parts(entry, columns)):
            if len(lines) > begun and len(lines[-1]) + len(GAP) + len(part) <= columns:
                lines[-1] += GAP + part
            else:
                lines.append(part)
    return lines


def _parts(entry: str, columns: int) -> list[str]:
    is_held = _HELD in entry
    return [part.replace(" ", _HELD) if is_held else part for part in textwrap.wrap(entry.replace(_HELD, " "), columns)]
