"""Why two results that belong together are not compared, in a few words for a list."""

from collections.abc import Iterator

from suite.compare.side import Entry
from suite.outcome import Evidence, Outcome

# Kinds of evidence that rest on samples of one clock; the others are a peer's figures or no times at all.
COMPARED = (Evidence.MEASURED, Evidence.SIMULATED)


def refusal(a: Entry, b: Entry) -> str:
    """Why two results with the same key say nothing of each other; empty where they are compared."""
    return next(_refusals(a, b), "")


def own_refusal(entry: Entry, side: str) -> str:
    """Why a result of ``side`` says nothing of any other; empty where it may."""
    return next(_own_refusals(entry, side), "")


def can_be_compared(entry: Entry) -> bool:
    """Whether a result is verified and was timed here."""
    return not own_refusal(entry, "")


def is_of_one_kind(a: Entry, b: Entry) -> bool:
    """Whether two results can be compared, and by one method version and kind of evidence are with each other."""
    return not refusal(a, b)


def ending(entry: Entry) -> str:
    """How a case ended, in words."""
    return entry.row.outcome.replace("_", " ")


def _refusals(a: Entry, b: Entry) -> Iterator[str]:
    if a.method_version != b.method_version:
        yield f"method version {a.method_version} against {b.method_version}: what is computed or timed has changed"
    if Outcome.OK not in (a.row.outcome, b.row.outcome):
        yield f"both {ending(a)}" if ending(a) == ending(b) else f"A {ending(a)}, B {ending(b)}"
    for name, entry in (("A", a), ("B", b)):
        if entry.row.outcome != Outcome.OK:
            yield f"{name} {ending(entry)}"
    if a.row.evidence != b.row.evidence:
        yield f"A is {a.row.evidence}, B {b.row.evidence}"
    if a.row.evidence not in COMPARED:
        yield f"both are {a.row.evidence}: only what was timed here is compared"
    for name, entry in (("A", a), ("B", b)):
        yield from _own_refusals(entry, name)


def _own_refusals(entry: Entry, side: str) -> Iterator[str]:
    if entry.row.outcome != Outcome.OK:
        yield f"{side} {ending(entry)}"
    if entry.row.evidence not in COMPARED:
        yield f"{side} is {entry.row.evidence}: only what was timed here is compared"
    if not entry.row.p50_s:
        yield f"{side} has no time"
