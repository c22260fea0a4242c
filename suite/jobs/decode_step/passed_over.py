"""What decode_step's settings ask for that makes no case; one list of formats serves both parts, so it is no mistake."""

from collections.abc import Iterator
from typing import Any

from suite.jobs.decode_step.formats import FORMATS
from suite.jobs.decode_step.sizes import STEP
from suite.values import written


def lines(settings: Any) -> Iterator[str]:
    """Lines for people, without an end; none where each part that was asked for has every format."""
    for part in dict.fromkeys(settings.parts):
        without = [name for name in dict.fromkeys(settings.formats) if name not in FORMATS[part]]
        if without:
            yield f"left out: parts={part} in {', '.join(without)}: it is in {', '.join(FORMATS[part])}"
    if STEP not in settings.parts:
        usual = type(settings)()
        for name in ("kv_lens", "page_sizes"):
            if getattr(settings, name) != getattr(usual, name):
                yield f"left out: {name}={written(getattr(settings, name))}: parts name no {STEP}"
