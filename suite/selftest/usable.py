"""From which of a device's selftests its repeatability is taken: what other work made, or failed, says nothing of the device.

Judged from what is stored each time, so that it holds for selftests that were stored before anything was left out of theirs.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from suite.selftest.record import CONTENTION, PRUNED, REPEATABILITY, UNKNOWN_LEFT_OUT, Finding, Selftest, Status
from suite.selftest.words import per_cent

# Cases measured beside other work that the stored figure holds: findings have it that left none of them out.
_CONTENDED_WITHIN = "contended_cases"


class Standing(NamedTuple):
    """``used`` is the selftest whose repeatability counts; ``refused`` the latest one, where it does not, and ``why``."""

    used: Selftest | None
    refused: Selftest | None = None
    why: str = ""


def standing(newest_first: Sequence[Selftest]) -> Standing:
    """Of one device under one backend: the latest, or where that tells nothing an earlier one of the device as it is now."""
    if not newest_first:
        return Standing(None)
    latest = newest_first[0]
    why = unusable(latest)
    if not why:
        return Standing(latest)
    earlier = (each for each in newest_first[1:] if not unusable(each) and _facts(each) == _facts(latest))
    return Standing(next(earlier, None), latest, why)


def unusable(selftest: Selftest) -> str:
    """Why a selftest's repeatability is not the device's; empty where it is."""
    return ", ".join(_reasons(selftest, {finding.name: finding for finding in selftest.findings}))


def _reasons(selftest: Selftest, found: Mapping[str, Finding]) -> Iterator[str]:
    repeats, contention = found.get(REPEATABILITY), found.get(CONTENTION)
    known = selftest.repeatability
    rel = known.worst_rel if known is not None else None
    disturbed = repeats.figures.get(_CONTENDED_WITHIN) if repeats else None
    if repeats and repeats.status is Status.FAIL:
        yield f"{REPEATABILITY} FAIL" + (f" ({per_cent(rel)} at the 95th percentile)" if rel is not None else "")
    if contention and contention.status is Status.FAIL:
        yield f"{CONTENTION} FAIL{_share(contention, 'contended', 'measurements')}"
    elif contention and repeats and _may_hold_company(contention, repeats):
        yield f"whether other work was there is not known{_share(contention, 'unknown', 'measurements')}"
    if repeats and disturbed:
        yield f"measured beside other work{_share(repeats, _CONTENDED_WITHIN, 'cases')}"
    if rel is None:
        why = repeats.says.partition(": ")[0] if repeats else "it asked for none"
        yield f"no {REPEATABILITY} was known ({why})"


def _may_hold_company(contention: Finding, repeats: Finding) -> bool:
    """Whether a figure of an older version holds cases of which nobody can tell; newer ones leave them out and count them."""
    unsure = contention.status is Status.UNAVAILABLE or bool(contention.figures.get("unknown"))
    return unsure and UNKNOWN_LEFT_OUT not in repeats.figures and repeats.status is not Status.UNAVAILABLE


def _share(finding: Finding, some: str, every: str) -> str:
    part, whole = (finding.figures.get(name) for name in (some, every))
    return f" ({part:g} of {whole:g})" if isinstance(part, int | float) and isinstance(whole, int | float) else ""


def _facts(selftest: Selftest) -> dict[str, str | None]:
    """What is true of the device; which runs were removed is true of the store."""
    return {name: value for name, value in selftest.facts.items() if name != PRUNED}
