"""One cell compiled: how it ended, with the facts or the reason, as JSON values."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from backends.targets.catalogue import Program
from backends.targets.refused import NothingFits, Refused
from suite.backend import Failure
from suite.outcome import Outcome
from suite.reason import named, one_line
from suite.targets.names import TRITON
from suite.worker.serve import caught

Answer = dict[str, Any]


def answer(program: Program, target: str) -> Answer:
    """``outcome``, ``reason``, ``configuration``, ``facts`` and ``seconds``; whatever a compiler raises is an outcome."""
    found: list[Answer] = []
    failure = caught(lambda: found.append(_became(program, target)), classify)
    if failure is not None:
        return _ended(failure.outcome, failure.reason)
    return found[0]


def classify(error: BaseException) -> Failure:
    """What the product does not offer is told before this; all else is an error, with the last thing that it says."""
    return Failure(Outcome.ERROR, one_line(_last_words(error)), fatal=False)


def _became(program: Program, target: str) -> Answer:
    try:
        return {**_ended(Outcome.OK, ""), **_compiled(program, target)}
    except Refused as refused:
        return _ended(Outcome.UNSUPPORTED, one_line(str(refused)))


def _compiled(program: Program, target: str) -> Mapping[str, Any]:
    module, _, function = program.make.partition(":")
    make = getattr(import_module(f"{__package__}.{module}"), function)
    if program.kind == TRITON:
        from backends.targets.choosing import became
        from backends.targets.devices import DEVICES

        device = DEVICES[target]
        return became(make(device, **program.given), device)
    from backends.targets.xla import became as became_by_xla

    return became_by_xla(make, target, dict(program.given))


def _ended(outcome: Outcome, reason: str) -> Answer:
    return {"outcome": outcome.value, "reason": reason, "configuration": "", "facts": {}, "seconds": 0.0}


def _last_words(error: BaseException) -> str:
    """Compilers say what is wrong at the end of what they say."""
    if isinstance(error, NothingFits):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1]}" if len(lines) > 1 else named(error)
