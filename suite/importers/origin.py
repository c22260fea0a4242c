"""Whether a run was measured here, or imported."""

from suite.errors import UsageError
from suite.rows import RunInfo

CONFIG = "imported"  # the section of a run's configuration that says what was imported


def was_imported(info: RunInfo) -> bool:
    """Whether a run holds another tool's results."""
    return CONFIG in info.config


def imported_file(info: RunInfo) -> str:
    """The name of the file that was imported."""
    return str(dict(info.config[CONFIG]).get("file", "FILE"))


def refuse_imported(info: RunInfo) -> None:
    """Raise ``UsageError`` where there is nothing that could be measured again."""
    if was_imported(info):
        raise UsageError(
            f"run {info.run} was imported from {imported_file(info)}: it has no settings, and cannot be gone on with"
        )
