"""What decode's settings ask for that makes no case; one setting serves several formats and lengths, so it is no mistake."""

from collections.abc import Iterator
from typing import Any

from suite.jobs.axes import listed
from suite.jobs.decode.fit import misfit
from suite.jobs.decode.formats import FORMATS
from suite.jobs.decode.job import sizes_asked


def lines(settings: Any) -> Iterator[str]:
    """Lines for people, without an end; none where every value that was asked for is in some case of each format."""
    told: dict[str, dict[str, None]] = {}
    for found in filter(None, map(misfit, sizes_asked(settings))):
        told.setdefault(found.why, {})[found.what] = None
    for why, each in told.items():
        yield f"left out: {'; '.join(each)}: {why}"
    unused = [
        f"{name}={each}"
        for name in ("scaling", "activation")
        for each in dict.fromkeys(listed(getattr(settings, name)))
        if each is not None
    ]
    if unused and not any(FORMATS[name].is_quantised for name in settings.formats):
        yield f"left out: {', '.join(unused)}: no format of this run has 8 bits"
