"""Whether what was asked of a library is what ran, by its own log."""

from collections.abc import Iterable
from typing import NamedTuple

from suite.collectives.choice import Choice
from suite.collectives.log.choices import LoggedChoice, logged_bytes
from suite.collectives.log.reader import DebugLog
from suite.collectives.names import Op
from suite.collectives.version import NUMBERED_CHOICES


class Observation(NamedTuple):
    """What ran for one size.

    ``ran`` holds what the log names, each once: more than one where it changed between launches.  ``honoured`` is ``None``
    where the log cannot tell; the reason says why, or what ran instead.
    """

    ran: tuple[LoggedChoice, ...]
    honoured: bool | None
    reason: str | None


def observed(log: DebugLog, op: Op, message_bytes: int, ranks: int, asked: Choice) -> Observation:
    """Hold what was ``asked`` for messages of ``message_bytes`` against the choices in ``log``."""
    if log.version is None:
        return Observation((), None, "the log does not name the library's version")
    if log.version < NUMBERED_CHOICES:
        return Observation((), None, f"NCCL {log.version} does not log what it chose; from {NUMBERED_CHOICES} on it does")
    wanted = logged_bytes(op, message_bytes, ranks, log.version)
    ran = tuple(dict.fromkeys(each for each in log.choices if each.op in (op, None) and each.logged_bytes == wanted))
    if not ran:
        return Observation((), None, f"the log has no choice for {op} of {wanted} bytes; set NCCL_DEBUG_SUBSYS=INIT,TUNING")
    others = [each for each in ran if not _fits(each, asked)]
    if not others:
        return Observation(ran, True, None)
    plugin = f" ({log.tuner_plugin})" if log.tuner_plugin else ""
    return Observation(ran, False, f"asked for {asked.label}, ran {_named(others)}{plugin}")


def _fits(ran: LoggedChoice, asked: Choice) -> bool:
    return (asked.algo is None or ran.algo is asked.algo) and (asked.proto is None or ran.proto is asked.proto)


def _named(choices: Iterable[LoggedChoice]) -> str:
    return ", ".join(dict.fromkeys(each.kernel or f"{each.algo}/{each.proto}" for each in choices))
