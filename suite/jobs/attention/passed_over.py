"""What attention's settings ask for that makes no case; one setting serves several formats and lengths, so it is no mistake."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from suite.jobs.attention.formats import FORMATS
from suite.jobs.attention.sizes import SLIDING_WINDOW
from suite.jobs.axes import listed
from suite.values import written


def lines(settings: Any) -> Iterator[str]:
    """Lines for people, without an end; none where every value that was asked for is in some case of each format."""
    pairs = list(product(dict.fromkeys(settings.tokens), dict.fromkeys(settings.seq_lens)))
    longer = [f"seq_lens={length} of tokens={tokens}" for tokens, length in pairs if length > tokens]
    if longer:
        yield f"left out: {', '.join(longer)}: one sequence has more than all tokens"
    cut = [f"seq_lens={length} of tokens={tokens}" for tokens, length in pairs if length < tokens and tokens % length]
    if cut:
        yield f"left out: {', '.join(cut)}: tokens are those of whole sequences"
    if "backward" in settings.directions:
        without = [name for name in dict.fromkeys(settings.formats) if not FORMATS[name].has_gradients]
        if without:
            yield f"left out: {', '.join(without)} backward: it has no gradients"
    unused = [f"scaling={each}" for each in dict.fromkeys(listed(settings.scaling)) if each is not None]
    unused += ["hadamard=true"] if True in listed(settings.hadamard) else []
    if unused and not any(FORMATS[name].scalings for name in settings.formats):
        yield f"left out: {', '.join(unused)}: no format of this run has scales"
    if settings.windows not in ([], type(settings)().windows) and SLIDING_WINDOW not in settings.masks:
        yield f"left out: windows={written(settings.windows)}: masks name no {SLIDING_WINDOW}"
