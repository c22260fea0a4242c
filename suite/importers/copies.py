"""What stands in a text twice: files are appended to, and logs of several ranks are collected into one."""

from collections.abc import Sequence
from dataclasses import replace

from suite.importers.rows import CollectiveLog


def without_copies(logs: Sequence[CollectiveLog]) -> tuple[CollectiveLog, ...]:
    """A log that is there twice, to the last digit of every time, is one run."""
    kept: list[CollectiveLog] = []
    for log in logs:
        same = next((index for index, other in enumerate(kept) if log.rows and other.rows == log.rows), None)
        if same is None:
            kept.append(log)
        else:
            kept[same] = replace(kept[same], warnings=(*kept[same].warnings, "the same run stands in the text twice"))
    return tuple(kept)
