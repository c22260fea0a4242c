"""What a page's choices are at first: never what nothing has, unless a person or a link asks for it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from dashboard.address import asked_for
from suite.report.curves import Quantity
from suite.rows import ResultRow

Tells = Callable[[ResultRow, Quantity], bool]


def tells(row: ResultRow, value: Quantity) -> bool:
    """Whether a figure of ``value`` has a place for the row."""
    return value.value(row) is not None


def first_value(rows: Sequence[ResultRow], values: Mapping[str, Quantity], usual: str, has: Tells = tells) -> str:
    """The name of the usual value where any row has it, else of the first that one has."""
    order = [usual, *(name for name in values if name != usual)]
    return next((name for name in order if any(has(row, values[name]) for row in rows)), usual)


def first_option(options: Sequence[str], usual: Sequence[str], found: Iterable[str]) -> str:
    """The first of the usual options that is among the ``found`` ones, else what was found most; without any the usual one.

    ``found`` are the options of the rows that have something to show, each as often as there are such rows.
    """
    counts = Counter(found)
    among = [option for option in options if counts[option]] or list(options)
    return next((option for option in usual if option in among), max(among, key=lambda option: counts[option]))


def as_asked(rows: Iterable[ResultRow], fields: Mapping[str, Callable[[ResultRow], str]], besides: str = "") -> list[ResultRow]:
    """The rows that agree with what is asked for of each field, by its name in the address; what no row has is not applied.

    ``besides`` names the field that a default is sought for: what is asked of it is no default.
    """
    left = list(rows)
    for name, field in fields.items():
        wanted = None if name == besides else asked_for(name)
        if wanted is not None and (own := [row for row in left if field(row) == wanted]):
            left = own
    return left
