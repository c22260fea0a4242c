"""What the RAS service of NCCL and RCCL says of a running job: whether every rank of a communicator is there.

A number that was measured while one was missing is no result.
"""

import re
from typing import Any, NamedTuple

from suite.importers.json_stream import documents

_VERSION = re.compile(r"^[NR]CCL version (?P<version>\d+\.\d+\.\d+)", re.MULTILINE)
_JOB = re.compile(r"^\(total\).*\n\s*(?P<nodes>\d+)\s+\S+\s+\S+\s+(?P<processes>\d+)\s+(?P<gpus>\d+)\s*$", re.MULTILINE)
_GROUP = re.compile(
    r"^\s*(?P<group>\d+)\s+(?P<count>\d+)\s+(?P<nodes>\d+)\s+(?P<per_node>[\d-]+)\s+(?P<ranks>\d+)\s+(?P<present>\d+)\s+"
    r"(?P<status>[A-Z]+)\s+(?P<errors>\S+)\s*$",
    re.MULTILINE,
)
_MISSING = re.compile(r"^\s*Rank (?P<rank>\d+) -- GPU (?P<gpu>\S+) managed by process", re.MULTILINE)


class RasGroup(NamedTuple):
    """Communicators that look alike: ``ranks`` each, ``present`` of them answering in the whole group."""

    communicators: int
    ranks: int
    present: int
    status: str
    errors: str


class RasReport(NamedTuple):
    """``healthy`` is ``None`` where nothing came back: silence is not health."""

    library_version: str | None
    processes: int | None
    gpus: int | None
    groups: tuple[RasGroup, ...]
    missing_ranks: tuple[int, ...]
    healthy: bool | None
    warnings: tuple[str, ...]


def read_ras(text: str) -> RasReport:
    """Read the client's text or JSON."""
    found = [document.value for document in documents(text) if _is_report(document.value)]
    groups = (
        tuple(map(_group_of_json, found[0]["communicators"])) if found else tuple(map(_group_of_text, _GROUP.finditer(text)))
    )
    missing = _missing_of_json(found[0]) if found else tuple(int(each["rank"]) for each in _MISSING.finditer(text))
    job, version = _JOB.search(text), _VERSION.search(text)
    if not groups:
        said = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        return RasReport(version and version["version"], None, None, (), (), None, (f"no communicator is reported: {said}",))
    whole = not missing and all(group.present == group.communicators * group.ranks for group in groups)
    told = (
        () if whole else (f"ranks {', '.join(map(str, missing)) or 'unknown'} are missing: numbers of this job are no results",)
    )
    processes, gpus = (int(job["processes"]), int(job["gpus"])) if job else (None, None)
    name = found[0].get("nccl_version") if found else version and version["version"]
    return RasReport(name, processes, gpus, groups, missing, whole and all(group.errors == "OK" for group in groups), told)


def _is_report(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("communicators"), list)


def _group_of_text(found: re.Match[str]) -> RasGroup:
    return RasGroup(int(found["count"]), int(found["ranks"]), int(found["present"]), found["status"], found["errors"])


def _group_of_json(communicator: dict[str, Any]) -> RasGroup:
    missing = int(communicator["missing_ranks_count"])
    states = [rank["status"] for rank in communicator.get("ranks", [])]
    failed = any(state["async_error"] or state["abort_flag"] for state in states)
    errors = "INCOMPLETE" if missing else "ERROR" if failed else "OK"
    return RasGroup(1, int(communicator["size"]), int(communicator["ranks_count"]), "RUNNING", errors)


def _missing_of_json(report: dict[str, Any]) -> tuple[int, ...]:
    """Ranks that no entry of a communicator is of."""
    return tuple(
        rank
        for communicator in report["communicators"]
        if communicator["missing_ranks_count"]
        for rank in range(int(communicator["size"]))
        if rank not in {each["rank"] for each in communicator.get("ranks", [])}
    )
